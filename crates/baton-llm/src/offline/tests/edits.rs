//! Tools that change files.

use serde_json::json;

use super::{detail, functions, observe};

const GO: &str = "package http\n\nimport \"net\"\n\n// Serve serves.\nfunc Serve(l net.Listener) error {\n\treturn serve(l)\n}\n\nfunc serve(l net.Listener) error {\n\treturn nil\n}\n";

#[test]
fn edit_names_the_changed_function() {
    let seen = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/src/http.go", "old_string": "\treturn nil\n", "new_string": "\t// The listener is closed by whoever opened it.\n\treturn acceptLoop(l)\n", "replace_all": false }),
        json!({ "filePath": "/home/dev/app/src/http.go", "oldString": "\treturn nil\n", "newString": "", "originalFile": GO, "structuredPatch": [{
            "oldStart": 10, "oldLines": 3, "newStart": 10, "newLines": 4,
            "lines": [" func serve(l net.Listener) error {", "-\treturn nil", "+\t// The listener is closed by whoever opened it.", "+\treturn acceptLoop(l)", " }"]
        }] }),
    );
    assert_eq!(seen.title, "Modify serve in src/http.go");
    assert_eq!(
        seen.summary,
        "Change to src/http.go (+2 -1 lines at line 11) modifies serve. Says: \"The listener is closed by whoever opened it\"."
    );
    assert_eq!(
        detail(&seen),
        "- return nil\n+ // The listener is closed by whoever opened it.\n+ return acceptLoop(l)"
    );
    assert_eq!(seen.files_touched, ["src/http.go"]);
    assert_eq!(functions(&seen), ["modified serve"]);
}

#[test]
fn edits_report_added_and_removed_functions() {
    let edit = |old: &str, new: &str| {
        observe(
            "Edit",
            json!({ "file_path": "/home/dev/app/src/http.go", "old_string": old, "new_string": new }),
            json!({ "filePath": "/home/dev/app/src/http.go", "originalFile": GO }),
        )
    };
    let added = edit(
        "import \"net\"\n",
        "import \"net\"\n\nfunc parseHeader(text string) (string, error) {\n\treturn text, nil\n}\n",
    );
    assert_eq!(
        (added.title.as_str(), functions(&added)),
        ("Add parseHeader to src/http.go", vec!["new parseHeader".to_owned()])
    );
    let renamed = edit("func serve(", "func accept(");
    assert_eq!(renamed.title, "Replace serve by accept in src/http.go");
    assert_eq!(functions(&renamed), ["new accept", "deleted serve"]);
    let imports = edit("import \"net\"\n", "import \"net/http\"\n");
    assert_eq!(imports.title, "Edit src/http.go (imports): +1 -1 lines");
}

#[test]
fn fragments_are_compared_if_the_file_is_unknown() {
    let seen = observe(
        "MultiEdit",
        json!({ "file_path": "/home/dev/app/a.py", "edits": [
            { "old_string": "def one():\n    pass\n", "new_string": "def one():\n    return 1\n" },
            { "old_string": "", "new_string": "def two():\n    return 2\n" },
        ] }),
        json!("ok"),
    );
    assert_eq!(functions(&seen), ["modified one", "new two"]);
    assert_eq!(seen.title, "Add two and modify one in a.py");
}

#[test]
fn write_creates_or_replaces_a_file() {
    let content = "export class Store {\n  save(): void {}\n}\nexport const load = () => 1;\n";
    let created = observe(
        "Write",
        json!({ "file_path": "/home/dev/app/src/store.ts", "content": content }),
        json!({ "type": "create", "filePath": "/home/dev/app/src/store.ts", "content": content, "structuredPatch": [], "originalFile": null }),
    );
    assert_eq!(created.title, "Create src/store.ts with Store.save and 2 more");
    assert_eq!(functions(&created), ["new Store.save", "new load"]);
    assert_eq!(created.summary, "Change to src/store.ts (new, 4 lines) adds Store.save, load, Store.");
    let updated = observe(
        "Write",
        json!({ "file_path": "/home/dev/app/src/store.ts", "content": content.replace("1;", "2;") }),
        json!({ "type": "update", "filePath": "/home/dev/app/src/store.ts", "content": content.replace("1;", "2;"), "originalFile": content }),
    );
    assert_eq!(
        (updated.title.as_str(), functions(&updated)),
        ("Modify load in src/store.ts", vec!["modified load".to_owned()])
    );
}

