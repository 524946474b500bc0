use super::*;

fn only(text: &str) -> QaRun {
    let report = read_log(text);
    assert_eq!(report.runs.len(), 1, "{:?}", report.runs);
    report.runs.into_iter().next().unwrap()
}

fn counts(run: &QaRun) -> [u64; 5] {
    [run.passed, run.failed, run.skipped, run.errors, run.warnings]
}

fn failure(run: &QaRun, at: usize) -> (&str, Option<&str>, Option<u64>, &str) {
    let failure = &run.failures[at];
    (&failure.name, failure.file.as_deref(), failure.line, failure.message.as_deref().unwrap_or_default())
}

#[test]
fn cargo_test() {
    let run = only(
        "   Compiling demo v0.1.0 (/home/ada/demo)\n\
         \x1b[1m\x1b[32m    Finished\x1b[0m `test` profile [unoptimized + debuginfo] target(s) in 0.42s\n\
         \x20    Running unittests src/lib.rs (target/debug/deps/demo-1)\n\nrunning 3 tests\n\
         test tests::adds ... ok\ntest tests::slow ... ignored\ntest tests::subtracts ... FAILED\n\nfailures:\n\n\
         ---- tests::subtracts stdout ----\n\nthread 'tests::subtracts' (4711) panicked at src/lib.rs:23:9:\n\
         assertion `left == right` failed\n  left: 1\n right: 2\n\nfailures:\n    tests::subtracts\n\n\
         test result: FAILED. 1 passed; 1 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n\
         \x20  Doc-tests demo\n\nrunning 2 tests\n..\n\
         test result: ok. 2 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.10s\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("cargo-test", [3, 1, 1, 0, 0]));
    let expected = ("tests::subtracts", Some("src/lib.rs"), Some(23), "assertion `left == right` failed");
    assert_eq!(failure(&run, 0), expected);
    assert_eq!(run.failures.len(), 1);
}

#[test]
fn cargo_nextest() {
    let run = only(
        "    Starting 4 tests across 2 binaries\n        PASS [   0.004s] demo tests::adds\n\
         \x20       FAIL [   0.010s] (3/4) demo tests::subtracts\n  stdout ───\n\n    running 1 test\n\
         \x20   test tests::subtracts ... FAILED\n\n    thread 'tests::subtracts' panicked at src/lib.rs:23:9:\n    boom\n\
         \x20 TERMINATING [> 60.000s] demo tests::hangs\n     TIMEOUT [  60.004s] demo tests::hangs\n────────────\n\
         \x20    Summary [  60.020s] 4 tests run: 2 passed (1 slow), 1 failed, 1 timed out, 5 skipped\n\
         \x20       FAIL [   0.010s] (3/4) demo tests::subtracts\n     TIMEOUT [  60.004s] demo tests::hangs\nerror: test run failed\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("cargo-nextest", [2, 2, 5, 0, 0]));
    let names: Vec<&str> = run.failures.iter().map(|failure| failure.name.as_str()).collect();
    assert_eq!(names, ["demo tests::subtracts", "demo tests::hangs"]);
    assert_eq!(failure(&run, 0).1, Some("src/lib.rs"));
}

#[test]
fn clippy() {
    let run = only(
        "    Checking demo v0.1.0 (/home/ada/demo)\nerror: this comparison is always false\n  --> src/a.rs:4:8\n   |\n\
         4  |     if x < 0 {\n   |        ^^^^^\n   = note: `#[deny(clippy::absurd_extreme_comparisons)]` on by default\n\n\
         warning: unused variable: `y`\n --> src/b.rs:7:9\n  |\n\nerror[E0308]: mismatched types\n --> src/c.rs:1:2\n\n\
         error: could not compile `demo` (lib) due to 2 previous errors; 1 warning emitted\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("clippy", [0, 0, 0, 2, 1]));
    assert_eq!(failure(&run, 0), ("error", Some("src/a.rs"), Some(4), "this comparison is always false"));
    assert_eq!(failure(&run, 2), ("E0308", Some("src/c.rs"), Some(1), "mismatched types"));
    let clean = only(
        "    Checking demo v0.1.0 (/home/ada/demo)\n    Finished `dev` profile [unoptimized] target(s) in 1.2s\n",
    );
    assert!(clean.is_clean() && clean.tool == "clippy");
}

#[test]
fn pytest() {
    let run = only(
        "============ test session starts ============\ncollected 6 items\n\ntests/test_a.py .F.sx                 [ 83%]\n\
         tests/test_b.py E                     [100%]\n\n=========== short test summary info ===========\n\
         FAILED tests/test_a.py::TestX::test_sum[1-2] - assert 3 == 4\nERROR tests/test_b.py - ModuleNotFoundError: No module named 'y'\n\
         ==== 1 failed, 2 passed, 1 skipped, 1 xfailed, 3 warnings, 1 error in 0.12s ====\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("pytest", [2, 1, 2, 1, 3]));
    assert_eq!(
        failure(&run, 0),
        ("tests/test_a.py::TestX::test_sum[1-2]", Some("tests/test_a.py"), None, "assert 3 == 4")
    );
    assert_eq!(counts(&only("....\n4 passed in 0.03s\n")), [4, 0, 0, 0, 0]);
    assert_eq!(counts(&only("===== 120 passed in 75.21s (0:01:15) =====\n")), [120, 0, 0, 0, 0]);
}

#[test]
fn jest() {
    let run = only(
        "PASS src/a.test.ts\nFAIL src/b.test.ts (5.2 s)\n  ● math › adds\n\n    expect(received).toBe(expected)\n\n\
         \x20     at Object.<anonymous> (src/b.test.ts:5:13)\n\nTest Suites: 1 failed, 1 passed, 2 total\n\
         Tests:       1 failed, 2 skipped, 1 todo, 10 passed, 14 total\nSnapshots:   0 total\nTime:        1.5 s\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("jest", [10, 1, 3, 0, 0]));
    assert_eq!(failure(&run, 0), ("math › adds", Some("src/b.test.ts"), None, ""));
    let broken = only(
        "FAIL src/b.test.ts\n  ● Test suite failed to run\n\nTest Suites: 1 failed, 1 total\nTests:       0 total\n",
    );
    assert_eq!(counts(&broken), [0, 0, 0, 1, 0]);
}

#[test]
fn vitest() {
    let run = only(
        " ❯ src/b.test.ts (2 tests | 1 failed) 5ms\n\n⎯⎯⎯ Failed Tests 1 ⎯⎯⎯\n\n FAIL  src/b.test.ts > math > adds\n\
         AssertionError: expected 3 to be 4\n\n Test Files  1 failed | 1 passed (2)\n      Tests  1 failed | 3 passed | 1 skipped (5)\n\
         \x20  Duration  401ms\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("vitest", [3, 1, 1, 0, 0]));
    assert_eq!(
        failure(&run, 0),
        ("math > adds", Some("src/b.test.ts"), None, "AssertionError: expected 3 to be 4")
    );
    let unloaded = only(
        " FAIL  src/a.test.ts [ src/a.test.ts ]\n Test Files  1 failed | 1 passed (2)\n      Tests  3 passed (3)\n",
    );
    assert_eq!(failure(&unloaded, 0), ("src/a.test.ts", Some("src/a.test.ts"), None, ""));
}

#[test]
fn go_test() {
    let run = only(
        "=== RUN   TestSum\n    sum_test.go:12: got 3, want 4\n--- FAIL: TestSum (0.00s)\n    sum_test.go:12: got 3, want 4\n\
         === RUN   TestOk\n--- PASS: TestOk (0.00s)\n--- SKIP: TestLater (0.00s)\nFAIL\nFAIL\texample.com/demo/sum\t0.004s\n\
         ok  \texample.com/demo/other\t(cached)\n?   \texample.com/demo/cmd\t[no test files]\n\
         FAIL\texample.com/demo/broken [build failed]\nFAIL\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("go-test", [1, 1, 1, 1, 0]));
    assert_eq!(failure(&run, 0), ("TestSum", Some("sum_test.go"), Some(12), "got 3, want 4"));
    assert!(only("ok  \texample.com/demo\t0.012s\n").is_clean());
}

#[test]
fn eslint() {
    let run = only(
        "\n/home/ada/demo/src/a.js\n  1:7   error    'x' is assigned a value but never used  no-unused-vars\n\
         \x20 3:1   warning  Unexpected console statement            no-console\n\n/home/ada/demo/src/b.js\n\
         \x20 2:2  error  Parsing error: Unexpected token\n\n✖ 3 problems (2 errors, 1 warning)\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("eslint", [0, 0, 0, 2, 1]));
    let expected = (
        "no-unused-vars",
        Some("/home/ada/demo/src/a.js"),
        Some(1),
        "'x' is assigned a value but never used",
    );
    assert_eq!(failure(&run, 0), expected);
}

#[test]
fn tsc() {
    let run = only(
        "src/a.ts(12,5): error TS2322: Type 'string' is not assignable to type 'number'.\n\
         src/b.tsx:3:1 - error TS2304: Cannot find name 'foo'.\n\n3   foo();\n    ~~~\n\
         error TS18003: No inputs were found in config file.\n\nFound 3 errors in 2 files.\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("tsc", [0, 0, 0, 3, 0]));
    let expected =
        ("TS2322", Some("src/a.ts"), Some(12), "Type 'string' is not assignable to type 'number'.");
    assert_eq!(failure(&run, 0), expected);
    assert_eq!(failure(&run, 1).1, Some("src/b.tsx"));
    assert_eq!(failure(&run, 2).0, "TS18003");
}

#[test]
fn ruff() {
    let run = only(
        "src/a.py:1:8: F401 [*] `os` imported but unused\nsrc/b.py:3:5: E711 Comparison to `None`\nFound 2 errors.\n\
         [*] 1 fixable with the `--fix` option.\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("ruff", [0, 0, 0, 2, 0]));
    assert_eq!(failure(&run, 0), ("F401", Some("src/a.py"), Some(1), "`os` imported but unused"));
    let full = only(
        "F401 [*] `os` imported but unused\n --> src/a.py:1:8\n  |\n1 | import os\n  |        ^^\n\nFound 1 error.\n",
    );
    assert_eq!(failure(&full, 0), ("F401", Some("src/a.py"), Some(1), "`os` imported but unused"));
    assert!(only("All checks passed!\n").is_clean());
}

#[test]
fn mypy() {
    let run = only(
        "src/a.py:3: error: Incompatible types in assignment (expression has type \"str\")  [assignment]\n\
         src/a.py:4: note: See docs\nsrc/b.py:10:5: error: Name \"x\" is not defined  [name-defined]\n\
         Found 2 errors in 2 files (checked 5 source files)\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("mypy", [0, 0, 0, 2, 0]));
    let (name, file, line, _) = failure(&run, 1);
    assert_eq!((name, file, line), ("name-defined", Some("src/b.py"), Some(10)));
    assert!(only("Success: no issues found in 5 source files\n").is_clean());
}

/// Every one of these ends with another exit code than zero.
#[test]
fn a_failed_run_is_never_passed() {
    let ok =
        "test result: ok. 3 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
    let cargo = |rest: &str| format!("running 3 tests\n...\n{ok}{rest}");
    let clippy =
        "    Checking demo v0.1.0 (/d)\n    Finished `dev` profile [unoptimized] target(s) in 1.2s\n";
    let vitest = " Test Files  1 passed (1)\n      Tests  3 passed (3)\n";
    let jest = "Test Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\n";
    let logs = [
        ("cargo-test", cargo("error: test failed, to rerun pass `--test it`\n\nCaused by:\n  process didn't exit \
            successfully: `/t/it` (signal: 6, SIGABRT: process abort signal)\n")),
        ("cargo-test", cargo("error: doctest failed, to rerun pass `--doc`\n")),
        ("cargo-test", cargo("\nrunning 2 tests\ntest a ... ok\n")),
        ("cargo-test", cargo("error: no test target named `nope`\n")),
        ("cargo-test", "   Compiling dep v0.1.0\nerror: could not compile `dep` (lib) due to 1 previous error\n".into()),
        ("cargo-test", "   Compiling dep v0.1.0\nerror: failed to run custom build command for `dep`\n".into()),
        ("cargo-nextest", " Summary [ 0.1s] 3 tests run: 2 passed, 1 exec failed, 0 skipped\n".into()),
        ("cargo-nextest", " Summary [ 0.1s] 3/9 tests run: 3 passed, 0 skipped\nerror: test run failed\n".into()),
        ("cargo-nextest", " Summary [ 0.1s] 1 test run: 0 passed, 1 failed\n Summary [ 0.1s] 2 tests run: 2 passed\n".into()),
        ("cargo-nextest", " Summary [ 0.1s] 3 tests run: 3 passed\nerror: test run failed\n".into()),
        ("clippy", format!("{clippy}    Checking dep v0.1.0\nerror: could not compile `dep` (lib)\n")),
        ("clippy", format!("{clippy}error: failed to run custom build command for `dep`\n")),
        ("pytest", "==== no tests ran in 0.01s ====\n".into()),
        ("pytest", "5 deselected in 0.01s\n".into()),
        ("pytest", "!!!!!!!! KeyboardInterrupt !!!!!!!!\n==== 3 passed in 0.5s ====\n".into()),
        ("pytest", "FAIL Required test coverage of 90% not reached. Total coverage: 80.00%\n3 passed in 0.5s\n".into()),
        ("pytest", "1 failed in 0.1s\n3 passed in 0.5s\n".into()),
        ("pytest", "3 passed in 0.5s\n===== test session starts =====\ncollected 4 items\n".into()),
        ("jest", "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\n".to_owned() + jest),
        ("jest", format!("{jest}Jest: \"global\" coverage threshold for lines (80%) not met: 70%\n")),
        ("vitest", " FAIL  src/a.test.ts [ src/a.test.ts ]\n Test Files  1 failed | 1 passed (2)\n      Tests  3 passed (3)\n".into()),
        ("vitest", " Test Files  1 failed (1)\n      Tests  no tests\n".into()),
        ("vitest", format!("{vitest}     Errors  1 error\n")),
        ("vitest", format!("{vitest}ERROR: Coverage for lines (70%) does not meet global threshold (80%)\n")),
        ("vitest", format!("{jest} Test Files  1 failed (1)\n      Tests  1 failed (1)\n")),
        ("go-test", "panic: test timed out after 1s\nFAIL\texample.com/a\t1.005s\nFAIL\n".into()),
        ("go-test", "ok  \texample.com/b\t0.1s\nexit status 3\nFAIL\texample.com/a\t1.005s\nFAIL\n".into()),
        ("go-test", "--- FAIL: TestA (0.0s)\nFAIL\texample.com/a\t1s\nFAIL\texample.com/b\t1s\n".into()),
        ("go-test", "ok  \texample.com/b\t0.1s\nFAIL\t./nope [setup failed]\nFAIL\n".into()),
        ("go-test", "ok  \texample.com/b\t0.1s\n=== RUN   TestX\n".into()),
        ("eslint", "✖ 1 problem (0 errors, 1 warning)\n\nESLint found too many warnings (maximum: 0).\n".into()),
        ("eslint", "✖ 1 problem (0 errors, 1 warning)\n✖ 1 problem (1 error, 0 warnings)\n".into()),
        ("eslint", "Oops! Something went wrong! :(\n\nESLint: 9.0.0\n".into()),
        ("ruff", "error: Failed to parse src/a.py:1:3: Expected an expression\nFound 1 error.\n".into()),
        ("ruff", "src/a.py:1:3: invalid-syntax: Expected an expression\nFound 1 error.\n".into()),
        ("ruff", "All checks passed!\nWould reformat: src/a.py\n1 file would be reformatted\n".into()),
        ("ruff", "All checks passed!\nFound 3 errors (1 fixed, 2 remaining).\n".into()),
        ("mypy", "Success: no issues found in 1 source file\nFound 1 error in 1 file (checked 1 source file)\n".into()),
        ("mypy", "src/a.py: error: Source file found twice\nFound 1 error in 1 file (errors prevented further checking)\n".into()),
        ("tsc", "Found 0 errors.\nerror TS6053: File 'x.ts' not found.\n".into()),
        ("shell", format!("{ok}make: *** [Makefile:3: check] Error 1\n")),
        ("shell", format!("{jest}npm error code ELIFECYCLE\n")),
    ];
    for (tool, log) in logs {
        let report = read_log(&log);
        assert_eq!(report.status, QaStatus::Failed, "{log}\n{report:?}");
        let failed = report.runs.iter().find(|run| run.tool == tool && !run.is_clean());
        assert!(failed.is_some_and(|run| run.failed + run.errors > 0), "{tool}: {log}\n{report:?}");
    }
}

#[test]
fn a_passed_run_stays_passed() {
    for log in [
        "running 1 test\nerror: printed by a test\ntest result: ok. 1 passed; 0 failed; 0 ignored\n",
        "Found 2 errors (2 fixed, 0 remaining).\n",
        "warning: unused\n Summary [ 0.1s] 3 tests run: 3 passed (1 slow), 2 skipped\n",
        "===== test session starts =====\ncollected 1 item\n==== 1 passed, 1 warning in 0.5s ====\n",
        "=== RUN   TestA\n--- PASS: TestA (0.00s)\nPASS\nok  \texample.com/a\t0.1s\n",
        "✖ 1 problem (0 errors, 1 warning)\n",
        " Test Files  2 passed (2)\n      Tests  3 passed | 1 skipped (4)\n Type Errors  no errors\n",
    ] {
        let report = read_log(log);
        assert_eq!(report.status, QaStatus::Passed, "{log}\n{report:?}");
    }
}

#[test]
fn a_log_of_several_tools_and_one_of_none() {
    let both = "All checks passed!\nSuccess: no issues found in 5 source files\n4 passed in 0.03s\n";
    let tools: Vec<String> = read_log(both).runs.into_iter().map(|run| run.tool).collect();
    assert_eq!(tools, ["pytest", "ruff", "mypy"]);
    assert_eq!(read_log(both).status, QaStatus::Passed);
    assert_eq!(read_log("hello\nworld").status, QaStatus::Unknown);
    assert_eq!(read_log("").status, QaStatus::Unknown);
    assert_eq!(read_log("1 failed in 0.1s").status, QaStatus::Failed);
}

#[test]
fn prose_is_no_report() {
    let prose = "The run passed in the morning. 3 tests failed in CI: see the log.\nFound the error in a source of truth.\n\
        ok, then. error: something else\n* warning: odd\nTests: none\nFAIL fast\n";
    assert!(
        read_log(prose).runs.iter().all(|run| run.tool == "jest" && run.is_clean()),
        "{:?}",
        read_log(prose)
    );
}

#[test]
fn two_records_are_compared_by_what_failed() {
    let before = read_log("FAILED t.py::a - x\nFAILED t.py::b - y\n2 failed in 0.1s\n").runs;
    let after = read_log("FAILED t.py::b - other\nFAILED t.py::c - z\n2 failed in 0.1s\n").runs;
    let comparison = compare_runs(&before, &after);
    assert_eq!(comparison.new_failures, ["pytest: t.py::c in t.py"]);
    assert_eq!(comparison.fixed, ["pytest: t.py::a in t.py"]);
    // A validator who runs what nobody ran before must hear of what that finds.
    let other_tool = compare_runs(&read_log("test result: ok. 3 passed; 0 failed; 0 ignored\n").runs, &after);
    assert_eq!(other_tool.new_failures, ["pytest: t.py::b in t.py", "pytest: t.py::c in t.py"]);
    assert_eq!(other_tool.fixed, Vec::<String>::new());
}

proptest::proptest! {
    #[test]
    fn no_log_makes_it_fail(text in "(\\PC|\n|\u{1b}|\r){0,200}") {
        read_log(&text);
    }

    #[test]
    fn no_likely_log_makes_it_fail(parts in proptest::collection::vec(proptest::sample::select(vec![
        "test result: ", "1 passed; ", "FAILED ", "thread '", "panicked at ", "src/a.rs:1:2", ":", "\n", "error[", "]: ",
        "--> ", "Tests:", "Tests  ", ")", "(", "● ", "--- FAIL: ", "ok\t", "0.1s", "✖ problems", "error TS", "Found ",
        "Summary [", "run:", "FAIL [", "]", "a.py:", "F401 ", ": error: ", "Checking ", "é",
    ]), 0..30)) {
        read_log(&parts.concat());
    }
}
