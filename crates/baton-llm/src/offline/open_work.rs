//! Open work of a session: a plan that was not approved, and to-dos and tasks that are not marked as completed.

use baton_core::observation::Digest;

use super::summary::is_source;
use super::text::{join_within, one_line};

/// Maximum length of the description of a to-do list, and of the list of tasks.
const MAX_LIST_CHARS: usize = 240;

/// Describes the open work, a sentence for each kind.
pub(super) fn describe(digests: &[Digest]) -> Vec<String> {
    [plan(digests), to_dos(digests), tasks(digests)].into_iter().flatten().collect()
}

/// Names the plan that the user did not approve, unless files were changed after it.
fn plan(digests: &[Digest]) -> Option<String> {
    let has_changes = |digest: &&Digest| digest.files_touched.iter().any(|file| is_source(file));
    let mut after = digests.iter().rev().take_while(|digest| !has_changes(digest));
    let plan = after.find(|digest| digest.tool_name == "ExitPlanMode")?;
    let proposed = plan.title.strip_suffix(": not approved")?;
    Some(format!("{proposed}; the user did not approve it."))
}

/// Repeats the last state of the to-do list, unless everything in it is done: `To-do list: 2 of 3 done.`
fn to_dos(digests: &[Digest]) -> Option<String> {
    let is_list = |digest: &&Digest| digest.summary.starts_with("To-do list: ");
    let summary = digests.iter().rev().find(is_list)?.summary.as_str();
    let mut words = summary.strip_prefix("To-do list: ")?.split_whitespace();
    let (done, all) = (words.next()?, words.nth(1)?);
    (done != all).then(|| one_line(summary, MAX_LIST_CHARS))
}

/// Lists the tasks that were created and not marked as completed or deleted.
fn tasks(digests: &[Digest]) -> Option<String> {
    let mut open: Vec<(&str, &str)> = Vec::new();
    for digest in digests {
        if let Some((number, subject)) =
            digest.title.strip_prefix("Create task ").and_then(|rest| rest.split_once(' '))
        {
            // A new list begins with the same numbers.
            open.retain(|(known, _)| *known != number);
            open.push((number, subject));
        } else if let Some((number, status)) =
            digest.title.strip_prefix("Mark task ").and_then(|rest| rest.split_once(' '))
            && (status.starts_with("completed") || status.starts_with("deleted"))
        {
            open.retain(|(known, _)| *known != number);
        }
    }
    let names: Vec<String> = open.iter().map(|(number, subject)| format!("{number} {subject}")).collect();
    (!names.is_empty())
        .then(|| format!("Tasks not marked completed: {}.", join_within(&names, MAX_LIST_CHARS)))
}
