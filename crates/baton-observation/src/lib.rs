//! Reads hook reports and transcripts of agents.
//!
//! Owns the formats of the agents, the removal of private parts and secrets, how raw output is truncated and rendered,
//! and which observations replace earlier ones. Does not own where raw output is stored or how it is compressed.

mod agent_task;
mod client;
mod client_kind;
mod excerpt;
mod hook;

mod large_report;
mod lenient;
mod outcome;
mod own_call;
mod privacy;
mod render;
#[cfg(test)]
mod sample;
mod superseded;
mod tool_use;
pub mod transcript;
mod truncate;

pub use agent_task::{TASK_CREATION, add_task_subject, updated_task};
pub use client::{CLIENTS, Client, ClientKind, ContextLimit, agent_of_client, client_name};
pub use hook::{HookEvent, files_of, relative};

pub use large_report::{LargeReport, read_large};
pub use lenient::{LenientError, ReadError, read_excerpt, read_lenient};
pub use outcome::{
    Check, CheckKind, check, commit_message, is_check_word, is_failure, is_reading, is_reading_tool,
    may_include,
};
pub use own_call::is_own_call;
pub use privacy::{PRIVATE_MARK, make_private, redact_observation, redact_summary, without_private};
pub use render::{input_files, render};
pub use superseded::{SUBAGENT, is_todo_update, may_supersede, superseded};
pub use tool_use::ToolUse;
pub use truncate::{
    MAX_RAW_CHARS, count_lines, is_truncated, is_truncation_marker, truncate_list, truncate_output,
};
