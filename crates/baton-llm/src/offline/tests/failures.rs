//! What failed is named: tests with their assertions, compiler errors with their place, exceptions, merge conflicts.

use serde_json::json;

use super::{detail, observe};
use baton_core::observation::CompressedObservation;

fn failing(command: &str, output: &str) -> CompressedObservation {
    let response = json!({ "content": format!("Exit code 1\n{output}"), "is_error": true });
    observe("Bash", json!({ "command": command }), response)
}

fn printed(command: &str, stdout: &str) -> CompressedObservation {
    observe(
        "Bash",
        json!({ "command": command }),
        json!({ "stdout": stdout, "stderr": "", "interrupted": false }),
    )
}

#[test]
fn verbose_go_tests_keep_the_right_test_and_assertion() {
    let output = "=== RUN   TestSave\n    store_test.go:20: opening the store\n    store_test.go:31: got 3 rows, want 4\n--- FAIL: TestSave (0.01s)\n=== RUN   TestLoad\n    store_test.go:40: loading\n--- PASS: TestLoad (0.00s)\n=== RUN   TestParse\n=== RUN   TestParse/empty\n    parse_test.go:9: \n        \tError Trace:\tparse_test.go:9\n        \tError:      \tNot equal: \n        \t            \texpected: 1\n        \t            \tactual  : 2\n--- FAIL: TestParse (0.00s)\n    --- FAIL: TestParse/empty (0.00s)\nFAIL\nFAIL\texample.com/app\t0.3s\n";
    let seen = failing("go test -v ./...", output);
    let text = detail(&seen);
    assert!(text.contains("Failed: TestSave (store_test.go:31): got 3 rows, want 4"), "{text}");
    assert!(
        text.contains("Failed: TestParse/empty (parse_test.go:9): Not equal: expected: 1 actual: 2"),
        "{text}"
    );
    assert!(!text.contains("Failed: TestParse\n") && !text.contains("Failed: TestLoad"), "{text}");
}

#[test]
fn jest_keeps_expected_and_received() {
    let output = "FAIL src/login.test.ts\n  ● login › rejects a bad password\n\n    expect(received).toBe(expected) // Object.is equality\n\n    Expected: 401\n    Received: 200\n\n      10 |   const answer = await login('bad');\n    > 11 |   expect(answer.status).toBe(401);\n\n      at Object.<anonymous> (src/login.test.ts:11:25)\n\nTests:       1 failed, 10 passed, 11 total\n";
    let seen = failing("npx jest", output);
    assert_eq!(seen.title, "Run npx jest: 1 of 11 failed");
    assert!(
        detail(&seen).contains(
            "Failed: login › rejects a bad password (src/login.test.ts:11): Expected: 401; Received: 200"
        ),
        "{seen:?}"
    );
}

#[test]
fn compiler_errors_keep_file_and_line() {
    let rust = failing(
        "cargo build",
        "   Compiling app v0.1.0\nerror[E0425]: cannot find value `count` in this scope\n --> src/store.rs:42:9\n  |\n42 |         count\n  |         ^^^^^ not found in this scope\n\nerror: could not compile `app` (lib) due to 1 previous error\n",
    );
    let all = format!("{}\n{}", rust.summary, detail(&rust));
    assert!(all.contains("cannot find value `count` in this scope (src/store.rs:42:9)"), "{rust:?}");
    let c = failing(
        "gcc -c a.c",
        "a.c: In function 'main':\na.c:3:5: error: 'x' undeclared (first use in this function)\n",
    );
    assert!(c.summary.contains("First error: a.c:3:5: error: 'x' undeclared"), "{}", c.summary);
    let lint = failing(
        "make lint",
        "[lint] $ golangci-lint run\ncmd/a.go:17:2: string `x` has 3 occurrences, make it a constant (goconst)\n1 issues:\n[lint] ERROR task failed\n",
    );
    assert!(
        lint.summary.contains("First error: cmd/a.go:17:2: string `x` has 3 occurrences"),
        "{}",
        lint.summary
    );
}

