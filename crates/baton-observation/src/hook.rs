//! Events that the hooks of an agent report.

use baton_core::strip_control;
use schemars::JsonSchema;
use serde::de::IntoDeserializer;
use serde::de::value::StrDeserializer;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use strum::{IntoStaticStr, VariantArray};

/// Event that an agent reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(inline)]
#[derive(IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum HookEvent {
    /// A chat started or resumed.
    #[serde(alias = "SessionStart")]
    SessionStart,
    /// The user submitted a prompt.
    #[serde(alias = "UserPromptSubmit")]
    UserPromptSubmit,
    /// A tool is about to be used.
    #[serde(alias = "PreToolUse")]
    PreToolUse,
    /// A tool was used.
    #[serde(alias = "PostToolUse", alias = "post-tool-use-failure", alias = "PostToolUseFailure")]
    PostToolUse,
    /// The chat is about to compact its context.
    #[serde(alias = "PreCompact")]
    PreCompact,
    /// The chat compacted its context and reports the summary that replaces it.
    #[serde(alias = "PostCompact")]
    PostCompact,
    /// A sub-agent finished and reports its closing message.
    #[serde(alias = "SubagentStop", alias = "subagentStop")]
    SubagentStop,
    /// The agent finished its response, or stopped because of an error or the user.
    #[serde(
        alias = "Stop",
        alias = "stop-failure",
        alias = "StopFailure",
        alias = "interrupt",
        alias = "Interrupt",
        alias = "AfterAgent",
        alias = "afterAgentResponse"
    )]
    Stop,
    /// The chat ended.
    #[serde(alias = "SessionEnd")]
    SessionEnd,
}

impl HookEvent {
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name used on the command line and in paths.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Returns the name used in the agent's hook protocol.
    pub const fn wire_name(self) -> &'static str {
        match self {
            Self::SessionStart => "SessionStart",
            Self::UserPromptSubmit => "UserPromptSubmit",
            Self::PreToolUse => "PreToolUse",
            Self::PostToolUse => "PostToolUse",
            Self::PreCompact => "PreCompact",
            Self::PostCompact => "PostCompact",
            Self::SubagentStop => "SubagentStop",
            Self::Stop => "Stop",
            Self::SessionEnd => "SessionEnd",
        }
    }

    /// Parses either name, and the names of separate events that some agents send for a failed tool and for the end of
    /// a turn.
    pub fn from_name(name: &str) -> Option<Self> {
        let name: StrDeserializer<'_, serde::de::value::Error> = name.into_deserializer();
        Self::deserialize(name).ok()
    }
}

/// Input fields that hold the path of a file.
const FILE_FIELDS: [&str; 5] = ["file_path", "notebook_path", "path", "filePath", "file"];
/// Maximum number of files recorded per tool use.
const MAX_FILES: usize = 50;

/// Returns the files named in the tool input, relative to the working directory where possible.
pub fn files_of(tool_input: &Value, cwd: Option<&str>) -> Vec<String> {
    let mut files = Vec::new();
    let mut add = |value: &Value| {
        if let Some(text) = value.as_str().filter(|text| is_path(text)) {
            let path = strip_control(relative(text, cwd)).replace('\n', "");
            if files.len() < MAX_FILES && !path.is_empty() && !files.contains(&path) {
                files.push(path);
            }
        }
    };
    for field in FILE_FIELDS {
        add(&tool_input[field]);
    }
    for list in ["edits", "files", "paths"] {
        for item in tool_input[list].as_array().into_iter().flatten() {
            add(item);
            FILE_FIELDS.iter().for_each(|field| add(&item[field]));
        }
    }
    // The patch format of some agents names its files on lines of their own.
    let patch = [&tool_input["input"], &tool_input["patch"], tool_input].into_iter().find_map(Value::as_str);
    for line in patch.unwrap_or_default().lines() {
        let named = ["*** Update File: ", "*** Add File: ", "*** Delete File: ", "*** Move to: "]
            .into_iter()
            .find_map(|mark| line.strip_prefix(mark));
        if let Some(path) = named {
            add(&Value::from(path.trim()));
        }
    }
    files
}

fn is_path(text: &str) -> bool {
    !text.is_empty() && text.len() <= 4_096 && !text.contains(['\n', '\0'])
}

/// Returns a path relative to a folder that contains it.
pub fn relative<'a>(path: &'a str, folder: Option<&str>) -> &'a str {
    let inside = folder.and_then(|folder| path.strip_prefix(folder.trim_end_matches('/')));
    match inside.and_then(|rest| rest.strip_prefix('/')) {
        Some(rest) if !rest.is_empty() => rest,
        _ => path.strip_prefix("./").unwrap_or(path),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parses_both_names_of_every_event() {
        for event in HookEvent::ALL.iter().copied() {
            assert_eq!(HookEvent::from_name(event.as_str()), Some(event));
            assert_eq!(HookEvent::from_name(event.wire_name()), Some(event));
            for name in [event.as_str(), event.wire_name()] {
                assert_eq!(serde_json::from_value::<HookEvent>(name.into()).unwrap(), event);
            }
        }
        assert_eq!(HookEvent::from_name("PostToolUseFailure"), Some(HookEvent::PostToolUse));
        assert_eq!(
            serde_json::from_value::<HookEvent>("PostToolUseFailure".into()).unwrap(),
            HookEvent::PostToolUse
        );
        assert_eq!(HookEvent::from_name("notification"), None);
    }

    #[test]
    fn finds_files_in_tool_inputs() {
        let cwd = Some("/home/dev/proj/");
        for (input, expected) in [
            (json!({ "file_path": "/home/dev/proj/src/a.rs" }), vec!["src/a.rs"]),
            (json!({ "file_path": "/etc/hosts", "path": "./b" }), vec!["/etc/hosts", "b"]),
            (
                json!({ "edits": [{ "file_path": "a" }, { "file_path": "a" }], "files": ["c"] }),
                vec!["a", "c"],
            ),
            (
                json!({ "input": "*** Begin Patch\n*** Update File: x/y.py\n@@\n-a\n+b\n*** Add File: z\n" }),
                vec!["x/y.py", "z"],
            ),
            (json!({ "command": "ls", "path": 7 }), vec![]),
            (json!({ "path": "a\u{1b}[2Jb\u{202e}c\r.rs" }), vec!["abc.rs"]),
            (json!(null), vec![]),
        ] {
            assert_eq!(files_of(&input, cwd), expected, "{input}");
        }
        assert_eq!(relative("/home/dev/project2/a", cwd), "/home/dev/project2/a");
        assert_eq!(relative("/home/dev/proj", cwd), "/home/dev/proj");
    }
}
