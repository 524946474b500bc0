//! Tools for planning and user interaction: to-do lists, tasks, plans, questions and skills.

use serde_json::Value;

use super::call::{Call, ToolFailure};
use super::draft::Draft;
use super::facts::Detail;
use super::prose::{self, PROSE_BYTES};
use super::text::{clean, join_within, one_line};
use super::title::title;

/// Detail size of a task with a long description.
const TASK_BYTES: usize = 1_500;

/// Describes the use of a tool for planning or user interaction.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    match call.tool.to_ascii_lowercase().as_str() {
        "todowrite" | "update_plan" | "write_todos" => todo_list(call),
        "taskcreate" => Some(task_created(call)),
        "taskupdate" => Some(task_updated(call)),
        "exitplanmode" | "exit_plan_mode" => Some(proposed(call, "approved", "")),
        name if is_question(name) => questions(call),
        "skill" | "slashcommand" | "activate_skill" => Some(skill(call)),
        _ => None,
    }
}

fn todo_list(call: &Call<'_>) -> Option<Draft> {
    let items = ["todos", "plan", "items"].iter().find_map(|name| call.input[name].as_array())?;
    let text = |item: &Value| {
        let words = ["content", "step", "description", "title"].iter().find_map(|name| item[name].as_str());
        words.map(|words| one_line(&clean(words), 110)).unwrap_or_default()
    };
    let of = |status: &str| -> Vec<String> {
        items.iter().filter(|item| item["status"].as_str() == Some(status)).map(text).collect()
    };
    let (done, doing, open) = (of("completed"), of("in_progress"), of("pending"));
    let outcome = format!("{} of {} done", done.len(), items.len());
    let now = doing.first().map(|now| format!(" In progress: {now}.")).unwrap_or_default();
    let next = open.first().map(|next| format!(" Next: {next}.")).unwrap_or_default();
    let subject = doing.first().or(open.first()).or(done.last()).cloned().unwrap_or_default();
    let title = title(&format!("Update to-do list ({})", one_line(&subject, 60)), Some(&outcome));
    Some(Draft::filled(call, title, format!("To-do list: {outcome}.{now}{next}"), |detail| {
        for (label, items) in [("Done", done), ("In progress", doing), ("Open", open)] {
            if !items.is_empty() {
                detail.line(&format!("{label}: {}", join_within(&items, 230)));
            }
        }
    }))
}

fn task_created(call: &Call<'_>) -> Draft {
    let subject = call.input_text(&["subject", "title"]).unwrap_or("a task");
    let number = call
        .response
        .pointer("/task/id")
        .and_then(|id| id.as_str().map(str::to_owned).or_else(|| id.as_u64().map(|id| id.to_string())));
    let number = number.map(|number| format!(" {number}")).unwrap_or_default();
    let about = clean(call.input_text(&["description"]).unwrap_or_default());
    let title = title(&format!("Create task{number} '{}'", one_line(subject, 90)), None);
    let summary = format!(
        "Created task{number}: {}. {}",
        one_line(subject, 200).trim_end_matches('.'),
        one_line(&about, 400)
    );
    if about.len() <= 400 {
        return Draft { title, summary, ..Draft::default() };
    }
    Draft::written(call, title, summary, &about, TASK_BYTES)
}

fn task_updated(call: &Call<'_>) -> Draft {
    let task = call.input_text(&["taskId", "task_id", "id"]).unwrap_or("?");
    let before = call.response.pointer("/statusChange/from").and_then(Value::as_str);
    let before = before.map(|before| format!(" (was {})", before.replace('_', " "))).unwrap_or_default();
    let status = call.input_text(&["status"]).map(|status| status.replace('_', " "));
    let list = |name: &str| {
        let ids = call.input[name].as_array()?;
        Some(join_within(&ids.iter().filter_map(Value::as_str).collect::<Vec<_>>(), 60))
    };
    let changes: Vec<String> = [
        status.as_ref().map(|status| format!("is now {status}{before}")),
        call.input_text(&["subject"]).map(|subject| format!("is now called \"{}\"", one_line(subject, 160))),
        call.input_text(&["owner"]).map(|owner| format!("belongs to {}", one_line(owner, 60))),
        list("addBlockedBy").map(|tasks| format!("is blocked by {tasks}")),
        list("addBlocks").map(|tasks| format!("blocks {tasks}")),
        call.input_text(&["description"])
            .map(|text| format!("has a new description: {}", one_line(text, 400))),
    ]
    .into_iter()
    .flatten()
    .collect();
    let title = match (&status, changes.first()) {
        (Some(status), _) => title(&format!("Mark task {task} {status}"), None),
        (None, Some(change)) => title(&format!("Update task {task}"), Some(change)),
        (None, None) => title(&format!("Update task {task}"), None),
    };
    let changes = if changes.is_empty() { "was updated".to_owned() } else { changes.join(", ") };
    Draft { title, summary: format!("Task {task} {}.", changes.trim_end_matches('.')), ..Draft::default() }
}

fn plan_of<'a>(call: &Call<'a>) -> &'a str {
    call.input_text(&["plan"]).or_else(|| call.response_text(&["plan"])).unwrap_or_default()
}

