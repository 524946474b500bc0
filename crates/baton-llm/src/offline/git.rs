//! `git` commands and their output: commits, branches, status and diffs.

use baton_core::{contains_any, starts_with_any, strip_any};
use baton_observation::is_truncated;

use super::command::{CommandLine, Shown, Step};
use super::facts::is_path;
use super::patch::{self, FilePatch};
use super::text::{counted, first_line, join_within, one_line, unique};

/// What a step of git or `gh` did, and its result.
#[derive(Default)]
pub(super) struct StepResult {
    /// What the step did, for the title: `Commit 'Fix login'`.
    pub(super) done: String,
    /// Outcome for the title: `2 merge conflicts`.
    pub(super) outcome: Option<String>,
    /// Sentence for the summary: `Merge conflicts: a.rs, b.rs.`
    pub(super) sentence: Option<String>,
    /// A text that the agent wrote: the body of a commit message.
    pub(super) written: Option<String>,
    /// Whether the other members contain everything that the output says.
    pub(super) covers_output: bool,
    /// Whether the output proves that the step succeeded, even if a later step failed.
    pub(super) is_done: bool,
    /// Lines to show instead of the output.
    pub(super) lines: Vec<String>,
}

pub(super) fn is_commit(step: &Step) -> bool {
    step.git_verb() == Some("commit")
}

/// Returns true if a step creates a repository. A command with such a step usually tries something out elsewhere, so its
/// steps are not described as work on the project.
pub(super) fn is_init(step: &Step) -> bool {
    matches!(step.git_verb(), Some("init" | "clone"))
}

/// Returns the result of a git step.
pub(super) fn step_result(step: &Step, line: &CommandLine, output: &str) -> Option<StepResult> {
    let verb = step.git_verb()?;
    let rest: Vec<&str> = step.arguments().skip(1).collect();
    let last = rest.last().copied();
    let all = (!rest.is_empty()).then(|| join_within(&rest, 50));
    let result =
        |done: String, outcome: Option<String>| Some(StepResult { done, outcome, ..StepResult::default() });
    match verb {
        "commit" => Some(commit(step, line, output)),
        "status" => status_result(output),
        "diff" | "show" => {
            let files = patch::read_unified(output);
            // `git show main:src/a.rs` prints a file.
            let (what, target) = match (verb, rest.first().copied()) {
                ("diff", _) => ("Review git diff", all),
                (_, Some(first)) if first.contains(':') => ("Show file", Some(one_line(first, 50))),
                (_, first) => ("Show commit", first.map(|first| one_line(first, 50))),
            };
            let target = target.map(|target| format!(" {target}")).unwrap_or_default();
            let subject = (verb == "show").then(|| subject(output)).flatten();
            Some(StepResult {
                done: format!("{what}{target}"),
                outcome: match files.as_slice() {
                    [] if output.trim().is_empty() => Some("no differences".to_owned()),
                    [] if step.has("--name-only|--name-status") => {
                        Some(counted(output.lines().filter(|line| !line.is_empty()).count(), "file"))
                            .filter(|_| line.shown_output(output) == Shown::All && !is_truncated(output))
                    }
                    [] => stat_line(output),
                    files => Some(totals(files)),
                },
                sentence: subject.map(|subject| format!("Commit says: \"{}\".", one_line(subject, 160))),
                ..StepResult::default()
            })
        }
        "log" => {
            let commits = output.lines().filter(|line| is_log_line(line)).count();
            Some(StepResult {
                done: format!("List git log {}", all.unwrap_or_default()),
                outcome: (commits > 0).then(|| match line.shown_output(output) {
                    Shown::All if !is_truncated(output) => counted(commits, "commit"),
                    Shown::All | Shown::End | Shown::Selected => {
                        format!("{} shown", counted(commits, "commit"))
                    }
                }),
                lines: log_lines(output),
                ..StepResult::default()
            })
        }
        "push" => {
            let done = match rest.as_slice() {
                [] => "Push current branch".to_owned(),
                [remote, branch] => format!("Push to {} {}", one_line(remote, 40), one_line(branch, 60)),
                _ => format!("Push {}", join_within(&rest, 50)),
            };
            result(done, pushed(output))
        }
        "add" if rest.is_empty() || rest == ["."] => result("Stage all changes".to_owned(), None),
        "add" => result(format!("Stage {}", join_within(&rest, 70)), None),
        "checkout" if let Some(side) = step.words.iter().find_map(|word| taken_side(word)) => {
            Some(StepResult::silent(format!("Take {side} version of {}", join_within(&rest, 60))))
        }
        "checkout" | "switch" if step.has("--") || restores(output, last) => {
            Some(StepResult::silent(format!("Discard changes in {}", join_within(&rest, 60))))
        }
        "checkout" | "switch" => result(format!("Switch git to {}", last.unwrap_or("another branch")), None),
        "merge" | "rebase" | "cherry-pick" | "revert" | "pull" | "stash" | "am" | "restore" | "reset"
        | "branch" | "fetch" | "tag" | "clone" => {
            result(format!("Run git {verb} {}", join_within(&rest, 60)), None)
                .map(|result| result.with_conflicts(output))
        }
        _ => None,
    }
}

