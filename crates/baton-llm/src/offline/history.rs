//! What a session did in git and on GitHub: commits, pushes, changes of the history and pull requests.

use baton_core::observation::Digest;
use baton_core::{contains_any, ends_with_any};
use baton_observation::commit_message;

use super::command::Step;
use super::git;
use super::quoted_command::QuotedCommand;
use super::text::{join_within, one_line};

/// Maximum length of the whole list in characters.
const MAX_CHARS: usize = 320;
/// Maximum length of a command in the list in characters.
const MAX_COMMAND_CHARS: usize = 70;

/// A git command that succeeded.
#[derive(Debug, PartialEq, Eq)]
enum Event {
    Commit { hash: Option<String>, subject: String, is_amended: bool },
    Other(String),
}

/// Lists the commits, pushes and changes of the history that succeeded, in order, and the pull requests. Commits that
/// were replaced by an amendment or removed by a reset are left out, and so are the hashes of commits that were rebased.
/// If the list is too long, only its end is kept.
pub(super) fn describe(digests: &[Digest]) -> Option<String> {
    let mut history = History::default();
    digests.iter().for_each(|digest| history.add(digest));
    let History { mut events, branch, pull_requests, .. } = history;
    events.dedup();
    let last_commit = events.iter().rposition(|event| matches!(event, Event::Commit { .. }));
    let branch = branch.map(|branch| format!(" on {branch}")).unwrap_or_default();
    let mut texts: Vec<String> = Vec::new();
    let mut used = 0;
    for (place, event) in events.iter().enumerate().rev() {
        let text = format!("{}{}", event.text(), if Some(place) == last_commit { &branch } else { "" });
        used += text.chars().count() + 2;
        if used > MAX_CHARS && !texts.is_empty() {
            break;
        }
        texts.push(text);
    }
    let introduction = if texts.len() < events.len() { "Last in git" } else { "In git" };
    texts.reverse();
    let mut sentences: Vec<String> = Vec::new();
    if !texts.is_empty() {
        sentences.push(format!("{introduction}: {}.", texts.join(", ")));
    }
    if !pull_requests.is_empty() {
        sentences.push(format!("Opened pull request {}.", join_within(&pull_requests, MAX_CHARS / 2)));
    }
    (!sentences.is_empty()).then(|| sentences.join(" "))
}

impl Event {
    fn text(&self) -> String {
        match self {
            Self::Commit { hash, subject, is_amended } => {
                let hash = hash.as_ref().map(|hash| format!(" {hash}")).unwrap_or_default();
                let amended = if *is_amended { "amended " } else { "" };
                format!("{amended}commit{hash} '{subject}'")
            }
            Self::Other(text) => text.clone(),
        }
    }
}

#[derive(Default)]
struct History {
    events: Vec<Event>,
    /// Branch of the last commit.
    branch: Option<String>,
    /// Command of a rebase or cherry-pick that stopped at a conflict.
    stopped: Option<String>,
    /// Number and title of each pull request that was opened.
    pull_requests: Vec<String>,
}

impl History {
    fn add(&mut self, digest: &Digest) {
        let Digest { title, summary, .. } = digest;
        let amended = title.strip_prefix("Amend '").and_then(|rest| rest.strip_suffix('\''));
        if let Some(subject) = commit_message(title).or(amended) {
            if amended.is_some() {
                self.drop_commits(1);
            }
            let (hash, branch) = reported_commit(summary).unzip();
            let subject = subject.to_owned();
            let hash = hash.map(str::to_owned);
            self.events.push(Event::Commit { hash, subject, is_amended: amended.is_some() });
            self.branch = branch.map(str::to_owned).or(self.branch.take());
            if contains_any(summary, " Push: done.| Push: new branch.") {
                self.events.push(Event::Other("push".to_owned()));
            }
        } else if let Some((created, number)) =
            title.strip_prefix("Create pull request").and_then(|rest| rest.rsplit_once(": #"))
        {
            self.pull_requests.push(format!("#{number}{created}"));
        } else if let Some(quoted) = QuotedCommand::read(summary) {
            let is_pushed = title.starts_with("Push ") && ends_with_any(title, ": done|: new branch");
            let has_succeeded = quoted.has_succeeded.or(is_pushed.then_some(true));
            if is_experiment(&quoted) || title.contains("up to date") {
                return;
            }
            let steps = quoted.whole_steps();
            steps.iter().for_each(|step| self.add_step(step, has_succeeded));
            // A step that is quoted in part is used only if it may have replaced earlier commits.
            if let Some(cut) = quoted.line.steps.get(steps.len()).filter(|_| has_succeeded == Some(true))
                && let Some((verb @ ("rebase" | "reset" | "pull"), _)) = history_step(cut)
            {
                self.forget_commits(verb);
            }
        }
    }

