//! Sessions of recorded hook events, one event per line.

use std::path::Path;

use baton_observation::ToolUse;
use serde_json::Value;

/// The events of one session.
pub(crate) struct Session {
    /// Events in order.
    pub(crate) events: Vec<Event>,
    /// Number of lines that could not be parsed.
    pub(crate) skipped: usize,
}

/// A hook event.
pub(crate) struct Event {
    /// Working folder of the agent.
    pub(crate) cwd: String,
    /// Prompt of the user, if the event has one.
    pub(crate) prompt: Option<String>,
    /// Tool use, if the event is one.
    pub(crate) tool_use: Option<ToolUse>,
}

/// Reads all `.jsonl` files of a folder that contain hook events.
pub(crate) fn read_folder(folder: &Path) -> Vec<Session> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|ending| ending == "jsonl"));
    paths.sort();
    let sessions = paths.iter().map(|path| {
        let bytes = std::fs::read(path).expect("a session can be read");
        read(&String::from_utf8_lossy(&bytes))
    });
    sessions.filter(|session| !session.events.is_empty()).collect()
}

fn read(text: &str) -> Session {
    let mut session = Session { events: Vec::new(), skipped: 0 };
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        let value = serde_json::from_str::<Value>(line).or_else(|_| serde_json::from_str(&repaired(line)));
        let Ok(value) = value else {
            session.skipped += 1;
            continue;
        };
        let text = |name: &str| value.get(name).and_then(Value::as_str).map(str::to_owned);
        let Some(name) = text("hook_event_name") else { continue };
        let tool_use = (name == "PostToolUse").then(|| ToolUse {
            tool_name: text("tool_name").unwrap_or_default(),
            tool_input: value.get("tool_input").cloned().unwrap_or_default(),
            tool_response: value.get("tool_response").cloned().unwrap_or_default(),
            cwd: text("cwd"),
            turn: None,
        });
        session.events.push(Event { cwd: text("cwd").unwrap_or_default(), prompt: text("prompt"), tool_use });
    }
    session
}

/// Repairs malformed JSON: invalid escapes become literal text, unpaired surrogates and control characters are
/// replaced.
fn repaired(line: &str) -> String {
    let mut fixed = String::with_capacity(line.len() + 16);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match (letter, letters.peek()) {
            ('\\', Some('u')) => {
                letters.next();
                let code: String =
                    std::iter::from_fn(|| letters.next_if(char::is_ascii_hexdigit)).take(4).collect();
                let is_half =
                    u32::from_str_radix(&code, 16).is_ok_and(|code| (0xd800..0xe000).contains(&code));
                fixed.push_str(match (code.len(), is_half) {
                    (4, false) => "\\u",
                    (4, true) => "\\ufffd",
                    _ => "\\\\u",
                });
                if !is_half {
                    fixed.push_str(&code);
                }
            }
            ('\\', Some('"' | '\\' | '/' | 'b' | 'f' | 'n' | 'r' | 't')) => {
                fixed.push('\\');
                fixed.extend(letters.next());
            }
            ('\\', _) => fixed.push_str("\\\\"),
            (letter, _) if letter.is_control() => fixed.push(' '),
            (letter, _) => fixed.push(letter),
        }
    }
    fixed
}