fn proposed(call: &Call<'_>, verdict: &str, reason: &str) -> Draft {
    let plan = plan_of(call);
    let name = prose::heading(plan).map_or_else(|| "without words".to_owned(), |name| one_line(&name, 90));
    let title = title(&format!("Propose plan '{name}'"), Some(verdict));
    let body = plan.trim_start().split_once('\n').map_or("", |(_, body)| body);
    let gist = prose::gist(body, 300);
    let gist = if gist.is_empty() { String::new() } else { format!(" The plan says: \"{gist}\"") };
    let summary = match verdict {
        "approved" => format!("The user approved the plan \"{name}\".{reason}{gist}"),
        _ => format!("The user did not approve the plan \"{name}\".{reason}{gist}"),
    };
    Draft::written(call, title, summary, plan, PROSE_BYTES)
}

/// Reads a plan or a question that the user declined: what was proposed or asked is kept, and no decision is stated.
pub(super) fn read_declined(call: &Call<'_>, failure: &ToolFailure) -> Option<Draft> {
    let ToolFailure::Declined(reason) = failure else { return None };
    let reason = reason.as_deref().map(reason_sentence).unwrap_or_default();
    match call.tool.to_ascii_lowercase().as_str() {
        "exitplanmode" | "exit_plan_mode" if !plan_of(call).is_empty() => {
            Some(proposed(call, "not approved", &reason))
        }
        name if is_question(name) => {
            let asked = Question::all(call);
            let first = asked.first()?;
            let questions: Vec<String> =
                asked.iter().map(|question| format!("\"{}\"", question.words)).collect();
            let title = title(&format!("Ask user about {}", first.subject()), Some("not answered"));
            let summary = format!("The user did not answer {}.{reason}", one_line(&questions.join(" "), 600));
            Some(Question::draft(call, title, summary, &asked))
        }
        _ => None,
    }
}

/// Returns a sentence with the reason that the user gave for declining. Claude Code sends a text of its own if the user
/// wants to clarify a question.
fn reason_sentence(reason: &str) -> String {
    if reason.starts_with("The user wants to clarify these questions") {
        " They wanted to clarify first.".to_owned()
    } else {
        format!(" They said: \"{}\"", one_line(reason, 400))
    }
}

fn is_question(tool: &str) -> bool {
    matches!(tool, "askuserquestion" | "request_user_input" | "ask_user" | "ask_followup_question")
}

/// A question to the user, its options and the answer.
struct Question<'a> {
    words: String,
    header: &'a str,
    options: Vec<(&'a str, &'a str)>,
    answer: Option<String>,
}

impl<'a> Question<'a> {
    fn all(call: &Call<'a>) -> Vec<Self> {
        let text = |value: &'a Value, name: &str| value[name].as_str().unwrap_or_default();
        let list = call.input.get("questions").or_else(|| call.response.get("questions"));
        let questions: Vec<&Value> = match list.and_then(Value::as_array) {
            Some(list) => list.iter().take(20).collect(),
            None => vec![call.input],
        };
        let answers = call.response.get("answers");
        let read = |question: &&'a Value| {
            let words = text(question, "question");
            let given = [words, text(question, "id"), text(question, "header")];
            let given = given.iter().filter(|key| !key.is_empty()).find_map(|key| answers?.get(key));
            Self {
                words: one_line(words, 300),
                header: text(question, "header"),
                options: question
                    .get("options")
                    .and_then(Value::as_array)
                    .into_iter()
                    .flatten()
                    .map(|option| {
                        (option.as_str().unwrap_or(text(option, "label")), text(option, "description"))
                    })
                    .collect(),
                answer: given.and_then(answer),
            }
        };
        questions.iter().map(read).filter(|question| !question.words.is_empty()).collect()
    }

    fn subject(&self) -> String {
        one_line(if self.header.is_empty() { &self.words } else { self.header }, 60)
    }

    fn draft(call: &Call<'_>, title: String, summary: String, asked: &[Self]) -> Draft {
        Draft::filled(call, title, summary, |detail| asked.iter().for_each(|question| question.fill(detail)))
    }

    fn fill(&self, detail: &mut Detail) {
        for (label, description) in self.options.iter().filter(|(label, _)| !label.is_empty()) {
            let is_chosen = self.answer.as_deref().is_some_and(|answer| answer.contains(label));
            let mark = if is_chosen { "Chosen" } else { "Option" };
            let colon = if description.is_empty() { "" } else { ": " };
            detail.paragraph(&one_line(&format!("{mark} {label}{colon}{description}"), 240));
        }
    }
}

/// Reads an answer: a text, several texts, or an object that contains them.
fn answer(value: &Value) -> Option<String> {
    let text = match value {
        Value::String(text) => text.clone(),
        Value::Array(texts) => texts.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        Value::Object(members) => return answer(members.get("answers").or_else(|| members.get("answer"))?),
        _ => return None,
    };
    Some(one_line(&clean(&text), 300)).filter(|text| !text.is_empty())
}

fn questions(call: &Call<'_>) -> Option<Draft> {
    let asked = Question::all(call);
    let first = asked.first()?;
    let summary: Vec<String> = asked
        .iter()
        .map(|question| match &question.answer {
            Some(answer) => format!("\"{}\" User chose: {answer}.", question.words),
            None => format!("\"{}\" was not answered.", question.words),
        })
        .collect();
    let outcome = first.answer.as_deref().unwrap_or("not answered");
    let title = title(&format!("Ask user about {}", first.subject()), Some(&one_line(outcome, 50)));
    Some(Question::draft(call, title, summary.join(" "), &asked))
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
