//! Chats of Cursor: values of the key-value table in `User/globalStorage/state.vscdb`.
//!
//! The value of `composerData:CHAT` lists the bubbles of a chat; those of `bubbleId:CHAT:BUBBLE` are the bubbles. The
//! folder of a chat is known to the list of all chats, or to the database of the window, depending on the version.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use baton_observation::transcript::folder_of_uri;
use baton_store::{ForeignDatabase, ForeignError};
use serde_json::{Value, json};

use super::records::{Loaded, parse, unreadable};

const STATE_FILE: &str = "state.vscdb";

/// A chat of Cursor.
pub(super) struct Chat {
    pub(super) database: PathBuf,
    pub(super) id: String,
    /// Folder of each chat, by the id of the chat.
    folders: Arc<HashMap<String, String>>,
}

/// Returns the chats at a path: the database, or the folder `User` or `globalStorage` that contains it.
pub(super) fn find(path: &Path) -> io::Result<Vec<Chat>> {
    let path = if fs::metadata(path)?.is_dir() {
        let candidates = [path.join("globalStorage").join(STATE_FILE), path.join(STATE_FILE)];
        let found = candidates.into_iter().find(|path| path.is_file());
        found
            .ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("it contains no {STATE_FILE}")))?
    } else {
        path.to_owned()
    };
    let database = ForeignDatabase::open(&path).map_err(unreadable)?;
    if !database.has_table("cursorDiskKV").map_err(unreadable)? {
        let message = "it is not a database of Cursor's chats: it has no table `cursorDiskKV`";
        return Err(io::Error::new(io::ErrorKind::InvalidData, message));
    }
    let folders = Arc::new(folders(&database, &path));
    let sql = "SELECT key FROM cursorDiskKV WHERE key >= 'composerData:' AND key < 'composerData;' \
               AND value IS NOT NULL ORDER BY key";
    let rows = database.rows(sql, &[]).map_err(unreadable)?;
    let ids = rows.iter().filter_map(|row| row["key"].as_str()?.strip_prefix("composerData:"));
    let chat = |id: &str| Chat { database: path.clone(), id: id.to_owned(), folders: Arc::clone(&folders) };
    Ok(ids.map(chat).collect())
}

/// Returns the folders of chats. A list that is missing or invalid names none.
fn folders(database: &ForeignDatabase, path: &Path) -> HashMap<String, String> {
    let mut found = HashMap::new();
    for chat in listed(database, "composer.composerHeaders") {
        let folder = chat["workspaceIdentifier"]["uri"]["fsPath"].as_str();
        if let (Some(id), Some(folder)) = (chat["composerId"].as_str(), folder) {
            found.insert(id.to_owned(), folder.to_owned());
        }
    }
    let user = path.parent().and_then(Path::parent).unwrap_or(path);
    for window in fs::read_dir(user.join("workspaceStorage")).into_iter().flatten().flatten() {
        let text = fs::read_to_string(window.path().join("workspace.json")).unwrap_or_default();
        let folder = parse(&text).ok().and_then(|window| folder_of_uri(window["folder"].as_str()?));
        let (Some(folder), Ok(database)) = (folder, ForeignDatabase::open(&window.path().join(STATE_FILE)))
        else {
            continue;
        };
        for chat in listed(&database, "composer.composerData") {
            if let Some(id) = chat["composerId"].as_str() {
                found.entry(id.to_owned()).or_insert_with(|| folder.clone());
            }
        }
    }
    found
}

/// Returns the chats in a list of the table `ItemTable`.
fn listed(database: &ForeignDatabase, key: &str) -> Vec<Value> {
    let rows = database.rows("SELECT value FROM ItemTable WHERE key = $1", &[key]).unwrap_or_default();
    let list = rows.first().and_then(|row| row["value"].as_str()).and_then(|text| parse(text).ok());
    list.and_then(|list| list["allComposers"].as_array().cloned()).unwrap_or_default()
}

impl Chat {
    /// Loads all records of the chat.
    pub(super) fn load(&self) -> io::Result<Loaded> {
        let database = ForeignDatabase::open(&self.database).map_err(unreadable)?;
        let text = value(&database, &format!("composerData:{}", self.id)).map_err(unreadable)?;
        let composer = parse(&text.unwrap_or_default()).map_err(io::Error::other)?;
        let own = composer["workspaceIdentifier"]["uri"]["fsPath"].as_str();
        let folder = own.or_else(|| self.folders.get(&self.id).map(String::as_str));
        let facts = json!({
            "composerId": self.id, "createdAt": composer["createdAt"], "createdOnBranch": composer["createdOnBranch"],
        });
        let mut loaded = Loaded::default();
        loaded.push(0, Ok(json!({ "composer": facts, "folder": folder })));
        // Older versions store the bubbles in the list itself.
        for bubble in composer["conversation"].as_array().into_iter().flatten() {
            loaded.push(bubble.to_string().len(), Ok(json!({ "bubble": bubble })));
        }
        for header in composer["fullConversationHeadersOnly"].as_array().into_iter().flatten() {
            let id = header["bubbleId"].as_str().unwrap_or_default();
            let key = format!("bubbleId:{}:{id}", self.id);
            // Cursor deletes bubbles but keeps them in the list.
            if let Some(text) = value(&database, &key).map_err(unreadable)? {
                loaded.push(text.len(), parse(&text).map(|bubble| json!({ "bubble": bubble })));
            }
        }
        Ok(loaded)
    }
}

fn value(database: &ForeignDatabase, key: &str) -> Result<Option<String>, ForeignError> {
    let rows = database.rows("SELECT value FROM cursorDiskKV WHERE key = $1", &[key])?;
    Ok(rows.first().and_then(|row| row["value"].as_str()).map(str::to_owned))
}
