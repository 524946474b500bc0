//! Classifier: all rules are applied to every key, and the rule with the highest priority decides.

use std::borrow::Cow;

use baton_core::{JsonKind, JsonText};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::content::{Evidence, Heuristic, Sample, Test};
use super::key_rules::{KeySign, Strength, read_key};
use super::layer::{Layer, LayerBytes, Shares};
use super::path::{find_key, push_key};
use super::rules_file::{MAX_PRIORITY, RulesFile};

/// Maximum depth at which keys are classified separately. Deeper values belong to their parent.
const MAX_KEY_DEPTH: usize = 4;

/// Priorities of the built-in rules, highest first.
mod priority {
    pub(super) const OVERRIDE: u16 = super::MAX_PRIORITY + 1;
    pub(super) const KEY: u16 = 300;
    pub(super) const BULK_CONTENT: u16 = 280;
    pub(super) const INHERITED_CRITICAL: u16 = 250;
    /// A key such as `deadline`, whose value is critical inside a critical value.
    pub(super) const KEY_OF_DETAIL: u16 = 240;
    pub(super) const SCALAR_CONTENT: u16 = 220;
    /// A key that only mentions a topic.
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
///
/// A context may have hundreds of thousands of keys, so a key is kept as positions in the text, and its path and the
/// reason for its layer are computed when they are needed.
#[derive(Debug, Clone)]
pub struct Classification<'a> {
    classifier: &'a Classifier,
    context: JsonText<'a>,
    /// Paths marked as critical.
    marked: Vec<String>,
    /// Keys, parents before children, in the order of the text.
    keys: Vec<Key>,
}

/// A key that is classified separately.
#[derive(Debug, Clone, Copy)]
struct Key {
    /// Position of the quoted key in the text. A context has less than 4 GiB.
    start: u32,
    value_start: u32,
    value_end: u32,
    /// Index of the key that contains this one, or [`NO_PARENT`].
    parent: u32,
    /// Index of the first key after this one that is not below it.
    next: u32,
    priority: u16,
    layer: Layer,
}

/// Parent of a key at the top of a context.
const NO_PARENT: u32 = u32::MAX;

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

    /// Assigns a layer to each key of a context.
    ///
    /// `overrides` are keys or paths that were marked as critical. They take precedence over all rules, for the key
    /// itself and all keys below it. An override for a key that does not exist is ignored. The result is deterministic.
    pub fn classify<'a>(&'a self, context: JsonText<'a>, overrides: &[String]) -> Classification<'a> {
        let marked = overrides.iter().filter_map(|text| find_key(context, text)).collect();
        let mut classification = Classification { classifier: self, context, marked, keys: Vec::new() };
        classification.add_members(0, context, None, &mut String::new(), 1);
        classification.keys.shrink_to_fit();
        classification
    }
}

