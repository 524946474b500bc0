//! Commands: test runners, linters, git and others.

use serde_json::json;

use super::{detail, observe};
use baton_core::observation::CompressedObservation;

fn bash(command: &str, stdout: &str) -> CompressedObservation {
    let response = json!({ "stdout": stdout, "stderr": "", "interrupted": false, "isImage": false });
    observe("Bash", json!({ "command": command }), response)
}

fn failing(command: &str, output: &str) -> CompressedObservation {
    observe(
        "Bash",
        json!({ "command": command }),
        json!({ "content": format!("Exit code 1\n{output}"), "is_error": true }),
    )
}

#[test]
fn command_reported_as_failed_is_not_ok() {
    for (error, ending) in [
        ("Command exited with non-zero status code 1", "ended with exit code 1."),
        ("Command timed out after 2m 0s", "failed. First error: Command timed out after 2m 0s"),
        ("Interrupted by user", "was interrupted. First error: Interrupted by user"),
        ("<tool_use_error>Permission denied</tool_use_error>", "failed. First error: Permission denied"),
    ] {
        let command = json!({ "command": "npm run x" });
        let seen = observe("Bash", command, json!({ "is_error": true, "content": error }));
        assert!(seen.summary.starts_with(&format!("`npm run x` {ending}")), "{}", seen.summary);
        assert!(!seen.title.ends_with(": ok"), "{}", seen.title);
    }
}

#[test]
fn counts_of_truncated_output_are_true() {
    let cut = |line: &str| {
        let part = format!("{line}\n").repeat(30);
        format!("{part}[... truncated 95000 chars, 940 lines ...]\n{part}")
    };
    let title = |command: &str, line: &str| bash(command, &cut(line)).title;
    assert_eq!(title("./generate", "2026-11-15 something"), "Run command generate: 1000 lines");
    assert_eq!(title("git log --oneline", "3f2a9c1 add a parser"), "List git log: 60 commits shown");
    let found =
        title("grep -rn parse src", "src/main.rs:12: parse(the_text_of_a_long_line_that_fills_the_output)");
    assert_eq!(found, "Search for 'parse' in src: at least 60 hits");
    let all = "src/main.rs:12: parse(the text)\n".repeat(20_001);
    assert_eq!(bash("grep -rn parse src", &all).title, "Search for 'parse' in src: at least 20000 hits");
    let files = (0..20_001).map(|number| format!("src/{number}.rs\n")).collect::<String>();
    let listed = observe("Glob", json!({ "pattern": "**/*.rs" }), files.into());
    assert_eq!(listed.title, "List files matching '**/*.rs': at least 20000 entries");
    let read = observe("Read", json!({ "file_path": "/home/dev/app/log.txt" }), cut("a line").into());
    assert!(read.title.contains("1000 lines"), "{}", read.title);
}

#[test]
fn describes_cargo_test_runs() {
    let output = "running 3 tests\ntest store::saves ... ok\ntest store::loads ... FAILED\ntest store::lists ... ok\n\nfailures:\n\n---- store::loads stdout ----\nthread 'store::loads' (12) panicked at crates/store/src/lib.rs:42:9:\nassertion `left == right` failed\n  left: 1\n right: 2\n\ntest result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured\n\nerror: test failed, to rerun pass `-p app-store --lib`\n";
    let seen = failing("cd /home/dev/app && cargo test -p app-store 2>&1 | tail -50", output);
    assert_eq!(seen.title, "Run cargo test -p app-store: 1 of 3 failed");
    assert!(seen.summary.contains("exit code 1. cargo-test: 2 passed, 1 failed."), "{}", seen.summary);
    let detail = detail(&seen);
    assert!(
        detail.starts_with(
            "Failed: store::loads (crates/store/src/lib.rs:42): assertion `left == right` failed"
        ),
        "{detail}"
    );
    assert!(detail.contains("left: 1"), "{detail}");
    assert!(detail.contains("error: test failed, to rerun pass `-p app-store --lib`"), "{detail}");
    assert!(seen.files_touched.is_empty());
}