impl StepResult {
    /// Creates the result of a step whose output is not shown.
    fn silent(done: String) -> Self {
        Self { done, covers_output: true, ..Self::default() }
    }

    /// Names the files that git could not merge.
    fn with_conflicts(mut self, output: &str) -> Self {
        if let Some((outcome, sentence)) = conflicts(output) {
            self.outcome = Some(outcome);
            self.sentence = Some(sentence);
        }
        self
    }
}

/// Returns the outcome for a title and a sentence that names the files, if git reported merge conflicts.
pub(super) fn conflicts(output: &str) -> Option<(String, String)> {
    let name = |line: &'_ str| line.rsplit(" in ").next().unwrap_or(line).trim().to_owned();
    let files: Vec<String> =
        output.lines().filter(|line| line.starts_with("CONFLICT (")).map(name).take(50).collect();
    let outcome = match files.as_slice() {
        [] => return None,
        [one] => format!("merge conflict in {}", one_line(one, 40)),
        files => format!("{} merge conflicts", files.len()),
    };
    Some((outcome, format!("Merge conflicts: {}.", join_within(&files, 400))))
}

fn commit(step: &Step, line: &CommandLine, output: &str) -> StepResult {
    let reported = commit_lines(output).next();
    let message = commit_message(step, line);
    let subject = reported.as_ref().map(|commit| commit.subject).or(message.as_deref().map(first_line));
    let done = match (step.has("--amend"), subject.filter(|subject| !subject.is_empty())) {
        (true, Some(subject)) => format!("Amend '{}'", one_line(subject, 80)),
        (true, None) => "Amend last commit".to_owned(),
        (false, Some(subject)) => format!("Commit '{}'", one_line(subject, 80)),
        (false, None) => "Commit staged changes".to_owned(),
    };
    let pushes = line.steps.iter().any(|step| step.git_verb() == Some("push"));
    let pushed = pushed(output).filter(|_| pushes);
    // A push after `&&` starts only if the commit was made.
    let is_chained =
        line.steps.iter().skip_while(|other| *other != step).skip(1).all(|step| !step.is_independent);
    let is_done = reported.is_some() || is_chained && pushed.is_some();
    let is_quiet = step.words.iter().any(|word| word == "--quiet" || short_flags(word).contains('q'));
    let outcome = if contains_any(output, "nothing to commit|no changes added to commit") {
        Some("nothing to commit".to_owned())
    } else {
        let is_unknown = !is_done && (!is_quiet || line.hides_status());
        is_unknown.then(|| "result unknown".to_owned())
    };
    let stat = stat_line(output).map(|stat| format!(" ({stat})")).unwrap_or_default();
    let mut sentence: Vec<String> = commit_lines(output)
        .take(5)
        .map(|CommitLine { branch, hash, subject }| {
            format!("Commit {hash} on {branch}: \"{}\"{stat}.", one_line(subject, 300))
        })
        .collect();
    if reported.is_none() && is_done {
        sentence.push(format!("Made the commit \"{}\".", one_line(subject.unwrap_or_default(), 300)));
    }
    sentence.extend(pushed.map(|pushed| format!("Push: {pushed}.")));
    let sentence = Some(sentence.join(" ")).filter(|sentence| !sentence.is_empty());
    let written = message.as_deref().map(message_body).filter(|body| !body.is_empty());
    let covers_output = reported.is_some() || output.trim().is_empty();
    StepResult { done, outcome, sentence, written, covers_output, is_done, lines: Vec::new() }
}

