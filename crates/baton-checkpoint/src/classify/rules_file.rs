//! User rules: format of the rules file, validation and matching.
//!
//! Owns the format and all validation errors. Does not read files: the document is a JSON value, whether the file is
//! JSON or TOML.

use regex::{Regex, RegexBuilder};
use serde_json::{Map, Value};

use super::content::{Heuristic, Sample};
use super::layer::{Layer, Shares};

/// Maximum priority of a user rule.
pub(super) const MAX_PRIORITY: u16 = 1000;
/// Default priority of a user rule, above all built-in rules.
const DEFAULT_PRIORITY: u16 = 500;
/// Maximum number of rules in a file.
const MAX_RULES: usize = 500;
/// Maximum size of a compiled regular expression in bytes.
const MAX_COMPILED_BYTES: usize = 256 * 1024;
/// Number of bytes at the start of a value that a regular expression is matched against.
const MAX_MATCHED_BYTES: usize = 16 * 1024;

/// Error in a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {problem}")]
pub struct RulesError {
    /// Path in the file, for example `patterns.CRITICAL[0].pattern`.
    at: String,
    /// What is wrong with the value.
    problem: String,
}

/// Validated and compiled rules and shares of a rules file.
///
/// ```json
/// {
///   "patterns": {
///     "CRITICAL": [{ "type": "key_regex", "pattern": "^sla_", "priority": 600, "id": "sla", "why": "SLAs bind us" }],
///     "EPHEMERAL": [{ "type": "content_heuristic", "pattern": "log" }]
///   },
///   "budgets": { "CRITICAL": 30, "IMPORTANT": 40, "USEFUL": 20, "EPHEMERAL": 10 }
/// }
/// ```
///
/// A `key_regex` is searched in the key, or in the whole path if it contains an escaped dot (`\.`). The pattern of a
/// `content_heuristic` is the name of a [`Heuristic`], or a regular expression between slashes that is searched in the
/// text.
#[derive(Debug, Clone, Default)]
pub struct RulesFile {
    pub(super) rules: Vec<UserRule>,
    pub(super) shares: Shares,
}

#[derive(Debug, Clone)]
pub(super) struct UserRule {
    pub(super) id: String,
    pub(super) layer: Layer,
    pub(super) priority: u16,
    why: Option<String>,
    pattern: Pattern,
}

#[derive(Debug, Clone)]
enum Pattern {
    Key(Regex),
    Path(Regex),
    Text(Regex),
    Shape(Heuristic),
}

impl RulesFile {
    /// Validates a document and compiles its regular expressions.
    ///
    /// # Errors
    ///
    /// Returns the first error with its path. Unknown members are rejected, so that a misspelt rule does not go
    /// unnoticed.
    pub fn read(document: &Value) -> Result<Self, RulesError> {
        let members = object(document, "rules file")?;
        known_members(members, "rules file", &["patterns", "budgets"])?;
        let mut file = Self::default();
        if let Some(patterns) = members.get("patterns") {
            file.rules = read_patterns(object(patterns, "patterns")?)?;
        }
        if let Some(budgets) = members.get("budgets") {
            file.shares = read_shares(object(budgets, "budgets")?)?;
        }
        Ok(file)
    }

    /// Returns the share of a budget for each layer.
    pub const fn shares(&self) -> Shares {
        self.shares
    }
}

impl UserRule {
    /// Returns the reason if the rule matches a value.
    pub(super) fn applies(&self, key: &str, path: &str, sample: &Sample<'_>) -> Option<String> {
        let reason = match &self.pattern {
            Pattern::Key(regex) => regex.is_match(key).then(|| format!("the key matches /{regex}/")),
            Pattern::Path(regex) => regex.is_match(path).then(|| format!("the path matches /{regex}/")),
            Pattern::Text(regex) => {
                let text = sample.text()?;
                let head = &text[..text.floor_char_boundary(MAX_MATCHED_BYTES)];
                regex.is_match(head).then(|| format!("the text matches /{regex}/"))
            }
            Pattern::Shape(heuristic) => heuristic.find_in(sample).map(|evidence| evidence.why),
        }?;
        Some(self.why.as_ref().map_or_else(|| reason.clone(), |why| format!("{why} ({reason})")))
    }
}

fn read_patterns(layers: &Map<String, Value>) -> Result<Vec<UserRule>, RulesError> {
    let mut rules = Vec::new();
    for (name, list) in layers {
        let layer = layer(name, "patterns")?;
        let at = format!("patterns.{name}");
        let list = list.as_array().ok_or_else(|| invalid(&at, "must be a list of rules"))?;
        for (index, rule) in list.iter().enumerate() {
            rules.push(read_rule(rule, layer, &format!("{at}[{index}]"))?);
        }
    }
    if rules.len() > MAX_RULES {
        return Err(invalid("patterns", format!("must be at most {MAX_RULES} rules")));
    }
    Ok(rules)
}

