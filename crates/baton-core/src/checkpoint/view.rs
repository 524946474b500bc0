//! Budgeted views: the part of a context that is shown when not all of it fits.
//!
//! Critical values are always shown whole. The rest shares the remaining room: IMPORTANT and USEFUL each get their share
//! of the budget, an unused share goes to the next layer, and EPHEMERAL gets what is left. Within a layer short values
//! stay whole and long ones are shortened evenly; the longest are left out only when there is no room for a useful piece
//! of each.
//!
//! A budget in bytes is for the context alone. A budget in tokens also covers the list of omissions.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condense::{Emphasis, condense};
use super::layout::{Layout, Leaf};
use crate::classify::{Classification, Layer, Member, Shares, json_size, object_size};
use crate::estimate_tokens;

/// Tokens of a view report besides its omissions: sizes, budget and the hint how to load the rest.
const REPORT_TOKENS: usize = 80;
/// Part of a token budget that the list of omissions may take: one in so many tokens.
const OMISSION_SHARE: usize = 8;
/// Attempts to fit a view into a token budget before the byte budget is halved each time.
const FITTING_ATTEMPTS: usize = 6;

/// Maximum size of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Bytes of compact JSON.
    Bytes(usize),
    /// Model tokens of compact JSON, as estimated by [`estimate_tokens`], omissions included.
    Tokens(usize),
}

/// How far values are shortened before they are omitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Level {
    /// Long excerpts of few values.
    Basic,
    /// Between `basic` and `aggressive`.
    #[default]
    Standard,
    /// Short excerpts of many values.
    Aggressive,
}

impl Level {
    /// Minimum excerpt length of a layer in bytes.
    pub(super) const fn min_piece(self, layer: Layer) -> usize {
        match (self, layer) {
            (_, Layer::Critical | Layer::Ephemeral) => usize::MAX,
            (Self::Basic, Layer::Important) => 768,
            (Self::Basic, Layer::Useful) => 384,
            (Self::Standard, Layer::Important) => 320,
            (Self::Standard, Layer::Useful) => 160,
            (Self::Aggressive, Layer::Important) => 120,
            (Self::Aggressive, Layer::Useful) => 64,
        }
    }
}

/// Options of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewOptions {
    /// Maximum size.
    pub budget: Budget,
    /// How far values are shortened.
    pub level: Level,
    /// Share of the budget for each layer.
    pub shares: Shares,
}

/// The visible part of a context.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The context, shortened to the budget.
    pub context: Map<String, Value>,
    /// Size as compact JSON in bytes.
    pub size_bytes: usize,
    /// Estimated tokens as compact JSON.
    pub tokens: usize,
    /// Values that were shortened or omitted, in the order of the keys.
    pub omissions: Vec<Omission>,
    /// Further omissions that a token budget has no room to list.
    pub unlisted: Option<Unlisted>,
    /// Set when the critical values alone exceed the budget.
    pub overflow: Option<Overflow>,
}

/// The size of a context as compact JSON.
struct Size {
    bytes: usize,
    /// Estimated.
    tokens: usize,
}

impl Size {
    fn of(context: &Map<String, Value>) -> Self {
        let text = serde_json::to_string(context).unwrap_or_default();
        Self { bytes: text.len(), tokens: estimate_tokens(&text) }
    }
}

/// Omissions that are not listed one by one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Unlisted {
    /// Number of further values that were shortened or omitted.
    pub count: usize,
    /// Size of these values in the checkpoint, in bytes.
    pub original_bytes: usize,
}

/// A value that was shortened or omitted. The checkpoint has the full value at this path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// Path of the value.
    pub path: String,
    /// Layer of the value.
    pub layer: Layer,
    /// Kind of omission.
    pub kind: OmissionKind,
    /// Size in the checkpoint, in bytes.
    pub original_bytes: usize,
    /// Size in the view, in bytes.
    pub kept_bytes: usize,
}

/// Kind of omission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OmissionKind {
    /// The value was shortened.
    Condensed,
    /// The value was omitted.
    LeftOut,
}

/// Sizes of the budget and of the critical values that exceed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Overflow {
    /// Budget in bytes.
    pub budget_bytes: usize,
    /// Size of the critical values in bytes.
    pub critical_bytes: usize,
}

impl View {
    /// Makes the view of a classified context.
    ///
    /// The view is never larger than the budget unless [`View::overflow`] is set. Critical values are unchanged. A larger
    /// budget in bytes never loses a key that a smaller one has.
    pub fn of(classification: &Classification<'_>, options: ViewOptions) -> Self {
        match options.budget {
            Budget::Bytes(bytes) => Self::within_bytes(classification, bytes, options),
            Budget::Tokens(tokens) => Self::within_tokens(classification, tokens, options),
        }
    }

    fn within_bytes(classification: &Classification<'_>, budget: usize, options: ViewOptions) -> Self {
        let context = classification.context();
        if object_size(context) <= budget {
            return Self::new(context.clone(), Vec::new(), None);
        }
        let mut layout = Layout::new(classification.members(), options.level);
        let critical_bytes = layout.keep_critical().max("{}".len());
        let overflow = (critical_bytes > budget).then_some(Overflow { budget_bytes: budget, critical_bytes });
        if overflow.is_none() {
            let room = layout.allowances(budget, critical_bytes, options.shares);
            for (layer, allowance) in
                [Layer::Important, Layer::Useful, Layer::Ephemeral].into_iter().zip(room)
            {
                layout.keep(layer, allowance);
            }
        }
        let mut writer = Writer { leaves: layout.into_leaves().into_iter(), omissions: Vec::new() };
        let context = writer.members(classification.members());
        Self::new(context, writer.omissions, overflow)
    }