#[test]
fn cargo_test_that_passes_names_what_passed() {
    let output = "running 2 tests\ntest store::saves ... ok\ntest store::loads ... ok\n\ntest result: ok. 2 passed; 0 failed; 0 ignored\n";
    let seen = bash("cargo test", output);
    assert_eq!(seen.title, "Run cargo test: 2 passed");
    assert_eq!(detail(&seen), "Passed: store::saves, store::loads");
}

#[test]
fn describes_pytest_runs() {
    let output = "FAILED tests/test_api.py::test_login - AssertionError: assert 401 == 200\n==== 1 failed, 12 passed in 0.52s ====\n";
    let seen = failing("python -m pytest -q tests", output);
    assert_eq!(seen.title, "Run python -m pytest -q tests: 1 of 13 failed");
    assert!(
        detail(&seen).contains("tests/test_api.py::test_login: AssertionError: assert 401 == 200"),
        "{seen:?}"
    );
}

#[test]
fn describes_jest_and_vitest_runs() {
    let output = "FAIL src/app.test.ts\n  ● login › rejects a bad password\n\n    expect(received).toBe(expected)\n\nTest Suites: 1 failed, 3 passed, 4 total\nTests:       1 failed, 10 passed, 11 total\n";
    let seen = failing("npm test", output);
    assert_eq!(seen.title, "Run npm test: 1 of 11 failed");
    assert!(detail(&seen).contains("Failed: login › rejects a bad password (src/app.test.ts)"), "{seen:?}");
}

#[test]
fn describes_go_test_runs() {
    let output = "ok  \texample.com/app/agent\t(cached)\n--- FAIL: TestHooks (0.00s)\n    hooks_test.go:465: Hooks() returned 6 hooks, want 5\n    hooks_test.go:470: Hooks()[1] = end, want stop\nFAIL\nFAIL\texample.com/app/hooks\t0.33s\n";
    let seen = failing("mise run test", output);
    assert_eq!(seen.title, "Run mise run test: 1 failed");
    let detail = detail(&seen);
    assert!(
        detail.contains("Failed: TestHooks (hooks_test.go:465): Hooks() returned 6 hooks, want 5"),
        "{detail}"
    );
    assert!(detail.contains("hooks_test.go:470: Hooks()[1] = end, want stop"), "{detail}");
    let passes =
        bash("go test ./...", "ok  \texample.com/app/agent\t(cached)\nok  \texample.com/app/hooks\t0.33s\n");
    assert_eq!((passes.title.as_str(), passes.detail), ("Run go test ./...: 2 packages ok", None));
}

#[test]
fn failing_test_behind_a_pipe_is_reported_as_failed() {
    let seen = bash("go test ./... | tail -3", "--- FAIL: TestHooks (0.00s)\nFAIL\texample.com/app\t0.3s\n");
    assert_eq!(seen.title, "Run go test ./...: 1 failed");
    assert!(seen.summary.contains("` ran. go-test: 1 failed."), "{}", seen.summary);
}

#[test]
fn describes_linters_and_compilers() {
    let clean = observe(
        "Bash",
        json!({ "command": "mise run fmt && mise run lint 2>&1", "description": "Run formatter and linter" }),
        json!({ "stdout": "[lint] $ golangci-lint run ./...\n0 issues.\n[fmt] $ gofmt -w .", "stderr": "" }),
    );
    assert_eq!((clean.title.as_str(), clean.detail), ("Run mise run fmt and mise run lint: no issues", None));
    assert!(
        clean
            .summary
            .starts_with("Run formatter and linter: `mise run fmt && mise run lint 2>&1` succeeded.")
    );
    let lint = failing(
        "golangci-lint run",
        "cmd/list/data.go:685:2: declared and not used: repo (typecheck)\n1 issues:\n* typecheck: 1\n",
    );
    assert_eq!(lint.title, "Run golangci-lint run: 1 issue");
    assert!(
        lint.summary
            .ends_with("First error: cmd/list/data.go:685:2: declared and not used: repo (typecheck)"),
        "{lint:?}"
    );
    let types = failing(
        "npx tsc --noEmit",
        "src/a.ts(3,7): error TS2322: Type 'string' is not assignable to type 'number'.\n",
    );
    assert_eq!(types.title, "Run npx tsc: 1 error");
    assert!(detail(&types).contains("TS2322 (src/a.ts:3): Type 'string' is not assignable"), "{types:?}");
    let build = bash("go build ./...", "");
    assert_eq!(build.title, "Run go build ./...: ok");
    assert!(build.summary.ends_with("succeeded without output."));
    let ruff = failing("ruff check src", "src/a.py:1:8: F401 [*] `os` imported but unused\nFound 1 error.\n");
    assert_eq!(ruff.title, "Run ruff check src: 1 error");
    let mypy = failing(
        "mypy src",
        "src/a.py:3: error: Incompatible types in assignment  [assignment]\nFound 1 error in 1 file (checked 3 source files)\n",
    );
    assert_eq!(mypy.title, "Run mypy src: 1 error");
}