/// Returns the message of a commit: a here-document, or the values of `-m`, a paragraph each.
fn commit_message(step: &Step, line: &CommandLine) -> Option<String> {
    let value = |(index, word): (usize, &String)| match word.strip_prefix("--message") {
        Some("") => step.words.get(index + 1).cloned(),
        Some(value) => value.strip_prefix('=').map(str::to_owned),
        None if short_flags(word).ends_with('m') => step.words.get(index + 1).cloned(),
        None => word.strip_prefix("-m").map(str::to_owned),
    };
    let given: Vec<String> = step.words.iter().enumerate().filter_map(value).collect();
    let is_document = given.first().is_none_or(|given| given.starts_with("$("));
    let document = line.documents.first().filter(|_| is_document);
    let message = document.cloned().unwrap_or_else(|| given.join("\n\n"));
    (!message.trim().is_empty() && !message.starts_with("$(")).then_some(message)
}

/// Returns the letters of `-qam`; empty for other words.
fn short_flags(word: &str) -> &str {
    let letters = word.strip_prefix('-').unwrap_or_default();
    if letters.bytes().all(|byte| byte.is_ascii_lowercase()) { letters } else { "" }
}

/// Returns the hash and subject of each commit that `git log` prints, with the other lines of the messages if all of
/// them are short. Empty if the lines have no hashes.
fn log_lines(output: &str) -> Vec<String> {
    let mut commits: Vec<(String, Vec<String>)> = Vec::new();
    for line in output.lines() {
        let bare = line.trim_start_matches(['*', '|', ' ', '/', '\\']);
        if let Some(hash) = bare.strip_prefix("commit ").filter(|_| is_log_line(line)) {
            commits.push((hash.chars().take(9).collect(), Vec::new()));
        } else if is_log_line(line) {
            commits.push((bare.trim_end().to_owned(), Vec::new()));
        } else if let Some((head, body)) = commits.last_mut() {
            let text = bare.trim_end();
            let is_header = starts_with_any(line, "Author: |Date: |Merge: ");
            if is_header || is_trailer(text) || !text.chars().any(char::is_alphanumeric) {
                continue;
            }
            if head.contains(' ') {
                body.push(text.to_owned());
            } else {
                *head = format!("{head} {text}");
            }
        }
    }
    let size: usize = commits.iter().flat_map(|(_, body)| body).map(String::len).sum();
    let has_bodies = size < 600;
    commits
        .into_iter()
        .flat_map(|(head, body)| std::iter::once(head).chain(body.into_iter().filter(move |_| has_bodies)))
        .collect()
}

/// Returns true for a line that a tool added to a commit message: `Signed-off-by: …`, `Generated with [Claude Code](…)`.
/// Other `Token: value` lines are text of the author. Messages of squashed commits have such lines in the middle.
fn is_trailer(line: &str) -> bool {
    let is_name = |name: &str| {
        let name = name.to_ascii_lowercase();
        !name.contains(' ') && (name.ends_with("-by") || name == "change-id")
    };
    let words = line.trim_start_matches(|letter: char| !letter.is_alphanumeric());
    line.split_once(": ").is_some_and(|(name, _)| is_name(name)) || words.starts_with("Generated with [")
}

