//! Shells: which command ran, how it ended, what failed and what it said first and last.

use baton_core::task::qa::{QaFailure, QaRun, read_log};
use serde_json::Value;

use super::call::Call;
use super::code;
use super::command::{CommandLine, Purpose, Step};
use super::compressor::Draft;
use super::facts::{Detail, error_lines, names, paths, telling_lines};
use super::git;
use super::patch;
use super::structure;
use super::text::{clean, counted, first_sentence, join_within, one_line};
use super::title::title;

/// How much of an output the parsers of test runners look at: its end, where the counts are.
const MAX_LOG_BYTES: usize = 400_000;
/// An output up to this size is kept as it is.
const SHOWN_BYTES: usize = 420;

/// Tells whether a tool is a shell.
pub(super) fn is_shell(call: &Call<'_>) -> bool {
    matches!(
        call.tool.to_ascii_lowercase().as_str(),
        "bash"
            | "shell"
            | "local_shell"
            | "exec_command"
            | "run_shell_command"
            | "container.exec"
            | "powershell"
            | "execute_command"
            | "run_terminal_cmd"
            | "bashoutput"
            | "taskoutput"
            | "killshell"
            | "unified_exec"
    )
}

/// Reads the use of a shell.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    if !is_shell(call) {
        return None;
    }
    let run = Run::of(call);
    let line = CommandLine::read(&run.command);
    let log = run
        .output
        .get(run.output.ceil_char_boundary(run.output.len().saturating_sub(MAX_LOG_BYTES))..)
        .unwrap_or_default();
    let steps = line.main_steps();
    let checks = steps.iter().any(|step| step.purpose() >= Purpose::Check) || steps.is_empty();
    let report = if checks || run.failed() { read_log(log).runs } else { Vec::new() };
    let verdict = Verdict::of(&run, &report, checks);
    Some(describe(call, &run, &line, &verdict))
}

/// A command and how it ended.
struct Run {
    command: String,
    purpose: Option<String>,
    output: String,
    status: Option<i64>,
    interrupted: bool,
    background: bool,
}

impl Run {
    fn of(call: &Call<'_>) -> Self {
        let command = match call.input.get("command").or_else(|| call.input.get("cmd")) {
            Some(Value::String(command)) => command.clone(),
            // `["bash", "-lc", "the command"]`, or a program and its arguments.
            Some(Value::Array(words)) => {
                let words: Vec<&str> = words.iter().filter_map(Value::as_str).collect();
                match words.as_slice() {
                    [shell, flag, script] if shell.ends_with("sh") && flag.starts_with('-') => {
                        (*script).to_owned()
                    }
                    _ => words.join(" "),
                }
            }
            _ => call
                .response
                .pointer("/task/description")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned(),
        };
        let (output, metadata) = unpack(call);
        let (output, status) = exit_status(&output, call.response, metadata.as_ref());
        Self {
            command: clean(&command).into_owned(),
            purpose: call
                .asked(&["description", "justification"])
                .map(|purpose| one_line(&clean(purpose), 160)),
            output,
            status,
            interrupted: call.response.get("interrupted").and_then(Value::as_bool) == Some(true),
            background: call.response.get("backgroundTaskId").is_some(),
        }
    }

    fn failed(&self) -> bool {
        self.status.is_some_and(|status| status != 0) || self.interrupted
    }
}

/// The output, out of the object that Codex wraps it in.
fn unpack(call: &Call<'_>) -> (String, Option<Value>) {
    let wrapped = match call.response {
        Value::String(text) if text.trim_start().starts_with("{\"output\"") => {
            serde_json::from_str::<Value>(text).ok()
        }
        Value::Object(members) if members.contains_key("output") => Some(call.response.clone()),
        Value::Object(members) => members.get("task").cloned(),
        _ => None,
    };
    match wrapped.as_ref().and_then(|wrapped| wrapped.get("output")).and_then(Value::as_str) {
        Some(output) => (clean(output).into_owned(), wrapped),
        None => (call.output(), None),
    }
}