impl<'a> Classification<'a> {
    /// Returns the classified context.
    pub const fn context(&self) -> JsonText<'a> {
        self.context
    }

    /// Lists the layer and reason of each key, or of the key with this path and the keys below it: parents before
    /// children, in the order of the keys. Each is computed when the iterator reaches it.
    pub fn explanations(&self, path: Option<&str>) -> impl ExactSizeIterator<Item = Explanation> {
        let keys = match path {
            None => 0..self.len(),
            Some(path) => {
                let found = (0..self.len()).find(|index| self.path(*index) == path);
                found.map_or(0..0, |index| index..self.next(index))
            }
        };
        keys.map(|index| self.explanation(index))
    }

    /// Returns the layer and reason of one key.
    pub fn explain(&self, path: &str) -> Option<Explanation> {
        self.explanations(Some(path)).next()
    }

    /// Sums the bytes of the values in each layer. Keys that only contain other keys do not count.
    pub fn bytes(&self) -> LayerBytes {
        let mut bytes = LayerBytes::default();
        for index in (0..self.len()).filter(|index| self.is_leaf(*index)) {
            bytes.add(self.layer(index), self.value(index).size());
        }
        bytes
    }

    /// Returns the number of keys that are classified separately. The methods below take an index of one.
    pub(crate) const fn len(&self) -> usize {
        self.keys.len()
    }

    pub(crate) fn layer(&self, index: usize) -> Layer {
        self.keys[index].layer
    }

    /// Returns a key with its quotes and escapes.
    pub(crate) fn key(&self, index: usize) -> JsonText<'a> {
        let Key { start, value_start, .. } = self.keys[index];
        self.part(start, value_start - 1)
    }

    pub(crate) fn value(&self, index: usize) -> JsonText<'a> {
        let Key { value_start, value_end, .. } = self.keys[index];
        self.part(value_start, value_end)
    }

    /// Returns true if the value is classified as a whole.
    pub(crate) fn is_leaf(&self, index: usize) -> bool {
        self.next(index) == index + 1
    }

    /// Returns the key that contains this one; none at the top.
    pub(crate) fn parent(&self, index: usize) -> Option<usize> {
        let parent = self.keys[index].parent;
        (parent != NO_PARENT).then_some(parent as usize)
    }

    /// Returns the first key after this one that is not below it.
    pub(crate) fn next(&self, index: usize) -> usize {
        self.keys[index].next as usize
    }

    pub(crate) fn path(&self, index: usize) -> String {
        let mut path = self.parent(index).map(|parent| self.path(parent)).unwrap_or_default();
        push_key(&mut path, &self.key(index).decode());
        path
    }

    fn part(&self, start: u32, end: u32) -> JsonText<'a> {
        JsonText::new(self.context.as_str().get(start as usize..end as usize).unwrap_or_default())
    }

    fn explanation(&self, index: usize) -> Explanation {
        let path = self.path(index);
        let parent = self.parent(index).map(|parent| Parent::of(&self.keys[parent], self.path(parent).len()));
        let vote = self.decide(&self.key(index).decode(), self.value(index), parent, &path);
        let (rule, why) = vote.basis.explain(parent.map_or("", |parent| parent.path(&path)));
        let (layer, priority, size_bytes) = (vote.layer, vote.priority, self.value(index).size());
        Explanation { path, layer, rule, priority, why, size_bytes }
    }

    /// Classifies the members of an object, whose text starts at a position in the context.
    fn add_members(
        &mut self,
        start: usize,
        object: JsonText<'a>,
        parent: Option<(usize, Parent)>,
        path: &mut String,
        depth: usize,
    ) {
        let length = path.len();
        for member in object.members() {
            let key = member.key.decode();
            push_key(path, &key);
            let Vote { layer, priority, .. } =
                self.decide(&key, member.value, parent.map(|(_, parent)| parent), path);
            let index = self.len();
            let value_start = start + member.value_start();
            self.keys.push(Key {
                start: position(start + member.start),
                value_start: position(value_start),
                value_end: position(start + member.end()),
                parent: parent.map_or(NO_PARENT, |(parent, _)| position(parent)),
                next: 0,
                priority,
                layer,
            });
            let is_split = member.value.kind() == JsonKind::Object
                && (depth < MAX_KEY_DEPTH || self.is_marked_below(path));
            if is_split {
                let parent = Parent::of(&self.keys[index], path.len());
                self.add_members(value_start, member.value, Some((index, parent)), path, depth + 1);
            }
            self.keys[index].next = position(self.len());
            path.truncate(length);
        }
    }

    fn decide(&self, key: &str, value: JsonText<'a>, parent: Option<Parent>, path: &str) -> Vote<'a> {
        if let Some(vote) = self.override_vote(parent, path) {
            return vote;
        }
        let sample = Sample::of(value);
        let mut votes: Vec<Vote<'a>> = self.user_votes(key, path, &sample).collect();
        votes.extend(parent.and_then(inherited));
        votes.extend(key_vote(key));
        // Inspecting a value is slow, so it is skipped if its rule could not have the highest priority.
        let is_settled = votes.iter().any(|vote| vote.priority > priority::BULK_CONTENT);
        if !is_settled && self.classifier.content == ContentRules::On {
            votes.extend(content_vote(&sample));
        }
        // On equal priority the more important layer is used, because keeping too much is the smaller
        // mistake.
        let best = votes.into_iter().min_by_key(|vote| (std::cmp::Reverse(vote.priority), vote.layer));
        best.unwrap_or(Vote { layer: Layer::Useful, priority: priority::DEFAULT, basis: Basis::Default })
    }

    /// Returns a vote if the key or a key that contains it was marked as critical.
    fn override_vote(&self, parent: Option<Parent>, path: &str) -> Option<Vote<'a>> {
        let basis = if self.marked.iter().any(|marked| marked == path) {
            Basis::Marked
        } else {
            parent.filter(|parent| parent.priority == priority::OVERRIDE)?;
            Basis::MarkedParent
        };
        Some(Vote { layer: Layer::Critical, priority: priority::OVERRIDE, basis })
    }

    /// Returns true if a key inside this value was marked as critical, so that its keys are classified separately.
    fn is_marked_below(&self, path: &str) -> bool {
        let is_below =
            |marked: &String| marked.strip_prefix(path).is_some_and(|rest| rest.starts_with(['.', '[']));
        self.marked.iter().any(is_below)
    }

    fn user_votes(&self, key: &str, path: &str, sample: &Sample<'_>) -> impl Iterator<Item = Vote<'a>> {
        self.classifier.file.rules.iter().filter_map(move |rule| {
            let basis = Basis::User { id: &rule.id, why: rule.applies(key, path, sample)? };
            Some(Vote { layer: rule.layer, priority: rule.priority, basis })
        })
    }
}

