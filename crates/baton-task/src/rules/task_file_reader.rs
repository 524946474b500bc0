//! Reads a task file from its YAML tree. Task files are also written for other tools, so the reader accepts every form
//! it understands and reports the rest as warnings.

use std::fmt;

use baton_core::task::{Area, Role, TaskId};

use super::scope::check_repo_path;
use super::task_file::{IN_PROGRESS, Priority, StandardRef, TaskFile, check_pipeline};

/// A YAML value. Mappings keep the order of the document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Node {
    /// No value.
    Null,
    Text(String),
    /// A number or boolean, as text.
    Other(String),
    List(Vec<Node>),
    /// A mapping.
    Map(Vec<(String, Node)>),
}

impl fmt::Display for Node {
    /// Writes the value in one line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => Ok(()),
            Self::Text(text) | Self::Other(text) => f.write_str(text),
            Self::List(items) => {
                let items: Vec<String> = items.iter().map(ToString::to_string).collect();
                f.write_str(&items.join(", "))
            }
            Self::Map(members) => f.write_str(&lines(members).join("; ")),
        }
    }
}

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

/// Known members of fields that are mappings.
const KNOWN_MEMBERS: [(&str, &[&str]); 3] =
    [("scope", &["in", "out"]), ("qa", &["commands"]), ("context", &["repo_paths"])];

/// Members of `validation` that do not contain commands.
const NOT_COMMANDS: [&str; 6] = ["manual", "artifact", "evidence", "note", "description", "report"];

/// Reads the file of the task `id`. Returns the task and warnings about fields that were not understood.
///
/// # Errors
///
/// The problem, if the file is not a mapping.
pub fn read_task_file(file: &Node, id: &TaskId) -> Result<(TaskFile, Vec<String>), &'static str> {
    let Node::Map(fields) = file else {
        return Err("must contain fields like `title: TEXT`");
    };
    let mut reader = Reader { fields: fields.clone(), used: Vec::new(), warnings: Vec::new() };
    reader.unwrap_task();
    let (title, status) = (reader.title(id), reader.status());
    let task = TaskFile {
        id: reader.id(),
        description: reader.description(&title, id),
        priority: reader.priority(),
        area: reader.area(),
        scope_in: [
            reader.texts("scope", "in"),
            reader.top_texts("scope_in"),
            reader.texts("context", "repo_paths"),
        ]
        .concat(),
        scope_out: [reader.texts("scope", "out"), reader.top_texts("scope_out")].concat(),
        acceptance_criteria: reader.criteria(),
        standards: reader.standards(),
        qa_commands: reader.commands(),
        pipeline: reader.pipeline(),
        title,
        status,
    };
    reader.warn_of_unused();
    Ok((task, reader.warnings))
}

struct Reader {
    fields: Vec<(String, Node)>,
    /// Fields that were read instead of a missing one.
    used: Vec<&'static str>,
    warnings: Vec<String>,
}

impl Reader {
    fn warn(&mut self, field: &str, problem: &str) {
        self.warnings.push(format!("{field} {problem}"));
    }

    fn get(&self, name: &str) -> Option<Node> {
        member(&self.fields, name).cloned()
    }

    fn text(&self, name: &str) -> Option<String> {
        self.get(name).as_ref().and_then(as_text).filter(|text| !text.trim().is_empty())
    }

    /// Reads the members of a mapping `task` like fields of the file.
    fn unwrap_task(&mut self) {
        if let Some(Node::Map(members)) = self.get("task").filter(|_| self.get("title").is_none()) {
            self.warn("task", "contains fields; they are read like fields of the file");
            self.fields.retain(|(name, _)| name != "task" && member(&members, name).is_none());
            self.fields.extend(members);
        }
    }

