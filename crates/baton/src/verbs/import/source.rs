//! Sources of recorded chats: where each client keeps them, and how their records are read.

use std::io;
use std::path::{Path, PathBuf};

use baton_observation::transcript::TranscriptFormat;
use serde_json::Value;

use super::records::{Loaded, Records, parse};
use super::{cursor, discover, opencode};

/// Maximum size of a file that is loaded at once.
const MAX_DOCUMENT_BYTES: u64 = 256 * 1024 * 1024;

/// One recorded chat, or a file that may be one.
pub(super) enum Source {
    /// A file with one record per line.
    Lines(PathBuf),
    /// A file of an older Gemini CLI: one JSON document.
    GeminiDocument(PathBuf),
    OpenCode(opencode::Chat),
    Cursor(cursor::Chat),
}

impl Source {
    /// Returns the chats at a path.
    pub(super) fn find(format: TranscriptFormat, path: &Path) -> io::Result<Vec<Self>> {
        match format {
            TranscriptFormat::ClaudeCode | TranscriptFormat::Codex | TranscriptFormat::Gemini => {
                Ok(discover::find(format, path)?
                    .into_iter()
                    .map(|file| Self::of_file(format, file))
                    .collect())
            }
            TranscriptFormat::OpenCode => Ok(opencode::find(path)?.into_iter().map(Self::OpenCode).collect()),
            TranscriptFormat::Cursor => Ok(cursor::find(path)?.into_iter().map(Self::Cursor).collect()),
        }
    }

    /// Returns the source of a transcript file.
    pub(super) fn of_file(format: TranscriptFormat, path: PathBuf) -> Self {
        let is_document =
            format == TranscriptFormat::Gemini && path.extension().is_some_and(|ending| ending == "json");
        if is_document { Self::GeminiDocument(path) } else { Self::Lines(path) }
    }

    /// Returns the file, or the database or folder that contains the chat.
    pub(super) fn path(&self) -> &Path {
        match self {
            Self::Lines(path) | Self::GeminiDocument(path) => path,
            Self::OpenCode(chat) => &chat.location,
            Self::Cursor(chat) => &chat.database,
        }
    }

    /// Returns the name under which the progress of the import is stored with the chat.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Lines(path) | Self::GeminiDocument(path) => {
                path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
            }
            Self::OpenCode(chat) => chat.id.clone(),
            Self::Cursor(chat) => chat.id.clone(),
        }
    }

    /// Returns the path, and the chat in it if it contains several.
    pub(super) fn label(&self) -> String {
        match self {
            Self::Lines(path) | Self::GeminiDocument(path) => path.display().to_string(),
            Self::OpenCode(_) | Self::Cursor(_) => format!("{}#{}", self.path().display(), self.name()),
        }
    }

    /// Opens the records of the chat.
    pub(super) fn records(&self) -> io::Result<Records> {
        match self {
            Self::Lines(path) => Records::of_lines(path),
            Self::GeminiDocument(path) => gemini_document(path).map(Records::Loaded),
            Self::OpenCode(chat) => chat.load().map(Records::Loaded),
            Self::Cursor(chat) => chat.load().map(Records::Loaded),
        }
    }
}

/// Splits a document into the records that newer versions write: the chat without its messages, then each message.
fn gemini_document(path: &Path) -> io::Result<Loaded> {
    if path.metadata()?.len() > MAX_DOCUMENT_BYTES {
        return Err(io::Error::other(format!("the file is larger than {MAX_DOCUMENT_BYTES} bytes")));
    }
    let mut document = parse(&std::fs::read_to_string(path)?).map_err(io::Error::other)?;
    let messages = document.get_mut("messages").map(Value::take);
    let mut loaded = Loaded::default();
    loaded.push(document.to_string().len(), Ok(document));
    if let Some(Value::Array(messages)) = messages {
        for message in messages {
            loaded.push(message.to_string().len(), Ok(message));
        }
    }
    Ok(loaded)
}
