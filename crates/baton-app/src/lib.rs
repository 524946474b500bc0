//! Application layer: all operations of Baton.
//!
//! An [`Operation`] is a type with a wire name, typed parameters and output, an effect and a `run`. Every face (HTTP,
//! MCP, CLI, hooks, worker) calls [`App::call`], which implements what all calls need: access checks, secret scanning,
//! idempotency, the transaction and the request log. This crate does not depend on HTTP, MCP, the command line, SQL or
//! git.

pub mod agent;
mod any_operation;
mod app;
pub mod bundle;
mod call;
mod call_record;
mod catalog;
pub mod checkpoint;
mod checkpoint_usage;
mod clock;
mod context;
mod context_storage;
mod effects;
mod execution;
pub mod handoff;
pub mod id;
mod input;
mod machine;
pub mod maintenance;
pub mod memory;
mod model_trouble;
mod model_usage;
pub mod note;
pub mod observation;
mod open_call;
mod operation;
mod page;
mod prelude;
mod prepare;
pub mod recall;
mod registration;
mod repository;
pub mod request;
mod request_log;
pub mod request_params;
pub mod session;
mod settings;
mod shared;
mod spool;
mod store_counts;
mod store_errors;
mod summary;
pub mod task;
mod threads;
pub mod token;
mod transact;
pub mod turn;
mod worker_activity;

pub use any_operation::AnyOperation;
pub use app::{App, RefusedCall, replay_result};
pub use call::{Attachment, Call, Face, Reply, read_error};
pub use call_record::PageRequest;
pub use catalog::{find, registrations, routes, tools};
pub use clock::{Clock, Entropy, SystemClock, SystemEntropy};
pub use context::Context;
pub use machine::Machine;
pub use operation::{Effect, KeyUse, OnStore, Operation, Privacy, RequestFormat, RequestLogging, operation};
pub use page::Pagination;
pub use registration::{Filled, Method, Registration, Route, ToolBinding, ToolSet};
pub use request_log::RequestLog;
pub use settings::{ChatRecall, CheckpointSettings, ObservationSettings, ReadClosing, Settings, TurnPeriod};
pub use store_counts::{CachedCounts, StoreCounts};