    /// Lists fields and members that no method of this reader uses.
    fn warn_of_unused(&mut self) {
        let mut unused = Vec::new();
        for (name, value) in &self.fields {
            let known = KNOWN_MEMBERS.iter().find(|(field, _)| field == name).map(|(_, known)| *known);
            match (value, known) {
                (Node::Map(members), Some(known)) => {
                    let names = members.iter().map(|(member, _)| member.as_str());
                    unused.extend(
                        names.filter(|member| !known.contains(member)).map(|m| format!("{name}.{m}")),
                    );
                }
                (Node::Map(members), None) if name == "validation" => {
                    let names = members.iter().map(|(member, _)| member);
                    unused
                        .extend(names.filter(|member| !has_commands(member)).map(|m| format!("{name}.{m}")));
                }
                (Node::Text(_) | Node::Other(_) | Node::List(_), _) if name == "context" => {
                    unused.push(name.clone())
                }
                _ if KNOWN.contains(&name.as_str()) || self.used.contains(&name.as_str()) => {}
                _ => unused.push(name.clone()),
            }
        }
        if !unused.is_empty() {
            self.warnings.push(format!("fields that Baton does not use: {}", unused.join(", ")));
        }
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

    /// Returns the text of the first of the fields that has words, and warns that it replaces `missing`.
    fn instead(&mut self, missing: &str, names: &[&'static str]) -> Option<String> {
        for name in names {
            if let Some(text) = self.joined(name).filter(|text| has_words(text)) {
                self.used.push(name);
                self.warn(missing, &format!("is missing; the {name} is used instead"));
                return Some(text);
            }
        }
        None
    }

    fn title(&mut self, id: &TaskId) -> String {
        let title = self.joined("title").or_else(|| self.instead("title", &["name", "objective", "summary"]));
        title.map(|title| title.trim().to_owned()).unwrap_or_else(|| {
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
        let text = self.text("id").or_else(|| {
            self.used.push("task_id");
            self.text("task_id")
        })?;
        let id = text.parse().ok();
        if id.is_none() {
            self.warn("id", &format!("{text:?} is not a task id; the id in the file name is used"));
        }
        id
    }

    fn description(&mut self, title: &str, id: &TaskId) -> String {
        if let Some(text) = self.joined("description").filter(|text| has_words(text)) {
            return text;
        }
        self.instead("description", &["outcome", "objective"]).unwrap_or_else(|| {
            self.warn("description", "is missing; the title is used instead");
            // Otherwise a title such as `#12 Logout` would be a comment.
            if has_words(title) { title.to_owned() } else { format!("{id}: {title}") }
        })
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
        let problem = problem(&text, "cannot be parsed");
        self.warn("area", &format!("{problem}; unspecified is assumed"));
        Area::unspecified()
    }

    fn top_texts(&self, name: &str) -> Vec<String> {
        self.get(name).map(|value| flatten(&value, None)).unwrap_or_default()
    }

    fn texts(&self, name: &str, part: &str) -> Vec<String> {
        match self.get(name) {
            Some(Node::Map(members)) => {
                member(&members, part).map(|value| flatten(value, None)).unwrap_or_default()
            }
            // A `scope` that is a list or text is read as `scope.in`.
            Some(value @ (Node::List(_) | Node::Text(_))) if name == "scope" && part == "in" => {
                flatten(&value, None)
            }
            _ => Vec::new(),
        }
    }

    fn criteria(&self) -> Vec<String> {
        self.get("acceptance_criteria").map(|value| flatten(&value, Some(""))).unwrap_or_default()
    }

    fn standards(&mut self) -> Vec<StandardRef> {
        let items = match self.get("standards") {
            Some(Node::List(items)) => items,
            None | Some(Node::Null) => Vec::new(),
            Some(other) => vec![other],
        };
        let mut found = Vec::new();
        for (at, item) in items.iter().enumerate() {
            match standard(item) {
                Ok(reference) => found.push(reference),
                Err(problem) => self.warn(&format!("standards[{at}]"), problem),
            }
        }
        found
    }

    /// Returns the commands of `qa.commands`, otherwise those of `validation`.
    fn commands(&mut self) -> Vec<String> {
        let mut found = match self.get("qa") {
            Some(value @ (Node::List(_) | Node::Text(_))) => flatten(&value, None),
            _ => self.texts("qa", "commands"),
        };
        let Some(validation) = self.get("validation").filter(|_| found.is_empty()) else {
            return found;
        };
        match validation {
            Node::Map(parts) => {
                for (name, value) in parts.iter().filter(|(name, _)| has_commands(name)) {
                    self.command_lines(&format!("validation.{name}"), value, &mut found);
                }
            }
            value => self.command_lines("validation", &value, &mut found),
        }
        found
    }

    fn command_lines(&mut self, name: &str, value: &Node, found: &mut Vec<String>) {
        match value {
            Node::Text(line) => found.extend((!line.trim().is_empty()).then(|| line.trim().to_owned())),
            Node::List(items) => items.iter().for_each(|item| self.command_lines(name, item, found)),
            Node::Map(members) => {
                let command =
                    ["command", "commands", "cmd", "run"].iter().find_map(|key| member(members, key));
                match command {
                    Some(command) => self.command_lines(name, command, found),
                    None => {
                        for (key, value) in members.iter().filter(|(key, _)| has_commands(key)) {
                            self.command_lines(&format!("{name}.{key}"), value, found);
                        }
                    }
                }
            }
            Node::Null => {}
            Node::Other(_) => self.warn(name, "contains something that is not a command"),
        }
    }

    fn pipeline(&mut self) -> Option<Vec<Role>> {
        let value = self.get("pipeline").filter(|value| *value != Node::Null)?;
        let roles: Option<Vec<Role>> = match value {
            Node::List(items) => {
                let role = |item: &Node| match item {
                    Node::Text(name) => name.parse().ok(),
                    _ => None,
                };
                items.iter().map(role).collect()
            }
            _ => None,
        };
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

fn member<'a>(members: &'a [(String, Node)], name: &str) -> Option<&'a Node> {
    members.iter().find(|(key, _)| key == name).map(|(_, value)| value)
}

/// Returns true if a member of `validation` contains commands.
fn has_commands(name: &str) -> bool {
    !NOT_COMMANDS.iter().any(|word| name.contains(word)) && !matches!(name, "name" | "id" | "title")
}

fn standard(item: &Node) -> Result<StandardRef, &'static str> {
    let reference = match item {
        Node::Text(text) => text.split_once('#').map(|(file, section)| StandardRef {
            file: file.to_owned(),
            section: section.to_owned(),
            requirement: None,
        }),
        Node::Map(members) => {
            let part = |name| member(members, name).and_then(as_text);
            let parts = part("file").zip(part("section"));
            parts.map(|(file, section)| StandardRef { file, section, requirement: part("requirement") })
        }
        _ => None,
    };
    let reference = reference.ok_or("cannot be parsed; write `file#section`")?;
    match check_repo_path("standards", &reference.file) {
        Ok(_) => Ok(reference),
        Err(_) => Err("is not a file of the repository; it is ignored"),
    }
}

/// Collects texts from a text, a list, or a mapping of lists. With a `prefix`, names of groups are kept and a mapping in
/// a list is one text; otherwise groups have no effect, and each member of a mapping in a list is a text.
fn flatten(value: &Node, prefix: Option<&str>) -> Vec<String> {
    let start = prefix.unwrap_or_default();
    let of_item = |item: &Node| match item {
        Node::Map(members) if prefix.is_none() => lines(members),
        Node::Map(_) => vec![format!("{start}{item}")],
        item => flatten(item, prefix),
    };
    let of_member = |(key, value): &(String, Node)| match value {
        Node::List(_) | Node::Map(_) => {
            flatten(value, prefix.map(|start| format!("{start}{key}: ")).as_deref())
        }
        value => vec![format!("{start}{}", as_line(key, value))],
    };
    match value {
        Node::Null => Vec::new(),
        Node::Text(text) | Node::Other(text) => vec![format!("{start}{text}")],
        Node::List(items) => items.iter().flat_map(of_item).collect(),
        Node::Map(members) => members.iter().flat_map(of_member).collect(),
    }
}

fn problem(text: &str, otherwise: &str) -> String {
    if text.trim().is_empty() { "is missing".into() } else { format!("{text:?} {otherwise}") }
}

/// Returns true if a text has a line that is not blank and not a comment.
fn has_words(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| !line.is_empty() && !line.starts_with('#'))
}

/// Returns a scalar as text.
fn as_text(value: &Node) -> Option<String> {
    match value {
        Node::Text(text) | Node::Other(text) => Some(text.clone()),
        Node::Map(_) | Node::List(_) | Node::Null => None,
    }
}

/// Restores the text of an item that YAML parsed as a mapping because of its colon.
fn as_line(key: &str, value: &Node) -> String {
    if *value == Node::Null { key.to_owned() } else { format!("{key}: {value}") }
}

fn lines(members: &[(String, Node)]) -> Vec<String> {
    members.iter().map(|(key, value)| as_line(key, value)).collect()
}

#[cfg(test)]
#[path = "task_file_reader_tests.rs"]
mod tests;
