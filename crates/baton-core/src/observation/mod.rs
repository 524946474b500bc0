//! Stored observations, turns and session summaries.

mod compressed;
mod request;
mod stored;
mod summary;
mod turn;

pub use compressed::{
    CompressedObservation, FunctionAction, FunctionChange, MAX_SUMMARY_CHARS, MAX_TITLE_CHARS,
};
pub use request::{is_consent, is_interruption, is_task, user_request};
pub use stored::{Observation, Provenance, QueueStats, QueueStatus};
pub use summary::{Digest, SessionMaterial, SessionSummary, TurnText};
pub use turn::{Turn, TurnId, TurnIdError, TurnStatus, closing_message};