fn read_rule(rule: &Value, layer: Layer, at: &str) -> Result<UserRule, RulesError> {
    let members = object(rule, at)?;
    known_members(members, at, &["type", "pattern", "priority", "id", "why"])?;
    let text = |name: &str| match members.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text.clone())),
        Some(_) => Err(invalid(&format!("{at}.{name}"), "must be a text")),
    };
    let required = |name: &str| text(name)?.ok_or_else(|| invalid(&format!("{at}.{name}"), "is missing"));
    let pattern = required("pattern")?;
    let pattern_at = format!("{at}.pattern");
    let pattern = match required("type")?.as_str() {
        "key_regex" if pattern.contains(r"\.") => Pattern::Path(compile(&pattern, &pattern_at)?),
        "key_regex" => Pattern::Key(compile(&pattern, &pattern_at)?),
        "content_heuristic" => content_pattern(&pattern, &pattern_at)?,
        _ => return Err(invalid(&format!("{at}.type"), "must be `key_regex` or `content_heuristic`")),
    };
    Ok(UserRule {
        id: text("id")?.unwrap_or_else(|| at.to_owned()),
        layer,
        priority: read_priority(members, at)?,
        why: text("why")?,
        pattern,
    })
}

fn content_pattern(pattern: &str, at: &str) -> Result<Pattern, RulesError> {
    let between_slashes = pattern.strip_prefix('/').and_then(|rest| rest.strip_suffix('/'));
    if let Some(expression) = between_slashes {
        return compile(expression, at).map(Pattern::Text);
    }
    let names = || Heuristic::ALL.iter().map(|heuristic| heuristic.name()).collect::<Vec<_>>().join(", ");
    Heuristic::from_name(pattern).map(Pattern::Shape).ok_or_else(|| {
        let wanted = format!("use one of {}, or /a regular expression/", names());
        invalid(at, format!("no heuristic is called {pattern:?}; {wanted}"))
    })
}

fn read_priority(members: &Map<String, Value>, at: &str) -> Result<u16, RulesError> {
    let Some(value) = members.get("priority") else { return Ok(DEFAULT_PRIORITY) };
    let priority = value.as_u64().and_then(|number| u16::try_from(number).ok());
    priority.filter(|priority| *priority <= MAX_PRIORITY).ok_or_else(|| {
        invalid(&format!("{at}.priority"), format!("must be a whole number from 0 to {MAX_PRIORITY}"))
    })
}

fn read_shares(budgets: &Map<String, Value>) -> Result<Shares, RulesError> {
    for name in budgets.keys() {
        layer(name, "budgets")?;
    }
    let mut percents = [0; 4];
    for (percent, layer) in percents.iter_mut().zip(Layer::ALL) {
        let at = || format!("budgets.{}", layer.as_str());
        let value = budgets.get(layer.as_str()).ok_or_else(|| invalid(&at(), "is missing"))?;
        *percent = value
            .as_u64()
            .and_then(|number| u8::try_from(number).ok())
            .ok_or_else(|| invalid(&at(), "must be a percentage from 0 to 100"))?;
    }
    Shares::new(percents).ok_or_else(|| invalid("budgets", "must add up to 100"))
}

fn compile(expression: &str, at: &str) -> Result<Regex, RulesError> {
    RegexBuilder::new(expression).size_limit(MAX_COMPILED_BYTES).build().map_err(|error| {
        let message = error.to_string();
        let problem = message.lines().last().unwrap_or_default().trim();
        invalid(at, format!("not a regular expression: {problem}"))
    })
}

fn layer(name: &str, at: &str) -> Result<Layer, RulesError> {
    let names = || Layer::ALL.map(Layer::as_str).join(", ");
    Layer::from_wire(name)
        .ok_or_else(|| invalid(&format!("{at}.{name}"), format!("no such layer; use {}", names())))
}

fn object<'a>(value: &'a Value, at: &str) -> Result<&'a Map<String, Value>, RulesError> {
    value.as_object().ok_or_else(|| invalid(at, "must be an object"))
}

fn known_members(members: &Map<String, Value>, at: &str, known: &[&str]) -> Result<(), RulesError> {
    match members.keys().find(|key| !known.contains(&key.as_str())) {
        None => Ok(()),
        Some(key) => Err(invalid(at, format!("unknown member {key:?}; use {}", known.join(", ")))),
    }
}

fn invalid(at: &str, problem: impl Into<String>) -> RulesError {
    RulesError { at: at.to_owned(), problem: problem.into() }
}

#[cfg(test)]
#[path = "rules_file_tests.rs"]
mod tests;
