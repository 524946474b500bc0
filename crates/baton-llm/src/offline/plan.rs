//! Tools for planning and user interaction: to-do lists, tasks, plans, questions and skills.

use serde_json::Value;

use super::call::Call;
use super::compressor::Draft;
use super::facts::names;
use super::lines::informative_lines;
use super::text::{clean, counted, first_line, join_within, one_line};
use super::title::title;

/// Describes the use of such a tool.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    match call.tool.to_ascii_lowercase().as_str() {
        "todowrite" | "update_plan" | "write_todos" => todo_list(call),
        "taskcreate" => Some(task_created(call)),
        "taskupdate" => Some(task_updated(call)),
        "exitplanmode" | "exit_plan_mode" => Some(proposed(call)),
        "askuserquestion" => questions(call),
        "skill" | "slashcommand" | "activate_skill" => Some(skill(call)),
        _ => None,
    }
}

fn todo_list(call: &Call<'_>) -> Option<Draft> {
    let items =
        ["todos", "plan", "items"].iter().find_map(|name| call.input.get(name).and_then(Value::as_array))?;
    let text = |item: &Value| {
        let words = ["content", "step", "description", "title"]
            .iter()
            .find_map(|name| item.get(name).and_then(Value::as_str));
        words.map(|words| one_line(&clean(words), 110)).unwrap_or_default()
    };
    let of = |status: &str| -> Vec<String> {
        items
            .iter()
            .filter(|item| item.get("status").and_then(Value::as_str) == Some(status))
            .map(text)
            .collect()
    };
    let (done, doing, open) = (of("completed"), of("in_progress"), of("pending"));
    let outcome = format!("{} of {} done", done.len(), items.len());
    let now = doing.first().map(|now| format!(" In progress: {now}.")).unwrap_or_default();
    let next = open.first().map(|next| format!(" Next: {next}.")).unwrap_or_default();
    let subject = doing.first().or(open.first()).or(done.last()).cloned().unwrap_or_default();
    let title = title(&format!("Update to-do list ({})", one_line(&subject, 60)), Some(&outcome));
    let (draft, mut detail) = Draft::begin(call, title, format!("To-do list: {outcome}.{now}{next}"));
    for (label, items) in [("Done", done), ("In progress", doing), ("Open", open)] {
        if !items.is_empty() {
            detail.line(&format!("{label}: {}", join_within(&items, 230)));
        }
    }
    Some(draft.with_detail(detail))
}

fn task_created(call: &Call<'_>) -> Draft {
    let subject = call.input_text(&["subject", "title"]).unwrap_or("a task");
    let number = call
        .response
        .pointer("/task/id")
        .and_then(|id| id.as_str().map(str::to_owned).or_else(|| id.as_u64().map(|id| id.to_string())));
    let number = number.map(|number| format!(" {number}")).unwrap_or_default();
    let about = call
        .input_text(&["description"])
        .map(|about| format!(" {}", one_line(&clean(about), 400)))
        .unwrap_or_default();
    Draft {
        title: title(&format!("Create task{number} '{}'", one_line(subject, 90)), None),
        summary: format!("Created task{number}: {}.{about}", one_line(subject, 200).trim_end_matches('.')),
        ..Draft::default()
    }
}

fn task_updated(call: &Call<'_>) -> Draft {
    let task = call.input_text(&["taskId", "task_id", "id"]).unwrap_or("?");
    let status = call.input_text(&["status"]).unwrap_or("updated").replace('_', " ");
    let before = call.response.pointer("/statusChange/from").and_then(Value::as_str);
    let before = before.map(|before| format!(" (was {})", before.replace('_', " "))).unwrap_or_default();
    Draft {
        title: title(&format!("Mark task {task} {status}"), None),
        summary: format!("Task {task} is now {status}{before}."),
        ..Draft::default()
    }
}

fn proposed(call: &Call<'_>) -> Draft {
    let plan = call.input_text(&["plan"]).or_else(|| call.response_text(&["plan"])).unwrap_or_default();
    let heading = one_line(first_line(plan).trim_start_matches(['#', ' ']), 90);
    let heading = heading.strip_prefix("Plan: ").unwrap_or(&heading);
    let (draft, mut detail) = Draft::begin(
        call,
        title(
            &format!("Propose plan '{}'", if heading.is_empty() { "without words" } else { heading }),
            Some("approved"),
        ),
        format!("The user approved the plan \"{heading}\". {}", purpose(plan)),
    );
    let whole = detail.reserve(detail.left() / 4);
    detail.lines(informative_lines(plan, detail.left()));
    detail.restore(whole);
    detail.names("Names", &names(plan));
    draft.with_detail(detail)
}

/// Returns the first paragraph of a plan.
fn purpose(plan: &str) -> String {
    let line = plan
        .lines()
        .skip(1)
        .map(str::trim)
        .find(|line| line.split_whitespace().count() > 4 && !line.starts_with('#'));
    line.map(|line| one_line(line, 300)).unwrap_or_default()
}

fn questions(call: &Call<'_>) -> Option<Draft> {
    let asked =
        call.input.get("questions").or_else(|| call.response.get("questions")).and_then(Value::as_array)?;
    let answers = call.response.get("answers").and_then(Value::as_object);
    let mut pairs = Vec::new();
    for question in asked.iter().take(20) {
        let words = question.get("question").and_then(Value::as_str).unwrap_or_default();
        let answer =
            answers.and_then(|answers| answers.get(words)).and_then(Value::as_str).unwrap_or("no answer");
        pairs.push((
            one_line(words, 160),
            one_line(answer, 160),
            question.get("header").and_then(Value::as_str).unwrap_or_default(),
        ));
    }
    let first = pairs.first()?;
    let subject = if first.2.is_empty() { &first.0 } else { first.2 };
    let summary: Vec<String> =
        pairs.iter().map(|(question, answer, _)| format!("\"{question}\" User chose: {answer}.")).collect();
    let title = title(&format!("Ask user about {}", one_line(subject, 60)), Some(&one_line(&first.1, 50)));
    let (draft, mut detail) = Draft::begin(call, title, summary.join(" "));
    for question in asked.iter().take(20) {
        let options: Vec<&str> = question
            .get("options")
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .filter_map(|option| option.get("label").and_then(Value::as_str))
            .collect();
        if options.len() > 1 {
            detail.line(&format!(
                "Options ({}): {}",
                counted(options.len(), "choice"),
                join_within(&options, 200)
            ));
        }
    }
    Some(draft.with_detail(detail))
}

fn skill(call: &Call<'_>) -> Draft {
    let skill = call
        .input_text(&["skill", "command", "name"])
        .or_else(|| call.response_text(&["commandName"]))
        .unwrap_or("unnamed");
    let arguments = call
        .input_text(&["args", "arguments"])
        .map(|arguments| format!(" with {}", one_line(arguments, 100)))
        .unwrap_or_default();
    Draft {
        title: title(&format!("Use skill {}{arguments}", one_line(skill, 60)), None),
        summary: format!("Loaded the skill {}{arguments}.", one_line(skill, 100)),
        ..Draft::default()
    }
}
