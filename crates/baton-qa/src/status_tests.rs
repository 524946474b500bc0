//! The status of logs, alone and joined with another log.

use super::*;

/// Complete logs of passing runs: the tool and its output.
const PASSING: [(&str, &str); 28] = [
    (
        "cargo-test",
        "   Compiling demo v0.1.0 (/home/ada/demo)\n    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.42s\n     Running unittests src/lib.rs (target/debug/deps/demo-1)\n\nrunning 3 tests\ntest tests::adds ... ok\ntest tests::reports_an_error ... ok\ntest tests::slow ... ignored\n\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n   Doc-tests demo\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
    ),
    (
        "cargo-test",
        "\nrunning 3 tests\n..i\ntest result: ok. 2 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s\n\n",
    ),
    (
        "cargo-test",
        "running 1 test\nhello from a test\ntest tests::a ... ok\n\ntest result: ok. 1 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n",
    ),
    (
        "cargo-nextest",
        "    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.05s\n────────────\n Nextest run ID 0b2c with nextest profile: default\n    Starting 2 tests across 1 binary (1 test skipped)\n        PASS [   0.004s] (1/2) demo tests::fails_cleanly\n        PASS [   0.004s] (2/2) demo tests::b\n────────────\n     Summary [   0.010s] 2 tests run: 2 passed (1 slow), 1 skipped\n",
    ),
    (
        "clippy",
        "    Checking demo v0.1.0 (/home/ada/demo)\nwarning: length comparison to zero\n --> src/lib.rs:1:37\n  |\n1 | fn f() {}\n  |    ^^^ help: use this\n  |\n  = note: `#[warn(clippy::len_zero)]` on by default\n\nwarning: `demo` (lib) generated 1 warning\n    Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.16s\n",
    ),
    ("cargo-check", "    Finished `dev` profile [unoptimized + debuginfo] target(s) in 0.01s\n"),
    (
        "pytest",
        "============ test session starts ============\nplatform linux -- Python 3.11.7, pytest-9.2.0\nrootdir: /home/ada/error-tracker\nplugins: xdist-3.8.0, rerunfailures-16.7\ncollected 3 items\n\ntest_ok.py ..                 [ 66%]\ntest_x.py x                   [100%]\n\n======= warnings summary =======\ntest_ok.py::test_a\n  /home/ada/a.py:3: DeprecationWarning: old error class\n    warnings.warn(x)\n\n-- Docs: https://docs.pytest.org/en/stable/how-to/capture-warnings.html\n======= 2 passed, 1 xfailed, 1 warning in 0.02s =======\n",
    ),
    (
        "pytest",
        "============ test session starts ============\ncollecting ... collected 2 items\n\ntest_ok.py::test_error PASSED    [ 50%]\ntest_ok.py::test_b SKIPPED (no)  [100%]\n\n======= 1 passed, 1 skipped in 0.02s =======\n",
    ),
    ("pytest", "....                                         [100%]\n4 passed in 0.03s\n"),
    (
        "unittest",
        "..s\n----------------------------------------------------------------------\nRan 3 tests in 0.001s\n\nOK (skipped=1)\n",
    ),
    (
        "unittest",
        "test_error (ut.T.test_error) ... ok\n\n----------------------------------------------------------------------\nRan 1 test in 0.001s\n\nOK\n",
    ),
    (
        "jest",
        "PASS src/a.test.ts\n  errors\n    ✓ are thrown (1 ms)\n  console.log\n    hello\n\n      at log (src/a.test.ts:3:1)\n\nPASS src/b.test.ts (5.2 s)\n\nTest Suites: 2 passed, 2 total\nTests:       1 skipped, 3 passed, 4 total\nSnapshots:   0 total\nTime:        1.5 s, estimated 2 s\nRan all test suites.\n",
    ),
    (
        "vitest",
        "\n RUN  v4.1.12 /home/ada/demo\n\n ✓ src/error.test.ts (2 tests | 1 skipped) 5ms\n\n Test Files  1 passed (1)\n      Tests  1 passed | 1 skipped (2)\n   Start at  18:01:07\n   Duration  339ms (transform 24ms)\n\n",
    ),
    ("mocha", "\n\n  parser\n    ✔ reports errors\n    - later\n\n\n  1 passing (5ms)\n  1 pending\n\n"),
    (
        "tap",
        "TAP version 13\n# Subtest: g\nok 1 - g\n  ---\n  duration_ms: 1.3\n  ...\n1..1\n# tests 1\n# pass 1\n# fail 0\n# duration_ms 26.6\n",
    ),
    (
        "tap",
        "✔ g (1.2ms)\n✔ h (0.2ms)\nℹ tests 2\nℹ suites 0\nℹ pass 2\nℹ fail 0\nℹ cancelled 0\nℹ skipped 0\nℹ todo 0\nℹ duration_ms 40.1\n",
    ),
    (
        "go-test",
        "ok  \texample.com/demo/a\t(cached)\nok  \texample.com/demo/b\t0.004s\tcoverage: 80.0% of statements\n?   \texample.com/demo/cmd\t[no test files]\n",
    ),
    (
        "go-test",
        "=== RUN   TestA\n    a_test.go:4: logged\n=== RUN   TestA/error\n--- PASS: TestA (0.00s)\n    --- PASS: TestA/error (0.00s)\n=== RUN   TestB\n--- SKIP: TestB (0.00s)\nPASS\nok  \texample.com/demo\t0.006s\n",
    ),
    (
        "go-test",
        "{\"Action\":\"start\",\"Package\":\"m\"}\n{\"Action\":\"run\",\"Package\":\"m\",\"Test\":\"TestA\"}\n{\"Action\":\"output\",\"Package\":\"m\",\"Test\":\"TestA\",\"Output\":\"=== RUN   TestA\\n\"}\n{\"Action\":\"output\",\"Package\":\"m\",\"Test\":\"TestA\",\"Output\":\"--- PASS: TestA (0.00s)\\n\"}\n{\"Action\":\"pass\",\"Package\":\"m\",\"Test\":\"TestA\",\"Elapsed\":0}\n{\"Action\":\"output\",\"Package\":\"m\",\"Output\":\"PASS\\n\"}\n{\"Action\":\"output\",\"Package\":\"m\",\"Output\":\"ok  \\tm\\t0.002s\\n\"}\n{\"Action\":\"pass\",\"Package\":\"m\",\"Elapsed\":0.002}\n",
    ),
    (
        "eslint",
        "\n/home/ada/demo/src/a.js\n  1:1  warning  Unexpected console statement  no-console\n\n✖ 1 problem (0 errors, 1 warning)\n\n",
    ),
    ("prettier", "Checking formatting...\nAll matched files use Prettier code style!\n"),
    ("tsc", "Found 0 errors.\n"),
    ("ruff", "All checks passed!\n"),
    ("ruff", "Found 2 errors (2 fixed, 0 remaining).\n"),
    ("ruff-format", "3 files already formatted\n"),
    ("black", "All done! ✨ 🍰 ✨\n3 files would be left unchanged.\n"),
    ("mypy", "Success: no issues found in 5 source files\n"),
    (
        "jest",
        "npm warn Unknown user config\n\n> demo@1.0.0 test\n> jest --ci\n\nPASS src/a.test.ts\n\nTest Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\nSnapshots:   0 total\nTime:        1.5 s\nRan all test suites.\n",
    ),
];

