use super::*;

/// Recognizes the client of a report and returns the report with Baton's names.
fn read(report: Value, client: Option<&str>, variables: &[&str]) -> (ClientKind, Value) {
    let mut report = report.as_object().unwrap().clone();
    let kind = ClientKind::of(&report, client, |name| variables.contains(&name));
    kind.normalize(&mut report);
    (kind, Value::Object(report))
}

fn has(report: &Value, expected: &Value) {
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&report[name], value, "{name} in {report}");
    }
}

#[test]
fn reads_reports_of_cursor() {
    let report = json!({
        "conversation_id": "c-1", "generation_id": "g-1", "hook_event_name": "postToolUse", "cursor_version": "2.4",
        "workspace_roots": ["/home/dev/shop"], "tool_name": "Shell", "tool_input": { "command": "cargo test" },
        "tool_output": "{\"output\":\"ok\",\"exitCode\":0}", "tool_use_id": "t-1",
    });
    // Cursor also runs the hooks of Claude Code.
    let (kind, report) = read(report, Some("claude-code"), &["CLAUDE_PROJECT_DIR"]);
    assert_eq!(kind, ClientKind::Cursor);
    has(
        &report,
        &json!({ "session_id": "c-1", "cwd": "/home/dev/shop", "tool_name": "Bash",
                 "tool_response": { "output": "ok", "exitCode": 0 } }),
    );
    let failed = json!({ "conversation_id": "c-1", "cursor_version": "2.4", "tool_name": "Read", "error_message": "no" });
    has(&read(failed, None, &[]).1, &json!({ "tool_name": "Read", "error": "no" }));
}

#[test]
fn reads_reports_of_codex_and_claude_code() {
    let codex =
        json!({ "session_id": "s", "turn_id": "t", "hook_event_name": "PostToolUse", "tool_name": "Bash" });
    // Codex imports the hooks of Claude Code together with their arguments.
    assert_eq!(read(codex, Some("claude-code"), &["CLAUDECODE"]).0, ClientKind::Codex);
    let start = json!({ "session_id": "s", "hook_event_name": "SessionStart", "transcript_path": "/h/.codex/sessions/x" });
    assert_eq!(read(start.clone(), None, &[]).0, ClientKind::Codex);
    assert_eq!(read(start, Some("codex"), &[]).0, ClientKind::Codex);
    let claude = json!({ "session_id": "s", "hook_event_name": "Stop", "prompt_id": "p" });
    assert_eq!(read(claude.clone(), Some("claude-code"), &[]).0, ClientKind::ClaudeCode);
    assert_eq!(read(claude, Some("my-agent"), &[]).0, ClientKind::Other);
}

#[test]
fn distinguishes_vs_code_from_gemini() {
    let report = json!({
        "timestamp": "2026-11-01T10:00:00Z", "session_id": "v-1", "hook_event_name": "PostToolUse",
        "tool_name": "replace_string_in_file", "tool_input": { "filePath": "/w/a.ts" }, "tool_response": "ok",
    });
    let (kind, read_report) = read(report.clone(), Some("claude-code"), &[]);
    assert_eq!((kind, &read_report["tool_name"]), (ClientKind::VsCode, &json!("Edit")));
    assert_eq!(read(report.clone(), Some("copilot-cli"), &[]).0, ClientKind::VsCode);
    assert_eq!(read(report.clone(), Some("gemini"), &[]).0, ClientKind::Gemini);
    assert_eq!(read(report, Some("claude-code"), &["GEMINI_PROJECT_DIR"]).0, ClientKind::ClaudeCode);
    let failed = json!({
        "timestamp": "t", "session_id": "g", "hook_event_name": "AfterTool", "tool_name": "run_shell_command",
        "tool_input": { "command": "false" }, "tool_response": { "llmContent": "Exit Code: 1", "error": { "message": "failed" } },
    });
    has(&read(failed, Some("gemini"), &[]).1, &json!({ "tool_name": "Bash", "error": "failed" }));
    let prompt = json!({ "session_id": "g", "prompt": "<hook_context>memory</hook_context>\n\ngo on" });
    has(&read(prompt, Some("gemini"), &[]).1, &json!({ "prompt": "go on" }));
}

