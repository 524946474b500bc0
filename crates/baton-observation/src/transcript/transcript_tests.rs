use super::*;

fn parse(format: TranscriptFormat, lines: &[Value]) -> (TranscriptParser, Vec<Value>) {
    let mut parser = TranscriptParser::new(format);
    for line in lines {
        assert_ne!(parser.line(line), Line::Foreign, "{line}");
    }
    parser.finish();
    let reports = parser.take_reports();
    (parser, reports)
}

fn claude(kind: &str, second: u32, content: Value) -> Value {
    json!({
        "type": kind, "sessionId": "chat-1", "cwd": "/home/dev/shop", "gitBranch": "login", "isSidechain": false,
        "timestamp": format!("2026-02-11T15:31:{second:02}.000Z"), "message": { "role": kind, "content": content },
    })
}

fn summary(report: &Value) -> (String, String) {
    let field = match report["event"].as_str().unwrap() {
        "user-prompt-submit" => "prompt",
        "stop" => "last_assistant_message",
        _ => "tool_name",
    };
    (report["event"].as_str().unwrap().to_owned(), report[field].as_str().unwrap_or_default().to_owned())
}

#[test]
fn claude_code_lines_become_reports_with_original_times() {
    let mut result = claude(
        "user",
        3,
        json!([{ "type": "tool_result", "tool_use_id": "toolu_1", "content": "text form" }]),
    );
    result["toolUseResult"] = json!({ "stdout": "ok" });
    let (parser, reports) = parse(
        TranscriptFormat::ClaudeCode,
        &[
            json!({ "type": "summary", "summary": "Old title", "leafUuid": "x" }),
            claude("user", 1, "<system-reminder>Baton, session s</system-reminder>Fix the login".into()),
            claude(
                "assistant",
                2,
                json!([{ "type": "text", "text": "I will look." },
                       { "type": "tool_use", "id": "toolu_1", "name": "Bash", "input": { "command": "ls" } }]),
            ),
            result,
            claude("assistant", 4, json!([{ "type": "text", "text": "Fixed." }])),
            claude("user", 5, "<command-name>/clear</command-name>".into()),
            claude("user", 6, json!([{ "type": "text", "text": "Add a test" }])),
            claude("user", 7, "[Request interrupted by user]".into()),
        ],
    );
    assert_eq!(parser.facts().session_id.as_deref(), Some("chat-1"));
    assert_eq!(parser.facts().branch.as_deref(), Some("login"));
    let seen: Vec<(String, String)> = reports.iter().map(summary).collect();
    let expected = [
        ("user-prompt-submit", "Fix the login"),
        ("post-tool-use", "Bash"),
        ("stop", "Fixed."),
        ("user-prompt-submit", "Add a test"),
        ("stop", ""),
    ];
    assert_eq!(seen, expected.map(|(event, text)| (event.to_owned(), text.to_owned())));
    assert_eq!(reports[1]["tool_response"], json!({ "stdout": "ok" }));
    assert_eq!(reports[1]["reported_at"], "2026-02-11T15:31:03.000Z");
    assert_eq!(reports[2]["reported_at"], "2026-02-11T15:31:04.000Z");
    assert_eq!(reports[4]["hook_event_name"], "Interrupt");
}

#[test]
fn messages_of_sub_agents_are_not_turns_but_their_tool_uses_are_captured() {
    let side = |line: Value| {
        let mut line = line;
        line["isSidechain"] = true.into();
        line
    };
    let (_, reports) = parse(
        TranscriptFormat::ClaudeCode,
        &[
            claude("user", 1, "Review the code".into()),
            side(claude("user", 2, "You are a reviewer. Read a.rs".into())),
            side(claude(
                "assistant",
                3,
                json!([{ "type": "tool_use", "id": "t1", "name": "Read", "input": { "file_path": "/home/dev/shop/a.rs" } }]),
            )),
            side(claude(
                "user",
                4,
                json!([{ "type": "tool_result", "tool_use_id": "t1", "content": "fn a()" }]),
            )),
            side(claude("assistant", 5, json!([{ "type": "text", "text": "a.rs is fine." }]))),
            claude("assistant", 6, json!([{ "type": "text", "text": "The review found nothing." }])),
        ],
    );
    let seen: Vec<String> = reports.iter().map(|report| summary(report).1).collect();
    assert_eq!(seen, ["Review the code", "Read", "The review found nothing."]);
}

