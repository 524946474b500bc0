//! An observation for tests.

use baton_core::observation::{CompressedObservation, Observation, Provenance};
use baton_core::{ObservationId, SessionId, Timestamp, Ulid};

/// Returns an observation of a tool use with this number as its id.
pub(crate) fn observation(number: u128, tool: &str, title: &str, summary: &str) -> Observation {
    Observation {
        id: ObservationId::new(Ulid::from(number)),
        queue_id: 1,
        session_id: SessionId::new(Ulid::from(1)),
        venture: "v".parse().unwrap(),
        repo: "o/r".parse().unwrap(),
        tool_name: tool.to_owned(),
        tool_use_id: None,
        compressed: CompressedObservation {
            title: title.to_owned(),
            summary: summary.to_owned(),
            ..CompressedObservation::default()
        },
        files: Vec::new(),
        provenance: Provenance::default(),
        raw_bytes: 0,
        captured_at: Timestamp::from_millis(0),
        compressed_at: Timestamp::from_millis(0),
    }
}
