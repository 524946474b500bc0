//! Properties that hold for any input.

use baton_core::observation::{
    Digest, MAX_SUMMARY_CHARS, MAX_TITLE_CHARS, SessionMaterial, TurnStatus, TurnText,
};
use baton_observation::ToolUse;
use proptest::prelude::*;
use serde_json::{Value, json};

use super::super::Offline;
use crate::compressor::Compressor;

const TOOLS: &[&str] = &[
    "Bash",
    "Edit",
    "MultiEdit",
    "Write",
    "Read",
    "Grep",
    "Glob",
    "LS",
    "WebFetch",
    "WebSearch",
    "Task",
    "TodoWrite",
    "TaskCreate",
    "TaskUpdate",
    "TaskOutput",
    "ExitPlanMode",
    "AskUserQuestion",
    "Skill",
    "NotebookEdit",
    "shell",
    "local_shell",
    "apply_patch",
    "str_replace_based_edit_tool",
    "mcp__a__get_issue",
    "mcp____",
    "mcp__",
    "",
    "Unknown thing",
];

const KEYS: &[&str] = &[
    "command",
    "description",
    "file_path",
    "path",
    "old_string",
    "new_string",
    "content",
    "edits",
    "stdout",
    "stderr",
    "is_error",
    "originalFile",
    "structuredPatch",
    "lines",
    "newStart",
    "type",
    "file",
    "filePath",
    "startLine",
    "totalLines",
    "pattern",
    "filenames",
    "mode",
    "output",
    "metadata",
    "exit_code",
    "url",
    "result",
    "results",
    "query",
    "todos",
    "status",
    "questions",
    "answers",
    "question",
    "plan",
    "prompt",
    "task",
    "patch",
    "text",
    "offset",
    "title",
];

/// Creates text that resembles tool output, valid or malformed.
fn texts() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "\u{1b}[31m",
        "\u{1b}]0;",
        "\0",
        "\r",
        "\n",
        "\t",
        "error: ",
        "FAILED ",
        "test a ... FAILED",
        "src/a.rs:1:2: ",
        "*** Begin Patch\n",
        "*** Update File: a.go\n",
        "diff --git a/x b/x\n",
        "@@ -1 +1 @@ fn a()\n",
        "+added\n",
        "-removed\n",
        "Exit code 1\n",
        "{\"a\":",
        "[1,",
        "}",
        "fn f() {",
        "func (s *S) M() {",
        "class A:\n  def f(self):",
        "/home/dev/app/x.py",
        "a.py",
        "x.ts",
        "<<EOF\n",
        "'",
        "\"",
        "$(",
        "&&",
        "|",
        ">",
        "é",
        "\u{202e}",
        "😀",
        "CamelCaseName",
        "snake_case_name",
        "12:",
        "ok  \tpkg\t0.1s\n",
        "--- FAIL: T (0.0s)\n",
        "12 issues.\n",
        "git commit -m ",
        "[main 1234567] x\n",
        "===== 1 failed in 0.1s =====",
        "# Heading\n",
        " ",
        "\u{fffd}",
    ]);
    prop_oneof![
        prop::collection::vec(prop_oneof![4 => pieces.prop_map(str::to_owned), 1 => any::<String>()], 0..40)
            .prop_map(|parts| parts.concat()),
        any::<String>(),
        (1_usize..8_000).prop_map(|length| "x".repeat(length)),
    ]
}