#[test]
fn a_patch_of_codex_changes_several_files() {
    let patch = "*** Begin Patch\n*** Update File: src/lib.rs\n@@\n fn keep() {}\n-fn old() {}\n+fn new() { work() }\n*** Add File: docs/new.md\n+# Title\n*** Delete File: gone.txt\n*** End Patch";
    let seen = observe(
        "shell",
        json!({ "command": ["apply_patch", patch] }),
        json!("{\"output\":\"Success\",\"metadata\":{\"exit_code\":0}}"),
    );
    assert_eq!(seen.title, "Change 3 files: lib.rs, new.md, gone.txt");
    assert_eq!(seen.files_touched, ["src/lib.rs", "docs/new.md", "gone.txt"]);
    assert_eq!(functions(&seen), ["new new", "deleted old"]);
    assert_eq!(observe("apply_patch", json!({ "input": patch }), json!("ok")).files_touched.len(), 3);
}

#[test]
fn failed_edit_touches_no_files() {
    let seen = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/a.rs", "old_string": "x", "new_string": "y" }),
        json!({ "content": "<tool_use_error>String to replace not found in file.\nString: x</tool_use_error>", "is_error": true }),
    );
    assert_eq!(seen.title, "Edit a.rs: failed, String to replace not found in file");
    assert!(seen.files_touched.is_empty() && seen.functions_changed.is_empty());
}

#[test]
fn tool_use_marked_as_error_touches_no_files() {
    let edit =
        json!({ "file_path": "/home/dev/app/a.rs", "old_string": "fn a() {}", "new_string": "fn b() {}" });
    let write = json!({ "file_path": "/home/dev/app/b.rs", "content": "fn b() {}" });
    let read = json!({ "file_path": "/home/dev/app/nope.rs" });
    for (tool, input) in [("Edit", edit), ("Write", write), ("Read", read)] {
        for response in [
            json!("<tool_use_error>File has not been read yet.</tool_use_error>"),
            json!([{ "type": "text", "text": "<tool_use_error>File has not been read yet.</tool_use_error>" }]),
            json!({ "is_error": true, "content": "File has not been read yet." }),
        ] {
            let seen = observe(tool, input.clone(), response);
            assert!(seen.title.ends_with(": failed, File has not been read yet"), "{}", seen.title);
            assert_eq!(seen.summary, format!("{tool} failed: File has not been read yet."));
            assert!(seen.files_touched.is_empty() && seen.functions_changed.is_empty());
        }
    }
}

#[test]
fn unapplied_patch_touches_no_files() {
    let patch =
        "*** Begin Patch\n*** Update File: src/lib.rs\n@@\n-fn old() {}\n+fn new() {}\n*** End Patch\n";
    let said = "Exit code: 1\nWall time: 0.1 seconds\nOutput:\nFailed to find expected lines in src/lib.rs";
    let wrapped =
        json!("{\"output\":\"Failed to find expected lines in src/lib.rs\",\"metadata\":{\"exit_code\":1}}");
    for (tool, input, response) in [
        ("apply_patch", json!({ "input": patch }), json!(said)),
        ("apply_patch", json!(patch), wrapped.clone()),
        ("shell", json!({ "command": ["apply_patch", patch] }), wrapped),
    ] {
        let seen = observe(tool, input, response);
        assert_eq!(seen.title, "Patch src/lib.rs: failed, Failed to find expected lines in src/lib.rs");
        assert!(seen.files_touched.is_empty() && seen.functions_changed.is_empty());
    }
}

#[test]
fn kept_lines_of_an_edit_are_not_shown_as_removed_or_added() {
    let seen = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/a.txt", "old_string": "x", "new_string": "y" }),
        json!({ "filePath": "/home/dev/app/a.txt", "structuredPatch": [{ "oldStart": 1, "newStart": 1, "lines": [
            "-open the file", "-close the file", "+close the file"
        ] }] }),
    );
    assert_eq!(detail(&seen), "- open the file");
    let indented = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/a.txt", "old_string": "x", "new_string": "y" }),
        json!({ "filePath": "/home/dev/app/a.txt", "structuredPatch": [{ "oldStart": 1, "newStart": 1, "lines": [
            "-open the file", "-close the file", "+  open the file", "+  close the file"
        ] }] }),
    );
    assert_eq!(detail(&indented), "- open the file\n- close the file\n+ open the file\n+ close the file");
}