/// Output of commands that fail and report it.
const FAILING: [(&str, &str); 46] = [
    (
        "cargo-test",
        "error: test failed, to rerun pass `--test it`\n\nCaused by:\n  process didn't exit successfully: `/t/it` (signal: 6, SIGABRT: process abort signal)\n",
    ),
    (
        "cargo-test",
        "running 1 test\ntest a ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored\nerror: doctest failed, to rerun pass `--doc`\n",
    ),
    (
        "cargo-test",
        "running 1 test\ntest a ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored\nerror: no test target named `nope`\n",
    ),
    ("cargo-test", "   Compiling dep v0.1.0\nerror: could not compile `dep` (lib) due to 1 previous error\n"),
    ("cargo-test", "   Compiling dep v0.1.0\nerror: failed to run custom build command for `dep`\n"),
    (
        "cargo-fmt",
        "Diff in /home/ada/demo/src/lib.rs:1:\n-pub fn f() -> i32 { 1 }\n+pub fn f() -> i32 {\n+    1\n+}\n",
    ),
    ("cargo-nextest", " Summary [ 0.1s] 3 tests run: 2 passed, 1 exec failed, 0 skipped\n"),
    ("cargo-nextest", " Summary [ 0.1s] 3/9 tests run: 3 passed, 0 skipped\nerror: test run failed\n"),
    (
        "cargo-nextest",
        " Summary [ 0.1s] 1 test run: 0 passed, 1 failed\n Summary [ 0.1s] 2 tests run: 2 passed\n",
    ),
    ("cargo-nextest", " Summary [ 0.1s] 3 tests run: 3 passed\nerror: test run failed\n"),
    ("clippy", "    Checking dep v0.1.0\nerror: could not compile `dep` (lib)\n"),
    ("clippy", "    Checking dep v0.1.0\nerror: failed to run custom build command for `dep`\n"),
    (
        "cargo-check",
        "{\"reason\":\"compiler-message\",\"message\":{\"level\":\"error\",\"message\":\"no\",\"code\":null,\"spans\":[{\"file_name\":\"a.rs\",\"line_start\":1}]}}\n{\"reason\":\"build-finished\",\"success\":false}\n",
    ),
    ("pytest", "==== no tests ran in 0.01s ====\n"),
    ("pytest", "5 deselected in 0.01s\n"),
    ("pytest", "!!!!!!!! KeyboardInterrupt !!!!!!!!\n==== 3 passed in 0.5s ====\n"),
    ("pytest", "FAIL Required test coverage of 90% not reached. Total coverage: 80.00%\n3 passed in 0.5s\n"),
    ("pytest", "1 failed in 0.1s\n3 passed in 0.5s\n"),
    (
        "pytest",
        "ERROR: usage: pytest [options] [file_or_dir] [...]\npytest: error: unrecognized arguments: --bogus\n  inifile: None\n  rootdir: /home/ada\n",
    ),
    (
        "pytest",
        ".F                                        [100%]\n=========== FAILURES ===========\n____ test_b ____\n=========== short test summary info ===========\nFAILED test_a.py::test_b - assert 1 == 2\n",
    ),
    (
        "unittest",
        "F.\n======================================================================\nFAIL: test_a (ut.T.test_a)\n----------------------------------------------------------------------\nRan 2 tests in 0.001s\n\nFAILED (failures=1)\n",
    ),
    ("jest", "Test Suites: 1 failed, 1 total\nTests:       1 failed, 1 total\n"),
    (
        "jest",
        "Test Suites: 1 passed, 1 total\nTests:       3 passed, 3 total\nJest: \"global\" coverage threshold for lines (80%) not met: 70%\n",
    ),
    ("jest", "{\"numFailedTestSuites\":1,\"numFailedTests\":1,\"numPassedTests\":2,\"success\":false}\n"),
    ("jest", "● Unrecognized CLI Parameter:\n\n  Unrecognized option \"bogus\".\n"),
    (
        "vitest",
        " FAIL  src/a.test.ts [ src/a.test.ts ]\n Test Files  1 failed | 1 passed (2)\n      Tests  3 passed (3)\n",
    ),
    ("vitest", " Test Files  1 failed (1)\n      Tests  no tests\n"),
    ("vitest", " Test Files  1 passed (1)\n      Tests  3 passed (3)\n     Errors  1 error\n"),
    (
        "vitest",
        " Test Files  1 passed (1)\n      Tests  3 passed (3)\nERROR: Coverage for lines (70%) does not meet global threshold (80%)\n",
    ),
    (
        "mocha",
        "\n  m\n    ✔ good\n    1) bad\n\n  1 passing (5ms)\n  1 failing\n\n  1) m\n       bad:\n\n      AssertionError: 1 == 2\n",
    ),
    (
        "tap",
        "TAP version 13\nok 1 - g\nnot ok 2 - b\n  ---\n  error: '1 == 2'\n  ...\n1..2\n# pass 1\n# fail 1\n",
    ),
    ("tap", "✔ g (1.2ms)\n✖ b (0.2ms)\nℹ tests 2\nℹ pass 1\nℹ fail 1\nℹ cancelled 0\nℹ duration_ms 40.1\n"),
    ("go-test", "panic: test timed out after 1s\nFAIL\texample.com/a\t1.005s\nFAIL\n"),
    ("go-test", "ok  \texample.com/b\t0.1s\nexit status 3\nFAIL\texample.com/a\t1.005s\nFAIL\n"),
    ("go-test", "--- FAIL: TestA (0.0s)\nFAIL\texample.com/a\t1s\nFAIL\texample.com/b\t1s\n"),
    ("go-test", "ok  \texample.com/b\t0.1s\nFAIL\t./nope [setup failed]\nFAIL\n"),
    ("eslint", "✖ 1 problem (0 errors, 1 warning)\n\nESLint found too many warnings (maximum: 0).\n"),
    ("eslint", "Oops! Something went wrong! :(\n\nESLint: 9.0.0\n"),
    (
        "prettier",
        "Checking formatting...\n[warn] src/a.js\n[warn] Code style issues found in the above file. Run Prettier with --write to fix.\n",
    ),
    ("ruff", "error: Failed to parse src/a.py:1:3: Expected an expression\nFound 1 error.\n"),
    ("ruff", "All checks passed!\nFound 3 errors (1 fixed, 2 remaining).\n"),
    (
        "ruff-format",
        "--- fmt.py\n+++ fmt.py\n@@ -1 +1 @@\n-x = {  'a':1}\n+x = {\"a\": 1}\n\n1 file would be reformatted\n",
    ),
    (
        "black",
        "would reformat src/a.py\n\nOh no! 💥 💔 💥\n1 file would be reformatted, 2 files would be left unchanged.\n",
    ),
    (
        "mypy",
        "src/a.py: error: Source file found twice\nFound 1 error in 1 file (errors prevented further checking)\n",
    ),
    ("shell", "sh: 1: pytest: not found\n"),
    ("shell", "cargo test\nmake: *** [Makefile:3: check] Error 1\n"),
];

