//! Observations of tool uses, turns and session summaries.
//!
//! Owns their types, the prompts and answers of models, and how raw output is truncated, rendered and redacted. Does
//! not own where raw output is stored or which compressor is used.

mod agent_task;
mod answer;
mod compressed;
mod cost;
mod cut;
mod excerpt;
mod hook;
mod host;
mod intake;
mod lenient;
mod outcome;
mod own_call;
mod plain;
mod privacy;
mod prompt;
mod render;
mod stored;
mod summary;
mod superseded;
mod tool_use;
mod turn;

pub use agent_task::{TASK_CREATION, add_task_subject, updated_task};
pub use answer::{
    AnswerError, MAX_DETAIL_CHARS, observation_schema, read_observation, read_summary, summary_schema,
};
pub use compressed::{
    CompressedObservation, FunctionAction, FunctionChange, MAX_SUMMARY_CHARS, MAX_TITLE_CHARS,
};
pub use cost::Price;
pub use cut::{MAX_RAW_CHARS, count_lines, cut_output, is_cut_mark};
pub use hook::{HookEvent, files_of, relative};
pub use host::Host;
pub use intake::{LargeReport, read_large};
pub use lenient::{LenientError, ReadError, read_excerpt, read_lenient};
pub use outcome::{Check, CheckKind, check, commit_message, is_failure};
pub use own_call::is_own_call;
pub use plain::{one_line, visible};
pub use privacy::{PRIVATE_MARK, make_private, without_private};
pub use prompt::{Delimiter, Prompt, compress_prompt, summarize_prompt};
pub use render::render;
pub use stored::{Observation, Provenance, QueueStats, QueueStatus};
pub use summary::{Digest, SessionMaterial, SessionSummary, TurnText};
pub use superseded::{SUBAGENT, is_todo_update, may_supersede, superseded};
pub use tool_use::ToolUse;
pub use turn::{Turn, TurnId, TurnIdError, TurnStatus, closing_message};