    fn add_step(&mut self, step: &Step, has_succeeded: Option<bool>) {
        let Some((verb, text)) = history_step(step) else { return };
        match has_succeeded {
            Some(true) => {}
            Some(false) => {
                let is_start = matches!(verb, "rebase" | "cherry-pick") && !text.contains("--continue");
                self.stopped = if is_start { Some(text) } else { self.stopped.take() };
                return;
            }
            None => return,
        }
        match verb {
            "reset" => match step.arguments().nth(1).map(commits_back) {
                None | Some(Some(0)) => {}
                Some(Some(count)) => self.drop_commits(count),
                // The history of another target may not contain the commits of the session.
                Some(None) => self.events.clear(),
            },
            "rebase" if step.has("-i|--interactive|--autosquash") => self.drop_commits(usize::MAX),
            "rebase" => self.forget_hashes(),
            "pull" if step.has("--rebase|-r") => self.forget_hashes(),
            _ => {}
        }
        let text = if step.has("--continue") { self.stopped.take().unwrap_or(text) } else { text };
        self.events.push(Event::Other(text));
    }

    /// Removes what a rebase or a reset with unknown arguments may have replaced.
    fn forget_commits(&mut self, verb: &str) {
        match verb {
            "reset" => self.events.clear(),
            _ => self.forget_hashes(),
        }
        self.events.push(Event::Other(verb.to_owned()));
    }

    /// Removes the latest commits.
    fn drop_commits(&mut self, count: usize) {
        for _ in 0..count {
            let Some(at) = self.events.iter().rposition(|event| matches!(event, Event::Commit { .. })) else {
                return;
            };
            self.events.remove(at);
        }
    }

    fn forget_hashes(&mut self) {
        for event in &mut self.events {
            if let Event::Commit { hash, .. } = event {
                *hash = None;
            }
        }
    }
}

/// Returns the hash and the branch of `Commit 1a2b3c4 on main: "Subject"`.
fn reported_commit(summary: &str) -> Option<(&str, &str)> {
    let (hash, rest) = summary.split_once("Commit ")?.1.split_once(" on ")?;
    let (branch, _) = rest.split_once(": \"")?;
    let is_hash = hash.bytes().all(|byte| byte.is_ascii_hexdigit()) && !branch.contains(' ');
    is_hash.then_some((hash, branch))
}

/// Returns true if a command works in a repository or folder of its own.
fn is_experiment(quoted: &QuotedCommand) -> bool {
    let is_elsewhere = |step: &Step| {
        step.program() == "cd"
            && step.arguments().any(|folder| folder.starts_with(['$', '`']) || folder.starts_with("/tmp"))
    };
    quoted
        .line
        .steps
        .iter()
        .any(|step| git::is_init(step) || is_elsewhere(step) || step.program() == "mktemp")
}

/// Returns the verb and the words of a git step that pushes commits or changes the history.
fn history_step(step: &Step) -> Option<(&str, String)> {
    let verb = step.git_verb()?;
    let is_reported = match verb {
        "push" => !step.has("--dry-run|-n"),
        "rebase" | "cherry-pick" | "merge" | "revert" | "am" => !step.has("--abort|--quit|--no-commit|-n"),
        "pull" => true,
        "reset" => {
            step.has("--hard|--soft|--mixed|--keep")
                || step
                    .arguments()
                    .nth(1)
                    .is_some_and(|target| commits_back(target).is_some_and(|count| count > 0))
        }
        "branch" => step.has("-m|-M"),
        _ => false,
    };
    let is_plain_push = verb == "push" && !step.has("--delete|-d|--tags");
    // The branch of a push is usually the one of the commits.
    let is_shown =
        |word: &&str| !is_plain_push || *word == "push" || word.starts_with("--force") || *word == "-f";
    let words: Vec<&str> = step.words.iter().skip(1).map(String::as_str).filter(is_shown).collect();
    is_reported.then(|| (verb, one_line(&words.join(" "), MAX_COMMAND_CHARS)))
}

