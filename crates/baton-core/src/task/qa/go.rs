//! `go test`, with and without `-v`.

use super::report::{QaFailure, QaRun, place};

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("go-test");
    let mut seen = false;
    let mut last: Option<String> = None;
    for line in text.lines() {
        let bare = line.trim_start();
        if let Some(name) = bare.strip_prefix("--- PASS: ") {
            run.passed += u64::from(!name.is_empty());
        } else if let Some(name) = bare.strip_prefix("--- SKIP: ") {
            run.skipped += u64::from(!name.is_empty());
        } else if let Some(name) = bare.strip_prefix("--- FAIL: ") {
            let name = name.split_whitespace().next().unwrap_or_default();
            run.failed += 1;
            run.fail(QaFailure::test(name));
            last = Some(name.to_owned());
        } else if is_package(line) {
            seen = true;
            if line.starts_with("FAIL") && line.contains("[build failed]") {
                run.errors += 1;
                let package = line.split_whitespace().nth(1).unwrap_or_default();
                run.fail(QaFailure { message: QaFailure::say("build failed"), ..QaFailure::test(package) });
            }
            last = None;
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
    seen.then_some(run)
}

/// A line of tab-separated columns: verdict, package, time or `[no test files]`.
fn is_package(line: &str) -> bool {
    let Some((verdict, rest)) = line.split_once('\t') else { return false };
    let finished =
        rest.contains("[no test files]") || rest.contains("[build failed]") || ends_in_seconds(rest);
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