#[test]
fn describes_git_commands() {
    let commit = bash(
        "git add -A && git commit -m \"$(cat <<'EOF'\nstore: keep the lease's token\n\nWhy.\nEOF\n)\"",
        "[main 1a2b3c4] store: keep the lease's token\n 2 files changed, 10 insertions(+)\n",
    );
    assert_eq!(commit.title, "Commit 'store: keep the lease's token'");
    assert!(
        commit
            .summary
            .contains("Commit 1a2b3c4 on main: \"store: keep the lease's token\" (2 files, +10 -0)."),
        "{}",
        commit.summary
    );
    let status = bash("git status --short --branch", "## main...origin/main\n M src/a.rs\n?? src/b.rs\n");
    assert_eq!(status.title, "Check git status on main: 2 changed files");
    assert!(status.summary.ends_with("Changed: src/a.rs, src/b.rs.") && status.detail.is_none());
    let diff = bash(
        "git diff main",
        "diff --git a/x.go b/x.go\n--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,3 @@ func (s *Store) Save(ctx\n \tsame\n-\told\n+\tnewName := makeThing()\n",
    );
    assert_eq!(diff.title, "Review git diff main: 1 file, +1 -1");
    assert_eq!(detail(&diff), "x.go +1 -1, in Save\n- old\n+ newName := makeThing()");
    let log = bash("git log --oneline -2", "1234567 First thing\n89abcde Second thing\n");
    assert!(log.title.ends_with(": 2 commits") && detail(&log).contains("First thing"), "{log:?}");
    let push = bash("git push origin main", "To github.com:x/y.git\n   123..456  main -> main\n");
    assert_eq!(push.title, "Push to origin main: done");
}

#[test]
fn describes_searches_and_printed_files() {
    let hits: String =
        (1..40).map(|line| format!("src/a.rs:{line}:    call_{line}(parse_header);\n")).collect();
    let search = bash("rg -n parse_header src", &hits);
    assert_eq!(search.title, "Search for 'parse_header' in src: 39 hits");
    let file = bash("cat src/a.rs", "fn one() {}\nfn two() {}\n");
    assert_eq!(file.title, "Read src/a.rs: one and 1 more");
    let body = "    call(argument);\n".repeat(60);
    let part = bash("sed -n '10,72p' src/a.rs", &format!("fn one() {{\n{body}}}\nfn two() {{}}\n"));
    assert_eq!(part.title, "Read src/a.rs lines 10-72: one and others");
    assert_eq!(part.summary, "Read lines 10-72 of src/a.rs.");
    assert!(detail(&part).ends_with("fn two() {}"), "{part:?}");
}

#[test]
fn describes_other_commands() {
    let seen = observe(
        "Bash",
        json!({ "command": "./scripts/deploy.sh staging", "description": "Deploy to staging" }),
        json!({ "content": "Exit code 2\n\u{1b}[31mError: missing DEPLOY_KEY\u{1b}[0m\n", "is_error": true }),
    );
    assert_eq!(seen.title, "Deploy to staging: exit 2, Error: missing DEPLOY_KEY");
    assert_eq!(
        seen.summary,
        "`./scripts/deploy.sh staging` ended with exit code 2. First error: Error: missing DEPLOY_KEY"
    );
    let remove = bash("rm -rf build old.txt && mv a.txt b.txt", "");
    assert_eq!(remove.title, "Delete path build and old.txt and move a.txt to b.txt: done");
    assert_eq!(remove.files_touched, ["build", "old.txt", "a.txt", "b.txt"]);
    assert!(failing("rm old.txt", "rm: cannot remove").files_touched.is_empty());
    let interrupted = observe(
        "Bash",
        json!({ "command": "sleep 100" }),
        json!({ "stdout": "", "stderr": "", "interrupted": true }),
    );
    assert_eq!(interrupted.title, "Run sleep 100: interrupted");
}

