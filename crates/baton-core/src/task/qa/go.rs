//! `go test`, with and without `-v`.

use super::report::{QaFailure, QaRun, place};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("go-test");
    let mut seen = false;
    let mut last: Option<String> = None;
    // Of the package whose lines are being read: how many tests failed, whether it began, what it panicked with.
    let (mut failed_here, mut begun, mut panicked) = (0, false, None);
    for line in text.lines() {
        let bare = line.trim_start();
        if let Some(name) = bare.strip_prefix("--- PASS: ") {
            run.passed += u64::from(!name.is_empty());
        } else if let Some(name) = bare.strip_prefix("--- SKIP: ") {
            run.skipped += u64::from(!name.is_empty());
        } else if let Some(name) = bare.strip_prefix("--- FAIL: ") {
            let name = name.split_whitespace().next().unwrap_or_default();
            run.failed += 1;
            failed_here += 1;
            run.fail(QaFailure::test(name));
            last = Some(name.to_owned());
        } else if line.starts_with("=== RUN ") {
            begun = true;
        } else if line.starts_with("panic: ") || line.starts_with("fatal error: ") {
            panicked.get_or_insert(line);
        } else if is_package(line) {
            seen = true;
            // A package may fail without a test: it does not build, panics, times out, or its main function exits.
            if line.starts_with("FAIL") && failed_here == 0 {
                run.errors += 1;
                let package = line.split_whitespace().nth(1).unwrap_or_default();
                let why = ["[build failed]", "[setup failed]"].into_iter().find(|why| line.contains(why));
                let why = why.map(|why| why.trim_matches(['[', ']'])).or(panicked).unwrap_or("failed");
                run.fail(QaFailure { message: QaFailure::say(why), ..QaFailure::test(package) });
            }
            (failed_here, begun, panicked, last) = (0, false, None, None);
        } else if let Some((file, at, message)) = spot(bare)
            && let Some(name) = &last
            && let Some(failure) =
                run.failures.iter_mut().find(|failure| failure.name == *name && failure.file.is_none())
        {
            failure.file = Some(file.to_owned());
            failure.line = Some(at);
            failure.message = QaFailure::say(message);
        }
    }
    let unfinished = begun || seen && panicked.is_some() || seen && text.lines().any(|line| line == "FAIL");
    if unfinished && run.is_clean() {
        run.errors = 1;
        let why = panicked.unwrap_or("the tests broke off");
        run.fail(QaFailure { message: QaFailure::say(why), ..QaFailure::test("run") });
    }
    (seen || begun || run.failed > 0).then_some(run)
}

/// A line of tab-separated columns: verdict, package, time or `[no test files]`.
fn is_package(line: &str) -> bool {
    let Some((verdict, rest)) = line.split_once('\t') else { return false };
    let marked =
        ["[no test files]", "[build failed]", "[setup failed]"].iter().any(|mark| rest.contains(mark));
    let finished = marked || ends_in_seconds(rest);
    matches!(verdict.trim_end(), "ok" | "FAIL" | "?") && finished
}

fn ends_in_seconds(rest: &str) -> bool {
    rest.split_whitespace().any(|word| {
        word == "(cached)" || word.strip_suffix('s').is_some_and(|number| number.parse::<f64>().is_ok())
    })
}

/// `    sum_test.go:12: got 3, want 4`
fn spot(line: &str) -> Option<(&str, u64, &str)> {
    let (at, message) = line.split_once(": ")?;
    let (file, number) = place(at)?;
    file.ends_with(".go").then_some((file, number, message))
}
