//! Open work of a session: failed checks, what the agent could not do, its open question, a request that was not finished,
//! a plan that was not approved, and to-dos and tasks that are not marked as completed.

use baton_core::observation::{Digest, SessionMaterial};
use baton_core::{contains_any, starts_with_any, strip_any};
use baton_observation::is_failure;

use super::checks::{self, Latest, is_source};
use super::closing::{Closing, Stop, final_question};
use super::text::{join_within, one_line};

/// Maximum length of the description of a to-do list, and of the list of tasks, in characters.
const MAX_LIST_CHARS: usize = 240;
/// Maximum length of a request that was not finished, in characters.
const MAX_REQUEST_CHARS: usize = 300;
/// Maximum length of a sentence of the agent, in characters.
const MAX_SENTENCE_CHARS: usize = 240;

/// What a session left open.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct OpenWork {
    /// What failed and was not done successfully again, and what the agent said it could not do.
    pub blockers: Vec<String>,
    /// What is left to do.
    pub next_actions: Vec<String>,
}

impl OpenWork {
    /// Finds what a session left open. States only what was captured.
    pub fn of(material: &SessionMaterial) -> Self {
        let closing = Closing::of(material);
        let digests = &material.digests;
        let mut blockers: Vec<String> =
            checks::latest(digests, closing.conclusion().is_some_and(mentions_failing))
                .iter()
                .filter_map(Latest::failure)
                .collect();
        blockers.extend(failed_push(digests));
        blockers.extend(closing.conclusion().into_iter().flat_map(stated_limits));
        let mut next_actions: Vec<String> = Vec::new();
        if let Some((stop, request)) = closing.stopped_request() {
            let ended = match stop {
                Stop::Failed => "stopped with an error",
                Stop::Interrupted => "was interrupted",
                Stop::Unfinished => "is unfinished",
            };
            next_actions.push(format!("Request that {ended}: {}", one_line(&request, MAX_REQUEST_CHARS)));
        }
        let question = closing.conclusion().and_then(final_question);
        let question = question.filter(|question| !question.contains("anything else"));
        next_actions.extend(question.map(|question| format!("The agent asked: {question}")));
        next_actions.extend(describe(digests));
        Self { blockers, next_actions }
    }
}

/// Whether the agent says that something fails now.
fn mentions_failing(words: &str) -> bool {
    let words = words.to_lowercase();
    words.contains("failing")
        && !contains_any(&words, "no longer failing|not failing|was failing|were failing")
}

/// Returns the title of the last push if it failed.
fn failed_push(digests: &[Digest]) -> Option<String> {
    let last = digests.iter().rev().map(|digest| &digest.title).find(|title| title.starts_with("Push "))?;
    (is_failure(last) || last.ends_with(": rejected")).then(|| last.clone())
}

/// Returns the first sentences in which the agent says that it cannot do something. That the agent cannot find or see
/// something is a result and not a blocker.
fn stated_limits(words: &str) -> Vec<String> {
    const STARTS: &str = "i can't |i cannot |i'm unable to |i am unable to |i was unable to |\
        i'm not able to |i don't have access |i do not have access |i don't have permission|\
        i do not have permission";
    const RESULTS: &str = "find|see|tell|say|think|reproduce|identify|spot";
    let states_limit = |sentence: &&str| {
        let lower = sentence.to_lowercase().replace('’', "'");
        let bare = strip_any(&lower, "unfortunately, |however, |but ").unwrap_or(&lower);
        strip_any(bare, STARTS).is_some_and(|rest| !starts_with_any(rest, RESULTS))
    };
    let sentences = words.lines().flat_map(|line| line.split_inclusive(". "));
    let sentences = sentences.map(|sentence| sentence.trim().trim_start_matches(['-', '*', ' ']));
    sentences.filter(states_limit).take(2).map(|sentence| one_line(sentence, MAX_SENTENCE_CHARS)).collect()
}

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

