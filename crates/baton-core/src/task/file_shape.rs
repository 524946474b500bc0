//! Reads a task file from its YAML value. Task files are also written for other tools, so the reader accepts every form
//! it understands and reports the rest as warnings.

use serde_json::{Map, Value};

use super::file::{IN_PROGRESS, Priority, QaPlan, Scope, StandardRef, TaskFile, check_pipeline};
use super::name::{Area, Role, TaskId};

/// Known fields.
const KNOWN: [&str; 15] = [
    "id",
    "title",
    "status",
    "priority",
    "area",
    "description",
    "scope",
    "scope_in",
    "scope_out",
    "acceptance_criteria",
    "standards",
    "qa",
    "pipeline",
    "validation",
    "context",
];

/// Members of `validation` that do not contain commands.
const NOT_COMMANDS: [&str; 6] = ["manual", "artifact", "evidence", "note", "description", "report"];

/// Field name and problem.
pub type FieldProblem = (String, String);

/// Reads the file of the task `id`. Returns the task and warnings about fields that were not understood.
///
/// # Errors
///
/// The missing or invalid fields: the file must be a mapping with at least a title, a description, an outcome or an id.
pub fn read_task_file(file: &Value, id: &TaskId) -> Result<(TaskFile, Vec<String>), Vec<FieldProblem>> {
    let Value::Object(fields) = file else {
        return Err(vec![("the file".into(), "must contain fields like `title: TEXT`".into())]);
    };
    if !["title", "description", "outcome", "id"].iter().any(|name| has_content(fields.get(*name))) {
        return Err(vec![("title".into(), "is missing".into())]);
    }
    let mut reader = Reader { fields, warnings: Vec::new() };
    let (title, status) = (reader.title(id), reader.status());
    let task = TaskFile {
        id: reader.id(),
        description: reader.description(&title),
        priority: reader.priority(),
        area: reader.area(),
        scope: Scope { inside: reader.texts("scope", "in"), outside: reader.texts("scope", "out") },
        scope_in: [reader.top_texts("scope_in"), reader.texts("context", "repo_paths")].concat(),
        scope_out: reader.top_texts("scope_out"),
        acceptance_criteria: reader.top_texts("acceptance_criteria"),
        standards: reader.standards(),
        qa: QaPlan { commands: reader.commands() },
        pipeline: reader.pipeline(),
        title,
        status,
    };
    let unused: Vec<&str> = fields.keys().map(String::as_str).filter(|name| !KNOWN.contains(name)).collect();
    if !unused.is_empty() {
        reader.warnings.push(format!("fields that Baton does not use: {}", unused.join(", ")));
    }
    Ok((task, reader.warnings))
}

struct Reader<'a> {
    fields: &'a Map<String, Value>,
    warnings: Vec<String>,
}