#[test]
fn describes_codex_shell_calls() {
    let response = json!(
        "{\"output\":\"src/a.rs\\nsrc/b.rs\\n\",\"metadata\":{\"exit_code\":0,\"duration_seconds\":0.1}}"
    );
    let seen = observe("shell", json!({ "command": ["bash", "-lc", "ls src"] }), response);
    assert_eq!((seen.title.as_str(), detail(&seen)), ("List folder src: 2 lines", "src/a.rs\nsrc/b.rs"));
}

#[test]
fn describes_json_entries_by_name_and_text() {
    let output = "[{\"number\":169,\"title\":\"Consolidate state\",\"url\":\"https://x/169\",\"body\":\"Renames `stepCount`.\\nThe rest stays.\"},{\"number\":170,\"title\":\"Next\"}]";
    let long = output.replace("The rest stays.", &"The rest stays. ".repeat(40));
    let seen = observe(
        "Bash",
        json!({ "command": "gh pr list", "description": "Find pull requests" }),
        json!({ "stdout": long }),
    );
    assert_eq!(seen.title, "Find pull requests: 2 entries");
    let detail = detail(&seen);
    assert!(detail.starts_with("169 Consolidate state\nRenames `stepCount`. The rest stays."), "{detail}");
    assert!(detail.ends_with("170 Next") && !detail.contains("nThe"), "{detail}");
}

#[test]
fn observation_of_a_large_output_is_ten_times_smaller() {
    let lines: String = (0..400)
        .map(|line| format!("2026-01-02 INFO handled request_{line} for user_{} in {line} ms\n", line % 7))
        .collect();
    let seen = bash("./serve", &lines);
    let size = seen.title.len() + seen.summary.len() + detail(&seen).len();
    assert!(size * 10 <= lines.len(), "{size} of {}", lines.len());
}

#[test]
fn output_that_the_command_quotes_is_kept() {
    let seen = bash("which dupl || echo \"dupl not found\"; ls dupl.toml", "dupl not found\ndupl.toml\n");
    assert_eq!(detail(&seen), "dupl not found\ndupl.toml");
}

#[test]
fn counts_of_a_part_of_the_output_are_lower_bounds() {
    let ok = "ok  \texample.com/app/a\t0.1s\nok  \texample.com/app/b\t0.1s\n";
    let end = bash("go test ./... 2>&1 | tail -2", ok);
    assert_eq!(end.title, "Run go test ./...: at least 2 packages ok");
    assert!(end.summary.contains("` succeeded."), "{}", end.summary);
    let start = bash("go test ./... 2>&1 | head -2", ok);
    assert!(start.summary.contains("` ran."), "{}", start.summary);
    let failed = bash(
        "cargo test 2>&1 | grep 'test result'",
        "test result: ok. 12 passed; 0 failed; 0 ignored\ntest result: FAILED. 3 passed; 1 failed; 0 ignored\n",
    );
    assert_eq!(failed.title, "Run cargo test: at least 1 failed");
    let total = bash("pytest -q 2>&1 | tail -1", "1 failed, 41 passed in 3.21s\n");
    assert_eq!(total.title, "Run pytest: 1 of 42 failed");
    let selected = bash("cargo check 2>&1 | head -1", "    Checking app v0.1.0\n");
    assert!(!selected.title.contains("clean") && selected.summary.contains("` ran."), "{selected:?}");
}

#[test]
fn counted_failures_are_no_success() {
    let seen = bash("npm test; true", "Tests:       2 failed, 60 passed, 62 total\n");
    assert_eq!(seen.title, "Run npm test: 2 of 62 failed");
    assert!(!seen.summary.contains("succeeded"), "{}", seen.summary);
}

