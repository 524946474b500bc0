//! The compressor without a model. It knows the tools of coding agents and the format of their output.
//!
//! Each kind of tool has a reader that turns one use into a title, a summary, a detail, and the changed files and
//! functions. A reader returns `None` for tools of another kind; unknown tools are handled by `other`. All code is
//! deterministic, linear in the size of the input, and makes no assumptions about its structure.

mod call;
mod changed_files;
mod checks;
mod closing;
mod code;
mod command;
mod completed;
mod compressor;
mod delegate;
mod draft;
mod edit;
mod excerpt;
mod facts;
mod git;
mod github;
mod history;
mod language;
mod lines;
mod mcp;
mod open_work;
mod other;
mod patch;
mod plan;
mod prose;
mod quoted_command;
mod read;
mod replaced;
mod run;
mod search;
mod shell;
mod skeleton;
mod structure;
mod summary;
mod text;
mod title;
mod verdict;
mod web;

pub use completed::completed_step;
pub use compressor::Offline;
pub use open_work::OpenWork;

#[cfg(test)]
mod tests;