/// Returns a commit message without its subject and its trailers.
fn message_body(message: &str) -> String {
    let (_, body) = message.trim().split_once('\n').unwrap_or_default();
    let lines = body.lines().filter(|line| !is_trailer(line));
    lines.collect::<Vec<_>>().join("\n").trim().to_owned()
}

/// Returns whose version of a file in conflict an option of `git checkout` takes.
fn taken_side(option: &str) -> Option<&'static str> {
    match option {
        "--ours" => Some("our"),
        "--theirs" => Some("their"),
        _ => None,
    }
}

/// Whether `git checkout` restored files instead of switching branches.
fn restores(output: &str, last: Option<&str>) -> bool {
    let is_reported = output.lines().any(|line| line.starts_with("Updated ") && line.contains(" path"));
    let switched = output.lines().any(|line| starts_with_any(line, "Switched to |Already on "));
    is_reported || !switched && last.is_some_and(is_path)
}

fn status_result(output: &str) -> Option<StepResult> {
    let (branch, changed) = status(output);
    let unmerged: Vec<&str> = output.lines().filter_map(unmerged_file).collect();
    let is_clean = changed.is_empty() && (output.trim().is_empty() || output.contains("nothing to commit"));
    let outcome = match (changed.len(), unmerged.len()) {
        (_, number @ 1..) => Some(format!("{} with merge conflicts", counted(number, "file"))),
        (0, _) => is_clean.then(|| "clean".to_owned()),
        (number, _) => Some(counted(number, "changed file")),
    };
    let branch = branch.map(|branch| format!(" on {branch}")).unwrap_or_default();
    const UNDER_WAY: &str =
        "still merging|unmerged paths|rebase in progress|currently rebasing|currently cherry-picking";
    let under_way = output.lines().map(str::trim).find(|line| contains_any(line, UNDER_WAY));
    let diverged = output
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("Your branch ") && contains_any(line, "ahead of|behind|diverged"));
    let mut sentences: Vec<String> = under_way
        .into_iter()
        .chain(diverged)
        .map(|line| format!("{}.", line.trim_end_matches(['.', ','])))
        .collect();
    let merged: Vec<&str> = changed.iter().copied().filter(|file| !unmerged.contains(file)).collect();
    for (label, files) in [("Merge conflicts", &unmerged), ("Changed", &merged)] {
        if !files.is_empty() {
            sentences.push(format!("{label}: {}.", join_within(files, 400)));
        }
    }
    Some(StepResult {
        done: format!("Check git status{branch}"),
        outcome,
        sentence: Some(sentences.join(" ")).filter(|sentence| !sentence.is_empty()),
        covers_output: changed.iter().map(|file| file.len() + 2).sum::<usize>() < 400,
        ..StepResult::default()
    })
}

/// Returns the file in `UU path` or `both modified: path`.
fn unmerged_file(line: &str) -> Option<&str> {
    const WORDS: &str = "both modified:|both added:|both deleted:|deleted by us:|deleted by them:|\
        added by us:|added by them:";
    const MARKS: &str = "UU |AA |DD |DU |UD |AU |UA ";
    strip_any(line.trim_start(), WORDS).or_else(|| strip_any(line, MARKS)).map(str::trim)
}

/// The line in which git reports a commit: `[main 1a2b3c4] Subject`.
struct CommitLine<'a> {
    branch: &'a str,
    hash: &'a str,
    subject: &'a str,
}

fn commit_lines(output: &str) -> impl Iterator<Item = CommitLine<'_>> {
    output.lines().filter_map(|line| {
        let (place, subject) = line.strip_prefix('[')?.split_once(']')?;
        let (branch, hash) = place.rsplit_once(' ')?;
        let branch = branch.trim_end_matches(" (root-commit)");
        ((7..=40).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then_some(CommitLine { branch, hash, subject: subject.trim() })
    })
}

