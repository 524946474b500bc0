//! Session summaries and their input.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::compressed::FunctionChange;
use super::request::{is_task, user_request, without_quoted_lines};
use super::turn::{Turn, TurnStatus};
use crate::note::{Note, NoteKind};

/// Summary of a session.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionSummary {
    /// What was accomplished, 2 to 4 sentences: outcomes, not process.
    pub summary: String,
    /// Most important changed files.
    pub key_files: Vec<String>,
    /// Technical decisions, for example `Store dates in UTC.`
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TurnText {
    /// Request of the user; empty if it was not reported.
    pub prompt: String,
    /// Closing message of the agent, or the summary that it wrote when its context was compacted.
    pub closing: Option<String>,
    /// How the turn ended.
    pub status: TurnStatus,
    /// Whether files are known to have been changed in it.
    pub has_changes: bool,
}

/// Closing message of Claude Code after a command such as `/exit`.
const NO_RESPONSE: &str = "No response requested.";

impl TurnText {
    /// Returns the closing message, unless it only says that there is none.
    pub fn answer(&self) -> Option<&str> {
        self.closing.as_deref().filter(|words| words.trim() != NO_RESPONSE)
    }
}

impl From<Turn> for TurnText {
    fn from(turn: Turn) -> Self {
        let Turn { prompt, closing, compact_summary, status, .. } = turn;
        Self { prompt, closing: closing.or(compact_summary), status, has_changes: false }
    }
}

impl SessionMaterial {
    /// Returns true if there are no observations, no notes and no closing messages.
    pub fn is_empty(&self) -> bool {
        self.digests.is_empty()
            && self.notes.is_empty()
            && self.turns.iter().all(|turn| turn.closing.is_none())
    }

    /// Returns the notes of a kind, oldest first.
    pub fn notes_of(&self, kind: NoteKind) -> impl Iterator<Item = &Note> {
        self.notes.iter().filter(move |note| note.kind == kind)
    }

    /// Returns the requests of the user without quoted lines, oldest first. A command without arguments that left no
    /// closing message and was followed by another request, for example `/ide`, is not one.
    pub fn requests(&self) -> impl DoubleEndedIterator<Item = String> {
        let mut requests: Vec<String> = Vec::new();
        let mut is_last_ignorable = false;
        for turn in &self.turns {
            let Some(request) = user_request(&turn.prompt).map(without_quoted_lines) else { continue };
            if is_last_ignorable {
                requests.pop();
            }
            let is_bare_command = request.starts_with('/') && !request.contains(char::is_whitespace);
            is_last_ignorable = is_bare_command && turn.closing.is_none();
            requests.push(request);
        }
        requests.into_iter()
    }

    /// Returns the closing message of the last request. `None` if the agent did not finish it.
    pub fn outcome(&self) -> Option<&str> {
        let is_last = |turn: &&TurnText| turn.answer().is_some() || user_request(&turn.prompt).is_some();
        self.turns.iter().rev().find(is_last)?.answer()
    }

    /// Returns the goal of the session: the first request, and the first that describes a task if it is another.
    pub fn goal(&self) -> Option<String> {
        let mut requests = self.requests();
        let first = requests.next()?;
        if is_task(&first) {
            return Some(first);
        }
        match requests.find(|request| is_task(request)) {
            Some(task) => Some(format!("{first}\n{task}")),
            None => Some(first),
        }
    }
}

/// The parts of an observation that a summary needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Digest {
    pub tool_name: String,
    /// Title: what was done.
    pub title: String,
    /// What happened and why.
    pub summary: String,
    /// Paths of the files that the tool changed, for example `src/main.rs`.
    pub files_touched: Vec<String>,
    pub functions_changed: Vec<FunctionChange>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(turns: &[(&str, Option<&str>)]) -> SessionMaterial {
        let turn = |(prompt, closing): &(&str, Option<&str>)| TurnText {
            prompt: (*prompt).to_owned(),
            closing: closing.map(str::to_owned),
            status: TurnStatus::Done,
            has_changes: false,
        };
        SessionMaterial { turns: turns.iter().map(turn).collect(), ..SessionMaterial::default() }
    }

    #[test]
    fn commands_that_did_nothing_are_not_requests() {
        let session = asked(&[("/ide", None), ("/review", Some("Done.")), ("Fix the login page", None)]);
        assert_eq!(session.requests().collect::<Vec<_>>(), ["/review", "Fix the login page"]);
        assert_eq!(asked(&[("/review", None)]).requests().collect::<Vec<_>>(), ["/review"]);
    }

    #[test]
    fn outcome_is_the_closing_message_of_the_last_request() {
        let exit = ("<command-name>/exit</command-name>", Some("No response requested."));
        assert_eq!(asked(&[("Fix it", Some("Fixed.")), exit]).outcome(), Some("Fixed."));
        let stopped =
            [("Fix it", Some("Fixed.")), ("Now test it", None), ("[Request interrupted by user]", None)];
        assert_eq!(asked(&stopped).outcome(), None);
    }

    #[test]
    fn the_goal_contains_the_first_task() {
        let task = "Add a command that lists all sessions";
        assert_eq!(asked(&[(task, None), ("Now test it", None)]).goal().as_deref(), Some(task));
        let session = asked(&[("/brainstorm", Some("What about?")), (task, None)]);
        assert_eq!(session.goal().unwrap(), format!("/brainstorm\n{task}"));
        assert_eq!(asked(&[]).goal(), None);
    }
}
