//! The verbs, one file per noun: the arguments, the operation that is called, and the text that is printed.

pub(crate) mod archive;
pub(crate) mod checkpoint;
pub(crate) mod cleanup;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod context;
pub(crate) mod demo;
pub(crate) mod doctor;
pub(crate) mod handoff;
pub(crate) mod handoff_args;
pub(crate) mod hook;
pub(crate) mod import;
pub(crate) mod key;
pub(crate) mod mcp;
pub(crate) mod observation;
pub(crate) mod pause;
pub(crate) mod queue;
pub(crate) mod requests;
pub(crate) mod serve;
pub(crate) mod session;
pub(crate) mod status;
pub(crate) mod task;
pub(crate) mod token;
pub(crate) mod turn;
pub(crate) mod worker;
