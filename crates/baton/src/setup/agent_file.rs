//! Files that an agent reads, and the content that setup writes to them.

use std::path::PathBuf;

use serde_json::Value;

use super::json_file::{self, JsonEntry};
use super::toml_file::{self, TomlTable};

/// A file that an agent reads.
#[derive(Debug, Clone)]
pub(crate) struct AgentFile {
    pub(crate) path: PathBuf,
    pub(crate) content: Content,
}

/// Content that setup writes to a file.
#[derive(Debug, Clone)]
pub(crate) enum Content {
    /// The whole file.
    Whole(String),
    /// The whole file, which the agent executes.
    Script(String),
    /// Entries of a JSON file.
    Json(Vec<JsonEntry>),
    /// A table of a TOML file.
    Toml(TomlTable),
}

impl AgentFile {
    pub(crate) fn whole(path: PathBuf, text: impl Into<String>) -> Self {
        Self { path, content: Content::Whole(text.into()) }
    }

    pub(crate) fn json(path: PathBuf, entries: Vec<JsonEntry>) -> Self {
        Self { path, content: Content::Json(entries) }
    }

    /// Returns a JSON file with the MCP server in its member `mcpServers`.
    pub(crate) fn mcp_servers(path: PathBuf, server: Value) -> Self {
        Self::json(path, vec![JsonEntry::Member(vec!["mcpServers", "baton"], server)])
    }
}

impl Content {
    /// Returns the text of the file after setup. `current` is `None` if the file does not exist.
    pub(super) fn add_to(&self, current: Option<&str>) -> Result<String, String> {
        match self {
            Self::Whole(text) | Self::Script(text) => Ok(text.clone()),
            Self::Json(entries) => json_file::add_entries(current.unwrap_or_default(), entries),
            Self::Toml(table) => toml_file::add_table(current.unwrap_or_default(), table),
        }
    }

    /// Returns the text of the file without the content of Baton, or `None` if nothing is left.
    pub(super) fn remove_from(&self, current: &str) -> Result<Option<String>, String> {
        let left = match self {
            Self::Whole(_) | Self::Script(_) => return Ok(None),
            Self::Json(entries) => json_file::remove_entries(current, entries)?,
            Self::Toml(table) => toml_file::remove_table(current, table)?,
        };
        let is_blank = match self {
            Self::Json(_) => json_file::is_blank(&left),
            _ => left.trim().is_empty(),
        };
        Ok(Some(left).filter(|_| !is_blank))
    }

    /// Returns true if the file has the content of Baton.
    pub(super) fn is_in(&self, current: &str) -> bool {
        match self {
            Self::Whole(text) | Self::Script(text) => text == current,
            Self::Json(entries) => json_file::has_entries(current, entries),
            Self::Toml(table) => toml_file::has_table(current, table),
        }
    }

    /// Mode of a new file.
    pub(super) const fn new_mode(&self) -> u32 {
        match self {
            Self::Script(_) => 0o755,
            Self::Whole(_) | Self::Json(_) | Self::Toml(_) => 0o644,
        }
    }
}
