use serde_json::json;

use super::*;

fn rendered(tool_name: &str, tool_input: Value, tool_response: Value) -> String {
    render(&ToolUse { tool_name: tool_name.to_owned(), tool_input, tool_response, cwd: None })
}

#[test]
fn a_shell_shows_its_command_and_both_streams() {
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
fn a_read_shows_the_content_and_nothing_else() {
    let response =
        json!({ "type": "text", "file": { "filePath": "/a.rs", "content": "fn a() {}\n", "numLines": 1 } });
    assert_eq!(rendered("Read", json!({ "file_path": "/a.rs", "limit": 10 }), response), "fn a() {}\n");
}

#[test]
fn an_edit_shows_the_change_and_not_the_file() {
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
fn a_new_file_and_a_patch_show_what_is_written() {
    let input = json!({ "file_path": "/new.rs", "content": "fn n() {}\n" });
    let response = json!({ "type": "create", "content": "fn n() {}\n", "structuredPatch": [] });
    assert_eq!(rendered("Write", input, response), "+++ /new.rs\nfn n() {}\n");
    let patch = "*** Begin Patch\n*** Add File: a\n+x\n*** End Patch";
    assert_eq!(rendered("apply_patch", json!({ "input": patch }), json!("Done")), format!("{patch}\nDone"));
}

#[test]
fn blocks_are_joined_and_pictures_named() {
    let blocks = json!([
        { "type": "text", "text": "one" },
        { "type": "image", "source": { "data": "AAAA" } },
        { "type": "text", "text": "two" },
    ]);
    let asked = json!({ "issue": 3 });
    let expected = "[asked] {\"issue\":3}\none\n[image]\ntwo";
    assert_eq!(rendered("mcp__github__get_issue", asked.clone(), blocks.clone()), expected);
    assert_eq!(rendered("Task", asked, json!({ "content": blocks, "totalTokens": 3 })), expected);
}

#[test]
fn what_has_no_known_shape_is_shown_as_json() {
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
fn what_was_asked_is_bounded() {
    let shown = rendered("Task", json!({ "prompt": "x".repeat(10_000) }), json!("done"));
    assert!(shown.len() < MAX_INPUT_CHARS + 20 && shown.ends_with("\ndone"));
}
