//! Kinds of clients, the programs that run agents. Each has its own names for fields and tools, and its own form of
//! response.
//!
//! Owns how a client is recognized, how its report becomes a report with Baton's names, and how context is returned to
//! it.

use baton_core::estimate_tokens;
use serde_json::{Map, Value, json};

use super::hook::HookEvent;
use crate::client::{CLIENTS, Client, ClientKind, ContextLimit};

/// Last line of context that was shortened.
const SHORTENED: &str = "(Shortened to the limit of this client. The Baton tools have the rest.)";

impl ClientKind {
    /// Recognizes the client of a report. The form of the report decides before the name that the configuration
    /// gives, because some clients also run the hooks of other clients: VS Code and Cursor run the hooks of
    /// Claude Code. `has_variable` returns true if an environment variable is set.
    pub fn of(
        report: &Map<String, Value>,
        client: Option<&str>,
        has_variable: impl Fn(&str) -> bool,
    ) -> Self {
        let has = |name: &str| report.contains_key(name);
        let named = client.and_then(Client::named).map(|client| client.kind);
        let is_from_vscode = || {
            has("timestamp")
                && has("hook_event_name")
                && matches!(named, None | Some(Self::ClaudeCode | Self::CopilotCli | Self::VsCode))
                && !has_variable("GEMINI_PROJECT_DIR")
        };
        if has("cursor_version")
            || (has("conversation_id") && has("generation_id"))
            || has_variable("CURSOR_VERSION")
        {
            Self::Cursor
        } else if has("clineVersion") {
            Self::Cline
        } else if has("trajectory_id") {
            Self::Windsurf
        } else if has("conversationId") {
            Self::Antigravity
        } else if has("turn_id") {
            Self::Codex
        } else if is_from_vscode() {
            Self::VsCode
        } else if has("sessionId") && has("timestamp") && !has("hook_event_name") {
            Self::CopilotCli
        } else {
            named.unwrap_or_else(|| Self::by_transcript(report))
        }
    }

    /// Guesses the client from the folder of its transcript.
    fn by_transcript(report: &Map<String, Value>) -> Self {
        match report.get("transcript_path").and_then(Value::as_str).unwrap_or_default() {
            path if path.contains("/.codex/") => Self::Codex,
            path if path.contains("/.gemini/") => Self::Gemini,
            path if path.contains("/.cursor/") => Self::Cursor,
            path if path.contains("/.claude/") => Self::ClaudeCode,
            _ => Self::Other,
        }
    }

