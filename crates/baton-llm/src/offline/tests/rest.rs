//! The web, sub-agents, plans, questions, MCP servers and unknown tools.

use serde_json::json;

use super::{detail, observe};

#[test]
fn describes_fetched_pages() {
    let seen = observe(
        "WebFetch",
        json!({ "url": "https://docs.example.com/hooks", "prompt": "Which hooks are there? List them." }),
        json!({ "bytes": 5000, "code": 200, "codeText": "OK", "url": "https://docs.example.com/hooks", "result": "# Hooks\n\nThere are three hooks: `PreToolUse`, `PostToolUse` and `Stop`.\n" }),
    );
    assert_eq!(seen.title, "Fetch docs.example.com/hooks: Hooks");
    assert!(
        seen.summary.contains("to learn: Which hooks are there?")
            || seen.summary.contains("Which hooks are there"),
        "{}",
        seen.summary
    );
    assert!(seen.summary.contains("There are three hooks"), "{}", seen.summary);
    let gone = observe(
        "WebFetch",
        json!({ "url": "https://example.com/x" }),
        json!({ "code": 404, "result": "Not found" }),
    );
    assert_eq!(gone.title, "Fetch example.com/x: status 404");
}

#[test]
fn describes_web_searches() {
    let seen = observe(
        "WebSearch",
        json!({ "query": "rust sqlite wal" }),
        json!({ "query": "rust sqlite wal", "results": [
            { "tool_use_id": "srvtoolu_1", "content": [{ "title": "WAL mode", "url": "https://sqlite.org/wal.html" }] },
            "WAL lets readers and a writer work at the same time. Use journal_mode=WAL.",
        ] }),
    );
    assert_eq!(seen.title, "Search web for 'rust sqlite wal': 1 result");
    assert!(
        seen.summary.ends_with("WAL lets readers and a writer work at the same time."),
        "{}",
        seen.summary
    );
    assert!(detail(&seen).contains("WAL mode: https://sqlite.org/wal.html"), "{seen:?}");
}

#[test]
fn describes_reports_of_sub_agents() {
    let report = "Perfect! I have everything.\n\n## Findings\n\nSessions are saved by `SessionStore.save` in src/session/store.rs before the hook returns.\n\n- `load_all` reads src/session/index.json\n";
    let seen = observe(
        "Task",
        json!({ "description": "Find where sessions are saved", "prompt": "…", "subagent_type": "Explore" }),
        json!({ "status": "completed", "prompt": "…", "content": [{ "type": "text", "text": report }], "totalDurationMs": 56_000, "totalToolUseCount": 22 }),
    );
    assert_eq!(seen.title, "Delegate 'Find where sessions are saved' to Explore");
    assert_eq!(
        seen.summary,
        "Explore reported (22 tool uses, 56 s): Sessions are saved by `SessionStore.save` in src/session/store.rs before the hook returns."
    );
    assert!(
        detail(&seen).contains("src/session/index.json") && detail(&seen).contains("load_all"),
        "{seen:?}"
    );
}

#[test]
fn describes_todo_lists_and_tasks() {
    let seen = observe(
        "TodoWrite",
        json!({ "todos": [
            { "content": "Add the parser", "status": "completed", "activeForm": "…" },
            { "content": "Write the tests", "status": "in_progress", "activeForm": "…" },
            { "content": "Update the docs", "status": "pending", "activeForm": "…" },
        ] }),
        json!({ "oldTodos": [], "newTodos": [] }),
    );
    assert_eq!(seen.title, "Update to-do list (Write the tests): 1 of 3 done");
    assert_eq!(seen.summary, "To-do list: 1 of 3 done. In progress: Write the tests. Next: Update the docs.");
    let task = observe(
        "TaskUpdate",
        json!({ "taskId": "4", "status": "completed" }),
        json!({ "statusChange": { "from": "in_progress", "to": "completed" } }),
    );
    assert_eq!(
        (task.title.as_str(), task.summary.as_str()),
        ("Mark task 4 completed", "Task 4 is now completed (was in progress).")
    );
    let created = observe(
        "TaskCreate",
        json!({ "subject": "Add the field", "description": "To both types." }),
        json!({ "task": { "id": "4" } }),
    );
    assert_eq!(created.title, "Create task 4 'Add the field'");
}

#[test]
fn plans_and_questions_are_decisions() {
    let plan = observe(
        "ExitPlanMode",
        json!({ "plan": "# Plan: Keep unknown hooks\n\nHooks that are not known are dropped today, which loses data.\n" }),
        json!({ "plan": "…", "isAgent": false }),
    );
    assert_eq!(plan.title, "Propose plan 'Keep unknown hooks': approved");
    assert!(plan.summary.contains("Hooks that are not known are dropped today"), "{}", plan.summary);
    let asked = observe(
        "AskUserQuestion",
        json!({ "questions": [{ "question": "Embed files or inline strings?", "header": "Storage", "options": [{ "label": "Inline" }, { "label": "Embed" }] }] }),
        json!({ "questions": [], "answers": { "Embed files or inline strings?": "Inline" } }),
    );
    assert_eq!(
        (asked.title.as_str(), asked.summary.as_str()),
        ("Ask user about Storage: Inline", "\"Embed files or inline strings?\" User chose: Inline.")
    );
}

