//! Rules of checkpoints: the saved context, views within a budget, and differences between contexts.
//!
//! Owns the run-time keys that are never saved, the classification of keys, views and structural differences. Storage
//! and compression are elsewhere; ids, metadata and delta chains are in `baton_core::checkpoint`.

pub mod classify;
mod condense;
mod context_text;
mod diff;
mod fair_cap;
mod layout;
mod saved;
mod view;

pub use context_text::ContextText;
pub use diff::{Change, ChangeKind, Diff, DiffLimits};
pub use layout::Level;
pub use saved::SavedContext;
pub use view::{Budget, Omission, OmissionKind, Overflow, Unlisted, View, ViewOptions};