#[test]
fn reads_reports_of_antigravity_copilot_windsurf_and_cline() {
    let antigravity = json!({
        "conversationId": "a-1", "workspacePaths": ["/w"], "transcriptPath": "/t",
        "toolCall": { "name": "run_terminal_cmd", "args": { "command": "ls" } },
    });
    let (kind, report) = read(antigravity, Some("antigravity"), &[]);
    assert_eq!(kind, ClientKind::Antigravity);
    has(
        &report,
        &json!({ "session_id": "a-1", "cwd": "/w", "transcript_path": "/t", "tool_name": "Bash",
                 "tool_input": { "command": "ls" } }),
    );

    let copilot = json!({
        "sessionId": "p-1", "timestamp": 1_760_000_000_000_u64, "cwd": "/w", "toolName": "bash",
        "toolArgs": "{\"command\":\"ls\"}", "toolResult": { "resultType": "success", "textResultForLlm": "a.rs" },
    });
    let (kind, report) = read(copilot, Some("copilot-cli"), &[]);
    assert_eq!(kind, ClientKind::CopilotCli);
    has(
        &report,
        &json!({ "session_id": "p-1", "tool_name": "Bash", "tool_input": { "command": "ls" }, "tool_response": "a.rs" }),
    );

    let windsurf = json!({
        "agent_action_name": "post_run_command", "trajectory_id": "w-1", "execution_id": "e-1",
        "tool_info": { "command_line": "npm test", "cwd": "/w" },
    });
    let (kind, report) = read(windsurf, Some("windsurf"), &[]);
    assert_eq!(kind, ClientKind::Windsurf);
    has(
        &report,
        &json!({ "session_id": "w-1", "tool_name": "Bash", "tool_input": { "command": "npm test" }, "tool_use_id": "e-1" }),
    );
    let prompt = json!({ "agent_action_name": "pre_user_prompt", "trajectory_id": "w-1", "tool_info": { "user_prompt": "go" } });
    has(&read(prompt, None, &[]).1, &json!({ "prompt": "go" }));

    let cline = json!({
        "clineVersion": "4", "hookName": "PostToolUse", "taskId": "k-1", "workspaceRoots": ["/w"],
        "postToolUse": { "toolName": "execute_command", "parameters": { "command": "ls" }, "result": "a", "success": true },
    });
    let (kind, report) = read(cline, None, &[]);
    assert_eq!(kind, ClientKind::Cline);
    has(&report, &json!({ "session_id": "k-1", "cwd": "/w", "tool_name": "Bash", "tool_response": "a" }));
}

#[test]
fn responses_have_the_form_of_the_client() {
    let response = |kind: ClientKind| kind.response("SessionStart", "text");
    let claude =
        json!({ "hookSpecificOutput": { "hookEventName": "SessionStart", "additionalContext": "text" } });
    for kind in [
        ClientKind::ClaudeCode,
        ClientKind::Codex,
        ClientKind::Gemini,
        ClientKind::VsCode,
        ClientKind::OpenCode,
        ClientKind::Other,
    ] {
        assert_eq!(response(kind), Some(claude.clone()), "{kind:?}");
    }
    assert_eq!(response(ClientKind::Cursor), Some(json!({ "additional_context": "text" })));
    assert_eq!(
        response(ClientKind::Antigravity),
        Some(json!({ "injectSteps": [{ "ephemeralMessage": "text" }] }))
    );
    assert_eq!(
        response(ClientKind::Cline),
        Some(json!({ "cancel": false, "contextModification": "text", "errorMessage": "" }))
    );
    assert_eq!((response(ClientKind::CopilotCli), response(ClientKind::Windsurf)), (None, None));
}

#[test]
fn context_is_shortened_to_the_limit_of_the_client() {
    let long: String = (0..2_000).map(|line| format!("line {line} of the context\n")).collect();
    let context = |kind: ClientKind| {
        let response = kind.response("SessionStart", &long).unwrap();
        response["hookSpecificOutput"]["additionalContext"].as_str().unwrap().to_owned()
    };
    let claude = context(ClientKind::ClaudeCode);
    assert!((9_900..=10_000).contains(&claude.chars().count()), "{}", claude.chars().count());
    assert!(claude.starts_with("line 0 ") && claude.ends_with(SHORTENED));
    let codex = context(ClientKind::Codex);
    assert!((2_400..=2_500).contains(&estimate_tokens(&codex)), "{}", estimate_tokens(&codex));
    let one_line = "x".repeat(20_000);
    let response = ClientKind::ClaudeCode.response("SessionStart", &one_line).unwrap();
    assert!(response.to_string().len() < 1_000, "a line that does not fit is omitted");
}

#[test]
fn context_at_a_prompt_is_left_out_for_clients_that_do_not_accept_it() {
    let response = |kind: ClientKind| kind.response("UserPromptSubmit", "text");
    let named = |name: &str| {
        Some(json!({ "hookSpecificOutput": { "hookEventName": name, "additionalContext": "text" } }))
    };
    assert_eq!(response(ClientKind::ClaudeCode), named("UserPromptSubmit"));
    assert_eq!(response(ClientKind::Codex), named("UserPromptSubmit"));
    assert_eq!(response(ClientKind::Gemini), named("BeforeAgent"));
    assert_eq!((response(ClientKind::Cursor), response(ClientKind::VsCode)), (None, None));
}