    /// Returns the name of the client; `None` for an unknown client.
    pub fn name(self) -> Option<&'static str> {
        self.client().map(|client| client.name)
    }

    fn client(self) -> Option<&'static Client> {
        CLIENTS.iter().find(|client| client.kind == self)
    }

    /// Renames the fields and tools of a report to those of Baton. Fields that the report already has are kept.
    pub fn normalize(self, report: &mut Map<String, Value>) {
        match self {
            Self::Antigravity => lift(report, "toolCall", &[("name", "tool_name"), ("args", "tool_input")]),
            Self::Windsurf => normalize_windsurf(report),
            Self::Cline => normalize_cline(report),
            Self::CopilotCli => lift(report, "toolResult", &[("textResultForLlm", "tool_response")]),
            Self::ClaudeCode
            | Self::Codex
            | Self::Cursor
            | Self::Gemini
            | Self::OpenCode
            | Self::VsCode
            | Self::Other => {}
        }
        for (from, to) in RENAMED {
            rename(report, from, to);
        }
        if !report.contains_key("cwd") {
            let roots = ["workspace_roots", "workspacePaths", "workspaceRoots"];
            if let Some(root) = roots.iter().find_map(|name| report.get(*name)?.get(0).cloned()) {
                report.insert("cwd".into(), root);
            }
        }
        // Cursor and Copilot CLI send JSON as text.
        if matches!(self, Self::Cursor | Self::CopilotCli) {
            ["tool_input", "tool_response"].iter().for_each(|name| parse_json(report, name));
        }
        if let Some(error) = report.get("tool_response").and_then(|response| response.get("error")).cloned()
            && self == Self::Gemini
            && !error.is_null()
        {
            let message = error.get("message").cloned().unwrap_or(error);
            report.entry("error").or_insert(message);
        }
        // Gemini CLI puts the context of a hook in front of the prompt.
        if let Some(Value::String(prompt)) = report.get_mut("prompt")
            && let Some((_, typed)) =
                prompt.strip_prefix("<hook_context>").and_then(|rest| rest.split_once("</hook_context>"))
        {
            *prompt = typed.trim_start().to_owned();
        }
        if let Some(name) = report.get("tool_name").and_then(Value::as_str).map(tool_name) {
            report.insert("tool_name".into(), name.into());
        }
    }

    /// Returns the response that adds context at an event, in the form of the client. Returns `None` if the client
    /// accepts no context at this event.
    pub fn response(self, event_name: &str, context: &str) -> Option<Value> {
        let is_prompt = event_name == HookEvent::UserPromptSubmit.wire_name();
        let event_name = if is_prompt && self == Self::Gemini { "BeforeAgent" } else { event_name };
        match self {
            Self::Cursor | Self::VsCode if is_prompt => None,
            Self::Cursor => Some(json!({ "additional_context": context })),
            Self::Antigravity => Some(json!({ "injectSteps": [{ "ephemeralMessage": context }] })),
            Self::Cline => {
                Some(json!({ "cancel": false, "contextModification": context, "errorMessage": "" }))
            }
            Self::CopilotCli | Self::Windsurf => None,
            Self::ClaudeCode | Self::Codex | Self::Gemini | Self::OpenCode | Self::VsCode | Self::Other => {
                let context = self.limit_context(context);
                Some(
                    json!({ "hookSpecificOutput": { "hookEventName": event_name, "additionalContext": context } }),
                )
            }
        }
    }

    /// Removes the last lines of a context that is above the limit of the client.
    fn limit_context(self, context: &str) -> String {
        let fits = |text: &str| match self.client().and_then(|client| client.context_limit) {
            Some(ContextLimit::Tokens(most)) => estimate_tokens(text) <= most,
            Some(ContextLimit::Chars(most)) => text.chars().count() <= most,
            None => true,
        };
        if fits(context) {
            return context.to_owned();
        }
        let lines: Vec<&str> = context.lines().collect();
        let shortened = |count: usize| {
            let mut kept = lines.iter().take(count).copied().collect::<Vec<_>>().join("\n");
            kept.push('\n');
            kept + SHORTENED
        };
        let count = (0..lines.len()).collect::<Vec<_>>().partition_point(|count| fits(&shortened(*count)));
        shortened(count.saturating_sub(1))
    }
}

/// Names of fields in other clients, and Baton's name.
const RENAMED: [(&str, &str); 19] = [
    ("conversation_id", "session_id"),
    ("conversationId", "session_id"),
    ("sessionId", "session_id"),
    ("taskId", "session_id"),
    ("trajectory_id", "session_id"),
    ("transcriptPath", "transcript_path"),
    ("toolName", "tool_name"),
    ("toolArgs", "tool_input"),
    ("toolInput", "tool_input"),
    ("toolResult", "tool_response"),
    ("toolResponse", "tool_response"),
    ("tool_output", "tool_response"),
    ("error_message", "error"),
    ("errorMessage", "error"),
    ("initialPrompt", "prompt"),
    ("userPrompt", "prompt"),
    ("toolUseId", "tool_use_id"),
    ("summary", "last_assistant_message"),
    ("subagent_type", "agent_type"),
];