#[test]
fn declined_tool_use_keeps_the_reason() {
    let seen = observe(
        "Bash",
        json!({ "command": "gh pr create", "description": "Create pull request" }),
        json!({ "content": "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nrename the branch first", "is_error": true }),
    );
    assert_eq!(seen.title, "Create pull request: declined by user");
    assert_eq!(
        seen.summary,
        "The user declined to let Bash run; nothing was done. They said: \"rename the branch first\""
    );
}

#[test]
fn describes_calls_of_mcp_servers() {
    let issue = "{\"identifier\":\"ENT-95\",\"title\":\"Explain the folders\",\"status\":\"Todo\",\"description\":\"Add README.md to `.git/entire-sessions`.\",\"url\":\"https://x\"}";
    let seen = observe(
        "mcp__linear-server__get_issue",
        json!({ "id": "ENT-95" }),
        json!([{ "type": "text", "text": issue }]),
    );
    assert_eq!(seen.title, "Get issue ENT-95: Explain the folders");
    assert_eq!(
        seen.summary,
        "Used mcp__linear-server__get_issue with id \"ENT-95\". Answer: Explain the folders."
    );
    assert!(detail(&seen).contains("ENT-95 Explain the folders (Todo)\nAdd README.md"), "{seen:?}");
    let comment = observe(
        "mcp__linear-server__create_comment",
        json!({ "issueId": "ENT-95", "body": "Done in 00fb9c4" }),
        json!([{ "type": "text", "text": "{}" }]),
    );
    assert_eq!(
        (comment.title.as_str(), comment.detail.as_deref()),
        ("Create comment ENT-95 via linear-server", None)
    );
}

#[test]
fn describes_unknown_tools_by_name_and_input() {
    let seen = observe(
        "FrobnicateThings",
        json!({ "name": "left widget", "count": 3 }),
        json!({ "status": "done", "items": [{ "name": "a" }, { "name": "b" }] }),
    );
    assert_eq!(seen.title, "Use FrobnicateThings tool 'left widget': done");
    assert!(
        seen.summary.starts_with("Used FrobnicateThings with count 3, name \"left widget\"."),
        "{}",
        seen.summary
    );
    let empty = observe("", json!(null), json!(null));
    assert_eq!(empty.title, "Use unnamed tool");
}

#[test]
fn declined_and_cancelled_calls_keep_what_was_proposed() {
    let edit =
        json!({ "file_path": "/home/dev/app/a.sh", "old_string": "rm build", "new_string": "rm -rf build" });
    let declined = "The user doesn't want to proceed with this tool use. The tool use was rejected.";
    let seen = observe("Edit", edit, json!({ "is_error": true, "content": declined }));
    assert_eq!(seen.title, "Edit a.sh: declined by user");
    assert_eq!(seen.detail.as_deref(), Some("Proposed:\n- rm build\n+ rm -rf build"));
    let cancelled =
        json!({ "is_error": true, "content": "<tool_use_error>Sibling tool call errored</tool_use_error>" });
    let seen = observe(
        "Bash",
        json!({ "command": "git count-objects -v", "description": "Count objects" }),
        cancelled,
    );
    assert_eq!(seen.title, "Count objects: not run");
    assert_eq!(seen.summary, "Bash was not run, because another call at the same time failed.");
    assert_eq!(seen.detail.as_deref(), Some("Proposed:\ngit count-objects -v"));
}

#[test]
fn structured_answers_of_other_tools_are_read() {
    let updated = observe(
        "mcp__linear__update_issue",
        json!({ "id": "0f8fad5b-d9cb-469f-a165-70867728950e", "state": "Done" }),
        json!([{ "type": "text", "text": "{\"id\":\"0f8fad5b-d9cb-469f-a165-70867728950e\",\"identifier\":\"ENT-241\",\"title\":\"Explain folders\",\"state\":{\"id\":\"x1\",\"name\":\"Done\"}}" }]),
    );
    assert_eq!(updated.title, "Update issue ENT-241 (state Done): Explain folders");
    assert!(updated.detail.as_deref().unwrap_or_default().contains("(Done)"), "{updated:?}");
    let created = observe(
        "mcp__linear__create_issue",
        json!({ "title": "Explain folders", "team": "Docs" }),
        json!([{ "type": "text", "text": "{\"identifier\":\"ENT-241\",\"title\":\"Explain folders\"}" }]),
    );
    assert_eq!(created.title, "Create issue ENT-241: Explain folders");
    let listed = observe(
        "TaskList",
        json!({}),
        json!({ "tasks": [{ "id": "6", "subject": "Run all tests", "status": "pending" }, { "id": "1", "subject": "Write tests", "status": "completed" }] }),
    );
    assert_eq!(
        listed.detail.as_deref(),
        Some("tasks: 2 entries\n6 Run all tests (pending)\n1 Write tests (completed)")
    );
    let output = observe(
        "BashOutput",
        json!({ "bash_id": "ab12" }),
        json!({ "shellId": "ab12", "command": "npm run dev", "status": "failed", "exitCode": 1, "stdout": "listening on 3000\n", "stderr": "Error: address already in use :::3000\n" }),
    );
    assert!(output.title.starts_with("Run npm run dev: exit 1"), "{}", output.title);
}

#[test]
fn failed_search_keeps_its_pattern() {
    let seen = observe(
        "Grep",
        json!({ "pattern": "StartLine", "path": "/home/dev/app/cmd" }),
        json!({ "is_error": true, "content": "<tool_use_error>Path does not exist: /home/dev/app/cmd</tool_use_error>" }),
    );
    assert_eq!(seen.title, "Grep 'StartLine' in cmd: failed, Path does not exist: /home/dev/app/cmd");
}