impl Reader<'_> {
    fn warn(&mut self, field: &str, problem: &str) {
        self.warnings.push(format!("{field} {problem}"));
    }

    fn text(&self, name: &str) -> Option<String> {
        self.fields.get(name).and_then(as_text).filter(|text| !text.trim().is_empty())
    }

    /// Returns the text of a field. Lists and mappings are joined with `; `.
    fn joined(&mut self, name: &str) -> Option<String> {
        if let Some(text) = self.text(name) {
            return Some(text);
        }
        let mut texts = self.top_texts(name);
        texts.retain(|text| !text.trim().is_empty());
        if texts.is_empty() {
            return None;
        }
        self.warn(name, "is not text; its parts are joined");
        Some(texts.join("; "))
    }

    fn title(&mut self, id: &TaskId) -> String {
        self.joined("title").map(|title| title.trim().to_owned()).unwrap_or_else(|| {
            self.warn("title", &format!("is missing; {id} is assumed"));
            id.to_string()
        })
    }

    /// Returns the status; a task without one is in progress.
    fn status(&mut self) -> String {
        let Some(status) = self.text("status") else {
            self.warn("status", &format!("is missing or not text; {IN_PROGRESS} is assumed"));
            return IN_PROGRESS.to_owned();
        };
        let word = status.trim().to_lowercase().replace(['-', ' '], "_");
        if word == IN_PROGRESS { word } else { status }
    }

    fn id(&mut self) -> Option<TaskId> {
        let text = self.text("id")?;
        let id = text.parse().ok();
        if id.is_none() {
            self.warn("id", &format!("{text:?} is not a task id; the id in the file name is used"));
        }
        id
    }

    fn description(&mut self, title: &str) -> String {
        if let Some(text) = self.joined("description").filter(|text| has_words(text)) {
            return text;
        }
        let outcome = self.joined("outcome").filter(|text| has_words(text));
        let (text, source) = outcome.map_or_else(|| (title.to_owned(), "title"), |text| (text, "outcome"));
        self.warn("description", &format!("is missing; the {source} is used instead"));
        text
    }

    fn priority(&mut self) -> Priority {
        let text = self.text("priority").unwrap_or_default();
        let priority = match text.trim().to_uppercase().as_str() {
            "P0" => Some(Priority::P0),
            "P1" => Some(Priority::P1),
            "P2" => Some(Priority::P2),
            _ => None,
        };
        if priority.is_none() {
            let problem = problem(&text, "is not P0, P1 or P2");
            self.warn("priority", &format!("{problem}; P2 is assumed"));
        }
        priority.unwrap_or(Priority::P2)
    }

    fn area(&mut self) -> Area {
        let text = self.text("area").unwrap_or_default();
        let slug: String = text
            .trim()
            .to_lowercase()
            .chars()
            .map(|letter| if letter.is_ascii_alphanumeric() || letter == '_' { letter } else { '-' })
            .collect();
        if let Ok(area) = slug.parse() {
            return area;
        }
        let problem = problem(&text, "is not understood");
        self.warn("area", &format!("{problem}; unspecified is assumed"));
        Area::unspecified()
    }

    fn top_texts(&mut self, name: &str) -> Vec<String> {
        let mut found = Vec::new();
        if let Some(value) = self.fields.get(name) {
            self.flatten(name, value, &mut found);
        }
        found
    }

    fn texts(&mut self, name: &str, part: &str) -> Vec<String> {
        let mut found = Vec::new();
        match self.fields.get(name) {
            Some(Value::Object(members)) => {
                if let Some(value) = members.get(part) {
                    self.flatten(&format!("{name}.{part}"), value, &mut found);
                }
            }
            // A `scope` that is a list or text is read as `scope.in`.
            Some(value @ (Value::Array(_) | Value::String(_))) if name == "scope" && part == "in" => {
                self.flatten(name, value, &mut found);
            }
            _ => {}
        }
        found
    }

    /// Collects texts from a text, a list, or a mapping of lists. A list item with a colon, which YAML parses as a
    /// mapping, is converted back to text.
    fn flatten(&mut self, name: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::Null => {}
            Value::Array(items) => {
                for item in items {
                    match item {
                        Value::Object(members) => {
                            found.extend(members.iter().map(|(key, value)| as_line(key, value)))
                        }
                        item => self.flatten(name, item, found),
                    }
                }
            }
            Value::Object(members) => {
                for (key, value) in members {
                    match value {
                        Value::Array(_) | Value::Object(_) => {
                            self.flatten(&format!("{name}.{key}"), value, found)
                        }
                        value => found.push(as_line(key, value)),
                    }
                }
            }
            value => found.extend(as_text(value)),
        }
    }

    fn standards(&mut self) -> Vec<StandardRef> {
        let items = match self.fields.get("standards") {
            Some(Value::Array(items)) => items.clone(),
            None | Some(Value::Null) => Vec::new(),
            Some(other) => vec![other.clone()],
        };
        let mut found = Vec::new();
        for (at, item) in items.iter().enumerate() {
            let text = as_text(item).filter(|text| text.contains('#')).map(StandardRef::Text);
            match text.or_else(|| serde_json::from_value(item.clone()).ok().filter(|_| item.is_object())) {
                Some(reference) => found.push(reference),
                None => self.warn(&format!("standards[{at}]"), "is not understood; write `file#section`"),
            }
        }
        found
    }

    /// Returns the commands of `qa.commands`, otherwise those of `validation`.
    fn commands(&mut self) -> Vec<String> {
        let mut found = self.texts("qa", "commands");
        if let Some(value @ (Value::Array(_) | Value::String(_))) = self.fields.get("qa") {
            self.flatten("qa", value, &mut found);
        }
        let Some(validation) = self.fields.get("validation").filter(|_| found.is_empty()) else {
            return found;
        };
        match validation {
            Value::Object(parts) => {
                for (name, value) in parts {
                    if !NOT_COMMANDS.iter().any(|word| name.contains(word)) {
                        self.command_lines(&format!("validation.{name}"), value, &mut found);
                    }
                }
            }
            value => self.command_lines("validation", value, &mut found),
        }
        found
    }

    fn command_lines(&mut self, name: &str, value: &Value, found: &mut Vec<String>) {
        match value {
            Value::String(line) => found.extend((!line.trim().is_empty()).then(|| line.trim().to_owned())),
            Value::Array(items) => items.iter().for_each(|item| self.command_lines(name, item, found)),
            Value::Object(members) => {
                let command = ["command", "cmd", "run"].iter().find_map(|key| members.get(*key));
                match command {
                    Some(command) => self.command_lines(name, command, found),
                    None => {
                        for (key, value) in members {
                            self.command_lines(&format!("{name}.{key}"), value, found);
                        }
                    }
                }
            }
            Value::Null => {}
            _ => self.warn(name, "contains something that is not a command"),
        }
    }

    fn pipeline(&mut self) -> Option<Vec<Role>> {
        let value = self.fields.get("pipeline").filter(|value| !value.is_null())?;
        let roles: Option<Vec<Role>> = serde_json::from_value(value.clone()).ok();
        let checked = roles.ok_or_else(|| "is not a list of role names".to_owned()).and_then(|roles| {
            check_pipeline(&roles)?;
            Ok(roles)
        });
        match checked {
            Ok(roles) => Some(roles),
            Err(problem) => {
                self.warn("pipeline", &format!("{problem}; the configured roles are used"));
                None
            }
        }
    }
}

