//! Session summaries and their input.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compressed::FunctionChange;
use super::request::user_request;
use super::turn::{Turn, TurnStatus};
use crate::note::{Note, NoteKind};

/// Summary of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// What was accomplished, 2 to 4 sentences: outcomes, not process.
    pub summary: String,
    /// Most important changed files.
    pub key_files: Vec<String>,
    /// Significant technical decisions.
    pub key_decisions: Vec<String>,
}

/// Input for a summary: the whole session, never an earlier summary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionMaterial {
    /// Turns of the session, oldest first.
    pub turns: Vec<TurnText>,
    /// Observations of the session, oldest first.
    pub digests: Vec<Digest>,
    /// Notes that the agent recorded in the session, oldest first.
    pub notes: Vec<Note>,
    /// Descriptions of tool uses that are not processed yet. Their changes are not known.
    pub pending: Vec<String>,
}

/// The texts of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnText {
    /// Request of the user; empty if it was not reported.
    pub prompt: String,
    /// Closing message of the agent, or the summary that it wrote when its context was compacted.
    pub closing: Option<String>,
    /// How the turn ended.
    pub status: TurnStatus,
}

impl From<Turn> for TurnText {
    fn from(turn: Turn) -> Self {
        Self { prompt: turn.prompt, closing: turn.closing.or(turn.compact_summary), status: turn.status }
    }
}

impl SessionMaterial {
    /// Returns true if there are no observations, no notes and no closing messages.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
            && self.notes.is_empty()
            && self.turns.iter().all(|turn| turn.closing.is_none())
    }

    /// Returns the lines of the notes of a kind, oldest first.
    pub fn noted(&self, kind: NoteKind) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |note| note.kind == kind)
    }

    /// Returns the requests of the user, oldest first.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = String> {
        self.turns.iter().filter_map(|turn| user_request(&turn.prompt))
    }
}

/// The parts of an observation that a summary needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    /// Tool name.
    pub tool_name: String,
    /// Title: what was done.
    pub title: String,
    /// What happened and why.
    pub summary: String,
    /// Changed files.
    pub files_touched: Vec<String>,
    /// Changed functions.
    pub functions_changed: Vec<FunctionChange>,
}
