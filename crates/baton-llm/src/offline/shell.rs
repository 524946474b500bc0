//! Shell commands: the command, its exit status, failures and output.

use super::call::Call;
use super::code;
use super::command::{CommandLine, Purpose, Step};
use super::compressor::Draft;
use super::facts::{Detail, names, paths};
use super::git::{self, GitResult};
use super::lines::informative_lines;
use super::patch::{self, FilePatch};
use super::read::{self, View};
use super::run::Run;
use super::search::{self, Search};
use super::structure;
use super::text::{first_sentence, join_within, one_line};
use super::title::title;
use super::verdict::Verdict;

/// An output up to this size is kept unmodified.
const SHOWN_BYTES: usize = 420;

/// For outputs above this size, the command is truncated more.
const LARGE_BYTES: usize = 5_000;

/// Returns true if a tool is a shell.
pub(super) fn is_shell(call: &Call<'_>) -> bool {
    const SHELLS: &[&str] = &[
        "bash",
        "shell",
        "local_shell",
        "exec_command",
        "run_shell_command",
        "container.exec",
        "powershell",
        "execute_command",
        "run_terminal_cmd",
        "bashoutput",
        "taskoutput",
        "unified_exec",
    ];
    SHELLS.contains(&call.tool.to_ascii_lowercase().as_str())
}

/// Describes the use of a shell.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    if !is_shell(call) {
        return None;
    }
    let run = Run::of(call);
    let line = CommandLine::read(&run.command);
    let steps = line.main_steps();
    if let Some(draft) = describe_inspection(call, &run, &steps) {
        return Some(draft);
    }
    let checks = steps.iter().any(|step| step.purpose() >= Purpose::Check) || steps.is_empty();
    let verdict = if checks || run.failed() { Verdict::of(&run) } else { Verdict::default() };
    Some(describe(call, &run, &line, &verdict))
}

/// Describes a search or a shown file in a shell like that of the specialized tools.
fn describe_inspection(call: &Call<'_>, run: &Run, steps: &[&Step]) -> Option<Draft> {
    let [step] = steps else { return None };
    if run.failed() || run.is_silent() {
        return None;
    }
    let arguments: Vec<&str> = step.arguments().collect();
    match (step.program(), arguments.as_slice()) {
        ("grep" | "rg" | "ag", [pattern, places @ ..]) if run.output.len() > SHOWN_BYTES => {
            let in_words =
                if places.is_empty() { String::new() } else { format!(" in {}", join_within(places, 60)) };
            let file = places.first().filter(|place| places.len() == 1 && search::is_file(place)).copied();
            let purpose = run.purpose.as_deref();
            Some(search::describe(call, &Search { pattern, places: &in_words, file, purpose }, &run.output))
        }
        ("cat" | "bat" | "nl" | "head" | "less", [path]) | ("head", [_, path]) if search::is_file(path) => {
            let view = View { path: call.path(path), start: 1, total: None, content: &run.output };
            Some(read::describe(call, &view))
        }
        ("sed", [range, path]) if step.purpose() == Purpose::Inspect && search::is_file(path) => {
            let start = range.split(',').next().and_then(|start| start.parse().ok())?;
            let view = View { path: call.path(path), start, total: Some(usize::MAX), content: &run.output };
            Some(read::describe(call, &view))
        }
        _ => None,
    }
}

fn describe(call: &Call<'_>, run: &Run, line: &CommandLine, verdict: &Verdict) -> Draft {
    let steps = line.main_steps();
    // A commit is more relevant than the staging before it and the log after it.
    let commits = steps.iter().filter(|step| git::is_commit(step));
    let git_result = commits.chain(&steps).find_map(|step| git::git_result(step, line, &run.output));
    let diff = patch::read_unified(&run.output);
    let known = steps.first().is_some_and(|step| step.purpose() != Purpose::Other);
    let done = match (&git_result, &run.purpose) {
        (Some(git_result), _) => git_result.done.clone(),
        (None, Some(purpose)) if !known => purpose.clone(),
        _ => phrase(&steps, run),
    };
    let outcome = outcome(run, verdict, git_result.as_ref(), &steps)
        .or_else(|| (!diff.is_empty()).then(|| git::totals(&diff)));
    let purpose = run.purpose.as_deref().filter(|purpose| !done.starts_with(purpose));
    let summary = summary(run, verdict, git_result.as_ref(), purpose);
    let (mut draft, mut detail) = Draft::begin(call, title(&done, outcome.as_deref()), summary);
    if !diff.is_empty() {
        fill_diff(call, &diff, &mut detail);
    } else if steps.len() > 1 || git_result.as_ref().is_none_or(|git_result| !git_result.covers_output) {
        if git_result.is_some() && !run.failed() {
            // The lists that git prints, such as commits and branches, are best in their order.
            detail.lines(run.output.lines().map(str::trim_end));
        } else {
            fill(call, run, verdict, &mut detail);
        }
    }
    // After `cd`, relative paths refer to another folder.
    let stays = !line.steps.iter().any(|step| matches!(step.program(), "cd" | "pushd" | "mktemp"));
    if !run.failed() && stays {
        let inside = |path: &String| !path.starts_with(['/', '~']) && !path.starts_with("..");
        draft.files =
            line.steps.iter().flat_map(Step::changes).map(|file| call.path(file)).filter(inside).collect();
    }
    draft.with_detail(detail)
}