#[test]
fn an_unfinished_turn_has_no_closing_message() {
    let (parser, reports) = parse(
        TranscriptFormat::ClaudeCode,
        &[
            claude("user", 1, "Fix it".into()),
            claude(
                "assistant",
                2,
                json!([{ "type": "text", "text": "Let me see." },
                       { "type": "tool_use", "id": "t1", "name": "Read", "input": {} }]),
            ),
        ],
    );
    assert_eq!(reports.len(), 1, "{reports:?}");
    assert!(!parser.is_settled());
}

#[test]
fn codex_lines_become_reports() {
    let line = |kind: &str, payload: Value| json!({ "timestamp": "2026-03-01T10:00:00.000Z", "type": kind, "payload": payload });
    let message = |role: &str, text: &str| {
        line(
            "response_item",
            json!({ "type": "message", "role": role, "content": [{ "type": "input_text", "text": text }] }),
        )
    };
    let (parser, reports) = parse(
        TranscriptFormat::Codex,
        &[
            line(
                "session_meta",
                json!({ "id": "0199-a", "cwd": "/home/dev/shop",
                        "git": { "branch": "main", "repository_url": "git@github.com:acme/shop.git" } }),
            ),
            message("user", "<environment_context>\n</environment_context>"),
            message("user", "Fix the parser"),
            line("event_msg", json!({ "type": "user_message", "message": "Fix the parser" })),
            line(
                "response_item",
                json!({ "type": "function_call", "name": "shell", "call_id": "c1",
                        "arguments": "{\"command\":[\"cargo\",\"test\"]}" }),
            ),
            line(
                "response_item",
                json!({ "type": "function_call_output", "call_id": "c1",
                        "output": "{\"output\":\"ok\",\"metadata\":{\"exit_code\":0}}" }),
            ),
            line(
                "response_item",
                json!({ "type": "custom_tool_call", "name": "apply_patch", "call_id": "c2",
                        "input": "*** Begin Patch\n*** Update File: src/a.rs\n" }),
            ),
            line(
                "response_item",
                json!({ "type": "custom_tool_call_output", "call_id": "c2", "output": "Done" }),
            ),
            message("assistant", "The parser is fixed."),
        ],
    );
    assert_eq!(parser.facts().repository_url.as_deref(), Some("git@github.com:acme/shop.git"));
    let seen: Vec<String> = reports.iter().map(|report| summary(report).1).collect();
    assert_eq!(seen, ["Fix the parser", "Bash", "apply_patch", "The parser is fixed."]);
    assert_eq!(reports[1]["tool_input"], json!({ "command": ["cargo", "test"] }));
    assert_eq!(reports[1]["tool_response"]["output"], "ok");
    assert!(reports[2]["tool_input"]["input"].as_str().unwrap().contains("src/a.rs"));
}

#[test]
fn recorded_hook_reports_are_accepted_in_any_format() {
    let lines = [
        json!({ "session_id": "s", "cwd": "/w/cli", "hook_event_name": "SessionStart", "source": "startup" }),
        json!({ "session_id": "s", "cwd": "/w/cli", "hook_event_name": "UserPromptSubmit", "prompt": "Do it",
                "timestamp": "2026-02-11T15:31:21.085Z" }),
        json!({ "session_id": "s", "cwd": "/w/cli", "hook_event_name": "PostToolUse", "tool_name": "Read",
                "tool_input": {}, "tool_use_id": "t", "timestamp": "2026-02-11T15:31:27.146Z" }),
        json!({ "session_id": "s", "cwd": "/w/cli", "hook_event_name": "Stop" }),
    ];
    let (parser, reports) = parse(TranscriptFormat::ClaudeCode, &lines);
    assert_eq!(parser.facts().session_id.as_deref(), Some("s"));
    let times: Vec<&str> = reports.iter().map(|report| report["reported_at"].as_str().unwrap()).collect();
    assert_eq!(times, ["2026-02-11T15:31:21.085Z", "2026-02-11T15:31:27.146Z", "2026-02-11T15:31:27.146Z"]);
}

