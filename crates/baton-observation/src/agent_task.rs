//! Observations of the tasks that an agent creates and updates: an update has only the number of its task, so the subject
//! is taken from the observation of the creation.

use baton_core::observation::Observation;

/// Tool that creates a task. Its observation is titled `Create task 3 'Add login'`.
pub const TASK_CREATION: &str = "TaskCreate";
/// Tool that updates a task. Its observation is titled `Mark task 3 completed`.
const TASK_UPDATE: &str = "TaskUpdate";
/// Maximum number of words of a subject in a title.
const MAX_SUBJECT_WORDS: usize = 7;

/// Returns the number of the task that an observation updates.
pub fn updated_task(observation: &Observation) -> Option<&str> {
    let title = observation.compressed.title.as_str();
    let rest = title.strip_prefix("Mark task ").or_else(|| title.strip_prefix("Update task "))?;
    rest.split([' ', ':']).next().filter(|_| observation.tool_name == TASK_UPDATE)
}

/// Adds the subject of the task to the title and summary of an update, if `created` contains the observation of the
/// creation.
pub fn add_task_subject<'a>(update: &mut Observation, mut created: impl Iterator<Item = &'a Observation>) {
    let Some(task) = updated_task(update).map(str::to_owned) else { return };
    let start = format!("Create task {task} '");
    let Some(subject) = created.find_map(|one| one.compressed.title.strip_prefix(&start)) else { return };
    let subject = subject.trim_end_matches('\'');
    let mut words: Vec<&str> = subject.split_whitespace().take(MAX_SUBJECT_WORDS).collect();
    if subject.split_whitespace().count() > MAX_SUBJECT_WORDS {
        words.push("…");
    }
    let compressed = &mut update.compressed;
    if !compressed.title.contains(": ") {
        compressed.title = format!("{}: {}", compressed.title, words.join(" ").replace(" …", "…"));
    }
    compressed.summary =
        compressed.summary.replacen(&format!("Task {task} "), &format!("Task {task} \"{subject}\" "), 1);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::observation;

    fn seen(tool: &str, title: &str, summary: &str) -> Observation {
        observation(1, tool, title, summary)
    }

    #[test]
    fn updates_get_the_subject_of_their_task() {
        let created = [
            seen(TASK_CREATION, "Create task 1 'Write tests'", ""),
            seen(TASK_CREATION, "Create task 11 'Add the new login page for all users of it'", ""),
        ];
        let mut update =
            seen(TASK_UPDATE, "Mark task 11 completed", "Task 11 is now completed (was pending).");
        add_task_subject(&mut update, created.iter());
        assert_eq!(update.compressed.title, "Mark task 11 completed: Add the new login page for all…");
        assert_eq!(
            update.compressed.summary,
            "Task 11 \"Add the new login page for all users of it\" is now completed (was pending)."
        );
        let mut unknown = seen(TASK_UPDATE, "Mark task 2 completed", "Task 2 is now completed.");
        add_task_subject(&mut unknown, created.iter());
        assert_eq!(unknown.compressed.title, "Mark task 2 completed");
        let mut other = seen("Bash", "Mark task 1 completed", "Task 1 is now completed.");
        add_task_subject(&mut other, created.iter());
        assert_eq!(other.compressed.title, "Mark task 1 completed");
    }
}