/// Returns Baton's name of a tool, which is the name in Claude Code. Unknown names are kept.
pub(crate) fn tool_name(name: &str) -> String {
    // Cursor stores some tools with a version.
    let known = match name.strip_suffix("_v2").unwrap_or(name) {
        "Shell"
        | "shell"
        | "bash"
        | "run_shell_command"
        | "run_in_terminal"
        | "run_terminal_cmd"
        | "run_terminal_command"
        | "execute_command"
        | "local_shell"
        | "exec_command"
        | "powershell" => "Bash",
        "read" | "read_file" | "view" | "view_file" | "ReadFile" => "Read",
        "write" | "write_file" | "create_file" | "write_to_file" | "create" => "Write",
        "edit"
        | "replace"
        | "replace_string_in_file"
        | "insert_edit_into_file"
        | "edit_file"
        | "search_replace"
        | "replace_in_file"
        | "str_replace_editor" => "Edit",
        "multi_replace_string_in_file" | "multiedit" => "MultiEdit",
        "grep" | "grep_search" | "search_file_content" | "search_files" | "rg" | "ripgrep_raw_search" => {
            "Grep"
        }
        "glob" | "glob_file_search" | "file_search" | "find_by_name" | "list_code_definition_names" => "Glob",
        "list" | "list_directory" | "list_dir" | "list_files" | "ls" => "LS",
        "webfetch" | "web_fetch" | "fetch_webpage" | "fetch" => "WebFetch",
        "web_search" | "google_web_search" | "websearch" => "WebSearch",
        "task" | "spawn_agent" | "Agent" | "runSubagent" => "Task",
        "todowrite" | "update_plan" | "write_todos" | "manage_todo_list" => "TodoWrite",
        _ => name.strip_prefix("MCP:").unwrap_or(name),
    };
    known.to_owned()
}

fn rename(report: &mut Map<String, Value>, from: &str, to: &str) {
    if let Some(value) = report.remove(from)
        && !value.is_null()
    {
        report.entry(to).or_insert(value);
    }
}

/// Moves members of an object to the report.
fn lift(report: &mut Map<String, Value>, object: &str, members: &[(&str, &str)]) {
    let Some(Value::Object(mut inner)) = report.get(object).cloned() else { return };
    report.remove(object);
    for (from, to) in members {
        if let Some(value) = inner.remove(*from) {
            report.entry(*to).or_insert(value);
        }
    }
}

fn parse_json(report: &mut Map<String, Value>, name: &str) {
    if let Some(Value::String(text)) = report.get(name)
        && text.starts_with(['{', '['])
        && let Ok(value) = serde_json::from_str(text)
    {
        report.insert(name.to_owned(), value);
    }
}

/// Windsurf has an event for each kind of tool instead of a name.
fn normalize_windsurf(report: &mut Map<String, Value>) {
    let action = report.get("agent_action_name").and_then(Value::as_str).unwrap_or_default().to_owned();
    if let Some(id) = report.get("execution_id").cloned() {
        report.entry("tool_use_id").or_insert(id);
    }
    let Some(Value::Object(info)) = report.remove("tool_info") else { return };
    let text = |name: &str| info.get(name).cloned().unwrap_or_default();
    let tool = match action.as_str() {
        "post_read_code" => "Read",
        "post_write_code" => "Edit",
        "post_run_command" => "Bash",
        "post_mcp_tool_use" => {
            let name = format!("mcp__{}__{}", word(&text("mcp_server_name")), word(&text("mcp_tool_name")));
            report.insert("tool_name".into(), name.into());
            report.insert("tool_input".into(), text("mcp_tool_arguments"));
            report.insert("tool_response".into(), text("mcp_result"));
            return;
        }
        "pre_user_prompt" => {
            report.insert("prompt".into(), text("user_prompt"));
            return;
        }
        _ => {
            report.insert("last_assistant_message".into(), text("response"));
            return;
        }
    };
    let mut input = Value::Object(info.clone());
    if let Some(command) = info.get("command_line") {
        input = json!({ "command": command });
    }
    report.insert("tool_name".into(), tool.into());
    report.insert("tool_input".into(), input);
}

fn word(value: &Value) -> &str {
    value.as_str().unwrap_or("unknown")
}

/// Cline puts the fields of an event into an object with the name of the event.
fn normalize_cline(report: &mut Map<String, Value>) {
    let fields = [
        ("toolName", "tool_name"),
        ("parameters", "tool_input"),
        ("result", "tool_response"),
        ("prompt", "prompt"),
    ];
    for object in ["postToolUse", "userPromptSubmit", "taskStart", "taskResume", "preCompact"] {
        lift(report, object, &fields);
    }
    lift(report, "taskComplete", &[("result", "last_assistant_message")]);
}

#[cfg(test)]
#[path = "client_kind_tests.rs"]
mod tests;
