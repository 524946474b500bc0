//! `baton setup`: connects coding agents with Baton by writing their hooks, MCP server and instructions.
//!
//! Each agent has a source file in `agents/`. Files of the user are edited in place, and their original content is
//! recorded, so that removal restores it.

mod agent;
mod agent_file;
mod agents;
mod change;
mod connection;
mod environment;
mod hook_command;
mod json_file;
mod record;
mod rpc;
mod texts;
mod toml_file;
mod user_file;

pub(crate) use agent::{Agent, StartCommand};
pub(crate) use agents::{all, find};
pub(crate) use change::{Action, Change, apply, changes_to_add, changes_to_remove};
pub(crate) use connection::{Files, files_of, mcp_tools, trust_problem};
pub(crate) use environment::{Scope, SetupEnvironment};
pub(crate) use record::Records;
