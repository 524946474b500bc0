//! Notes: single facts that an agent records while it works.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::actor::ActorKeyId;
use crate::error::Fault;
use crate::id::{NoteId, SessionId};
use crate::name::{Agent, Repo, Venture};
use crate::time::Timestamp;
use crate::wire::wire_names;

/// Maximum length of a note in characters.
pub const MAX_NOTE_CHARS: usize = 2_000;
/// Maximum length of the file of a note in bytes.
const MAX_FILE_BYTES: usize = 4_096;

/// Kind of a note.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
#[schemars(inline)]
pub enum NoteKind {
    /// A decision and its reason.
    Decision,
    /// An approach that was rejected, and the reason.
    Rejected,
    /// A surprising fact that cost time.
    Gotcha,
    /// Work that remains.
    Todo,
    /// Any other fact worth keeping.
    #[default]
    Fact,
}

wire_names!(NoteKind);

impl NoteKind {
    pub const ALL: [Self; 5] = [Self::Decision, Self::Rejected, Self::Gotcha, Self::Todo, Self::Fact];
}

/// One fact that an agent recorded while it worked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    pub id: NoteId,
    /// Session in which the note was recorded; none if the note belongs to no session.
    pub session_id: Option<SessionId>,
    pub venture: Venture,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Repo,
    /// Agent that recorded the note.
    pub agent: Option<Agent>,
    pub kind: NoteKind,
    pub text: String,
    /// File that the note is about, relative to the checkout.
    pub file: Option<String>,
    /// Time when the note was recorded.
    pub created_at: Timestamp,
    /// Time of the last correction.
    pub updated_at: Option<Timestamp>,
    /// Id of the credential that recorded the note.
    pub actor_key_id: ActorKeyId,
}

impl Note {
    /// Returns the note as one line: the kind, the file and the text.
    pub fn line(&self) -> String {
        let place = self.file.as_deref().map_or_else(String::new, |file| format!(" ({file})"));
        format!("{}{place}: {}", self.kind.as_str(), self.text)
    }
}

/// Checks the text of a note and removes surrounding white space.
///
/// # Errors
///
/// `invalid_request` for an empty text and for one over [`MAX_NOTE_CHARS`] characters.
pub fn note_text(text: &str) -> Result<String, Fault> {
    let text = text.trim();
    let chars = text.chars().count();
    if text.is_empty() {
        return Err(Fault::invalid("text", "must not be empty").hint("write one fact in one line"));
    }
    if chars > MAX_NOTE_CHARS {
        let problem = format!("has {chars} characters; a note may have {MAX_NOTE_CHARS}");
        return Err(Fault::invalid("text", problem)
            .hint("record several notes, or save a checkpoint or a handoff for longer texts"));
    }
    Ok(text.to_owned())
}

/// Checks the file of a note and makes it relative where it starts with `./`.
///
/// # Errors
///
/// `invalid_request` for an empty path, one with line breaks, and one over 4,096 bytes.
pub fn note_file(path: &str) -> Result<String, Fault> {
    let path = path.trim().trim_start_matches("./");
    if path.is_empty() || path.contains(['\n', '\r']) || path.len() > MAX_FILE_BYTES {
        return Err(Fault::invalid("file", "must be a path in one line of at most 4096 bytes"));
    }
    Ok(path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_trimmed_and_limited() {
        assert_eq!(note_text("  Use WAL \n").unwrap(), "Use WAL");
        assert!(note_text(" \n").is_err());
        assert!(note_text(&"é".repeat(MAX_NOTE_CHARS)).is_ok());
        let fault = note_text(&"é".repeat(MAX_NOTE_CHARS + 1)).unwrap_err();
        assert!(fault.message.contains("2001 characters"), "{fault}");
        assert_eq!(note_file("./src/a.rs").unwrap(), "src/a.rs");
        assert!(note_file("a\nb").is_err() && note_file("./").is_err());
    }

    #[test]
    fn kinds_parse_their_names() {
        for kind in NoteKind::ALL {
            assert_eq!(NoteKind::from_wire(kind.as_str()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.as_str());
        }
        assert_eq!(NoteKind::from_wire("idea"), None);
    }
}
