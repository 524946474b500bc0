//! The files that a session changed, deleted, or edited after its last commit.

use std::cmp::Reverse;
use std::collections::HashMap;

use baton_core::is_any;
use baton_core::observation::Digest;
use baton_observation::commit_message;

use super::command::Step;
use super::quoted_command::QuotedCommand;
use super::text::{file_name, unique};

/// The files that a session changed or deleted.
pub(super) struct ChangedFiles<'a> {
    /// Changed files that still exist.
    pub(super) files: Vec<&'a str>,
    /// Deleted files that existed before.
    pub(super) deleted: Vec<&'a str>,
}

/// Returns the changed files, ranked by the number of changes, latest first among equals. Files outside the repository are
/// last. A file that was renamed has its new name only; one that was created and deleted again is left out.
pub(super) fn changed_files(digests: &[Digest]) -> ChangedFiles<'_> {
    let mut counts: HashMap<&str, (usize, usize)> = HashMap::new();
    let (mut created, mut deleted): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for (place, digest) in digests.iter().enumerate() {
        let removed = removed(digest);
        if !removed.is_empty() {
            removed.iter().for_each(|file| _ = counts.remove(file));
            deleted.extend(removed);
            continue;
        }
        if digest.title.starts_with("Create ") {
            created.extend(digest.files_touched.iter().map(String::as_str));
        }
        let renames = renames(digest);
        for (old, new) in &renames {
            let (count, _) = counts.remove(old).unwrap_or_default();
            let renamed = counts.entry(new).or_default();
            *renamed = (renamed.0 + count + 1, place);
        }
        for file in digest.files_touched.iter().filter(|_| renames.is_empty()) {
            let changed = counts.entry(file).or_default();
            *changed = (changed.0 + 1, place);
        }
    }
    let mut ranked: Vec<(&str, (usize, usize))> = counts.into_iter().collect();
    ranked.sort_by_key(|(file, (count, place))| {
        // Files outside the repository, such as plans in the home folder, come last.
        (file.starts_with(['/', '~']), Reverse(*count), Reverse(*place), *file)
    });
    let files: Vec<&str> = ranked.into_iter().map(|(file, _)| file).collect();
    deleted.retain(|file| !created.contains(file) && !files.contains(file));
    deleted.sort_unstable();
    deleted.dedup();
    ChangedFiles { files, deleted }
}

/// Returns the files that `rm` or `git rm` removed. Empty if the command may have done anything else to files.
fn removed(digest: &Digest) -> Vec<&str> {
    let quoted = QuotedCommand::read(&digest.summary).filter(|quoted| !quoted.is_truncated);
    let is_removal = quoted.is_some_and(|quoted| {
        let mut steps = quoted.line.steps.iter().filter(|step| !step.changed_files().is_empty()).peekable();
        steps.peek().is_some() && steps.all(|step| runs(step, "rm"))
    });
    digest.files_touched.iter().filter(|_| is_removal).map(String::as_str).collect()
}

/// Returns the old and new names of files that `mv` or `git mv` renamed. Empty if the command does anything else to files.
fn renames(digest: &Digest) -> Vec<(&str, &str)> {
    let moves = QuotedCommand::read(&digest.summary)
        .map_or(0, |quoted| quoted.line.steps.iter().filter(|step| runs(step, "mv")).count());
    let (pairs, rest) = digest.files_touched.as_chunks::<2>();
    // A file that is moved into a folder keeps its name, which the command does not show.
    let is_file = |[old, new]: &[String; 2]| {
        file_name(old).contains('.') == file_name(new).contains('.') && !new.ends_with('/')
    };
    if moves == 0 || moves != pairs.len() || !rest.is_empty() || !pairs.iter().all(is_file) {
        return Vec::new();
    }
    pairs.iter().map(|[old, new]| (old.as_str(), new.as_str())).collect()
}

/// Returns true if a step runs a command such as `rm`, by itself or as a verb of git.
fn runs(step: &Step, command: &str) -> bool {
    step.program() == command || step.git_verb() == Some(command)
}

/// Returns the files that were edited after the last commit, so they are not in it. Empty without a commit.
pub(super) fn edited_after_commit(digests: &[Digest]) -> Vec<&str> {
    let Some(last) = digests.iter().rposition(may_commit) else { return Vec::new() };
    let edits = digests.iter().skip(last + 1).filter(|digest| QuotedCommand::read(&digest.summary).is_none());
    let files = edits.flat_map(|digest| &digest.files_touched).map(String::as_str);
    unique(files.filter(|file| !file.starts_with(['/', '~']))).collect()
}

/// Whether a tool use made a commit or may have made one, for example by continuing a rebase.
fn may_commit(digest: &Digest) -> bool {
    const VERBS: &str = "commit|merge|rebase|cherry-pick|revert|am|pull";
    let is_commit = |step: &Step| step.git_verb().is_some_and(|verb| is_any(verb, VERBS));
    let quoted = QuotedCommand::read(&digest.summary);
    // The part of a command that was cut off may be a commit.
    let may = |quoted: QuotedCommand| quoted.is_truncated || quoted.line.steps.iter().any(is_commit);
    commit_message(&digest.title).is_some() || digest.title.starts_with("Amend ") || quoted.is_some_and(may)
}
