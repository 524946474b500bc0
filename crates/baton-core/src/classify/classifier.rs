//! The engine: every rule has its say on every key, and the one with the highest priority decides.

use std::borrow::Cow;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::content::{Sample, Trust};
use super::key_rules::{Strength, read_key};
use super::layer::{Layer, LayerBytes, Shares};
use super::path::{find_key, push_key};
use super::rules_file::{MAX_PRIORITY, RulesFile};
use super::size::{json_size, list_size, member_size};

/// Maximum depth at which keys are classified separately. Deeper values belong to their parent.
const MAX_KEY_DEPTH: usize = 4;

/// Priorities of the built-in rules, highest first.
mod priority {
    pub(super) const OVERRIDE: u16 = super::MAX_PRIORITY + 1;
    pub(super) const KEY: u16 = 300;
    pub(super) const BULK_CONTENT: u16 = 280;
    pub(super) const INHERITED_CRITICAL: u16 = 250;
    pub(super) const KEY_OF_DETAIL: u16 = 240;
    pub(super) const SCALAR_CONTENT: u16 = 220;
    pub(super) const KEY_MENTIONS: u16 = 200;
    pub(super) const INHERITED: u16 = 100;
    pub(super) const PROSE: u16 = 50;
    pub(super) const DEFAULT: u16 = 0;
}

/// Rules that classify contexts.
#[derive(Debug, Clone)]
pub struct Classifier {
    file: RulesFile,
    content: ContentRules,
}

/// Whether built-in rules inspect values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ContentRules {
    On,
    Off,
}

/// Layer of a key and the reason for it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Path of the key, for example `plan.steps`.
    pub path: String,
    /// Layer of the key.
    pub layer: Layer,
    /// Rule that decided: `override`, `key:…`, `content:…`, `inherited`, `default` or the id of a user rule.
    pub rule: Cow<'static, str>,
    /// Priority of the rule. An override has the highest.
    pub priority: u16,
    /// Reason as a sentence.
    pub why: String,
    /// Size of the value as compact JSON in bytes.
    pub size_bytes: usize,
}

/// A context with a layer for each key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Classification<'a> {
    context: &'a Map<String, Value>,
    members: Vec<Member<'a>>,
}

/// One key of a context and the keys below it that are classified separately.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Member<'a> {
    key: &'a str,
    value: &'a Value,
    explanation: Explanation,
    members: Vec<Member<'a>>,
}

impl Classifier {
    /// Creates a classifier with only the built-in rules.
    pub fn builtin() -> Self {
        Self::with_rules(RulesFile::default())
    }

    /// Creates a classifier with user rules in addition to the built-in rules.
    pub const fn with_rules(file: RulesFile) -> Self {
        Self { file, content: ContentRules::On }
    }

    /// Disables the built-in rules that inspect values.
    #[must_use]
    pub const fn without_heuristics(mut self) -> Self {
        self.content = ContentRules::Off;
        self
    }

    /// Returns the share of a budget for each layer.
    pub const fn shares(&self) -> Shares {
        self.file.shares
    }

    /// Gives each key of a context its layer.
    ///
    /// `overrides` are keys or paths that were marked as critical; they win over every rule, for themselves and for
    /// everything below them. One that the context does not have is passed over. The same input gives the same answer.
    pub fn classify<'a>(&self, context: &'a Map<String, Value>, overrides: &[String]) -> Classification<'a> {
        let marked: Vec<String> = overrides.iter().filter_map(|text| find_key(context, text)).collect();
        let walk = Walk { classifier: self, marked: &marked };
        Classification { context, members: walk.members(context, None, &mut String::new(), 1) }
    }
}

impl<'a> Classification<'a> {
    /// Returns the classified context.
    pub const fn context(&self) -> &'a Map<String, Value> {
        self.context
    }

    /// Lists the layer and reason of each key, parents before children, in the order of the keys.
    pub fn explanations(&self) -> Vec<&Explanation> {
        let mut found = Vec::new();
        list(&self.members, &mut found);
        found
    }

    /// Returns the layer and reason of one key.
    pub fn explain(&self, path: &str) -> Option<&Explanation> {
        self.explanations().into_iter().find(|explanation| explanation.path == path)
    }

    /// Sums the bytes of the values in each layer. Keys that only contain other keys do not count.
    pub fn bytes(&self) -> LayerBytes {
        let mut bytes = LayerBytes::default();
        add_up(&self.members, &mut bytes);
        bytes
    }

    pub(crate) fn members(&self) -> &[Member<'a>] {
        &self.members
    }
}

impl<'a> Member<'a> {
    pub(crate) const fn key(&self) -> &'a str {
        self.key
    }

    pub(crate) const fn value(&self) -> &'a Value {
        self.value
    }

    pub(crate) const fn explanation(&self) -> &Explanation {
        &self.explanation
    }

    /// Returns the keys below this one; empty if the value is classified as a whole.
    pub(crate) fn members(&self) -> &[Self] {
        &self.members
    }
}

fn list<'a>(members: &'a [Member<'_>], found: &mut Vec<&'a Explanation>) {
    for member in members {
        found.push(&member.explanation);
        list(&member.members, found);
    }
}

fn add_up(members: &[Member<'_>], bytes: &mut LayerBytes) {
    for member in members {
        if member.members.is_empty() {
            bytes.add(member.explanation.layer, member.explanation.size_bytes);
        } else {
            add_up(&member.members, bytes);
        }
    }
}

/// Result of one rule for a key.
struct Vote {
    layer: Layer,
    priority: u16,
    rule: Cow<'static, str>,
    why: String,
}

struct Walk<'a> {
    classifier: &'a Classifier,
    marked: &'a [String],
}