    /// Finds the byte budget whose view has at most `budget` tokens. Bytes per token differ by a factor of two between
    /// contexts, so the ratio of this context is measured and corrected until the view fits.
    fn within_tokens(classification: &Classification<'_>, budget: usize, options: ViewOptions) -> Self {
        let context = classification.context();
        let whole = Size::of(context);
        if whole.tokens <= budget {
            return Self::new(context.clone(), Vec::new(), None);
        }
        let mut layout = Layout::new(classification.members(), options.level);
        let critical_bytes = layout.keep_critical().max("{}".len());
        let room = budget.saturating_sub(REPORT_TOKENS + budget / OMISSION_SHARE);
        let mut bytes = scale(whole.bytes, room, whole.tokens);
        let mut attempts = 0;
        loop {
            bytes = bytes.max(critical_bytes);
            let mut view = Self::within_bytes(classification, bytes, options);
            view.limit_omissions(budget / OMISSION_SHARE);
            let tokens = view.tokens + view.omission_tokens() + REPORT_TOKENS;
            if tokens <= budget {
                return view;
            }
            if bytes == critical_bytes {
                view.limit_omissions(0);
                let budget_bytes = scale(bytes, budget, view.tokens);
                view.overflow = (view.tokens > budget).then_some(Overflow { budget_bytes, critical_bytes });
                return view;
            }
            attempts += 1;
            bytes = if attempts <= FITTING_ATTEMPTS {
                scale(bytes, budget, tokens).min(bytes - 1)
            } else {
                bytes / 2
            };
        }
    }

    fn new(context: Map<String, Value>, omissions: Vec<Omission>, overflow: Option<Overflow>) -> Self {
        let Size { bytes, tokens } = Size::of(&context);
        Self { size_bytes: bytes, tokens, context, omissions, unlisted: None, overflow }
    }

    /// Keeps the largest omissions that fit into a number of tokens, in their order, and counts the others.
    fn limit_omissions(&mut self, tokens: usize) {
        let mut order: Vec<usize> = (0..self.omissions.len()).collect();
        order.sort_by_key(|index| std::cmp::Reverse(self.omissions[*index].original_bytes));
        let mut left = tokens;
        let listed = order
            .iter()
            .take_while(|index| {
                left.checked_sub(json_tokens(&self.omissions[**index])).map(|rest| left = rest).is_some()
            })
            .count();
        let mut is_listed = vec![false; self.omissions.len()];
        for index in &order[..listed] {
            is_listed[*index] = true;
        }
        let mut unlisted = self.unlisted.unwrap_or_default();
        unlisted.count += order.len() - listed;
        unlisted.original_bytes +=
            order[listed..].iter().map(|index| self.omissions[*index].original_bytes).sum::<usize>();
        self.unlisted = (unlisted.count > 0).then_some(unlisted);
        let mut flags = is_listed.into_iter();
        self.omissions.retain(|_| flags.next().unwrap_or(false));
    }

    fn omission_tokens(&self) -> usize {
        json_tokens(&self.omissions) + self.unlisted.as_ref().map_or(0, json_tokens)
    }
}

/// Estimates the tokens of a value as compact JSON.
fn json_tokens(value: &impl Serialize) -> usize {
    serde_json::to_string(value).map_or(0, |text| estimate_tokens(&text))
}

/// Returns `number * numerator / denominator` without overflow.
fn scale(number: usize, numerator: usize, denominator: usize) -> usize {
    let product = number as u128 * numerator as u128 / denominator.max(1) as u128;
    usize::try_from(product).unwrap_or(usize::MAX)
}

/// Writes what is kept, and notes what is not.
struct Writer<'a> {
    leaves: std::vec::IntoIter<Leaf<'a>>,
    omissions: Vec<Omission>,
}

impl Writer<'_> {
    fn members(&mut self, members: &[Member<'_>]) -> Map<String, Value> {
        let mut kept = Map::new();
        for member in members {
            let shown = if member.members().is_empty() {
                self.leaf(member)
            } else {
                self.holder(member).map(Value::Object)
            };
            kept.extend(shown.map(|value| (member.key().to_owned(), value)));
        }
        kept
    }

    fn holder(&mut self, member: &Member<'_>) -> Option<Map<String, Value>> {
        let before = self.omissions.len();
        let kept = self.members(member.members());
        if !kept.is_empty() {
            return Some(kept);
        }
        // An object that is gone as a whole is one omission, if it was of one layer.
        let layer = self.omissions.get(before).map(|omission| omission.layer)?;
        if self.omissions[before..].iter().all(|omission| omission.layer == layer) {
            self.omissions.truncate(before);
            self.note(member, layer, None);
        }
        None
    }

    fn leaf(&mut self, member: &Member<'_>) -> Option<Value> {
        let leaf = self.leaves.next()?;
        let shown =
            leaf.kept.map(|bytes| condense(leaf.value, bytes, Emphasis::of(member.key(), leaf.value)));
        let kept_bytes = shown.as_ref().map(json_size);
        if kept_bytes != Some(leaf.want.full) {
            self.note(member, leaf.layer, kept_bytes);
        }
        shown
    }

    fn note(&mut self, member: &Member<'_>, layer: Layer, kept_bytes: Option<usize>) {
        self.omissions.push(Omission {
            path: member.explanation().path.clone(),
            layer,
            kind: if kept_bytes.is_some() { OmissionKind::Condensed } else { OmissionKind::LeftOut },
            original_bytes: member.explanation().size_bytes,
            kept_bytes: kept_bytes.unwrap_or(0),
        });
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