/// Returns the branch and the changed files of `git status`, in long or short format.
fn status(output: &str) -> (Option<&str>, Vec<&str>) {
    let branch = output.lines().find_map(|line| strip_any(line, "On branch |## "));
    let mut untracked = false;
    let mut files = Vec::new();
    for line in output.lines() {
        if line.starts_with("Untracked files:") {
            untracked = true;
        } else if let Some(path) = line.strip_prefix('\t') {
            let path = path.split_once(':').map_or(path, |(_, path)| path).trim();
            if untracked || line.contains(':') {
                files.push(path);
            }
        } else if line.len() > 3 && line.is_char_boundary(3) {
            let (marks, path) = line.split_at(3);
            let is_short = marks.ends_with(' ')
                && marks.trim() != ""
                && marks.bytes().all(|byte| {
                    matches!(byte, b' ' | b'M' | b'A' | b'D' | b'R' | b'C' | b'U' | b'?' | b'!' | b'T')
                });
            if is_short {
                files.push(path.rsplit(" -> ").next().unwrap_or(path).trim());
            }
        }
    }
    // A file that was staged and changed again is listed twice.
    (branch.map(|branch| branch.split("...").next().unwrap_or(branch)), unique(files).collect())
}

/// Returns the subject of the commit that `git show` prints.
fn subject(output: &str) -> Option<&str> {
    output
        .starts_with("commit ")
        .then(|| output.lines().find_map(|line| line.strip_prefix("    ")).map(str::trim))
        .flatten()
}

/// Parses ` 4 files changed, 17 insertions(+), 14 deletions(-)`.
fn stat_line(output: &str) -> Option<String> {
    let line = output.lines().rev().find(|line| line.contains(" changed, ") && line.contains("file"))?;
    let number = |part: &str| part.trim().split(' ').next().unwrap_or_default().to_owned();
    let (mut files, mut added, mut removed) = (String::new(), "0".to_owned(), "0".to_owned());
    for part in line.split(',') {
        match part {
            _ if part.contains("file") => files = number(part),
            _ if part.contains("insertion") => added = number(part),
            _ if part.contains("deletion") => removed = number(part),
            _ => {}
        }
    }
    let files = files.parse().ok()?;
    Some(format!("{}, +{added} -{removed}", counted(files, "file")))
}

fn is_log_line(line: &str) -> bool {
    let bare = line.trim_start_matches(['*', '|', ' ', '/', '\\']);
    let hash = bare.strip_prefix("commit ").unwrap_or(bare).split(' ').next().unwrap_or_default();
    (7..=40).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns the outcome of a push.
fn pushed(output: &str) -> Option<String> {
    if contains_any(output, "[rejected]|! [remote rejected]") {
        return Some("rejected".into());
    }
    output
        .lines()
        .find(|line| line.contains(" -> "))
        .map(|line| if line.contains("[new branch]") { "new branch" } else { "done" }.to_owned())
}

/// Returns the name in a line that defines it: `Save` for `func (s *Store) Save(ctx`.
pub(super) fn place_name(place: &str) -> Option<&str> {
    let place = place.trim();
    let rest =
        place.strip_prefix("func (").and_then(|rest| rest.split_once(") ")).map_or(place, |(_, rest)| rest);
    let head = rest.split(['(', '{', ':', '<', '=']).next()?;
    let name = head.split_whitespace().next_back()?;
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') && name.len() > 2;
    (is_word && !matches!(name, "import" | "struct" | "const" | "var")).then_some(name)
}

/// Returns the number of files and changed lines of a diff.
pub(super) fn totals(files: &[FilePatch<'_>]) -> String {
    let (added, removed) = files
        .iter()
        .fold((0, 0), |(added, removed), file| (added + file.added.len(), removed + file.removed.len()));
    format!("{}, +{added} -{removed}", counted(files.len(), "file"))
}
