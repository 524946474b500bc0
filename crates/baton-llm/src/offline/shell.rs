//! Shell commands: the command, its exit status, failures and output.

use baton_core::{is_any, starts_with_any};
use baton_observation::count_lines;

use super::call::{Call, LARGE_BYTES};
use super::command::{CommandLine, Purpose, Step};
use super::draft::Draft;
use super::edit;
use super::facts::Detail;
use super::git::{self, StepResult};
use super::github;
use super::lines::{failure_line, informative_lines};
use super::patch::{self, FilePatch};
use super::prose::PROSE_BYTES;
use super::read::{self, View};
use super::run::{Ending, Run};
use super::search::{self, Format, Search};
use super::structure;
use super::text::{counted, first_sentence, join_within, one_line};
use super::title::title;
use super::verdict::Verdict;

/// The output of a search up to this size is kept as it is.
const SHOWN_BYTES: usize = 700;

/// Maximum number of lines of an output whose last line is used as the result in a title.
const MAX_REPORT_LINES: usize = 6;
/// Maximum number of words of that line in a title.
const MAX_RESULT_WORDS: usize = 6;

/// Detail size of a diff that is not large.
const DIFF_BYTES: usize = 2_000;

/// Returns true if a tool is a shell.
pub(super) fn is_shell(call: &Call<'_>) -> bool {
    const SHELLS: &str = "bash|shell|local_shell|exec_command|run_shell_command|container.exec|powershell|\
        execute_command|run_terminal_cmd|bashoutput|taskoutput|unified_exec";
    is_any(&call.tool.to_ascii_lowercase(), SHELLS)
}

/// Describes the use of a shell.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    if !is_shell(call) {
        return None;
    }
    let run = Run::of(call);
    let line = CommandLine::read(&run.command);
    let steps = line.main_steps();
    if let Some(draft) = describe_inspection(call, &run, &line) {
        return Some(draft);
    }
    let only_inspects = !steps.is_empty() && steps.iter().all(|step| step.purpose() <= Purpose::Inspect);
    let checks = steps.iter().any(|step| step.purpose() >= Purpose::Check) || steps.is_empty();
    let verdict = if checks || run.failed() {
        Verdict::of(&run, line.shown_output(&run.output))
    } else {
        Verdict::default()
    };
    let ending = match run.ending(&line) {
        // The runner printed that nothing failed, or the output says that something did.
        Ending::Unknown if verdict.is_clean => Ending::Succeeded,
        Ending::Succeeded if !only_inspects && failure_line(&run.output).is_some() => Ending::Unknown,
        Ending::Succeeded if verdict.has_failed => Ending::Unknown,
        ending => ending,
    };
    Some(describe(call, &Report { run: &run, line: &line, verdict: &verdict, ending, only_inspects }))
}

/// A command and its result.
struct Report<'a> {
    run: &'a Run,
    line: &'a CommandLine,
    verdict: &'a Verdict,
    ending: Ending,
    only_inspects: bool,
}

/// Describes a search or a printed file in a shell like a use of the specialized tools.
fn describe_inspection(call: &Call<'_>, run: &Run, line: &CommandLine) -> Option<Draft> {
    let mut steps = line.steps.iter().skip_while(|step| step.program() == "cd");
    let step = steps.next()?;
    let filters: Vec<&Step> = steps.collect();
    if run.failed() || run.is_silent() || filters.iter().any(|step| !step.is_filter) {
        return None;
    }
    let arguments: Vec<&str> = step.arguments().collect();
    let lines = count_lines(&run.output);
    if matches!(step.program(), "grep" | "rg" | "ag") {
        let (pattern, places) = step.pattern_and_places()?;
        let mut format = Format::of_words(&step.words)?;
        match filters.as_slice() {
            [] => {}
            [head] if head.program() == "head" && !format.is_count => {
                format.is_limited |= lines >= head.line_limit()?;
            }
            _ => return None,
        }
        if run.output.len() <= SHOWN_BYTES {
            return None;
        }
        let in_words =
            if places.is_empty() { String::new() } else { format!(" in {}", join_within(&places, 60)) };
        let file = places.first().filter(|place| places.len() == 1 && search::is_file(place)).copied();
        let purpose = run.purpose.as_deref();
        let search = Search { pattern, places: &in_words, file, purpose, format };
        return Some(search::describe(call, &search, &run.output));
    }
    if !filters.is_empty() {
        return None;
    }
    let (start, is_part, path) = match (step.program(), arguments.as_slice()) {
        ("cat" | "bat" | "less", [path]) => (1, false, path),
        // The other argument may be the value of `-n`, but not a second file.
        ("head", [value @ .., path]) if value.iter().copied().eq(step.flag(&["-n"])) => {
            (1, lines >= step.line_limit()?, path)
        }
        ("sed", [range, path]) if step.purpose() == Purpose::Inspect => {
            let (start, end) = range.strip_suffix('p')?.split_once(',')?;
            let is_end = end == "$" || end.parse::<usize>().is_ok();
            (start.parse().ok().filter(|_| is_end)?, true, path)
        }
        _ => return None,
    };
    let folder = line.steps.iter().take_while(|step| step.program() == "cd").last();
    let path = match folder.and_then(|step| step.arguments().next()) {
        Some(folder) if !path.starts_with('/') => format!("{}/{path}", folder.trim_end_matches('/')),
        _ => (*path).to_owned(),
    };
    // If only a part of a file was printed, its length is unknown.
    let total = is_part.then_some(usize::MAX);
    let view = View { path: call.path(&path), start, lines: None, total, content: &run.output };
    search::is_file(&path).then(|| read::describe(call, &view))
}

