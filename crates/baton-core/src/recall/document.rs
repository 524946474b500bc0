//! Indexed items: which texts of an item are searched, and which of its properties the ranking uses.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::analysis::terms;
use crate::id::SessionId;
use crate::name::{Repo, Venture};
use crate::time::Timestamp;
use crate::wire::wire_names;

/// Kind of an item that search can find.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantArray)]
#[strum(serialize_all = "snake_case")]
pub enum ItemKind {
    /// Request of a user and the agent's closing message.
    Turn,
    /// Record of one tool use, or an imported memory.
    Observation,
    /// Message from one session to the next.
    Handoff,
    /// Summary of a session.
    Summary,
    /// Saved context of a workflow.
    Checkpoint,
    /// Unit of work with roles.
    Task,
    /// One line that an agent or a person recorded.
    Note,
}

wire_names!(ItemKind);

impl ItemKind {
    pub const ALL: &'static [Self] = <Self as strum::VariantArray>::VARIANTS;
}

/// The searched text of an item as terms separated by spaces.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DocumentText {
    /// Terms of the title.
    pub title: String,
    /// Terms of the text.
    pub body: String,
    /// Terms of the paths of files.
    pub paths: String,
}

/// Maximum number of terms per field. The text of an item is bounded, but a session can touch thousands of files.
const MAX_FIELD_TERMS: usize = 2_000;

fn field(texts: &[&str]) -> String {
    let mut found = Vec::new();
    for text in texts {
        found.extend(terms(text));
        if found.len() >= MAX_FIELD_TERMS {
            found.truncate(MAX_FIELD_TERMS);
            break;
        }
    }
    found.join(" ")
}

impl DocumentText {
    /// Analyses the texts of an item.
    pub fn of(title: &str, body: &[&str], files: &[String]) -> Self {
        let paths: Vec<&str> = files.iter().map(String::as_str).collect();
        Self { title: field(&[title]), body: field(body), paths: field(&paths) }
    }

    /// Returns all terms, with repetitions.
    pub fn terms(&self) -> impl Iterator<Item = &str> {
        let fields = [&self.title, &self.body, &self.paths];
        fields.into_iter().flat_map(|field| field.split_ascii_whitespace())
    }

    /// Returns true if title and body are the same, whatever the paths are.
    pub fn has_same_words(&self, other: &Self) -> bool {
        (&self.title, &self.body) == (&other.title, &other.body)
    }

    /// Returns the number of terms.
    pub fn length(&self) -> u64 {
        self.terms().count() as u64
    }
}

/// An item as the index stores it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    pub kind: ItemKind,
    /// Id of the item.
    pub item: String,
    /// Id of the item in the system that it comes from, for example the id of a tool use.
    pub external_id: Option<String>,
    pub venture: Venture,
    /// Repository; none for checkpoints saved outside a repository.
    pub repo: Option<Repo>,
    /// Session that the item belongs to.
    pub session_id: Option<SessionId>,
    /// Branch of that session.
    pub branch: Option<String>,
    /// Agent that did the work.
    pub agent: Option<String>,
    /// Person who wrote the message, for imported conversations.
    pub author: Option<String>,
    /// Id of the turn that the item belongs to.
    pub turn: Option<String>,
    /// True for a message of a conversation, which is understood from the messages before and after it.
    pub is_conversational: bool,
    /// True if the work changed files.
    pub changes_files: bool,
    /// True if the item is pinned.
    pub is_pinned: bool,
    /// Files that the item touches.
    pub files: Vec<String>,
    /// Time of the item.
    pub created_at: Timestamp,
    /// Searched text.
    pub text: DocumentText,
}

/// A document that may answer a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Number of the document in the index.
    pub number: i64,
    /// Position of a conversational document in its session. Neighbours have adjacent positions.
    pub place: Option<i64>,
    pub document: Document,
}

/// Returns the name before a colon at the start of a text, as in `Anna: I will look at it`, if it looks like one.
pub fn author_of(text: &str) -> Option<&str> {
    let (name, rest) = text.split_once(':')?;
    let words = name.split_whitespace().count();
    let is_name = (1..=3).contains(&words)
        && name.len() <= 40
        && name.trim() == name
        && name.chars().next().is_some_and(char::is_uppercase)
        && name
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '.' | '-' | '\'' | '_'))
        && (rest.is_empty() || rest.starts_with(char::is_whitespace));
    is_name.then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_round_trip() {
        for kind in ItemKind::ALL.iter().copied() {
            assert_eq!(ItemKind::from_wire(kind.as_str()), Some(kind));
        }
        assert_eq!(ItemKind::from_wire("turns"), None);
    }

    #[test]
    fn author_is_the_name_before_a_colon() {
        assert_eq!(author_of("Caroline: Hey Mel!"), Some("Caroline"));
        assert_eq!(author_of("Dr. Anna Meyer: yes"), Some("Dr. Anna Meyer"));
        for text in
            ["error: no such file", "http://x", "12:30 lunch", "A very long sentence with: a colon", ""]
        {
            assert_eq!(author_of(text), None, "{text}");
        }
    }

    #[test]
    fn fields_are_analysed_and_bounded() {
        let files = ["src/drainQueue.rs".to_owned()];
        let text = DocumentText::of("Fix the queue", &["It was drained twice.", "Now once."], &files);
        assert_eq!(text.title, "fix queue".replace("queue", &terms("queue")[0]));
        assert_eq!(text.body, "drain twice");
        assert_eq!(text.paths.split(' ').next_back(), Some("rs"));
        assert_eq!(DocumentText::of("", &[&"word ".repeat(10_000)], &[]).length(), MAX_FIELD_TERMS as u64);
    }
}