#[test]
fn lines_of_other_programs_are_foreign() {
    use TranscriptFormat::{ClaudeCode, Codex, Cursor, Gemini, OpenCode};
    for format in [ClaudeCode, Codex, Gemini, OpenCode, Cursor] {
        let mut parser = TranscriptParser::new(format);
        for line in [json!({}), json!(7), json!([]), json!({ "type": "thing" }), json!({ "query": "x" })] {
            assert_eq!(parser.line(&line), Line::Foreign, "{line}");
        }
        assert_eq!(parser.take_reports(), Vec::<Value>::new());
    }
}

#[test]
fn gemini_messages_become_reports_and_repeated_ones_count_once() {
    let at = |second: u32| format!("2026-11-16T15:29:{second:02}.000Z");
    let user = |id: &str, second, text: &str| json!({ "id": id, "timestamp": at(second), "type": "user", "content": [{ "text": text }] });
    let call = |status: &str, response: Value| {
        json!({ "id": "shell_1", "name": "run_shell_command", "args": { "command": "cat x" }, "status": status,
                "timestamp": at(4), "result": [{ "functionResponse": { "response": response } }], "resultDisplay": "no x" })
    };
    let answer = |calls: Value| json!({ "id": "g1", "timestamp": at(3), "type": "gemini", "content": "", "toolCalls": calls });
    let output = json!({ "output": "Output: no x\nExit Code: 1" });
    let lines = [
        json!({ "sessionId": "chat-1", "projectHash": "8f5d", "startTime": at(0), "kind": "main" }),
        json!({ "$set": { "messages": [user("c", 1, "<session_context>\n- **Workspace Directories:**\n  - /home/dev/shop\n</session_context>")] } }),
        user("u1", 2, "<hook_context>Baton, session s</hook_context>Ship it"),
        answer(json!([])),
        answer(json!([call("executing", Value::Null)])),
        answer(json!([call("success", output.clone())])),
        user("r1", 4, ""),
        json!({ "$set": { "lastUpdated": at(4) } }),
        json!({ "$set": { "messages": [user("u1", 2, "Ship it"), answer(json!([call("success", output)]))] } }),
        user("u2", 5, "/clear"),
        json!({ "id": "g2", "timestamp": at(6), "type": "gemini", "content": "Shipped." }),
        json!({ "$rewindTo": "u2" }),
    ];
    let (parser, reports) = parse(TranscriptFormat::Gemini, &lines);
    assert_eq!(parser.facts().cwd.as_deref(), Some("/home/dev/shop"));
    assert_eq!(parser.facts().started_at.unwrap().to_string(), at(0));
    let seen: Vec<String> = reports.iter().map(|report| summary(report).1).collect();
    assert_eq!(seen, ["Ship it", "Bash", "Shipped."]);
    assert_eq!(reports[1]["tool_response"]["llmContent"], "Output: no x\nExit Code: 1");
    assert_eq!((&reports[1]["reported_at"], &reports[1]["cwd"]), (&at(4).into(), &"/home/dev/shop".into()));
}

#[test]
fn failed_and_cancelled_tool_calls_of_gemini_are_errors() {
    let call = |id: &str, status: &str, response: Value| {
        json!({ "id": id, "name": "edit", "args": {}, "status": status,
                "result": [{ "functionResponse": { "response": response } }] })
    };
    let calls = [call("a", "error", json!({ "error": "no such file" })), call("b", "cancelled", json!({}))];
    let message =
        json!({ "id": "g", "timestamp": "2026-11-16T15:29:03Z", "type": "gemini", "toolCalls": calls });
    let (_, reports) = parse(TranscriptFormat::Gemini, &[message]);
    let errors: Vec<&str> = reports.iter().map(|report| report["error"].as_str().unwrap()).collect();
    assert_eq!(errors, ["no such file", "cancelled"]);
}

