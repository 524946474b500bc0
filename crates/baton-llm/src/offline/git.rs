//! `git` commands and their output: commits, branches, status and diffs.

use super::command::{CommandLine, Step};
use super::patch::{self, FilePatch};
use super::text::{counted, first_line, join_within, one_line};

/// Description of a git command and its result.
#[derive(Default)]
pub(super) struct GitResult {
    pub(super) done: String,
    pub(super) outcome: Option<String>,
    pub(super) sentence: Option<String>,
    /// Whether the other fields already describe the whole output.
    pub(super) covers_output: bool,
}

/// Returns true if a step creates a commit.
pub(super) fn is_commit(step: &Step) -> bool {
    step.program() == "git" && without_folder(step).first() == Some(&"commit")
}

/// Describes a git step.
pub(super) fn git_result(step: &Step, line: &CommandLine, output: &str) -> Option<GitResult> {
    if step.program() != "git" {
        return None;
    }
    let arguments: Vec<&str> = without_folder(step);
    let (verb, rest) = arguments.split_first()?;
    let last = rest.last().copied();
    let git_result =
        |done: String, outcome: Option<String>| Some(GitResult { done, outcome, ..GitResult::default() });
    match *verb {
        "commit" => {
            let hash = commit_hash(output);
            let message = commit_message(step, line);
            let done = message.as_ref().map_or_else(
                || "Commit staged changes".into(),
                |message| format!("Commit '{}'", one_line(message, 80)),
            );
            let sentence = hash.map(|(branch, hash)| format!("Commit {hash} on {branch}."));
            Some(GitResult { done, sentence, ..GitResult::default() })
        }
        "status" => {
            let (branch, changed) = status(output);
            let branch = branch.map(|branch| format!(" on {branch}")).unwrap_or_default();
            let outcome =
                if changed.is_empty() { "clean".to_owned() } else { counted(changed.len(), "changed file") };
            Some(GitResult {
                done: format!("Check git status{branch}"),
                outcome: Some(outcome),
                sentence: (!changed.is_empty()).then(|| format!("Changed: {}.", join_within(&changed, 400))),
                covers_output: changed.iter().map(|file| file.len() + 2).sum::<usize>() < 400,
            })
        }
        "diff" | "show" => {
            let files = patch::read_unified(output);
            let what = if *verb == "diff" { "Review git diff" } else { "Show commit" };
            let target = last.map(|last| format!(" {}", one_line(last, 50))).unwrap_or_default();
            let subject = (*verb == "show").then(|| subject(output)).flatten();
            Some(GitResult {
                done: format!("{what}{target}"),
                outcome: if files.is_empty() { stat_line(output) } else { Some(totals(&files)) },
                sentence: subject.map(|subject| format!("Commit says: \"{}\".", one_line(subject, 160))),
                ..GitResult::default()
            })
        }
        "log" => {
            let commits = output.lines().filter(|line| is_log_line(line)).count();
            let outcome = if commits > 0 { Some(counted(commits, "commit")) } else { None };
            git_result(format!("List git log {}", last.unwrap_or_default()), outcome)
        }
        "push" if rest.is_empty() => git_result("Push current branch".to_owned(), pushed(output)),
        "push" => git_result(
            format!("Push {}", join_within(rest, 50)).replace("Push origin,", "Push to origin"),
            pushed(output),
        ),
        "add" if rest.is_empty() || *rest == ["."] => git_result("Stage all changes".to_owned(), None),
        "add" => git_result(format!("Stage {}", join_within(rest, 70)), None),
        "checkout" | "switch" => {
            git_result(format!("Switch git to {}", last.unwrap_or("another branch")), None)
        }
        "merge" | "rebase" | "cherry-pick" | "revert" => {
            let conflicts = output.lines().filter(|line| line.starts_with("CONFLICT")).count();
            let outcome = (conflicts > 0).then(|| counted(conflicts, "conflict"));
            git_result(format!("Run git {verb} {}", last.unwrap_or_default()), outcome)
        }
        "restore" | "reset" | "stash" | "branch" | "fetch" | "pull" | "tag" | "clone" => {
            git_result(format!("Run git {verb} {}", join_within(rest, 60)), None)
        }
        _ => None,
    }
}

/// Returns the arguments without `-C folder`.
fn without_folder(step: &Step) -> Vec<&str> {
    let mut skip = step.flag(&["-C"]);
    step.arguments()
        .filter(|word| {
            if skip == Some(word) {
                skip = None;
                false
            } else {
                true
            }
        })
        .collect()
}

fn commit_message(step: &Step, line: &CommandLine) -> Option<String> {
    let given = step.flag(&["-m", "--message", "-am"]).unwrap_or_default();
    let document =
        line.documents.first().map(String::as_str).filter(|_| given.is_empty() || given.starts_with("$("));
    let message = first_line(document.unwrap_or(given));
    (!message.is_empty() && !message.starts_with("$(")).then(|| message.to_owned())
}

/// Returns branch and hash of `[main 1a2b3c4] Subject`.
fn commit_hash(output: &str) -> Option<(&str, &str)> {
    output.lines().find_map(|line| {
        let (place, _) = line.strip_prefix('[')?.split_once(']')?;
        let (branch, hash) = place.rsplit_once(' ')?;
        ((7..=40).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .then_some((branch, hash))
    })
}

/// Returns the branch and the changed files of `git status`, in long or short format.
fn status(output: &str) -> (Option<&str>, Vec<&str>) {
    let branch =
        output.lines().find_map(|line| line.strip_prefix("On branch ").or_else(|| line.strip_prefix("## ")));
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
    (branch.map(|branch| branch.split("...").next().unwrap_or(branch)), files)
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
    let line = output.lines().find(|line| line.contains(" changed, ") && line.contains("file"))?;
    Some(
        one_line(line, 70)
            .replace(" insertions(+)", "+")
            .replace(" deletions(-)", "-")
            .replace("files changed", "files"),
    )
}

fn is_log_line(line: &str) -> bool {
    let bare = line.trim_start_matches(['*', '|', ' ', '/', '\\']);
    let hash = bare.strip_prefix("commit ").unwrap_or(bare).split(' ').next().unwrap_or_default();
    (7..=40).contains(&hash.len()) && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
}

fn pushed(output: &str) -> Option<String> {
    if output.contains("[rejected]") || output.contains("! [remote rejected]") {
        return Some("rejected".into());
    }
    output
        .lines()
        .find(|line| line.contains(" -> "))
        .map(|line| if line.contains("[new branch]") { "new branch" } else { "done" }.to_owned())
}

/// Returns the function named in a hunk header: `Save` for `func (s *Store) Save(ctx`.
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
