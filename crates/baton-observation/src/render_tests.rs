use serde_json::json;

use super::*;

fn rendered(tool_name: &str, tool_input: Value, tool_response: Value) -> String {
    render(&ToolUse { tool_name: tool_name.to_owned(), tool_input, tool_response, cwd: None, turn: None })
}

#[test]
fn renders_a_shell_command_with_both_streams() {
    let response =
        json!({ "stdout": "\u{1b}[32mok\u{1b}[0m\n", "stderr": "warning: x", "interrupted": false });
    assert_eq!(
        rendered("Bash", json!({ "command": "cargo test" }), response),
        "$ cargo test\nok\n[stderr]\nwarning: x"
    );
    let response = json!({ "stdout": "", "stderr": "", "exit_code": 101, "interrupted": true });
    assert_eq!(
        rendered("shell", json!({ "command": ["bash", "-lc", "ls"] }), response),
        "$ bash -lc ls\n[exit code 101]\n[interrupted]"
    );
    assert_eq!(rendered("Bash", json!({ "command": "ls" }), json!("a\0b")), "$ ls\nab");
    assert_eq!(rendered("exec", json!({ "cmd": "ls" }), json!({ "output": "a" })), "$ ls\na");
}

#[test]
fn renders_only_the_content_of_a_read() {
    let response =
        json!({ "type": "text", "file": { "filePath": "/a.rs", "content": "fn a() {}\n", "numLines": 1 } });
    assert_eq!(rendered("Read", json!({ "file_path": "/a.rs", "limit": 10 }), response), "fn a() {}\n");
}

#[test]
fn renders_only_the_change_of_an_edit() {
    let patch =
        json!([{ "oldStart": 3, "oldLines": 2, "newStart": 3, "newLines": 2, "lines": [" a", "-b", "+c"] }]);
    let input = json!({ "file_path": "/a.rs", "old_string": "b", "new_string": "c" });
    let response = json!({ "filePath": "/a.rs", "originalFile": "SECRET OLD", "structuredPatch": patch });
    assert_eq!(rendered("Edit", input.clone(), response), "--- /a.rs\n@@ -3,2 +3,2 @@\n a\n-b\n+c\n");
    assert_eq!(
        rendered("Edit", input, json!("Error: not found in file")),
        "--- /a.rs\n-b\n+c\nError: not found in file"
    );
    let edits = json!({ "path": "/a", "edits": [{ "old_string": "a\nb", "new_string": "c" }, { "new_string": "d" }] });
    assert_eq!(rendered("MultiEdit", edits, Value::Null), "--- /a\n-a\n-b\n+c\n+d\n");
}

#[test]
fn renders_the_content_of_new_files_and_patches() {
    let input = json!({ "file_path": "/new.rs", "content": "fn n() {}\n" });
    let response = json!({ "type": "create", "content": "fn n() {}\n", "structuredPatch": [] });
    assert_eq!(rendered("Write", input, response), "+++ /new.rs\nfn n() {}\n");
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
    assert_eq!(rendered("apply_patch", json!({ "input": patch }), json!("Done")), format!("{patch}\nDone"));
}

#[test]
fn joins_text_blocks_and_names_other_blocks() {
    let blocks = json!([
        { "type": "text", "text": "one" },
        { "type": "image", "source": { "data": "AAAA" } },
        { "type": "text", "text": "two" },
    ]);
    let input = json!({ "issue": 3 });
    let expected = "[asked] {\"issue\":3}\none\n[image]\ntwo";
    assert_eq!(rendered("mcp__github__get_issue", input.clone(), blocks.clone()), expected);
    assert_eq!(rendered("Task", input, json!({ "content": blocks, "totalTokens": 3 })), expected);
}

#[test]
fn renders_unknown_structures_as_json() {
    let shown = rendered("Odd", Value::Null, json!({ "a": [1, { "b": null }] }));
    assert_eq!(shown, "{\n  \"a\": [\n    1,\n    {\n      \"b\": null\n    }\n  ]\n}");
    assert_eq!(rendered("Odd", Value::Null, json!([1, 2])), "[\n  1,\n  2\n]");
    assert_eq!(
        rendered("Fetch", Value::Null, json!({ "result": "page", "code": 200 })),
        "page\n{\"code\":200}"
    );
    assert_eq!(rendered("Odd", Value::Null, Value::Null), "");
    assert_eq!(rendered("Odd", json!("just text"), json!(3)), "[asked] \"just text\"\n3");
}

#[test]
fn truncates_generic_input() {
    let shown = rendered("Task", json!({ "prompt": "x".repeat(10_000) }), json!("done"));
    assert!(shown.len() < MAX_INPUT_CHARS + 20 && shown.ends_with("\ndone"));
}