#[test]
fn large_edits_state_how_many_lines_are_left_out() {
    let old: String =
        (0..40).map(|line| format!("    step_{line}(first_argument, second_argument)\n")).collect();
    let new = old.replace("first_argument", "other_argument").replace("step_3(", "def step_3(");
    let seen = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/a.py", "old_string": old, "new_string": new }),
        json!("ok"),
    );
    assert!(detail(&seen).contains("\n+ def step_3(other_argument"), "{seen:?}");
    assert!(detail(&seen).contains("- step_0(first") && detail(&seen).contains("+ step_0(other"), "{seen:?}");
    assert!(detail(&seen).contains("changed lines left out]\nNames: "), "{seen:?}");
}

#[test]
fn replaced_identifier_is_reported_with_its_places() {
    let lines = ["-let a = oldName(1);", "-oldName(oldName)", "+let a = newName(1);", "+newName(newName)"];
    let seen = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/a.js", "old_string": "oldName", "new_string": "newName", "replace_all": true }),
        json!({ "filePath": "/home/dev/app/a.js", "structuredPatch": [{ "oldStart": 1, "newStart": 1, "lines": lines }] }),
    );
    assert_eq!(seen.title, "Replace oldName by newName in a.js (3 places)");
    let text = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/a.js", "old_string": "Old text", "new_string": "New text", "replace_all": true }),
        json!("ok"),
    );
    assert_eq!(text.title, "Replace 'Old text' by 'New text' in a.js");
}

#[test]
fn numbers_of_lines_that_are_left_out_agree_with_the_size_of_the_change() {
    let body: String = (0..60).map(|line| format!("\tcall_number_{line}(argument)\n\n}}\n")).collect();
    let seen = observe(
        "Write",
        json!({ "file_path": "/home/dev/app/a.txt", "content": body }),
        json!({ "type": "create", "filePath": "/home/dev/app/a.txt", "content": body }),
    );
    let shown = detail(&seen).lines().filter(|line| line.starts_with('+')).count();
    assert!(seen.title.ends_with(": 180 lines"), "{}", seen.title);
    assert!(detail(&seen).contains(&format!("[{} of 180 changed lines left out]", 180 - shown)), "{seen:?}");
    let read = observe(
        "Read",
        json!({ "file_path": "/home/dev/app/a.txt" }),
        json!({ "type": "text", "file": { "filePath": "/home/dev/app/a.txt", "content": body, "numLines": 180, "startLine": 1, "totalLines": 180 } }),
    );
    let number = |line: &str| line.strip_prefix('[')?.split(' ').next()?.parse::<usize>().ok();
    let left_out: usize = detail(&read).lines().filter_map(number).sum();
    let shown = detail(&read).lines().filter(|line| line.starts_with("call_")).count();
    assert_eq!(left_out + shown, 180, "{read:?}");
}

#[test]
fn document_that_is_written_again_keeps_its_text() {
    let plan = "# Plan: Store positions\n\nThe strategy loses the position of the transcript.\n\n## Steps\n\n1. Add `StartLine` to `State` in `src/state.go`\n2. Fill it in `SaveChanges`\n\n```go\n// Store the position of the first checkpoint\nstate.StartLine = 1\n```\n";
    let old = "# Review of tokens\n\nAn older text.\n";
    let seen = observe(
        "Write",
        json!({ "file_path": "/home/dev/.claude/plans/gem.md", "content": plan }),
        json!({ "type": "update", "filePath": "/home/dev/.claude/plans/gem.md", "content": plan, "originalFile": old,
                "structuredPatch": [{ "oldStart": 1, "newStart": 1, "lines": ["-# Review of tokens", "+# Plan: Store positions"] }] }),
    );
    assert_eq!(seen.title, "Write plan 'Store positions' to /home/dev/.claude/plans/gem.md");
    assert!(
        seen.summary.ends_with("It says: \"The strategy loses the position of the transcript\"."),
        "{}",
        seen.summary
    );
    assert!(detail(&seen).contains("Fill it in `SaveChanges`"), "{seen:?}");
}

