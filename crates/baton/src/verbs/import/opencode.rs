//! Chats of OpenCode: rows of its database `opencode.db`, or the JSON files of older versions below `storage`.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use baton_store::ForeignDatabase;
use serde_json::{Map, Value, json};

use super::records::{Loaded, parse, unreadable};

/// A chat of OpenCode.
pub(super) struct Chat {
    /// Database, or folder `storage`.
    pub(super) location: PathBuf,
    pub(super) id: String,
    /// First record, or the reason why the session cannot be read.
    session: Result<Value, String>,
}

/// A session as OpenCode stores it.
struct Session {
    id: String,
    parent: Option<String>,
    directory: Value,
    created: Value,
}

/// Returns the chats at a path: a database, a folder `storage`, or the folder of OpenCode that contains them.
pub(super) fn find(path: &Path) -> io::Result<Vec<Chat>> {
    if !fs::metadata(path)?.is_dir() {
        return in_database(path);
    }
    let mut found = Vec::new();
    for entry in sorted(path)? {
        let name = entry.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        if name.starts_with("opencode") && name.ends_with(".db") {
            found.extend(in_database(&entry)?);
        }
    }
    for storage in [path.join("storage"), path.to_owned()] {
        if storage.join("session").is_dir() {
            found.extend(in_storage(&storage)?);
        }
    }
    Ok(found)
}

fn in_database(path: &Path) -> io::Result<Vec<Chat>> {
    let database = ForeignDatabase::open(path).map_err(unreadable)?;
    for table in ["session", "message", "part"] {
        if !database.has_table(table).map_err(unreadable)? {
            let message = format!("it is not a database of OpenCode: it has no table `{table}`");
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
    }
    let sql = "SELECT id, parent_id, directory, time_created FROM session ORDER BY time_created, id";
    let rows = database.rows(sql, &[]).map_err(unreadable)?;
    let text = |value: Option<&Value>| value.and_then(Value::as_str).map(str::to_owned);
    let sessions = rows.iter().filter_map(|row| {
        let (directory, created) = (row["directory"].clone(), row["time_created"].clone());
        Some(Session { id: text(row.get("id"))?, parent: text(row.get("parent_id")), directory, created })
    });
    Ok(chats(path, sessions.collect()))
}

fn in_storage(storage: &Path) -> io::Result<Vec<Chat>> {
    let (mut sessions, mut broken) = (Vec::new(), Vec::new());
    for project in sorted(&storage.join("session"))?.iter().filter(|path| path.is_dir()) {
        for file in sorted(project)? {
            let id = file.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            match fs::read_to_string(&file).map_err(|error| error.to_string()).and_then(|text| parse(&text)) {
                Ok(session) => {
                    let parent = session["parentID"].as_str().map(str::to_owned);
                    let (directory, created) =
                        (session["directory"].clone(), session["time"]["created"].clone());
                    sessions.push(Session { id, parent, directory, created });
                }
                Err(reason) => broken.push(Chat { location: storage.to_owned(), id, session: Err(reason) }),
            }
        }
    }
    Ok(chats(storage, sessions).into_iter().chain(broken).collect())
}

/// Returns the chats of all sessions. The session of a sub-agent belongs to the chat that started it.
fn chats(location: &Path, sessions: Vec<Session>) -> Vec<Chat> {
    let by_id: HashMap<&str, &Session> = sessions.iter().map(|one| (one.id.as_str(), one)).collect();
    let of = |session: &Session| {
        let mut root = session;
        // A limit, because the parents of a corrupt database could form a circle.
        for _ in 0..sessions.len() {
            let Some(parent) = root.parent.as_deref().and_then(|id| by_id.get(id)) else { break };
            root = parent;
        }
        let record = json!({ "session": {
            "id": root.id, "directory": root.directory, "created": root.created,
            "is_subagent": session.parent.is_some(),
        } });
        Chat { location: location.to_owned(), id: session.id.clone(), session: Ok(record) }
    };
    sessions.iter().map(of).collect()
}

impl Chat {
    /// Loads all records of the chat.
    pub(super) fn load(&self) -> io::Result<Loaded> {
        let session = self.session.clone().map_err(io::Error::other)?;
        let mut loaded = Loaded::default();
        loaded.push(0, Ok(session));
        if self.location.is_dir() {
            self.load_files(&mut loaded)?;
        } else {
            self.load_rows(&mut loaded)?;
        }
        Ok(loaded)
    }

    fn load_rows(&self, loaded: &mut Loaded) -> io::Result<()> {
        let database = ForeignDatabase::open(&self.location).map_err(unreadable)?;
        let rows = |sql| database.rows(sql, &[self.id.as_str()]).map_err(unreadable);
        let text =
            |row: &Map<String, Value>, column: &str| row[column].as_str().unwrap_or_default().to_owned();
        let mut parts: HashMap<String, Vec<String>> = HashMap::new();
        for row in rows("SELECT message_id, data FROM part WHERE session_id = $1 ORDER BY id")? {
            parts.entry(text(&row, "message_id")).or_default().push(text(&row, "data"));
        }
        for row in rows("SELECT id, data FROM message WHERE session_id = $1 ORDER BY time_created, id")? {
            let parts = parts.remove(&text(&row, "id")).unwrap_or_default();
            add_message(loaded, &text(&row, "data"), &parts);
        }
        Ok(())
    }

    fn load_files(&self, loaded: &mut Loaded) -> io::Result<()> {
        for file in sorted(&self.location.join("message").join(&self.id))? {
            let parts = self.location.join("part").join(file.file_stem().unwrap_or_default());
            let parts: Vec<String> =
                sorted(&parts)?.iter().map(fs::read_to_string).collect::<Result<_, _>>()?;
            add_message(loaded, &fs::read_to_string(&file)?, &parts);
        }
        Ok(())
    }
}

/// Adds a message with its parts. An invalid part is a record of its own.
fn add_message(loaded: &mut Loaded, message: &str, parts: &[String]) {
    let (mut valid, mut bytes) = (Vec::new(), message.len());
    for text in parts {
        match parse(text) {
            Ok(part) => {
                bytes += text.len();
                valid.push(part);
            }
            Err(reason) => loaded.push(text.len(), Err(reason)),
        }
    }
    loaded.push(bytes, parse(message).map(|message| json!({ "message": message, "parts": valid })));
}

/// Returns the paths in a folder sorted by name; the names that OpenCode gives sort by time. A missing folder is
/// empty.
fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut paths = entries.map(|entry| entry.map(|entry| entry.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