/// The status a command ended with, and its output without the line that says so.
fn exit_status(output: &str, response: &Value, metadata: Option<&Value>) -> (String, Option<i64>) {
    let known = ["exit_code", "exitCode", "returnCode", "return_code", "code"].iter().find_map(|name| {
        let places = [
            response.get(name),
            metadata.and_then(|data| data.get(name)),
            metadata.and_then(|data| data.get("metadata")?.get(name)),
        ];
        places.into_iter().flatten().find_map(Value::as_i64)
    });
    let (first, rest) = output.split_once('\n').unwrap_or((output, ""));
    let said = ["Exit code ", "Exit code: ", "Process exited with code "]
        .iter()
        .find_map(|mark| first.strip_prefix(mark))
        .and_then(|code| code.trim().parse().ok());
    match said {
        Some(status) => (rest.trim_start_matches('\n').to_owned(), Some(status)),
        None => (output.to_owned(), known),
    }
}

/// What a run came to.
struct Verdict<'a> {
    runs: &'a [QaRun],
    outcome: Option<String>,
    sentence: Option<String>,
    errors: Vec<String>,
}

impl<'a> Verdict<'a> {
    fn of(run: &Run, runs: &'a [QaRun], checks: bool) -> Self {
        let errors: Vec<String> = if checks || run.failed() {
            error_lines(&run.output).into_iter().map(str::to_owned).collect()
        } else {
            Vec::new()
        };
        let failing: Vec<&QaRun> = runs.iter().filter(|run| !run.is_clean()).collect();
        let (packages, failed_packages) = go_packages(&run.output);
        let outcome = if run.interrupted {
            Some("interrupted".to_owned())
        } else if let Some(worst) = failing.first() {
            Some(count_failures(worst))
        } else if failed_packages > 0 {
            Some(format!("{failed_packages} of {packages} packages failed"))
        } else if let Some(issues) = lint_issues(&run.output).filter(|issues| *issues > 0 || !run.failed()) {
            Some(if issues == 0 { "no issues".to_owned() } else { counted(issues, "issue") })
        } else if run.failed() {
            Some(format!("exit {}", run.status.unwrap_or(1)))
        } else if run.background {
            Some("in background".to_owned())
        } else if let Some(passed) = runs.iter().map(|run| run.passed).max().filter(|passed| *passed > 0) {
            Some(format!("{passed} passed"))
        } else if packages > 0 {
            Some(format!("{} ok", counted(packages, "package")))
        } else {
            (checks && runs.iter().any(QaRun::is_clean)).then(|| "clean".to_owned())
        };
        let sentence = (!runs.is_empty()).then(|| runs.iter().map(tell).collect::<Vec<_>>().join(" "));
        Self { runs, outcome, sentence, errors }
    }
}

fn count_failures(run: &QaRun) -> String {
    let all = run.passed + run.failed;
    match (run.failed, run.errors) {
        (0, errors) => counted(usize::try_from(errors).unwrap_or(usize::MAX), "error"),
        (failed, _) if run.passed > 0 => format!("{failed} of {all} failed"),
        (failed, _) => format!("{failed} failed"),
    }
}

fn tell(run: &QaRun) -> String {
    let counts: Vec<String> = [
        (run.passed, "passed"),
        (run.failed, "failed"),
        (run.skipped, "skipped"),
        (run.errors, "errors"),
        (run.warnings, "warnings"),
    ]
    .into_iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, word)| format!("{count} {word}"))
    .collect();
    if counts.is_empty() {
        format!("{}: clean.", run.tool)
    } else {
        format!("{}: {}.", run.tool, counts.join(", "))
    }
}

