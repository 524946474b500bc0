//! The compressor that needs no model: it knows the tools of coding agents and what their output looks like.
//!
//! Each kind of tool has a reader that turns one use of it into a title, a summary, a detail, and the files and functions
//! that were changed. Readers answer nothing for tools that are not theirs; what no reader knows goes to `other`.
//! Everything is deterministic and linear in the size of the input, and never trusts its shape.

mod call;
mod code;
mod command;
mod compressor;
mod delegate;
mod edit;
mod facts;
mod git;
mod language;
mod lines;
mod mcp;
mod other;
mod patch;
mod plan;
mod read;
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

pub use compressor::Offline;

#[cfg(test)]
mod tests;
