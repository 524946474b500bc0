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
fn reads_cargo_test_output() {
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
fn reads_cargo_nextest_output() {
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
fn reads_clippy_output() {
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
fn an_unexpected_success_of_unittest_is_not_passed() {
    let run = only("Ran 3 tests in 0.001s\n\nFAILED (skipped=1, unexpected successes=1)\n");
    assert_eq!((run.tool.as_str(), counts(&run)), ("unittest", [1, 1, 1, 0, 0]));
}

#[test]
fn pytest_parameters_may_contain_the_separator() {
    let run = only(
        "=== short test summary info ===\nFAILED test_a.py::test_b[c - d] - assert 1 == 2\n=== 1 failed in 0.01s ===\n",
    );
    assert_eq!(failure(&run, 0), ("test_a.py::test_b[c - d]", Some("test_a.py"), None, "assert 1 == 2"));
}

#[test]
fn reads_pytest_output() {
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
fn go_failures_keep_the_assertion_among_logs() {
    let verbose = only(
        "=== RUN   TestA\n    a_test.go:5: opening\n    a_test.go:9: got 1, want 2\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx\t0.1s\n",
    );
    assert_eq!(failure(&verbose, 0), ("TestA", Some("a_test.go"), Some(9), "got 1, want 2"));
    let cut = only(
        "    a_test.go:9: \n        \tError:      \tShould be true\n--- FAIL: TestA (0.00s)\nFAIL\nFAIL\tx\t0.1s\n",
    );
    assert_eq!(failure(&cut, 0), ("TestA", Some("a_test.go"), Some(9), "Should be true"));
    let panicked = only("--- FAIL: TestA (0.00s)\npanic: index out of range\nFAIL\tx\t0.1s\n");
    assert_eq!(failure(&panicked, 0), ("TestA", None, None, "panic: index out of range"));
}

#[test]
fn reads_jest_output() {
    let run = only(
        "PASS src/a.test.ts\nFAIL src/b.test.ts (5.2 s)\n  ● math › adds\n\n    expect(received).toBe(expected)\n\n\
         \x20     at Object.<anonymous> (src/b.test.ts:5:13)\n\nTest Suites: 1 failed, 1 passed, 2 total\n\
         Tests:       1 failed, 2 skipped, 1 todo, 10 passed, 14 total\nSnapshots:   0 total\nTime:        1.5 s\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("jest", [10, 1, 3, 0, 0]));
    assert_eq!(
        failure(&run, 0),
        ("math › adds", Some("src/b.test.ts"), Some(5), "expect(received).toBe(expected)")
    );
    let broken = only(
        "FAIL src/b.test.ts\n  ● Test suite failed to run\n\nTest Suites: 1 failed, 1 total\nTests:       0 total\n",
    );
    assert_eq!(counts(&broken), [0, 0, 0, 1, 0]);
}

#[test]
fn reads_vitest_output() {
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
fn reads_go_test_output() {
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
fn reads_eslint_output() {
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
fn reads_tsc_output() {
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
fn reads_ruff_output() {
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
fn reads_mypy_output() {
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

#[test]
fn prose_is_not_mistaken_for_results() {
    let prose = "The run passed in the morning. 3 tests failed in CI: see the log.\nFound the error in a source of truth.\n\
        ok, then. error: something else\n* warning: odd\nTests: none\nFAIL fast\n";
    let report = read_log(prose);
    assert!(report.runs.is_empty() && report.status == QaStatus::Unknown, "{report:?}");
}

#[test]
fn results_are_compared_by_their_failures() {
    let before = read_log("FAILED t.py::a - x\nFAILED t.py::b - y\n2 failed in 0.1s\n").runs;
    let after = read_log("FAILED t.py::b - other\nFAILED t.py::c - z\n2 failed in 0.1s\n").runs;
    let comparison = compare_runs(&before, &after);
    assert_eq!(comparison.new_failures, ["pytest: t.py::c in t.py"]);
    assert_eq!(comparison.fixed, ["pytest: t.py::a in t.py"]);
    // All failures of a tool that did not run before are new.
    let other_tool = compare_runs(&read_log("test result: ok. 3 passed; 0 failed; 0 ignored\n").runs, &after);
    assert_eq!(other_tool.new_failures, ["pytest: t.py::b in t.py", "pytest: t.py::c in t.py"]);
    assert_eq!(other_tool.fixed, Vec::<String>::new());
    assert_eq!(other_tool.missing_tools, ["cargo-test"]);
}

/// Reads a log of pytest in which the given tests failed.
fn failed_tests(numbers: std::ops::Range<u32>) -> Vec<QaRun> {
    let lines: String = numbers.clone().map(|number| format!("FAILED t.py::t{number:03} - x\n")).collect();
    read_log(&format!("{lines}{} failed in 0.1s\n", numbers.len())).runs
}

#[test]
fn failures_beyond_the_stored_ones_are_neither_new_nor_fixed() {
    let baseline = failed_tests(1..81);
    let later = failed_tests(11..81);
    assert_eq!((baseline[0].failures.len(), later[0].failures.len(), later[0].failed), (50, 50, 70));
    assert_eq!(compare_runs(&baseline, &later), QaComparison::default());
    // Failures that are missing in a complete list are fixed, although the baseline is incomplete.
    let few = compare_runs(&baseline, &failed_tests(50..52));
    assert_eq!((few.fixed.len(), few.new_failures.len()), (49, 0));
    // Failures that are missing in a complete baseline are new, although the list is incomplete.
    let many = compare_runs(&failed_tests(50..52), &baseline);
    assert_eq!((many.fixed.len(), many.new_failures.len()), (0, 49));
}

#[test]
fn runs_of_the_same_tool_are_added_up_to_the_maximum_of_failures() {
    let mut sum = failed_tests(1..31).remove(0);
    sum.merge(failed_tests(21..71).remove(0));
    assert_eq!((sum.failed, sum.failures.len()), (80, 50));
    assert_eq!(sum.failures[49].name, "t.py::t050");
}

#[test]
fn cached_clippy_is_not_reported_as_missing() {
    let clippy = read_log(
        "    Checking demo v0.1.0 (/d)\n    Finished `dev` profile [unoptimized] target(s) in 1.2s\n",
    )
    .runs;
    let cached = read_log("    Finished `dev` profile [unoptimized] target(s) in 0.1s\n").runs;
    assert_eq!((clippy[0].tool.as_str(), cached[0].tool.as_str()), ("clippy", "cargo-check"));
    assert_eq!(compare_runs(&clippy, &cached), QaComparison::default());
}

#[test]
fn verbose_go_output_belongs_to_the_test_that_printed_it() {
    let run = only(
        "=== RUN   TestAlpha\n    a_test.go:3: alpha is wrong\n--- FAIL: TestAlpha (0.00s)\n=== RUN   TestBeta\n\
         \x20   b_test.go:9: beta is wrong\n--- FAIL: TestBeta (0.00s)\n=== RUN   TestGamma\n=== PAUSE TestGamma\n\
         === RUN   TestDelta\n    d_test.go:5: delta is wrong\n=== NAME  TestGamma\n    g_test.go:7: gamma is wrong\n\
         --- FAIL: TestDelta (0.00s)\n--- FAIL: TestGamma (0.00s)\nFAIL\nFAIL\texample.com/demo\t0.004s\nFAIL\n",
    );
    let found: Vec<_> = (0..4).map(|at| failure(&run, at)).collect();
    let expected = [
        ("TestAlpha", Some("a_test.go"), Some(3), "alpha is wrong"),
        ("TestBeta", Some("b_test.go"), Some(9), "beta is wrong"),
        ("TestDelta", Some("d_test.go"), Some(5), "delta is wrong"),
        ("TestGamma", Some("g_test.go"), Some(7), "gamma is wrong"),
    ];
    assert_eq!(found, expected);
}

#[test]
fn nextest_does_not_count_the_output_of_its_test_binaries() {
    let run = only(
        "    Starting 2 tests across 1 binary\n        FAIL [   0.010s] (1/2) demo tests::subtracts\n  stdout ───\n\n\
         \x20   running 1 test\n    test tests::subtracts ... FAILED\n\n\
         \x20   test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 1 filtered out; finished in 0.00s\n\
         running 1 test\ntest tests::adds ... ok\ntest result: ok. 1 passed; 0 failed; 0 ignored\n\
         \x20       PASS [   0.004s] (2/2) demo tests::adds\n────────────\n\
         \x20    Summary [   0.020s] 2 tests run: 1 passed, 1 failed, 0 skipped\n\
         \x20   test result: FAILED. 0 passed; 1 failed; 0 ignored\nerror: test run failed\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("cargo-nextest", [1, 1, 0, 0, 0]));
}

#[test]
fn reads_go_test_json_output() {
    let run = only(
        "{\"Action\":\"start\",\"Package\":\"ex.com/m\"}\n{\"Action\":\"run\",\"Package\":\"ex.com/m\",\"Test\":\"TestA\"}\n\
         {\"Action\":\"output\",\"Package\":\"ex.com/m\",\"Test\":\"TestA\",\"Output\":\"=== RUN   TestA\\n\"}\n\
         {\"Action\":\"output\",\"Package\":\"ex.com/m\",\"Test\":\"TestA\",\"Output\":\"    a_test.go:3: wrong\\n\"}\n\
         {\"Action\":\"output\",\"Package\":\"ex.com/m\",\"Test\":\"TestA\",\"Output\":\"--- FAIL: TestA (0.00s)\\n\"}\n\
         {\"Action\":\"output\",\"Package\":\"ex.com/m\",\"Output\":\"FAIL\\tex.com/m\\t0.008s\\n\"}\n\
         {\"Action\":\"fail\",\"Package\":\"ex.com/m\",\"Elapsed\":0.009}\n",
    );
    assert_eq!((run.tool.as_str(), counts(&run)), ("go-test", [0, 1, 0, 0, 0]));
    assert_eq!(failure(&run, 0), ("TestA", Some("a_test.go"), Some(3), "wrong"));
}

proptest::proptest! {
    #[test]
    fn any_log_can_be_read(text in "(\\PC|\n|\u{1b}|\r){0,200}") {
        read_log(&text);
    }

    #[test]
    fn any_mix_of_known_marks_can_be_read(parts in proptest::collection::vec(proptest::sample::select(vec![
        "test result: ", "1 passed; ", "FAILED ", "thread '", "panicked at ", "src/a.rs:1:2", ":", "\n", "error[", "]: ",
        "--> ", "Tests:", "Tests  ", ")", "(", "● ", "--- FAIL: ", "ok\t", "0.1s", "✖ problems", "error TS", "Found ",
        "Summary [", "run:", "FAIL [", "]", "a.py:", "F401 ", ": error: ", "Checking ", "é", "running 1 test\n", "=== RUN   T\n",
        "TAP version 13\n", "1..1\n", "ok 1 - a\n", "ℹ pass 1\n", "  1 passing (1ms)\n", "PASS a.js\n", " RUN  v4\n", "> a@1 b\n> jest\n",
        "{\"Action\":\"start\"}\n", "{\"reason\":1}\n", "Ran 1 test in 0.1s\n", "OK\n", "= test session starts =\n", "1 passed in 0.1s\n",
    ]), 0..30)) {
        read_log(&parts.concat());
    }
}