/// How many packages `go test` named, and how many of them failed.
fn go_packages(output: &str) -> (usize, usize) {
    let of = |verdict: &str| {
        output
            .lines()
            .filter(|line| {
                line.split_once('\t').is_some_and(|(first, rest)| first.trim() == verdict && !rest.is_empty())
            })
            .count()
    };
    let failed = of("FAIL");
    (of("ok") + failed, failed)
}

/// `0 issues.`, `12 issues:`, as golangci-lint ends.
fn lint_issues(output: &str) -> Option<usize> {
    output.lines().rev().take(60).find_map(|line| {
        let (number, rest) = line.trim().trim_start_matches("[lint] ").split_once(' ')?;
        matches!(rest, "issues." | "issues:" | "issue." | "issue:").then(|| number.parse().ok()).flatten()
    })
}

fn describe(call: &Call<'_>, run: &Run, line: &CommandLine, verdict: &Verdict<'_>) -> Draft {
    let steps = line.main_steps();
    let story = steps.iter().find_map(|step| git::story(step, line, &run.output));
    let known = steps.first().is_some_and(|step| step.purpose() != Purpose::Other);
    let done = match (&story, &run.purpose) {
        (Some(story), _) => story.done.clone(),
        (None, Some(purpose)) if !known => purpose.clone(),
        _ => phrase(&steps, run),
    };
    let outcome = verdict.outcome.clone().or_else(|| story.as_ref().and_then(|story| story.outcome.clone()));
    let outcome = outcome.or_else(|| {
        (run.output.trim().is_empty() && steps.iter().any(|step| step.purpose() == Purpose::Check))
            .then(|| "ok".to_owned())
    });
    let story_sentence = story.and_then(|story| story.sentence);
    let summary = summary(run, verdict, story_sentence.as_deref());
    let (mut draft, mut detail) = Draft::begin(call, title(&done, outcome.as_deref()), summary);
    fill(call, run, verdict, &steps, &mut detail);
    if !run.failed() {
        let inside = |path: &String| !path.starts_with(['/', '~']) && !path.starts_with("..");
        draft.files =
            line.steps.iter().flat_map(Step::changes).map(|file| call.path(file)).filter(inside).collect();
    }
    draft.with_detail(detail)
}

fn phrase(steps: &[&Step], run: &Run) -> String {
    match steps {
        [] => run.purpose.clone().unwrap_or_else(|| format!("Run {}", one_line(&run.command, 60))),
        [only] => only.phrase(),
        [first, second] => {
            let (first, second) = (first.phrase(), second.phrase());
            let second = second.strip_prefix("Run ").map_or_else(|| lower_first(&second), str::to_owned);
            format!("{first} and {second}")
        }
        [first, rest @ ..] => format!("{} and {} more steps", first.phrase(), rest.len()),
    }
}

fn lower_first(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}", first.to_lowercase(), letters.as_str()))
}

fn summary(run: &Run, verdict: &Verdict<'_>, story: Option<&str>) -> String {
    let command = one_line(&run.command, 140);
    let ended = match run.status {
        _ if run.interrupted => "was interrupted".to_owned(),
        Some(0) | None if run.background => "was started in the background".to_owned(),
        Some(status) if status != 0 => format!("ended with exit code {status}"),
        _ if run.output.trim().is_empty() => "succeeded without output".to_owned(),
        _ => "succeeded".to_owned(),
    };
    let mut summary = match &run.purpose {
        Some(purpose) => format!("{}: `{command}` {ended}.", purpose.trim_end_matches('.')),
        None => format!("`{command}` {ended}."),
    };
    for sentence in [story, verdict.sentence.as_deref()].into_iter().flatten() {
        summary.push(' ');
        summary.push_str(sentence);
    }
    if let Some(first) =
        verdict.errors.first().filter(|_| verdict.runs.iter().all(QaRun::is_clean) && run.failed())
    {
        summary.push_str(&format!(" First error: {}", first_sentence(first, 160)));
    }
    summary
}