fn values() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => texts().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
    ];
    leaf.prop_recursive(4, 48, 8, |inner| {
        let key = prop_oneof![9 => prop::sample::select(KEYS.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
        prop_oneof![
            3 => prop::collection::vec((key, inner.clone()), 0..8).prop_map(|members| Value::Object(members.into_iter().collect())),
            1 => prop::collection::vec(inner, 0..6).prop_map(Value::Array),
        ]
    })
}

fn tool_uses() -> impl Strategy<Value = ToolUse> {
    let tool =
        prop_oneof![9 => prop::sample::select(TOOLS.to_vec()).prop_map(str::to_owned), 1 => any::<String>()];
    let cwd = prop::option::of(prop_oneof![Just("/home/dev/app".to_owned()), any::<String>()]);
    (tool, values(), values(), cwd).prop_map(|(tool_name, tool_input, tool_response, cwd)| ToolUse {
        tool_name,
        tool_input,
        tool_response,
        cwd,
        turn: None,
    })
}

fn check(tool_use: &ToolUse) {
    let first = Offline.compress(tool_use).unwrap();
    let observation = &first.observation;
    let words = observation.title.split_whitespace().count();
    let is_commit = observation.title.starts_with("Commit '") || observation.title.starts_with("Amend '");
    let least = if is_commit { 2 } else { 3 };
    assert!((least..=12).contains(&words), "{words} words: {:?}", observation.title);
    assert!(observation.title.chars().count() <= MAX_TITLE_CHARS);
    assert!(
        !observation.title.ends_with('.') || observation.title.ends_with("..."),
        "{:?}",
        observation.title
    );
    assert!(!observation.title.contains('\n'));
    assert!(!observation.summary.trim().is_empty());
    assert!(observation.summary.chars().count() <= MAX_SUMMARY_CHARS);
    let detail = observation.detail.as_deref().unwrap_or_default();
    assert!(detail.len() <= 7_900, "{}", detail.len());
    let escapes =
        |text: &str| text.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t');
    assert!(
        !escapes(&observation.title) && !escapes(&observation.summary) && !escapes(detail),
        "{observation:?}"
    );
    assert_eq!(first, Offline.compress(tool_use).unwrap());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn any_use_of_any_tool_becomes_an_observation(tool_use in tool_uses()) {
        check(&tool_use);
    }

    #[test]
    fn any_output_of_a_shell_becomes_an_observation(command in texts(), output in texts(), is_error in any::<bool>()) {
        let tool_response = json!({ "content": output, "is_error": is_error });
        check(&ToolUse { tool_name: "Bash".into(), tool_input: json!({ "command": command }), tool_response, cwd: None, turn: None });
    }

    #[test]
    fn any_change_of_any_source_becomes_an_observation(
        ending in prop::sample::select(vec!["rs", "py", "ts", "tsx", "js", "go", "java", "md", "toml"]),
        old in texts(),
        new in texts(),
        around in texts(),
    ) {
        let path = format!("/home/dev/app/x.{ending}");
        let input = json!({ "file_path": path, "old_string": old, "new_string": new });
        let tool_response = json!({ "filePath": path, "originalFile": format!("{around}{old}{around}") });
        check(&ToolUse { tool_name: "Edit".into(), tool_input: input, tool_response, cwd: Some("/home/dev/app".into()), turn: None });
    }

    #[test]
    fn any_session_has_a_bounded_summary(titles in prop::collection::vec(texts(), 0..12), prompts in prop::collection::vec(texts(), 0..5)) {
        let digests = titles
            .iter()
            .map(|title| Digest {
                tool_name: "Edit".into(),
                title: title.clone(),
                summary: title.clone(),
                files_touched: vec![title.clone()],
                functions_changed: Vec::new(),
            })
            .collect();
        let turn = |prompt: &String| TurnText {
            prompt: prompt.clone(),
            closing: prompts.last().cloned(),
            status: TurnStatus::Done,
            has_changes: false,
        };
        let turns = prompts.iter().map(turn).collect();
        let summary = Offline.summarize(&SessionMaterial { turns, digests, ..SessionMaterial::default() }).unwrap().summary;
        prop_assert!(!summary.summary.is_empty());
        prop_assert!(summary.summary.chars().count() <= 1_800);
        prop_assert!(summary.key_files.len() <= 10 && summary.key_decisions.len() <= 10);
    }
}

#[test]
fn huge_and_malformed_outputs_are_handled() {
    let long_line = "a_b ".repeat(30_000);
    let noise: String = (0..50_000_u32)
        .map(|index| char::from_u32(index.wrapping_mul(2_654_435_761) % 0xd7ff).unwrap_or(' '))
        .collect();
    let mut deep = json!("end");
    for _ in 0..100 {
        deep = json!({ "content": [deep] });
    }
    let braces = "{[(".repeat(20_000);
    for tool in TOOLS {
        for response in
            [json!(long_line), json!(noise), deep.clone(), json!({ "stdout": braces, "content": noise })]
        {
            let tool_input =
                json!({ "file_path": "/x/a.js", "command": braces, "content": braces, "pattern": long_line });
            check(&ToolUse {
                tool_name: (*tool).into(),
                tool_input,
                tool_response: response,
                cwd: None,
                turn: None,
            });
        }
    }
}