#[test]
fn opencode_messages_become_reports() {
    let session = json!({ "session": { "id": "ses_1", "directory": "/home/dev/shop", "created": 1_794_843_006_264_i64 } });
    let message = |role: &str, created: i64, more: Value, parts: Value| {
        let mut message = json!({ "role": role, "time": { "created": created } });
        message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "message": message, "parts": parts })
    };
    let tool =
        |id: &str, state: Value| json!({ "type": "tool", "tool": "bash", "callID": id, "state": state });
    let lines = [
        session,
        message(
            "user",
            1_794_843_007_000,
            json!({}),
            json!([
                { "type": "text", "text": "Ship it" }, { "type": "text", "text": "file content", "synthetic": true },
            ]),
        ),
        message(
            "assistant",
            1_794_843_008_000,
            json!({}),
            json!([
                { "type": "step-start" },
                tool("c1", json!({ "status": "completed", "input": { "command": "cat x" }, "output": "no x",
                                   "metadata": { "exit": 1 }, "time": { "start": 1, "end": 1_794_843_009_000_i64 } })),
                tool("c2", json!({ "status": "error", "input": {}, "error": "refused" })),
                tool("c3", json!({ "status": "running", "input": {} })),
            ]),
        ),
        message(
            "assistant",
            1_794_843_010_000,
            json!({ "summary": true }),
            json!([{ "type": "text", "text": "Summary" }]),
        ),
        message("assistant", 1_794_843_011_000, json!({}), json!([{ "type": "text", "text": "Shipped." }])),
        message("user", 1_794_843_012_000, json!({}), json!([{ "type": "text", "text": "More" }])),
        message(
            "assistant",
            1_794_843_013_000,
            json!({ "error": { "name": "MessageAbortedError" } }),
            json!([]),
        ),
    ];
    let (parser, reports) = parse(TranscriptFormat::OpenCode, &lines);
    assert_eq!(parser.facts().session_id.as_deref(), Some("ses_1"));
    let seen: Vec<String> = reports.iter().map(|report| summary(report).1).collect();
    assert_eq!(seen, ["Ship it", "Bash", "Bash", "Shipped.", "More", ""]);
    assert_eq!(reports[1]["tool_response"], json!({ "stdout": "no x", "stderr": "", "exit_code": 1 }));
    assert_eq!(reports[1]["reported_at"], "2026-11-16T15:30:09.000Z");
    assert_eq!(
        (&reports[2]["error"], &reports[5]["hook_event_name"]),
        (&"refused".into(), &"Interrupt".into())
    );
}

#[test]
fn cursor_bubbles_become_reports_and_get_a_time_if_they_have_none() {
    let composer =
        json!({ "composerId": "c-1", "createdAt": 1_794_843_006_264_i64, "createdOnBranch": "login" });
    let bubble = |kind: i64, more: Value| {
        let mut bubble = json!({ "type": kind });
        bubble.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({ "bubble": bubble })
    };
    let tool = |id: &str, status: &str| {
        json!({ "name": "read_file_v2", "toolCallId": id, "status": status, "rawArgs": "{\"targetFile\":\"/s/a.rs\"}",
                "result": "{\"contents\":\"fn a\"}" })
    };
    let lines = [
        json!({ "composer": composer, "folder": null }),
        bubble(
            1,
            json!({ "text": "Fix it", "createdAt": "2026-11-16T15:31:00.000Z", "workspaceUris": ["file:///home/a%20b"] }),
        ),
        bubble(2, json!({ "text": "", "toolFormerData": tool("t1", "completed") })),
        bubble(2, json!({ "text": "", "toolFormerData": tool("t2", "error") })),
        bubble(2, json!({ "text": "", "toolFormerData": tool("t3", "running") })),
        bubble(2, json!({ "text": "Fixed." })),
    ];
    let (parser, reports) = parse(TranscriptFormat::Cursor, &lines);
    let facts = parser.facts();
    assert_eq!((facts.branch.as_deref(), facts.cwd.as_deref()), (Some("login"), Some("/home/a b")));
    let seen: Vec<String> = reports.iter().map(|report| summary(report).1).collect();
    // A tool call is running, so the turn has not ended.
    assert_eq!(seen, ["Fix it", "Read", "Read"]);
    assert_eq!(reports[1]["tool_input"]["file_path"], "/s/a.rs");
    assert_eq!(reports[1]["tool_response"], json!({ "contents": "fn a" }));
    assert_eq!(reports[1]["reported_at"], "2026-11-16T15:31:00.001Z");
    assert_eq!(reports[2]["error"], "{\"contents\":\"fn a\"}");
}