#[test]
fn build_with_warnings_is_not_clean() {
    let output = "   Compiling app v0.1.0\nwarning: unused variable: `x`\n --> src/a.rs:3:5\nwarning: `app` (lib) generated 1 warning\n    Finished `dev` profile in 2.1s\n";
    let seen = bash("cargo build", output);
    assert!(seen.title.contains("warning"), "{}", seen.title);
    assert!(detail(&seen).contains("unused variable"), "{seen:?}");
}

#[test]
fn filtered_search_is_not_counted_as_hits() {
    let output: String =
        (1..21).map(|line| format!("   {line} src/some/folder/module_{line}.rs:use crate::name\n")).collect();
    let seen = bash("grep -r 'use crate' src | sort | uniq -c | head -20", &output);
    assert!(!seen.title.contains("hit"), "{}", seen.title);
    let hits: String =
        (1..21).map(|line| format!("src/some/folder/a.rs:{line}:    use crate::name_{line};\n")).collect();
    assert_eq!(
        bash("grep -rn 'use crate' src | head -20", &hits).title,
        "Search for 'use crate' in src: first 20 hits"
    );
    let dated: String =
        (1..21).map(|line| format!("logs/2026-01-20-run/a.log:TODO fix me number {line} please\n")).collect();
    assert_eq!(bash("grep -r TODO logs", &dated).title, "Search for 'TODO' in logs: 20 hits");
}

#[test]
fn printed_part_of_a_file_is_not_called_the_whole_file() {
    let ten = "x = 1\n".repeat(10);
    assert_eq!(bash("head -10 src/a.py", &ten).summary, "Read lines 1-10 of src/a.py.");
    assert_eq!(bash("head -20 src/a.py", &ten).summary, "Read all 10 lines of src/a.py.");
    assert_eq!(bash("head -n 20 src/a.py", &ten).summary, "Read all 10 lines of src/a.py.");
    let two = bash("head src/a.py src/b.py", "==> src/a.py <==\nx = 1\n\n==> src/b.py <==\nx = 2\n");
    assert_eq!(two.title, "Show head of src/a.py and src/b.py: 5 lines");
    assert!(!bash("cat src/a.py | head -10", &ten).summary.contains("all"));
    assert_eq!(bash("cd lib && cat a.py", &ten).summary, "Read all 10 lines of lib/a.py.");
}

#[test]
fn commits_with_short_and_combined_flags() {
    let short = bash("git commit -m Second", "[main 1a2b3c4] Second\n 1 file changed, 1 insertion(+)\n");
    assert_eq!(short.title, "Commit 'Second'");
    assert_eq!(bash("git add -A && git commit -qm 'Add login'", "").title, "Commit 'Add login'");
    assert_eq!(
        bash("git commit -qam 'Add login'; git log -1", "").title,
        "Commit 'Add login': result unknown"
    );
    let amended = bash(
        "git commit --amend --no-edit",
        "[main 1a2b3c4] Add login page\n Date: today\n 1 file changed\n",
    );
    assert_eq!(amended.title, "Amend 'Add login page'");
}

#[test]
fn commit_before_a_failed_push_is_a_commit() {
    let command = "git add -A && git commit -m 'Add login' -m 'It was missing.' && git push";
    let rejected = "To github.com:a/b.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some refs to 'github.com:a/b.git'\n";
    let seen =
        failing(command, &format!("[main 1a2b3c4] Add login\n 1 file changed, 2 insertions(+)\n{rejected}"));
    assert_eq!(seen.title, "Commit 'Add login'");
    assert!(
        seen.summary.starts_with("Commit 1a2b3c4 on main: \"Add login\" (1 file, +2 -0). Push: rejected."),
        "{}",
        seen.summary
    );
    assert!(seen.summary.contains("A later step of the command failed: "), "{}", seen.summary);
    assert_eq!(failing("git commit -qm 'Add login' && git push", rejected).title, "Commit 'Add login'");
    assert!(
        failing("git commit -qm 'Add login' && git push", "ruff....Failed\n")
            .title
            .starts_with("Commit 'Add login': ")
    );
}