/// Returns 2 for `HEAD~2` and `HEAD^^`, 0 for `HEAD`.
fn commits_back(target: &str) -> Option<usize> {
    let back = target.strip_prefix("HEAD")?;
    match back.strip_prefix('~') {
        Some("") => Some(1),
        Some(count) => count.parse().ok(),
        None => back.bytes().all(|byte| byte == b'^').then_some(back.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn described(uses: &[(&str, &str)]) -> String {
        let digest = |(title, summary): &(&str, &str)| Digest {
            tool_name: "Bash".into(),
            title: (*title).into(),
            summary: (*summary).into(),
            files_touched: vec![],
            functions_changed: vec![],
        };
        describe(&uses.iter().map(digest).collect::<Vec<_>>()).unwrap_or_default()
    }

    #[test]
    fn commits_pushes_and_pull_requests_are_listed_in_order() {
        let uses = [
            ("Commit 'Add login'", "Commit 1a2b3c4 on feature: \"Add login\" (1 file, +3 -0)."),
            (
                "Push to origin feature: new branch",
                "Push it: `git push -u origin feature 2>&1 | tail -3` ran.",
            ),
            ("Create pull request 'Login': #61", "https://github.com/acme/shop/pull/61."),
            ("Commit 'Fix it'", "Commit 2a2b3c4 on feature: \"Fix it\" (1 file, +3 -0). Push: done."),
            ("Push current branch: rejected", "`git push` ended with exit code 1."),
            (
                "Create pull request 'Other': declined by user",
                "The user declined to let Bash run; nothing was done.",
            ),
        ];
        assert_eq!(
            described(&uses),
            "In git: commit 1a2b3c4 'Add login', push, commit 2a2b3c4 'Fix it' on feature, push. Opened pull request #61 \
             'Login'."
        );
        assert_eq!(described(&[]), "");
    }

    #[test]
    fn replaced_commits_are_left_out() {
        let commit = |hash: &str, subject: &str| {
            (format!("Commit '{subject}'"), format!("Commit {hash} on main: \"{subject}\" (1 file, +1 -0)."))
        };
        let (first, second) = (commit("aaaaaaa", "First"), commit("bbbbbbb", "Second"));
        let both = [(first.0.as_str(), first.1.as_str()), (second.0.as_str(), second.1.as_str())];
        let after = |uses: &[(&str, &str)]| described(&[&both, uses].concat());
        assert_eq!(
            after(&[(
                "Amend 'Second'",
                "`git commit --amend --no-edit` succeeded. Commit ccccccc on main: \"Second\"."
            )]),
            "In git: commit aaaaaaa 'First', amended commit ccccccc 'Second' on main."
        );
        assert_eq!(
            after(&[("Undo", "`git reset --soft HEAD~1` succeeded without output.")]),
            "In git: commit aaaaaaa 'First' on main, reset --soft HEAD~1."
        );
        assert_eq!(
            after(&[("Take theirs", "`git fetch && git reset --hard origin/main` succeeded.")]),
            "In git: reset --hard origin/main."
        );
        let rebased = after(&[
            ("Rebase: merge conflict in a.rs", "`git rebase origin/main` ended with exit code 1."),
            ("Go on: Successfully rebased", "`git add a.rs && git rebase --continue` succeeded."),
        ]);
        assert_eq!(rebased, "In git: commit 'First', commit 'Second' on main, rebase origin/main.");
        let cut = after(&[(
            "Rebase: done",
            "`git -C /home/dev/shop fetch && git -C /home/dev/shop rebase…` succeeded.",
        )]);
        assert_eq!(cut, "In git: commit 'First', commit 'Second' on main, rebase.");
    }

    #[test]
    fn experiments_and_commands_without_effect_are_left_out() {
        for summary in [
            "`cd /tmp/x && git init && git push` succeeded.",
            "`git push --dry-run` succeeded.",
            "`git rebase --abort` succeeded.",
            "`git reset HEAD a.rs` succeeded.",
            "`git push` was interrupted.",
            "`git push | cat` ran.",
        ] {
            assert_eq!(described(&[("Try it", summary)]), "", "{summary}");
        }
        assert_eq!(described(&[("Merge main: Already up to date", "`git merge main` succeeded.")]), "");
    }
}