/// Output that proves neither a pass nor a failure: incomplete output, runs without tests, output of unknown tools.
const UNCLEAR: [&str; 16] = [
    "\n----------------------------------------------------------------------\nRan 0 tests in 0.000s\n\nOK\n",
    "running 2 tests\ntest a ... ok\n",
    "running 2 tests\n   Doc-tests demo\n\nrunning 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out\n",
    "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 0.00s\n",
    "running 1 test\nerror: printed by a test or by another program\ntest a ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored\n",
    "===== test session starts =====\ncollected 4 items\n\ntest_a.py .\n",
    ".",
    "..                                                                       [100%]\n",
    "ok  \texample.com/b\t0.1s [no tests to run]\n",
    "=== RUN   TestX\n",
    "No tests found, exiting with code 0\n",
    "# example.com/m\nvet: c/c_test.go:3:39: cannot use \"s\" as int value in variable declaration\n",
    "error: unexpected argument '--bogus' found\n\nUsage: cargo test [OPTIONS]\n",
    "> demo@1.0.0 lint\n> stylelint src\n\n",
    "src/a.js\nsrc/b.js\n",
    "hello\nworld\n",
];

fn join(one: &str, other: &str) -> [String; 2] {
    [format!("{one}{other}"), format!("{one}\n{other}")]
}