#[test]
fn python_errors_keep_the_exception() {
    let output = "Traceback (most recent call last):\n  File \"/home/dev/app/main.py\", line 3, in <module>\n    run()\n  File \"/home/dev/app/load.py\", line 12, in run\n    raise KeyError(name)\nKeyError: 'name'\n";
    let seen = failing("python main.py", output);
    assert!(seen.title.starts_with("Run python main.py: exit 1, KeyError: 'name'"), "{}", seen.title);
    assert!(
        seen.summary.ends_with("First error: KeyError: 'name' (/home/dev/app/load.py:12)"),
        "{}",
        seen.summary
    );
}

#[test]
fn merge_conflicts_are_named() {
    let output = "Auto-merging src/a.rs\nCONFLICT (content): Merge conflict in src/a.rs\nCONFLICT (content): Merge conflict in src/b.rs\nAutomatic merge failed; fix conflicts and then commit the result.\n";
    let seen = failing("git merge origin/main", output);
    assert_eq!(seen.title, "Run git merge origin/main: 2 merge conflicts");
    assert!(seen.summary.contains("Merge conflicts: src/a.rs, src/b.rs."), "{}", seen.summary);
    let pull = failing("git pull", "CONFLICT (content): Merge conflict in src/a.rs\n");
    assert_eq!(pull.title, "Run git pull: merge conflict in src/a.rs");
    let status = printed("git status --short", "UU src/a.rs\n M src/b.rs\n");
    assert_eq!(status.title, "Check git status: 1 file with merge conflicts");
}

#[test]
fn the_title_states_the_result() {
    for (command, output, outcome) in [
        ("go version", "go version go1.24 linux/amd64", "go version go1.24 linux/amd64"),
        ("kubectl get pods", "a\nb\nc\n", "3 lines"),
        ("mkdir -p out", "", "done"),
        ("git diff --stat", "", "no differences"),
        ("make test | tail -3", "", "no output"),
        ("make test | tail -3", "error: no rule\n", "error: no rule"),
    ] {
        let seen = printed(command, output);
        assert!(seen.title.ends_with(&format!(": {outcome}")), "{command}: {}", seen.title);
    }
    let nothing = failing("make test 2>&1 | grep FAIL", "");
    assert_eq!(nothing.title, "Run make test: result not shown");
}

#[test]
fn a_plain_text_response_claims_success_only_if_it_is_known() {
    let codex = |response: &str| observe("Bash", json!({ "command": "cargo build" }), json!(response));
    let unknown = codex("   Compiling app v0.1.0\n    Finished in 2s\n");
    assert!(!unknown.title.ends_with(": ok") && unknown.summary.ends_with("` ran."), "{unknown:?}");
    let failed = codex("error[E0425]: cannot find value `x`\n --> src/a.rs:3:5\n");
    assert!(failed.title.contains("error"), "{failed:?}");
    let known = codex("Exit code: 0\nWall time: 2 seconds\nOutput:\n    Finished in 2s\n");
    assert_eq!(known.title, "Run cargo build: ok");
    let wrong = codex("Exit code: 101\nWall time: 2 seconds\nOutput:\nerror: no such target\n");
    assert!(
        wrong.title.starts_with("Run cargo build: ") && wrong.summary.contains("ended with exit code 101"),
        "{wrong:?}"
    );
    let patch = "*** Begin Patch\n*** Update File: a.rs\n@@\n-old\n+new\n*** End Patch";
    let refused =
        observe("apply_patch", json!({ "input": patch }), json!("Failed to find expected lines in a.rs"));
    assert!(refused.files_touched.is_empty() && refused.title.contains("failed"), "{refused:?}");
    let applied = observe(
        "apply_patch",
        json!({ "input": patch }),
        json!("Success. Updated the following files:\nM a.rs\n"),
    );
    assert_eq!(applied.files_touched, ["a.rs"]);
}

#[test]
fn package_that_does_not_build_is_not_counted_as_one_error() {
    let errors: String = (1..=11).map(|n| format!("./a_test.go:{n}:5: undefined: helper{n}\n")).collect();
    let seen = failing(
        "go test ./...",
        &format!("# example.com/app\n{errors}FAIL\texample.com/app [build failed]\nFAIL\n"),
    );
    assert_eq!(seen.title, "Run go test ./...: build failed");
    assert!(seen.summary.contains("go-test: build failed."), "{}", seen.summary);
    assert!(detail(&seen).contains("error line left out]"), "{}", detail(&seen));
}