fn describe(call: &Call<'_>, report: &Report<'_>) -> Draft {
    let Report { run, line, .. } = report;
    let steps = line.main_steps();
    let known = step_result(report, &steps);
    let diff = patch::read_unified(&run.output);
    let checks = steps.iter().any(|step| step.purpose() >= Purpose::Check);
    let done = match (&known, &run.purpose) {
        (Some(known), Some(purpose)) if known.done.starts_with("Run ") => purpose.clone(),
        (Some(known), _) => known.done.clone(),
        (None, Some(purpose)) if !checks && !run.command.is_empty() => purpose.clone(),
        _ => phrase(&steps, run),
    };
    let outcome = outcome(report, known.as_ref(), if checks { &[] } else { &diff });
    let purpose = run.purpose.as_deref().filter(|purpose| !done.starts_with(purpose));
    let summary = summary(report, known.as_ref(), purpose);
    let title = title(&done, outcome.as_deref());
    let completed = known.as_ref().filter(|known| known.is_done || !run.failed());
    if let Some(written) = completed.and_then(|known| known.written.as_deref()) {
        return Draft::written(call, title, summary, written, PROSE_BYTES);
    }
    let values = structure::read(&run.output);
    if !values.is_empty() && !run.failed() {
        return structure::draft(call, title, summary, &values);
    }
    let (mut draft, mut detail) = Draft::begin(call, title, summary);
    if !diff.is_empty() {
        if run.output.len() <= LARGE_BYTES {
            detail = Detail::new(DIFF_BYTES, &draft.title, &draft.summary);
        }
        edit::fill_diff(call, &diff, &mut detail);
    } else if steps.len() > 1 || known.as_ref().is_none_or(|known| !known.covers_output) {
        if let Some(known) = known.as_ref().filter(|_| !run.failed()) {
            // The lists that git prints, such as commits and branches, are best in their order.
            let printed: Vec<&str> =
                run.output.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
            let lines: Vec<&str> =
                known.lines.iter().map(String::as_str).filter(|_| steps.len() == 1).collect();
            detail.counted_lines(if lines.is_empty() { &printed } else { &lines });
        } else {
            fill(report, &mut detail);
        }
    }
    // After a change of the folder, the names of files are relative to another folder.
    let stays_in_folder = !line.steps.iter().any(|step| matches!(step.program(), "cd" | "pushd" | "mktemp"));
    if !run.failed() && !run.interrupted && stays_in_folder {
        let inside = |path: &String| !path.starts_with(['/', '~']) && !path.starts_with("..");
        draft.files = line
            .steps
            .iter()
            .flat_map(Step::changed_files)
            .map(|file| call.path(file))
            .filter(inside)
            .collect();
    }
    draft.with_detail(detail)
}

/// Returns the result of the git or gh step by which the whole command is described, if there is one.
fn step_result(report: &Report<'_>, steps: &[&Step]) -> Option<StepResult> {
    let Report { run, line, .. } = report;
    if line.steps.iter().any(git::is_init) {
        return None;
    }
    let result_of = |step: &&Step| {
        git::step_result(step, line, &run.output).or_else(|| github::step_result(step, line, &run.output))
    };
    // A commit is more informative than the staging before it and the push after it.
    if let Some(known) = steps.iter().find(|step| git::is_commit(step)).and_then(result_of) {
        return Some(known);
    }
    match steps {
        [only] => result_of(only),
        // Several steps are described by the agent's purpose; without one, by the first known step.
        _ if run.purpose.is_some() => None,
        steps => steps.iter().find_map(result_of),
    }
}