/// Returns the last state of the to-do list, unless everything in it is done: `To-do list: 2 of 3 done.`
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
            // A new list reuses the numbers of the earlier one, whose tasks are then obsolete.
            open.retain(|(known, _)| *known != number);
            open.push((number, subject));
        } else if let Some((number, status)) =
            digest.title.strip_prefix("Mark task ").and_then(|rest| rest.split_once(' '))
            && starts_with_any(status, "completed|deleted")
        {
            open.retain(|(known, _)| *known != number);
        }
    }
    let names: Vec<String> = open.iter().map(|(number, subject)| format!("{number} {subject}")).collect();
    (!names.is_empty())
        .then(|| format!("Tasks not marked completed: {}.", join_within(&names, MAX_LIST_CHARS)))
}

#[cfg(test)]
mod tests {
    use baton_core::observation::{TurnStatus, TurnText};

    use super::*;

    fn open(turns: &[(&str, Option<&str>, TurnStatus)], titles: &[&str]) -> OpenWork {
        let turn = |(prompt, closing, status): &(&str, Option<&str>, TurnStatus)| TurnText {
            prompt: (*prompt).into(),
            closing: closing.map(str::to_owned),
            status: *status,
            has_changes: false,
        };
        let digest = |title: &&str| Digest {
            tool_name: "Bash".into(),
            title: (*title).into(),
            summary: format!("{title}."),
            files_touched: vec![],
            functions_changed: vec![],
        };
        OpenWork::of(&SessionMaterial {
            turns: turns.iter().map(turn).collect(),
            digests: titles.iter().map(digest).collect(),
            ..SessionMaterial::default()
        })
    }

    #[test]
    fn failed_checks_and_pushes_are_blockers_until_they_succeed() {
        let titles = [
            "Run mise run lint:full: 87 issues",
            "Run mise run lint: no issues",
            "Run npm test: 3 failed",
            "Push to origin main: rejected",
        ];
        let blocked = open(&[], &titles);
        assert_eq!(
            blocked.blockers,
            [
                "\"Run mise run lint:full: 87 issues\" (not run again)",
                "\"Run npm test: 3 failed\"",
                "Push to origin main: rejected"
            ]
        );
        let later =
            ["Run mise run lint:full: no issues", "Run npm test: 9 passed", "Push to origin main: done"];
        assert_eq!(open(&[], &[titles.as_slice(), &later].concat()), OpenWork::default());
    }

    #[test]
    fn failure_before_a_passed_check_is_a_blocker_if_the_agent_says_that_it_still_fails() {
        let titles = ["Run go test ./integration: 1 failed", "Run mise run test: 14 packages ok"];
        let blockers = |words| open(&[("Fix it", Some(words), TurnStatus::Done)], &titles).blockers;
        assert_eq!(
            blockers("Integration tests are still failing."),
            ["\"Run go test ./integration: 1 failed\" (not run again)"]
        );
        assert!(blockers("Fixed the tests that were failing.").is_empty());
        assert!(blockers("0 tests failed.").is_empty());
    }

    #[test]
    fn open_questions_limits_and_stopped_requests_are_listed() {
        let done = TurnStatus::Done;
        let asked = open(
            &[(
                "Add hooks",
                Some(
                    "The fix is in `a.go`. I cannot push to main. I can't find other uses.\n\nShould I edit settings.json as well?",
                ),
                done,
            )],
            &["Create task 1 'Add a test'"],
        );
        assert_eq!(asked.blockers, ["I cannot push to main."]);
        assert_eq!(
            asked.next_actions,
            [
                "The agent asked: Should I edit settings.json as well?",
                "Tasks not marked completed: 1 'Add a test'."
            ]
        );
        let stopped =
            open(&[("Add hooks", Some("Done?"), done), ("Now test it", None, TurnStatus::Unfinished)], &[]);
        assert_eq!(stopped.next_actions, ["Request that is unfinished: Now test it"]);
        let polite = open(&[("Add hooks", Some("Done. Is there anything else?"), done)], &[]);
        assert_eq!(polite, OpenWork::default());
    }
}