fn problem(text: &str, otherwise: &str) -> String {
    if text.trim().is_empty() { "is missing".into() } else { format!("{text:?} {otherwise}") }
}

fn has_content(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null) => false,
        Some(Value::String(text)) => !text.trim().is_empty(),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(members)) => !members.is_empty(),
        Some(Value::Bool(_) | Value::Number(_)) => true,
    }
}

/// Returns true if a text has a line that is not blank and not a comment.
fn has_words(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns a scalar as text.
fn as_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
        Value::Object(_) | Value::Array(_) | Value::Null => None,
    }
}

/// Restores the text of an item that YAML parsed as a mapping because of its colon.
fn as_line(key: &str, value: &Value) -> String {
    match value {
        Value::Null => key.to_owned(),
        value => format!("{key}: {}", as_text(value).unwrap_or_else(|| value.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn id() -> TaskId {
        "TASK-1".parse().unwrap()
    }

    fn read(extra: Value) -> (TaskFile, Vec<String>) {
        let mut value = json!({ "title": "t", "status": "in_progress", "priority": "P1", "area": "backend",
            "description": "d" });
        crate::merge_patch(value.as_object_mut().unwrap(), extra.as_object().unwrap());
        read_task_file(&value, &id()).unwrap()
    }

    #[test]
    fn criteria_may_be_a_mapping_of_lists_and_items_may_contain_colons() {
        let (task, warnings) = read(json!({ "acceptance_criteria": {
            "must": ["one", { "p95": "below 20 ms" }], "quality_gates": ["two"], "note": "three" } }));
        assert_eq!(task.acceptance_criteria, ["one", "p95: below 20 ms", "note: three", "two"]);
        assert_eq!(warnings, Vec::<String>::new());
    }

    #[test]
    fn commands_come_from_validation_and_paths_from_context() {
        let (task, _) = read(
            json!({ "scope": { "in": ["a.rs (new)"] }, "context": { "repo_paths": ["src", ":ui"] },
            "validation": { "static_checks": ["pnpm lint", ""], "unit_tests": { "mobile": ["pnpm test"] },
                "commands": [{ "command": "make" }], "manual_checks": ["look"], "artifacts": [{ "screenshots": [] }] } }),
        );
        assert_eq!(task.qa.commands, ["make", "pnpm lint", "pnpm test"]);
        assert_eq!(task.scope_in().collect::<Vec<_>>(), ["a.rs (new)", "src", ":ui"]);
        let (own, _) =
            read(json!({ "qa": { "commands": ["cargo test"] }, "validation": { "commands": ["make"] } }));
        assert_eq!(own.qa.commands, ["cargo test"]);
    }

    #[test]
    fn unknown_and_invalid_fields_are_warnings() {
        let (task, warnings) =
            read(json!({ "priority": "urgent", "area": ["x"], "id": "x", "standards": [{ "file": "a" }, 3],
            "pipeline": ["A B"], "description": null, "outcome": "o", "plan": [{ "id": 1 }], "order": 5 }));
        assert_eq!(
            (task.priority, task.area.as_str(), task.description.as_str()),
            (Priority::P2, "unspecified", "o")
        );
        assert!(task.pipeline.is_none() && task.id.is_none() && task.standards.is_empty());
        let all = warnings.join("\n");
        for part in [
            "priority \"urgent\"",
            "area",
            "id \"x\"",
            "standards[0]",
            "standards[1]",
            "pipeline",
            "description is missing",
            "does not use: order, outcome, plan",
        ] {
            assert!(all.contains(part), "{part}: {all}");
        }
    }

    #[test]
    fn file_without_any_task_field_is_rejected() {
        let names = |value: Value| {
            read_task_file(&value, &id()).unwrap_err().into_iter().map(|(name, _)| name).collect::<Vec<_>>()
        };
        assert_eq!(names(json!(["x"])), ["the file"]);
        assert_eq!(names(json!(null)), ["the file"]);
        assert_eq!(names(json!({ "status": "in_progress", "title": " " })), ["title"]);
    }

    #[test]
    fn missing_title_and_status_get_defaults() {
        let (task, warnings) = read_task_file(&json!({ "id": 7 }), &id()).unwrap();
        assert_eq!((task.title.as_str(), task.status.as_str()), ("TASK-1", "in_progress"));
        let all = warnings.join("\n");
        assert!(all.contains("title is missing") && all.contains("status is missing"), "{all}");
        let (task, _) = read_task_file(&json!({ "title": 7, "status": "In Progress" }), &id()).unwrap();
        assert_eq!((task.title.as_str(), task.description.as_str()), ("7", "7"));
        assert_eq!(task.status, "in_progress");
        let (task, _) = read_task_file(&json!({ "title": ["a", { "b": "c" }] }), &id()).unwrap();
        assert_eq!(task.title, "a; b: c");
        let (task, _) = read_task_file(&json!({ "title": { "": null } }), &id()).unwrap();
        assert_eq!(task.title, id().to_string());
        let (task, _) = read_task_file(&json!({ "title": "t", "status": "done" }), &id()).unwrap();
        assert_eq!(task.status, "done");
    }

    #[test]
    fn invalid_pipeline_is_a_warning() {
        for pipeline in [json!([]), json!(["a", "b", "a"]), json!({ "a": 1 }), json!([1, 2])] {
            let (task, warnings) = read(json!({ "pipeline": pipeline }));
            assert!(task.pipeline.is_none() && warnings.join("").contains("pipeline"), "{warnings:?}");
        }
    }
}