fn fill(call: &Call<'_>, run: &Run, verdict: &Verdict<'_>, steps: &[&Step], detail: &mut Detail) {
    let output = run.output.trim_end();
    let failures: Vec<String> = verdict.runs.iter().flat_map(|run| &run.failures).map(tell_failure).collect();
    if output.trim().is_empty() || output.len() <= SHOWN_BYTES.min(detail.left()) && failures.is_empty() {
        detail.lines(output.lines().map(str::trim_end));
        return;
    }
    let files = patch::read_unified(output);
    if !files.is_empty() {
        return fill_diff(call, &files, output, detail);
    }
    if !failures.is_empty() {
        let whole = detail.reserve(detail.left() / 3);
        detail.lines(failures.iter().map(|failure| format!("Failed: {failure}")));
        detail.restore(whole);
    }
    if run.failed() && !verdict.errors.is_empty() {
        let whole = detail.reserve(detail.left() / 3);
        let ends = first_and_last(&verdict.errors);
        detail.lines(ends);
        detail.restore(whole);
    }
    if structure::fill(output, detail) {
        return;
    }
    let passed =
        output.lines().all(is_go_verdict) && steps.iter().any(|step| step.purpose() == Purpose::Test);
    if passed && !run.failed() {
        return;
    }
    let whole = detail.reserve(detail.left() * 2 / 5);
    detail.lines(telling_lines(output, detail.left()));
    detail.restore(whole);
    let whole = detail.reserve(detail.left() / 2);
    detail.list("Files", paths(output, call.cwd));
    detail.restore(whole);
    detail.names("Names", &names(output));
}

/// A package that passed or has no tests says nothing beyond the count.
fn is_go_verdict(line: &str) -> bool {
    line.starts_with("ok  \t")
        || line.starts_with("?   \t")
        || line.trim().is_empty()
        || line.starts_with('[')
}

fn tell_failure(failure: &QaFailure) -> String {
    let place = match (&failure.file, failure.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        (Some(file), None) if !failure.name.contains(file.as_str()) => format!(" ({file})"),
        _ => String::new(),
    };
    let message =
        failure.message.as_deref().map(|message| format!(": {}", one_line(message, 160))).unwrap_or_default();
    format!("{}{place}{message}", failure.name)
}

/// The first lines and the last, the first ones first: they are causes, the last are what it came to.
fn first_and_last(lines: &[String]) -> Vec<String> {
    const FIRST: usize = 4;
    const LAST: usize = 2;
    if lines.len() <= FIRST + LAST {
        return lines.to_vec();
    }
    let (first, rest) = lines.split_at(FIRST);
    first.iter().chain(rest.get(rest.len().saturating_sub(LAST)..).unwrap_or_default()).cloned().collect()
}

/// The files of a diff, with the functions that differ, then the names in it.
fn fill_diff(call: &Call<'_>, files: &[patch::FilePatch<'_>], output: &str, detail: &mut Detail) {
    let whole = detail.reserve(detail.left() * 2 / 5);
    for file in files {
        let mut functions: Vec<String> = code::compare(file.path, &file.before, &file.after)
            .into_iter()
            .map(|change| change.name)
            .collect();
        for place in &file.places {
            let name = names(place).first().copied().unwrap_or_default();
            if !name.is_empty() && !functions.iter().any(|known| known.ends_with(name)) {
                functions.push(name.to_owned());
            }
        }
        let functions =
            if functions.is_empty() { String::new() } else { format!(": {}", join_within(&functions, 150)) };
        if !detail.line(&format!(
            "{} +{} -{}{functions}",
            call.path(file.path),
            file.added.len(),
            file.removed.len()
        )) {
            break;
        }
    }
    detail.restore(whole);
    let changed: String =
        output.lines().filter(|line| line.starts_with(['+', '-'])).collect::<Vec<_>>().join("\n");
    detail.names("Names", &names(&changed));
}
