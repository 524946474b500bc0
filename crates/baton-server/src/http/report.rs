//! Hook reports: a small report is read at once, a large one is streamed to a blocking thread while it arrives.

use std::io::{Cursor, Read};

use axum::body::Body;
use axum::http::HeaderMap;
use baton_app::observation::{Intake, MAX_WHOLE_BYTES, Report};
use baton_core::{ErrorCode, Fault};
use futures_util::stream::try_unfold;
use tokio_util::io::{StreamReader, SyncIoBridge};

use crate::http::body::{Incoming, MAX_DISCARDED_BYTES, Received, announced};
use crate::http::budget::{BodyBudget, Reservation, SMALL_BODY_BYTES};

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
    let parts = try_unfold(incoming, async |mut incoming| {
        let part = incoming.next().await;
        part.map(|part| part.map(|part| (part, incoming)))
    });
    // An oversized report is read up to a limit, so that the client can finish sending and read the response.
    let rest = SyncIoBridge::new(StreamReader::new(Box::pin(parts))).take(MAX_DISCARDED_BYTES as u64);
    let reading =
        tokio::task::spawn_blocking(move || intake.read(&mut Cursor::new(first).chain(rest), &mut |_| {}));
    let failed = |_| Fault::new(ErrorCode::Internal, "internal error; nothing was stored");
    let report = reading.await.map_err(failed)??;
    Ok(ReceivedReport { report, reservation })
}