impl Walk<'_> {
    fn members<'a>(
        &self,
        object: &'a Map<String, Value>,
        parent: Option<&Explanation>,
        path: &mut String,
        depth: usize,
    ) -> Vec<Member<'a>> {
        let length = path.len();
        let mut members = Vec::with_capacity(object.len());
        for (key, value) in object {
            push_key(path, key);
            members.push(self.member((key, value), parent, path, depth));
            path.truncate(length);
        }
        members
    }

    fn member<'a>(
        &self,
        (key, value): (&'a str, &'a Value),
        parent: Option<&Explanation>,
        path: &mut String,
        depth: usize,
    ) -> Member<'a> {
        let Vote { layer, priority, rule, why } = self.decide(key, value, parent, path);
        let mut explanation = Explanation { path: path.clone(), layer, rule, priority, why, size_bytes: 0 };
        let members = match value {
            Value::Object(object) if depth < MAX_KEY_DEPTH || self.is_marked_below(path) => {
                self.members(object, Some(&explanation), path, depth + 1)
            }
            _ => Vec::new(),
        };
        explanation.size_bytes = if members.is_empty() {
            json_size(value)
        } else {
            list_size(members.iter().map(|member| member_size(member.key, member.explanation.size_bytes)))
        };
        Member { key, value, explanation, members }
    }

    fn decide(&self, key: &str, value: &Value, parent: Option<&Explanation>, path: &str) -> Vote {
        if let Some(vote) = self.marked(parent, path) {
            return vote;
        }
        let mut joined = String::new();
        let sample = Sample::of(value, &mut joined);
        let mut votes: Vec<Vote> = self.user_votes(key, path, &sample).collect();
        votes.extend(parent.and_then(inherited));
        votes.extend(key_vote(key));
        // Reading a value is the costly part, so it is left out where its answer could not prevail.
        let is_settled = votes.iter().any(|vote| vote.priority > priority::BULK_CONTENT);
        if !is_settled && self.classifier.content == ContentRules::On {
            votes.extend(content_vote(&sample));
        }
        // Between equals, what matters more wins: keeping too much is the smaller mistake.
        let best = votes.into_iter().min_by_key(|vote| (std::cmp::Reverse(vote.priority), vote.layer));
        best.unwrap_or_else(default_vote)
    }

    fn marked(&self, parent: Option<&Explanation>, path: &str) -> Option<Vote> {
        let why = if self.marked.iter().any(|marked| marked == path) {
            "it was marked as critical".to_owned()
        } else {
            let parent = parent.filter(|parent| parent.priority == priority::OVERRIDE)?;
            format!("`{}` was marked as critical", parent.path)
        };
        Some(Vote { layer: Layer::Critical, priority: priority::OVERRIDE, rule: "override".into(), why })
    }

    /// Returns true if a key inside this value was marked as critical, so that its keys are classified separately.
    fn is_marked_below(&self, path: &str) -> bool {
        let is_below =
            |marked: &String| marked.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']));
        self.marked.iter().any(is_below)
    }

    fn user_votes(&self, key: &str, path: &str, sample: &Sample<'_>) -> impl Iterator<Item = Vote> {
        self.classifier.file.rules.iter().filter_map(move |rule| {
            let why = rule.applies(key, path, sample)?;
            Some(Vote { layer: rule.layer, priority: rule.priority, rule: rule.id.clone().into(), why })
        })
    }
}

/// A default layer is not inherited, because it would override the rules for prose.
fn inherited(parent: &Explanation) -> Option<Vote> {
    let priority = match parent.layer {
        _ if parent.priority == priority::DEFAULT => return None,
        Layer::Critical => priority::INHERITED_CRITICAL,
        Layer::Important | Layer::Useful | Layer::Ephemeral => priority::INHERITED,
    };
    let why = format!("it is a part of `{}`", parent.path);
    Some(Vote { layer: parent.layer, priority, rule: "inherited".into(), why })
}

fn key_vote(key: &str) -> Option<Vote> {
    let sign = read_key(key)?;
    let (rule, what) = sign.topic.rule();
    let (priority, verb) = match sign.strength {
        Strength::About if sign.topic.is_detail() => (priority::KEY_OF_DETAIL, "says that this is"),
        Strength::About => (priority::KEY, "says that this is"),
        Strength::Mentions => (priority::KEY_MENTIONS, "mentions"),
    };
    let why = format!("the key {verb} {what} (`{}`)", sign.words);
    Some(Vote { layer: sign.topic.layer(), priority, rule: rule.into(), why })
}

fn content_vote(sample: &Sample<'_>) -> Option<Vote> {
    let (heuristic, evidence) = sample.recognise()?;
    let priority = match heuristic.trust() {
        Trust::Bulk => priority::BULK_CONTENT,
        Trust::Scalar => priority::SCALAR_CONTENT,
        Trust::Prose => priority::PROSE,
    };
    let rule = format!("content:{}", heuristic.name()).into();
    Some(Vote { layer: evidence.layer, priority, rule, why: evidence.why })
}

fn default_vote() -> Vote {
    Vote {
        layer: Layer::Useful,
        priority: priority::DEFAULT,
        rule: "default".into(),
        why: "no rule knows this key or its value".to_owned(),
    }
}

#[cfg(test)]
#[path = "classifier_tests.rs"]
pub(super) mod tests;