#[test]
fn git_log_lists_hash_and_subject() {
    let commit = |hash: &str, body: &str| {
        format!(
            "commit {hash}1234567890123456789012345678901234567\nAuthor: A <a@b.c>\nDate:   Mon\n\n    Subject of {hash}\n\n{body}\n    Co-Authored-By: B <b@c.d>\n\n"
        )
    };
    let few = bash("git log -2", &format!("{}{}", commit("aaa", "    Why it was done."), commit("bbb", "")));
    assert_eq!(few.title, "List git log: 2 commits");
    assert_eq!(detail(&few), "aaa123456 Subject of aaa\nWhy it was done.\nbbb123456 Subject of bbb");
    let many: String =
        (100..140).map(|hash| commit(&hash.to_string(), "    Words about the reason of it.")).collect();
    let seen = bash("git log", &many);
    assert!(detail(&seen).contains("\n101123456 Subject of 101"), "{seen:?}");
    assert!(detail(&seen).ends_with("lines left out]") && !detail(&seen).contains("Words"), "{seen:?}");
}

#[test]
fn output_of_which_nothing_matched_is_not_called_empty() {
    let seen = bash("go test ./... 2>&1 | grep -E '(lines|files)' | head -20", "");
    assert_eq!(seen.title, "Run go test ./...: result not shown");
}

#[test]
fn folder_listing_is_whole_or_counts_what_is_left_out() {
    let entry =
        |number: usize| format!("drwxr-xr-x@  3 alex  staff   96 19 Jan 13:13 folder-number-{number}\n");
    let list = |entries: usize| bash("ls -la skills", &(0..entries).map(entry).collect::<String>());
    assert_eq!(detail(&list(16)).lines().count(), 16);
    let long = list(60);
    let shown = detail(&long).lines().count() - 1;
    assert!(detail(&long).ends_with(&format!("[{} lines left out]", 60 - shown)), "{long:?}");
}

#[test]
fn flags_that_may_have_a_value_stay_before_it() {
    assert_eq!(
        bash("golangci-lint run --enable-only dupl --new=false ./...", "0 issues.\n").title,
        "Run golangci-lint run --enable-only dupl ./...: no issues"
    );
    assert_eq!(bash("go build -o /tmp/app ./cmd/app", "").title, "Run go build -o /tmp/app ./cmd/app: ok");
    assert_eq!(bash("npm test -- src/a.test.ts --silent", "").title, "Run npm test src/a.test.ts: ok");
    let tap = "# tests 2\n# pass 1\n# fail 1\n";
    assert!(
        failing("node --test", tap).title.starts_with("Run node --test: "),
        "{:?}",
        failing("node --test", tap)
    );
}

#[test]
fn formatter_that_lists_files_is_not_ok() {
    assert_eq!(bash("gofmt -l src", "src/a.go\n").title, "Run gofmt -l src: not formatted");
    assert_eq!(bash("gofmt -l src", "").title, "Run gofmt -l src: ok");
    let diff = "diff a.go.orig a.go\n--- a.go.orig\n+++ a.go\n@@ -1,1 +1,1 @@\n-x:=1\n+x := 1\n";
    assert_eq!(bash("gofmt -d a.go", diff).title, "Run gofmt -d a.go: not formatted");
}

#[test]
fn diff_after_a_check_is_not_its_result() {
    let diff = "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(bash("make build && git diff", diff).title, "Run make build: ok");
}

#[test]
fn filtered_commits_are_not_called_all() {
    let two = "1a2b3c4 First\n2b3c4d5 Second\n";
    assert_eq!(
        bash("git log --oneline v1..HEAD | grep -A2 First", two).title,
        "List git log v1..HEAD: 2 commits shown"
    );
    assert_eq!(
        bash("git log --oneline v1..HEAD | head -2", two).title,
        "List git log v1..HEAD: 2 commits shown"
    );
    assert_eq!(bash("git log --oneline v1..HEAD | head -20", two).title, "List git log v1..HEAD: 2 commits");
    let diff = "diff --git a/a.go b/a.go\n--- a/a.go\n+++ b/a.go\n@@ -1 +1 @@\n-a\n+b\n";
    assert_eq!(bash("git show HEAD --format= -- src/a.go", diff).title, "Show commit HEAD: 1 file, +1 -1");
}

