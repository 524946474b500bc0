//! Observations: what one tool call taught, and what a session came to.
//!
//! Owns the shapes, what a model's answer must look like, how raw output is cut, rendered and made private, and when
//! something is tried again. Does not own where raw output is kept or who compresses it.

mod compressed;
mod hook;
mod lenient;
mod privacy;
mod stored;
mod summary;
mod tool_use;

pub use compressed::{
    CompressedObservation, FunctionAction, FunctionChange, MAX_SUMMARY_CHARS, MAX_TITLE_CHARS,
};
pub use hook::{HookEvent, files_of, relative};
pub use lenient::{LenientError, read_lenient};
pub use privacy::{PRIVATE_MARK, make_private, without_private};
pub use stored::{Observation, Provenance, QueueStats, QueueStatus};
pub use summary::{Digest, SessionMaterial, SessionSummary};
pub use tool_use::ToolUse;