#[test]
fn comment_that_was_only_moved_is_not_quoted() {
    let edit = |old: &str, new: &str| {
        observe(
            "Edit",
            json!({ "file_path": "/home/dev/app/a.go", "old_string": old, "new_string": new }),
            json!("ok"),
        )
        .summary
    };
    let old = "\tAgent: agent,\n\tSteps: 0, // Not available from the point\n";
    let new = "\tAgent: point.Agent,\n\tSteps: 0,           // Not available from the point\n";
    assert!(!edit(old, new).contains("Says"), "{}", edit(old, new));
    let why = new.replace("point.Agent,", "point.Agent, // The agent comes from the state");
    assert!(edit(old, &why).contains("Says: \"The agent comes from the state\""), "{}", edit(old, &why));
}

#[test]
fn edit_of_a_document_quotes_the_document() {
    let old = "### 3. Update setup\n\nTwo places set it.\n";
    let new = "### 3. Update setup, done\n\nRemoved the blocks that set telemetry to true.\n\n```go\n// Load the preference of the user from the settings file, ignore errors\nload()\n```\n";
    let seen = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/plan.md", "old_string": old, "new_string": new }),
        json!("ok"),
    );
    assert!(
        seen.summary.ends_with("Says: \"Removed the blocks that set telemetry to true\"."),
        "{}",
        seen.summary
    );
}

#[test]
fn new_file_quotes_its_first_comment() {
    let content = "# Imports checkpoints of merged forks.\n#\n# How it works, step by step:\n#   1. Find the trailers of all commits that were merged\n#   2. Fetch the branch\nname: import\n";
    let seen = observe(
        "Write",
        json!({ "file_path": "/home/dev/app/.github/import.yml", "content": content }),
        json!({ "type": "create", "filePath": "/home/dev/app/.github/import.yml", "content": content, "structuredPatch": [] }),
    );
    assert!(seen.summary.ends_with("Says: \"Imports checkpoints of merged forks\"."), "{}", seen.summary);
}

#[test]
fn edited_plan_is_titled_by_its_heading() {
    let path = "/home/dev/.claude/plans/snacking-raccoon.md";
    let seen = observe(
        "Edit",
        json!({ "file_path": path, "old_string": "by hand", "new_string": "with a unit test" }),
        json!({ "filePath": path, "originalFile": "# Plan: Keep unknown hooks\n\nCheck it by hand\n" }),
    );
    assert_eq!(
        seen.title,
        "Edit plan 'Keep unknown hooks' in /home/dev/.claude/plans/snacking-raccoon.md: +1 -1 lines"
    );
}

#[test]
fn removed_conflict_markers_are_a_resolved_conflict() {
    let old =
        "<<<<<<< HEAD\n// Lists the old branch.\n=======\n// Lists the new branch.\n>>>>>>> 3999d95 (fix)\n";
    let seen = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/a.go", "old_string": old, "new_string": "// Lists the new branch.\n" }),
        json!({ "filePath": "/home/dev/app/a.go" }),
    );
    assert!(seen.title.starts_with("Resolve 1 merge conflict in a.go: "), "{}", seen.title);
}

#[test]
fn file_that_is_emptied_is_named_as_such() {
    let old = "# Review\n\nThe lock is held twice in the store.\n";
    let seen = observe(
        "Write",
        json!({ "file_path": "/home/dev/app/REVIEW.md", "content": "" }),
        json!({ "type": "update", "filePath": "/home/dev/app/REVIEW.md", "content": "", "originalFile": old, "structuredPatch": [{ "oldStart": 1, "oldLines": 3, "newStart": 0, "newLines": 0, "lines": ["-# Review", "-", "-The lock is held twice in the store."] }] }),
    );
    assert_eq!(seen.title, "Empty REVIEW.md: +0 -3 lines");
    assert!(detail(&seen).contains("- The lock is held twice in the store."), "{seen:?}");
}

#[test]
fn small_edit_of_a_large_file_keeps_its_lines() {
    let lines: Vec<String> = (0..18).map(|n| format!("+\tlogTo(repoRoot, \"wingman.log\", {n})")).collect();
    let seen = observe(
        "Edit",
        json!({ "file_path": "/home/dev/app/a.go", "old_string": "x", "new_string": "y" }),
        json!({ "filePath": "/home/dev/app/a.go", "oldString": "x".repeat(3_000), "newString": "y".repeat(3_000), "originalFile": "z\n".repeat(3_000), "structuredPatch": [{ "oldStart": 1, "newStart": 1, "lines": lines }] }),
    );
    assert!((0..18).all(|n| detail(&seen).contains(&format!("\", {n})"))), "{}", detail(&seen));
}