#[test]
fn short_output_states_the_result_in_the_title() {
    let switched = bash(
        "gh pr checkout 68",
        "branch 'usage' set up to track 'origin/usage'.\nFrom github.com:acme/shop\nSwitched to a new branch 'usage'\n",
    );
    assert_eq!(switched.title, "Run gh pr checkout 68: Switched to a new branch 'usage'");
    let reset = bash(
        "git reset --hard origin/main",
        "HEAD is now at 5da67d1 fix: handle all status codes and use the robust format\n",
    );
    assert_eq!(reset.title, "Run git reset origin/main: HEAD is now at 5da67d1 fix:…");
    let listed = bash("./list", &"one\n".repeat(9));
    assert_eq!(listed.title, "Run command list: 9 lines");
}

#[test]
fn pushed_branch_is_named() {
    let push = bash(
        "git push -u origin alex/ent-259-fix-deferred-condense-attribution",
        "To github.com:acme/shop.git\n * [new branch]      alex/ent-259-fix-deferred-condense-attribution -> alex/ent-259-fix-deferred-condense-attribution\n",
    );
    assert_eq!(push.title, "Push to origin alex/ent-259-fix-deferred-condense-attribution: new branch");
}

#[test]
fn inspection_is_titled_by_its_first_statement() {
    let seen = observe(
        "Bash",
        json!({ "command": "cat /etc/hosts | sort; ls -l", "description": "Look at hosts" }),
        json!({ "stdout": "total 8\n-rw-r--r-- 1 me me 476 Jan 7 16:40 a.txt\nthe hosts are fine\n127.0.0.1\n", "stderr": "" }),
    );
    assert_eq!(seen.title, "Look at hosts: the hosts are fine (4 lines)");
    let made = bash("./make-file", "Created: /tmp/a.txt\n-rw-r--r-- 1 me me 476 Jan 7 16:40 a.txt\n");
    assert_eq!(made.title, "Run command make-file: Created: /tmp/a.txt");
}

#[test]
fn check_whose_output_was_filtered_away_has_no_result() {
    let nothing = json!({ "content": "Exit code 1", "is_error": true });
    let seen = observe("Bash", json!({ "command": "go test ./... | grep files_touched" }), nothing);
    assert_eq!(seen.title, "Run go test ./...: result not shown");
}

#[test]
fn checkout_of_files_is_no_switch_of_branches() {
    let title = |command: &str, output: &str| bash(command, output).title;
    assert_eq!(
        title("git checkout --ours src/a.go", "Updated 1 path from the index\n"),
        "Take our version of src/a.go"
    );
    assert_eq!(title("git checkout src/a.go", ""), "Discard changes in src/a.go");
    assert_eq!(
        title("git checkout release/1.2", "Switched to branch 'release/1.2'\n"),
        "Switch git to release/1.2: Switched to branch 'release/1.2'"
    );
}

#[test]
fn status_counts_a_file_once_and_names_conflicts_first() {
    let output = "On branch main\nYou have unmerged paths.\n\nChanges to be committed:\n\tmodified:   src/a.go\n\tnew file:   src/b.go\n\nUnmerged paths:\n\tboth modified:   src/z.go\n\nChanges not staged for commit:\n\tmodified:   src/a.go\n";
    let seen = bash("git status", output);
    assert_eq!(seen.title, "Check git status on main: 1 file with merge conflicts");
    assert!(
        seen.summary.ends_with("Merge conflicts: src/z.go. Changed: src/a.go, src/b.go."),
        "{}",
        seen.summary
    );
    let short = bash("git status --short", "MM src/a.go\n?? src/b.go\n");
    assert_eq!(short.title, "Check git status: 2 changed files");
    assert_eq!(bash("git diff --name-only", "src/a.go\nsrc/b.go\n").title, "Review git diff: 2 files");
}

#[test]
fn all_paths_of_a_git_log_are_named() {
    let log = bash("git log --oneline -- src docs", "1a2b3c4 One\n2b3c4d5 Two\n");
    assert_eq!(log.title, "List git log src, docs: 2 commits");
}