/// Returns the outcome for the title.
fn outcome(run: &Run, verdict: &Verdict, git_result: Option<&GitResult>, steps: &[&Step]) -> Option<String> {
    if run.interrupted {
        return Some("interrupted".to_owned());
    }
    if run.background {
        return Some("in background".to_owned());
    }
    let known_outcome =
        verdict.outcome.clone().or_else(|| git_result.and_then(|git_result| git_result.outcome.clone()));
    known_outcome.or_else(|| match run.status {
        Some(status) if status != 0 => Some(format!("exit {status}")),
        _ if run.failed() => Some("failed".to_owned()),
        _ => steps.iter().any(|step| step.purpose() >= Purpose::Check).then(|| "ok".to_owned()),
    })
}

fn phrase(steps: &[&Step], run: &Run) -> String {
    match steps {
        [] => match &run.purpose {
            Some(purpose) if run.command.is_empty() => format!("Check on task '{purpose}'"),
            Some(purpose) => purpose.clone(),
            None => format!("Run {}", one_line(&run.command, 60)),
        },
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

fn summary(run: &Run, verdict: &Verdict, git_result: Option<&GitResult>, purpose: Option<&str>) -> String {
    let ended = match run.status {
        _ if run.interrupted => "was interrupted".to_owned(),
        Some(status) if status != 0 => format!("ended with exit code {status}"),
        _ if run.failed() => "failed".to_owned(),
        _ if run.background => "was started in the background".to_owned(),
        _ if run.is_silent() => "succeeded without output".to_owned(),
        // Behind a pipe the exit status is that of the last program.
        _ if !verdict.failures.is_empty() => "ran".to_owned(),
        _ => "succeeded".to_owned(),
    };
    let command = if run.command.is_empty() {
        "It".to_owned()
    } else {
        format!("`{}`", one_line(&run.command, if run.output.len() > LARGE_BYTES { 90 } else { 140 }))
    };
    let mut summary = match purpose {
        Some(purpose) => format!("{}: {command} {ended}.", purpose.trim_end_matches('.')),
        None => format!("{command} {ended}."),
    };
    let git_result = git_result.and_then(|git_result| git_result.sentence.as_deref());
    for sentence in [git_result, verdict.sentence.as_deref()].into_iter().flatten() {
        summary.push(' ');
        summary.push_str(sentence);
    }
    let errors = verdict.errors.first().map(String::as_str);
    // Without an exit status, the first line is the agent's explanation of the failure.
    let said = run.output.lines().next().filter(|_| run.status.is_none());
    if let Some(first) = errors.or(said).filter(|_| verdict.failures.is_empty() && run.failed()) {
        summary.push_str(&format!(" First error: {}", first_sentence(first, 160)));
    }
    summary
}

fn fill(call: &Call<'_>, run: &Run, verdict: &Verdict, detail: &mut Detail) {
    let output = run.output.trim_end();
    if verdict.is_clean {
        return detail.list("Passed", &verdict.passed);
    }
    if run.is_silent() || output.len() <= SHOWN_BYTES.min(detail.left()) && verdict.failures.is_empty() {
        return detail.lines(output.lines().map(str::trim_end));
    }
    if !verdict.failures.is_empty() {
        let whole = detail.reserve(detail.left() / 3);
        detail.lines(verdict.failures.iter().map(|failure| format!("Failed: {failure}")));
        detail.restore(whole);
    }
    if !verdict.errors.is_empty() {
        let whole = detail.reserve(detail.left() / 3);
        detail.lines(verdict.first_and_last_errors());
        detail.restore(whole);
    }
    if structure::fill(output, detail) {
        return;
    }
    let whole = detail.reserve(detail.left() / 2);
    detail.lines(informative_lines(output, detail.left()));
    detail.restore(whole);
    let whole = detail.reserve(detail.left() / 2);
    detail.list("Files", paths(output, call.cwd));
    detail.restore(whole);
    detail.names("Names", &names(output));
    if detail.is_empty() {
        detail.lines(output.lines().map(str::trim_end).filter(|line| !line.is_empty()));
    }
}

/// Adds the files of a diff with their changed functions, then the names in the changed lines.
fn fill_diff(call: &Call<'_>, files: &[FilePatch<'_>], detail: &mut Detail) {
    let whole = detail.reserve(detail.left() * 2 / 5);
    for file in files {
        let mut functions: Vec<String> = code::compare(file.path, &file.before, &file.after)
            .into_iter()
            .map(|change| change.name)
            .collect();
        for name in file.places.iter().filter_map(|place| git::place_name(place)) {
            if !functions.iter().any(|known| known.ends_with(name)) {
                functions.push(name.to_owned());
            }
        }
        let functions =
            if functions.is_empty() { String::new() } else { format!(": {}", join_within(&functions, 150)) };
        detail.line(&format!(
            "{} +{} -{}{functions}",
            call.path(file.path),
            file.added.len(),
            file.removed.len()
        ));
    }
    detail.restore(whole);
    let changed: Vec<&str> =
        files.iter().flat_map(|file| file.added.iter().chain(&file.removed)).copied().collect();
    detail.names("Names", &names(&changed.join("\n")));
}