#[test]
fn complete_logs_of_passing_runs_are_passed() {
    for (tool, log) in PASSING {
        let report = read_log(log);
        assert_eq!(report.status, QaStatus::Passed, "{log}\n{report:?}");
        assert_eq!(report.runs.iter().map(|run| run.tool.as_str()).collect::<Vec<_>>(), [tool], "{log}");
    }
}

#[test]
fn two_passing_logs_of_different_tools_are_passed() {
    for (tool, one) in PASSING {
        for (_, other) in PASSING.iter().filter(|(other, _)| *other != tool) {
            let report = read_log(&format!("{one}\n{other}"));
            assert_eq!(report.status, QaStatus::Passed, "{one}\n{other}\n{report:?}");
        }
    }
}

#[test]
fn reported_failures_are_failed_alone_and_beside_a_passing_log() {
    for (tool, log) in FAILING {
        let report = read_log(log);
        assert_eq!(report.status, QaStatus::Failed, "{log}\n{report:?}");
        let failed = report.runs.iter().find(|run| run.tool == tool && !run.is_clean());
        assert!(failed.is_some_and(|run| run.failed + run.errors > 0), "{tool}: {log}\n{report:?}");
        for (_, passing) in PASSING {
            for both in join(log, passing).into_iter().chain(join(passing, log)) {
                assert_ne!(read_log(&both).status, QaStatus::Passed, "{both}");
            }
        }
    }
}