/// Returns the outcome of the command for the title.
fn outcome(report: &Report<'_>, known: Option<&StepResult>, diff: &[FilePatch<'_>]) -> Option<String> {
    let Report { verdict, ending, .. } = report;
    let known_outcome = || known.and_then(|known| known.outcome.clone());
    match ending {
        Ending::Interrupted => Some("interrupted".to_owned()),
        Ending::Background => Some("in background".to_owned()),
        Ending::NoMatch => Some(no_matches(report)),
        Ending::Failed(_) if known.is_some_and(|known| known.is_done) => known_outcome(),
        Ending::Failed(status) => {
            let status = status.map_or_else(|| "failed".to_owned(), |status| format!("exit {status}"));
            let error = verdict.errors.first().map(|error| format!("{status}, {}", one_line(error, 40)));
            let conflict = known_outcome()
                .filter(|outcome| outcome != "clean" && outcome != "result unknown")
                .or_else(|| git::conflicts(&report.run.output).map(|(outcome, _)| outcome));
            verdict.outcome.clone().or(conflict).or(error).or(Some(status))
        }
        Ending::Succeeded | Ending::Unknown => verdict
            .outcome
            .clone()
            .or_else(known_outcome)
            .or_else(|| (!diff.is_empty()).then(|| git::totals(diff)))
            .or_else(|| known.is_none_or(|known| !known.covers_output).then(|| result(report)).flatten()),
    }
}

/// Describes that a filter printed nothing. The result of a check is then unknown.
fn no_matches(report: &Report<'_>) -> String {
    let checks = report.line.main_steps().iter().any(|step| step.purpose() >= Purpose::Check);
    if checks { "result not shown" } else { "no matches" }.to_owned()
}

/// Returns the result of a command without a known format: its output if it is short, otherwise a part or the size of
/// its output.
fn result(report: &Report<'_>) -> Option<String> {
    let Report { run, line, ending, only_inspects, .. } = report;
    let failure = failure_line(&run.output).filter(|_| !only_inspects && *ending == Ending::Unknown);
    if let Some(failure) = failure {
        return Some(one_line(failure, 48));
    }
    let lines: Vec<&str> = run.output.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let first = lines.first().copied();
    let checks = line.main_steps().iter().any(|step| step.purpose() >= Purpose::Check);
    match (first, ending) {
        (Some(_), _) if line.main_steps().iter().any(|step| step.prints_only_faults()) => {
            Some("not formatted".to_owned())
        }
        (_, Ending::Succeeded) if checks => Some("ok".to_owned()),
        (None, _) if line.steps.iter().any(Step::is_line_filter) => Some(no_matches(report)),
        (None, _) => run.remark.clone().or_else(|| {
            let is_quiet_success = *ending == Ending::Succeeded && !only_inspects;
            Some(if is_quiet_success { "done" } else { "no output" }.to_owned())
        }),
        (Some(first), _) if lines.len() == 1 && first.chars().count() <= 60 => Some(first.to_owned()),
        (Some(_), _) => structure::outcome(&run.output).or_else(|| {
            let words = statement(&lines, *only_inspects).filter(|_| !checks);
            let count = counted(count_lines(run.output.trim()), "line");
            Some(match words {
                Some(words) if *only_inspects && lines.len() > 1 => format!("{words} ({count})"),
                words => words.unwrap_or(count),
            })
        }),
    }
}

/// Returns the start of the most informative line: of an inspection the first line, which names the subject; of another
/// command with a short output the last line, which usually states the result.
fn statement(lines: &[&str], only_inspects: bool) -> Option<String> {
    let line = if only_inspects {
        lines.iter().take(MAX_REPORT_LINES).find(|line| states_something(line))
    } else {
        lines.iter().rev().find(|line| states_something(line)).filter(|_| lines.len() <= MAX_REPORT_LINES)
    };
    let words: Vec<&str> = line?.split_whitespace().take(MAX_RESULT_WORDS + 1).collect();
    let is_truncated = words.len() > MAX_RESULT_WORDS;
    let start = one_line(&words.get(..MAX_RESULT_WORDS.min(words.len()))?.join(" "), 48);
    Some(if is_truncated && !start.ends_with('…') { format!("{start}…") } else { start })
}

