//! Hook reports: a small report is read at once, a large one is streamed to a blocking thread while it arrives.

use std::io::{self, Cursor, Read};

use axum::body::{Body, Bytes};
use axum::http::HeaderMap;
use baton_app::observation::{Intake, MAX_WHOLE_BYTES, Report};
use baton_core::{ErrorCode, Fault};
use tokio::sync::mpsc;

use crate::http::body::{Incoming, MAX_DISCARDED_BYTES, Received, announced};
use crate::http::budget::{BodyBudget, Reservation, SMALL_BODY_BYTES};

/// Maximum number of received parts that wait to be read.
const QUEUED_PARTS: usize = 16;

/// A report and the memory reserved for it.
pub(super) struct ReceivedReport {
    pub(super) report: Report,
    pub(super) reservation: Option<Reservation>,
}

/// Reads the report from a body.
pub(super) async fn receive_report(
    intake: Intake,
    headers: &HeaderMap,
    body: Body,
    budget: &BodyBudget,
) -> Result<ReceivedReport, Fault> {
    let mut incoming = Incoming::new(headers, body);
    // A larger report is streamed, so that no more than this is in memory.
    let expected = announced(headers).unwrap_or(SMALL_BODY_BYTES);
    let Received { bytes: first, is_whole, reservation } =
        incoming.fill(budget, expected, MAX_WHOLE_BYTES).await?;
    if is_whole {
        let report = intake.read(&mut first.as_slice(), &mut |_| {})?;
        return Ok(ReceivedReport { report, reservation });
    }
    let (sender, parts) = mpsc::channel(QUEUED_PARTS);
    let reading = tokio::task::spawn_blocking(move || {
        let mut source = Cursor::new(first).chain(Parts { parts, part: Cursor::new(Bytes::new()) });
        intake.read(&mut source, &mut |_| {})
    });
    let mut received = 0;
    // The rest of an oversized report is read up to a limit, so that the client can finish sending and read
    // the response.
    while received < MAX_DISCARDED_BYTES
        && let Some(part) = incoming.next().await.transpose()
    {
        received += part.as_ref().map_or(MAX_DISCARDED_BYTES, Bytes::len);
        if sender.send(part).await.is_err() {
            break;
        }
    }
    drop(sender);
    let failed = |_| Fault::new(ErrorCode::Internal, "internal error; nothing was stored");
    let report = reading.await.map_err(failed)??;
    Ok(ReceivedReport { report, reservation })
}

/// A blocking reader of parts that arrive asynchronously.
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