/// Converts a position in a context. The size of contexts is limited far below 4 GiB before they are stored.
fn position(bytes: usize) -> u32 {
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// The values that a key inherits from the key that contains it.
#[derive(Clone, Copy)]
struct Parent {
    layer: Layer,
    priority: u16,
    /// Length of the path of the parent, which is a prefix of the paths of its children.
    path_length: usize,
}

impl Parent {
    const fn of(key: &Key, path_length: usize) -> Self {
        Self { layer: key.layer, priority: key.priority, path_length }
    }

    fn path<'p>(&self, child: &'p str) -> &'p str {
        child.get(..self.path_length).unwrap_or_default()
    }
}

/// Result of one rule for a key.
struct Vote<'a> {
    layer: Layer,
    priority: u16,
    basis: Basis<'a>,
}

/// The rule of a vote and its evidence.
enum Basis<'a> {
    Marked,
    MarkedParent,
    User { id: &'a str, why: String },
    Inherited,
    Key(KeySign),
    Content(Heuristic, Evidence),
    Default,
}

impl Basis<'_> {
    /// Returns the name of the rule and the reason as a sentence.
    fn explain(self, parent: &str) -> (Cow<'static, str>, String) {
        match self {
            Self::Marked => ("override".into(), "it was marked as critical".into()),
            Self::MarkedParent => ("override".into(), format!("`{parent}` was marked as critical")),
            Self::User { id, why } => (id.to_owned().into(), why),
            Self::Inherited => ("inherited".into(), format!("it is a part of `{parent}`")),
            Self::Key(KeySign { topic, words, strength }) => {
                let verb = match strength {
                    Strength::About => "says that this is",
                    Strength::Mentions => "mentions",
                };
                (topic.rule().into(), format!("the key {verb} {} (`{words}`)", topic.description()))
            }
            Self::Content(heuristic, evidence) => {
                (format!("content:{}", heuristic.name()).into(), evidence.why)
            }
            Self::Default => ("default".into(), "no rule matches this key or its value".into()),
        }
    }
}

/// Returns the vote for the layer of the parent. A default layer is not inherited, because it would override the rules for
/// prose.
fn inherited(parent: Parent) -> Option<Vote<'static>> {
    let priority = match parent.layer {
        _ if parent.priority == priority::DEFAULT => return None,
        Layer::Critical => priority::INHERITED_CRITICAL,
        Layer::Important | Layer::Useful | Layer::Ephemeral => priority::INHERITED,
    };
    Some(Vote { layer: parent.layer, priority, basis: Basis::Inherited })
}

fn key_vote(key: &str) -> Option<Vote<'static>> {
    let sign = read_key(key)?;
    let priority = match sign.strength {
        Strength::About if sign.topic.is_detail() => priority::KEY_OF_DETAIL,
        Strength::About => priority::KEY,
        Strength::Mentions => priority::KEY_MENTIONS,
    };
    Some(Vote { layer: sign.topic.layer(), priority, basis: Basis::Key(sign) })
}

fn content_vote(sample: &Sample<'_>) -> Option<Vote<'static>> {
    let (heuristic, evidence) = sample.recognise()?;
    let priority = match heuristic.test() {
        Test::Bulk(_) => priority::BULK_CONTENT,
        Test::Scalar(_) => priority::SCALAR_CONTENT,
        Test::Heading | Test::Steps | Test::Phrases(_) => priority::PROSE,
    };
    Some(Vote { layer: evidence.layer, priority, basis: Basis::Content(heuristic, evidence) })
}

#[cfg(test)]
#[path = "classifier_tests.rs"]
pub(super) mod tests;