/// Whether a line has words, and is neither a row of `ls -l` nor a heading of the output.
fn states_something(line: &str) -> bool {
    let mut words = line.split_whitespace();
    let first = words.clone().next().unwrap_or_default();
    let is_listing = first.len() >= 10 && first.bytes().all(|byte| b"-dlrwxstST@+.".contains(&byte));
    let is_heading = starts_with_any(line, "===|---") || first == "total";
    let is_word = |word: &str| {
        let word = word.trim_matches(|letter: char| letter.is_ascii_punctuation());
        word.len() > 1 && word.chars().all(char::is_alphabetic)
    };
    !is_listing && !is_heading && line.split_whitespace().count() > 1 && words.any(is_word)
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

fn summary(report: &Report<'_>, known: Option<&StepResult>, purpose: Option<&str>) -> String {
    let Report { run, verdict, ending, .. } = report;
    let sentence_of_step = known.and_then(|known| known.sentence.as_deref());
    // The command would only repeat the text of a commit or a pull request.
    if let Some(sentence) =
        sentence_of_step.filter(|_| !run.failed() && known.is_some_and(|known| known.written.is_some()))
    {
        return sentence.to_owned();
    }
    if let Some(known) = known.filter(|known| known.is_done && run.failed()) {
        let error = verdict.errors.first().map(|error| format!(": {}", first_sentence(error, 240)));
        let sentence = sentence_of_step.map_or_else(|| format!("{}.", known.done), str::to_owned);
        return format!(
            "{sentence} A later step of the command failed{}",
            error.unwrap_or_else(|| ".".into())
        );
    }
    let ended = match ending {
        Ending::Interrupted => "was interrupted".to_owned(),
        Ending::Background => "runs in the background".to_owned(),
        Ending::Failed(Some(status)) => format!("ended with exit code {status}"),
        Ending::Failed(None) => "failed".to_owned(),
        Ending::NoMatch => "found no matches".to_owned(),
        Ending::Succeeded if run.is_silent() => "succeeded without output".to_owned(),
        Ending::Succeeded => "succeeded".to_owned(),
        Ending::Unknown if run.is_silent() => "ran without output".to_owned(),
        Ending::Unknown => "ran".to_owned(),
    };
    let command = if run.command.is_empty() {
        "It".to_owned()
    } else {
        format!("`{}`", one_line(&run.command, if run.output.len() > LARGE_BYTES { 90 } else { 160 }))
    };
    let mut summary = match purpose {
        Some(purpose) => format!("{}: {command} {ended}.", purpose.trim_end_matches('.')),
        None => format!("{command} {ended}."),
    };
    for sentence in [sentence_of_step, verdict.sentence.as_deref()].into_iter().flatten() {
        summary.push(' ');
        summary.push_str(sentence);
    }
    let errors = verdict.errors.first().map(String::as_str);
    // Without an exit status, the output of a failed command begins with the message of the client: `Command timed out`.
    let client_message = run.output.lines().next().filter(|_| run.status.is_none());
    let is_failure = matches!(ending, Ending::Failed(_) | Ending::Interrupted);
    if let Some(first) = errors.or(client_message).filter(|_| verdict.failures.is_empty() && is_failure) {
        summary.push_str(&format!(" First error: {}", first_sentence(first, 240)));
    }
    summary
}

fn fill(report: &Report<'_>, detail: &mut Detail) {
    let Report { run, verdict, only_inspects, .. } = report;
    let output = run.output.trim_end();
    if verdict.is_clean && !verdict.has_warnings {
        return detail.list("Passed", &verdict.passed);
    }
    if output.lines().count() == 1 && detail.title_ends_with(output.trim()) {
        return;
    }
    if run.is_silent() || output.len() <= detail.left() && verdict.failures.is_empty() {
        return detail.lines(output.lines().map(str::trim_end));
    }
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| !line.trim().is_empty()).collect();
    if *only_inspects && output.len() <= LARGE_BYTES {
        return detail.counted_lines(&lines);
    }
    let failures = verdict.failures.iter().map(|failure| format!("Failed: {failure}"));
    detail.reserving(detail.left() / 4, |detail| detail.lines(failures));
    detail.reserving(detail.left() / 4, |detail| detail.lines(verdict.first_and_last_errors()));
    if *only_inspects {
        // The beginning says most about what was inspected.
        detail.reserving(detail.left() / 2, |detail| detail.lines(&lines));
    }
    detail.other_lines(informative_lines(output, detail.left()));
    if detail.is_empty() {
        detail.lines(&lines);
    }
}
