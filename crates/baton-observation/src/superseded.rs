//! Observations of one turn that another one replaces.

use baton_core::ObservationId;
use baton_core::observation::Observation;

use super::agent_task::updated_task;

/// Tools that send the whole list of to-dos with each update.
const TODO_TOOLS: [&str; 4] = ["todowrite", "todo_write", "update_plan", "write_todos"];

/// Tool name of the closing message of a sub-agent, which its client reports as an event and not as a tool use.
pub const SUBAGENT: &str = "Subagent";

/// Returns true if the tool sends the whole list of to-dos.
pub fn is_todo_update(tool_name: &str) -> bool {
    TODO_TOOLS.contains(&tool_name.to_ascii_lowercase().as_str())
}

/// Returns true if observations of this tool can replace others of the same turn, or be replaced.
pub fn may_supersede(tool_name: &str) -> bool {
    is_todo_update(tool_name)
        || matches!(
            tool_name.to_ascii_lowercase().as_str(),
            "subagent" | "task" | "agent" | "spawn_agent" | "taskupdate"
        )
}

/// Returns the observations of a turn, given oldest first, that others replace: all lists of to-dos but the last, all
/// updates of a task but the last, and the closing message of a sub-agent if a tool use or another event has the same
/// report.
pub fn superseded(turn: &[Observation]) -> Vec<ObservationId> {
    let last_todo = turn.iter().rev().find(|one| is_todo_update(&one.tool_name)).map(|one| one.id);
    turn.iter()
        .enumerate()
        .filter(|&(place, one)| {
            let is_old_list = is_todo_update(&one.tool_name) && Some(one.id) != last_todo;
            let is_later = |later: &Observation| updated_task(later) == updated_task(one);
            let is_old_update = updated_task(one).is_some() && turn.iter().skip(place + 1).any(is_later);
            is_old_list
                || is_old_update
                || one.tool_name == SUBAGENT && is_reported_elsewhere(turn, place, one)
        })
        .map(|(_, one)| one.id)
        .collect()
}

/// Returns true if another observation that is kept has the same report of a sub-agent.
fn is_reported_elsewhere(turn: &[Observation], place: usize, one: &Observation) -> bool {
    let report = report_of(one);
    report.is_some()
        && turn.iter().enumerate().any(|(other_place, other)| {
            // Of two equal events the first is kept.
            let is_kept = other.tool_name != SUBAGENT || other_place < place;
            other.id != one.id && is_kept && report_of(other) == report
        })
}

/// Returns the report in the summary of a sub-agent: `general-purpose reported (3 tool uses): …`.
fn report_of(observation: &Observation) -> Option<&str> {
    let (_, rest) = observation.compressed.summary.split_once(" reported")?;
    rest.split_once(": ").map(|(_, report)| report)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::observation;

    fn seen(number: u128, tool: &str, summary: &str) -> Observation {
        observation(number, tool, "", summary)
    }

    fn replaced(turn: &[Observation]) -> Vec<u128> {
        superseded(turn).into_iter().map(|id| u128::from(id.ulid())).collect()
    }

    #[test]
    fn only_the_last_list_of_todos_remains() {
        let turn = [seen(1, "TodoWrite", "a"), seen(2, "Bash", "b"), seen(3, "TodoWrite", "c")];
        assert_eq!(replaced(&turn), [1]);
        assert_eq!(replaced(&turn[1..]), [0_u128; 0]);
    }

    #[test]
    fn only_the_last_update_of_a_task_remains() {
        let titled = |number: u128, title: &str| {
            let mut update = seen(number, "TaskUpdate", "");
            update.compressed.title = title.to_owned();
            update
        };
        let turn = [
            titled(1, "Mark task 1 in progress"),
            titled(2, "Mark task 11 in progress"),
            titled(3, "Mark task 1 completed"),
        ];
        assert_eq!(replaced(&turn), [1]);
        assert!(may_supersede("TaskUpdate"));
    }

    #[test]
    fn the_closing_message_of_a_subagent_is_kept_once() {
        let turn = [
            seen(1, SUBAGENT, "Explore reported: found it"),
            seen(2, "Task", "Explore reported (3 tool uses, 4 s): found it"),
            seen(3, SUBAGENT, "Explore reported: another result"),
            seen(4, SUBAGENT, "Explore reported: another result"),
            seen(5, SUBAGENT, "Plan stopped"),
        ];
        assert_eq!(replaced(&turn), [1, 4]);
        assert!(may_supersede("Task") && may_supersede("TodoWrite") && !may_supersede("Bash"));
    }
}