#[test]
fn unclear_output_is_unknown_alone_and_never_passed_beside_a_passing_log() {
    for log in UNCLEAR {
        let report = read_log(log);
        assert_eq!(report.status, QaStatus::Unknown, "{log}\n{report:?}");
        assert!(report.reason.is_some(), "{log}");
        for (_, passing) in PASSING {
            // Results of the same tool add up, so a run without tests beside one with tests is a pass.
            if report.runs.iter().any(|run| run.no_tests)
                && read_log(passing).runs[0].tool == report.runs[0].tool
            {
                continue;
            }
            for both in join(log, passing).into_iter().chain(join(passing, log)) {
                assert_ne!(read_log(&both).status, QaStatus::Passed, "{both}");
            }
        }
    }
}

#[test]
fn empty_and_unfinished_logs_are_unknown() {
    assert_eq!(read_log("").status, QaStatus::Unknown);
    assert_eq!(read_log(" \n").reason.as_deref(), Some("the log is empty"));
    assert_eq!(read_log("\n\n").status, QaStatus::Unknown);
    assert_eq!(read_log("   Compiling demo v0.1.0 (/home/ada/demo)\n").status, QaStatus::Unknown);
    let no_results = "    Finished `test` profile [unoptimized + debuginfo] target(s) in 0.42s\n     Running unittests src/lib.rs (t/demo-1)\n";
    assert_eq!(read_log(no_results).status, QaStatus::Unknown);
}

#[test]
fn exit_code_decides_and_a_run_without_tests_is_not_a_pass() {
    let status = |code, log: &str| status_by_exit_code(code, &read_log(log).runs);
    assert_eq!(status(1, "All checks passed!\n"), (QaStatus::Failed, None));
    assert_eq!(status(0, "anything at all\n"), (QaStatus::Passed, None));
    let (passed, warning) = status(0, "1 failed in 0.1s\n");
    assert!(passed == QaStatus::Passed && warning.is_some_and(|text| text.contains("pytest")));
    let (unknown, reason) = status(0, UNCLEAR[2]);
    assert!(unknown == QaStatus::Unknown && reason.is_some_and(|text| text.contains("no tests")));
}
