//! The real binary, run as people and agents run it.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod active_http;
mod checkout;
mod checkpoint_cli;
mod checkpoint_http;
mod cli;
mod concurrency_http;
mod crash;
mod degraded;
mod encryption;
mod handoff_http;
mod hook_bad_input;
mod hook_http;
mod hook_output;
mod hook_private;
mod hook_protocol;
mod hook_repo;
mod hook_unstored;
mod hooked;
mod http;
mod idempotency_http;
mod mcp_context;
mod mcp_http;
mod mcp_strict;
mod mcp_versions;
mod parity;
mod served;
mod session_end_http;
mod session_http;
mod snapshots;
mod task_cli;
mod task_crash;
mod task_drift;
mod task_index;
mod task_mcp;
mod task_race;
mod task_refusals;
mod task_relay;
mod text_http;
mod tokens_http;
mod worker_api;
mod worker_crash;
mod worker_lifecycle;
mod worker_work;
mod workplace;
