//! Reports of hooks: a small one is read at once, a large one on a thread of its own while it comes.

use std::io::{self, Cursor, Read};

use axum::body::{Body, Bytes};
use baton_app::observation::{Intake, MAX_WHOLE_BYTES, Report};
use baton_core::{ErrorCode, Fault};
use http_body_util::BodyExt;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};

use crate::http::body::{MAX_DISCARDED_BYTES, PATIENCE};

/// How many parts of a body wait to be read.
const WAITING_PARTS: usize = 16;

/// Reads the report that a body holds.
pub(super) async fn receive_report(intake: Intake, mut body: Body) -> Result<Report, Fault> {
    let deadline = Instant::now() + PATIENCE;
    let mut first = Vec::new();
    while first.len() <= MAX_WHOLE_BYTES {
        match next_part(&mut body, deadline).await {
            Ok(Some(part)) => first.extend_from_slice(&part),
            Ok(None) => return intake.read(first.as_slice(), |_| {}),
            Err(error) => return Err(broken_off(error)),
        }
    }
    let (sender, parts) = mpsc::channel(WAITING_PARTS);
    let reading = tokio::task::spawn_blocking(move || {
        let source = Cursor::new(first).chain(Parts { parts, part: Cursor::new(Bytes::new()) });
        intake.read(source, |_| {})
    });
    let mut received = 0;
    // One that is too large is read on for a while, so that its sender hears why it was refused.
    while received < MAX_DISCARDED_BYTES
        && let Some(part) = next_part(&mut body, deadline).await.transpose()
    {
        received += part.as_ref().map_or(MAX_DISCARDED_BYTES, Bytes::len);
        if sender.send(part).await.is_err() {
            break;
        }
    }
    drop(sender);
    let broke = |_| Fault::new(ErrorCode::Internal, "something failed inside baton; nothing was stored");
    reading.await.map_err(broke)?
}

async fn next_part(body: &mut Body, deadline: Instant) -> io::Result<Option<Bytes>> {
    loop {
        match timeout_at(deadline, body.frame()).await {
            Ok(None) => return Ok(None),
            Ok(Some(Ok(frame))) => {
                // What is no data is a trailer.
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Ok(Some(Err(error))) => return Err(io::Error::other(error)),
            Err(_) => return Err(io::ErrorKind::TimedOut.into()),
        }
    }
}

fn broken_off(error: io::Error) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, "the body broke off before its end")
        .hint("send the whole body within 30 s")
        .caused_by(error)
}

/// A body that comes part by part, for somebody who blocks.
struct Parts {
    parts: mpsc::Receiver<io::Result<Bytes>>,
    part: Cursor<Bytes>,
}

impl Read for Parts {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.part.read(buffer)?;
            if read > 0 || buffer.is_empty() {
                return Ok(read);
            }
            match self.parts.blocking_recv() {
                Some(part) => self.part = Cursor::new(part?),
                None => return Ok(0),
            }
        }
    }
}
