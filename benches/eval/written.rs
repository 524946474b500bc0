//! How much of the text that people and agents wrote is still in the observation: commit bodies, plans, reports of
//! sub-agents, and descriptions and comments that MCP servers and `gh` return.
//!
//! Counts facts (the paths, identifiers, tests and numbers of `facts.rs`) and statements: sentences and list items of
//! four words or more. A statement is kept if four of five of its words are in title, summary or detail.

use std::collections::HashSet;

use baton_observation::ToolUse;
use serde_json::Value;

use crate::facts::{self, Fact};

/// Kinds of written text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Source {
    /// Body of a commit message, without trailers.
    CommitBody,
    /// Plan that was proposed, approved or not.
    Plan,
    /// Report of a sub-agent.
    Report,
    /// Long text in JSON: descriptions, bodies, comments.
    JsonText,
}

impl Source {
    /// All kinds, in the order of the table.
    pub(crate) const ALL: &[Self] = &[Self::CommitBody, Self::Plan, Self::Report, Self::JsonText];

    /// Name of the kind in the table.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::CommitBody => "commit bodies",
            Self::Plan => "plans",
            Self::Report => "reports of sub-agents",
            Self::JsonText => "texts in JSON",
        }
    }
}

/// What was kept of one text.
#[derive(Default, Clone, Copy)]
pub(crate) struct Kept {
    /// Number of texts.
    pub(crate) texts: u64,
    /// Bytes of the texts.
    pub(crate) bytes: u64,
    /// Facts: kept and all.
    pub(crate) facts: (u64, u64),
    /// Statements: kept and all.
    pub(crate) statements: (u64, u64),
}

impl Kept {
    /// Adds another text.
    pub(crate) fn add(&mut self, other: Self) {
        self.texts += other.texts;
        self.bytes += other.bytes;
        self.facts = (self.facts.0 + other.facts.0, self.facts.1 + other.facts.1);
        self.statements = (self.statements.0 + other.statements.0, self.statements.1 + other.statements.1);
    }
}

/// The written text of a tool use.
pub(crate) fn texts(tool_use: &ToolUse) -> Option<(Source, String)> {
    let input = |name: &str| tool_use.tool_input.get(name).and_then(Value::as_str);
    match tool_use.tool_name.as_str() {
        "Bash" => {
            let command = input("command")?;
            let is_declined = tool_use.tool_response.get("is_error").and_then(Value::as_bool) == Some(true);
            if let Some(body) = commit_body(command).filter(|_| !is_declined) {
                return Some((Source::CommitBody, body));
            }
            let output = tool_use.tool_response.get("stdout").and_then(Value::as_str)?;
            let value: Value = serde_json::from_str(output.trim()).ok()?;
            long_texts(&value).map(|text| (Source::JsonText, text))
        }
        "ExitPlanMode" => {
            let plan =
                input("plan").or_else(|| tool_use.tool_response.get("plan").and_then(Value::as_str))?;
            (!plan.trim().is_empty()).then(|| (Source::Plan, plan.to_owned()))
        }
        "Task" | "Agent" => {
            let parts = tool_use.tool_response.get("content")?.as_array()?;
            let texts: Vec<&str> =
                parts.iter().filter_map(|part| part.get("text").and_then(Value::as_str)).collect();
            (!texts.is_empty()).then(|| (Source::Report, texts.join("\n")))
        }
        name if name.starts_with("mcp__") => {
            let text = tool_use.tool_response.pointer("/0/text").and_then(Value::as_str)?;
            let value: Value = serde_json::from_str(text).ok()?;
            long_texts(&value).map(|text| (Source::JsonText, text))
        }
        _ => None,
    }
}

/// Compares a text with its observation.
pub(crate) fn compare(text: &str, observation: &str, cwd: &str) -> Kept {
    let found: Vec<Fact> = facts::find(text, cwd).into_iter().collect();
    let kept = facts::ObservationText::of(observation);
    let words: HashSet<String> = self::words(observation).collect();
    let statements: Vec<Vec<String>> = statements(text);
    let is_kept = |statement: &&Vec<String>| {
        statement.iter().filter(|word| words.contains(*word)).count() * 5 >= statement.len() * 4
    };
    Kept {
        texts: 1,
        bytes: text.len() as u64,
        facts: (found.iter().filter(|fact| kept.contains(fact)).count() as u64, found.len() as u64),
        statements: (statements.iter().filter(is_kept).count() as u64, statements.len() as u64),
    }
}

/// The body of the message of `git commit` in a here-document, without trailers.
fn commit_body(command: &str) -> Option<String> {
    let (before, document) = command.split_once("<<'EOF'\n").or_else(|| command.split_once("<<EOF\n"))?;
    before.lines().last().filter(|line| line.contains(" commit "))?;
    let message = document.split("\nEOF").next()?;
    let (_, body) = message.trim().split_once('\n')?;
    let is_trailer = |line: &&str| {
        line.split_once(": ").is_some_and(|(name, _)| name.ends_with("-By") || name.ends_with("-by"))
    };
    let body: Vec<&str> = body.lines().filter(|line| !is_trailer(line)).collect();
    let body = body.join("\n").trim().to_owned();
    (!body.is_empty()).then_some(body)
}

/// Strings of JSON that have eight words or more, without quotations of code.
fn long_texts(value: &Value) -> Option<String> {
    fn collect(value: &Value, text: &mut String) {
        match value {
            Value::String(words) if words.split_whitespace().count() >= 8 => {
                text.push_str(words);
                text.push('\n');
            }
            Value::Array(elements) => elements.iter().for_each(|element| collect(element, text)),
            Value::Object(members) => {
                let written =
                    members.iter().filter(|(name, _)| !matches!(name.as_str(), "diff_hunk" | "patch"));
                written.for_each(|(_, member)| collect(member, text));
            }
            _ => {}
        }
    }
    let mut text = String::new();
    collect(value, &mut text);
    (!text.is_empty()).then_some(text)
}

/// Sentences and list items of four words or more; code between fences is not counted.
fn statements(text: &str) -> Vec<Vec<String>> {
    let mut statements = Vec::new();
    let mut is_fenced = false;
    for paragraph in paragraphs(text) {
        if paragraph.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        if is_fenced {
            continue;
        }
        for sentence in paragraph.split(". ") {
            let words: Vec<String> = words(sentence).collect();
            if words.len() >= 4 {
                statements.push(words);
            }
        }
    }
    statements
}

/// Lines that belong together: a line that does not begin a list item, heading, table row or fence continues the one
/// before it.
fn paragraphs(text: &str) -> Vec<String> {
    let mut paragraphs: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in text.lines() {
        let bare = line.trim();
        let begins = bare.starts_with(['-', '*', '#', '|', '`', '>', '•'])
            || bare.starts_with(|letter: char| letter.is_ascii_digit());
        match paragraphs.last_mut() {
            Some(last) if is_open && !begins && !bare.is_empty() => {
                last.push(' ');
                last.push_str(bare);
            }
            _ => paragraphs.push(bare.to_owned()),
        }
        is_open = !bare.is_empty() && !bare.starts_with(['#', '|', '`']);
    }
    paragraphs
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
}
