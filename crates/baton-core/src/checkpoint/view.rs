//! What is shown of a context when not all of it fits.
//!
//! What is critical is always shown whole. The rest shares the room that is left: IMPORTANT and USEFUL each get their
//! share of the budget, what a layer does not need goes to the next, and EPHEMERAL gets what nobody else wants. Within a
//! layer short values stay whole and long ones are shortened evenly; only when there is no room for a useful piece of
//! each are the longest left out.
//!
//! The budget is for the context. The list of what is missing comes on top of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::condense::condense;
use super::layout::{Layout, Leaf};
use crate::classify::{Classification, Layer, Member, Shares, json_size, object_size};

/// How many bytes of JSON count as one token. Characters outside ASCII take two to four bytes and so count as half a
/// token to a whole one, which is about what tokenizers make of them.
const BYTES_PER_TOKEN: usize = 4;

/// How large a view may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Budget {
    /// Bytes of JSON without blanks.
    Bytes(usize),
    /// Tokens, estimated as four bytes each.
    Tokens(usize),
}

impl Budget {
    /// Gives the budget in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes,
            Self::Tokens(tokens) => tokens.saturating_mul(BYTES_PER_TOKEN),
        }
    }

    /// Estimates how many tokens a text of so many bytes is.
    pub const fn tokens_of(bytes: usize) -> usize {
        bytes.div_ceil(BYTES_PER_TOKEN)
    }
}

/// How short a value may become before it is rather left out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum Level {
    /// Long pieces of fewer values.
    Basic,
    /// Between the two.
    #[default]
    Standard,
    /// Short pieces of as many values as possible.
    Aggressive,
}

impl Level {
    /// The shortest piece, in bytes, that a value of a layer is cut to.
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

/// What a view is made by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ViewOptions {
    /// How large it may be.
    pub budget: Budget,
    /// How hard values are shortened.
    pub level: Level,
    /// How the budget is shared among the layers.
    pub shares: Shares,
}

/// What is shown of a context.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The context, or what is left of it.
    pub context: Map<String, Value>,
    /// Its bytes as JSON without blanks.
    pub size_bytes: usize,
    /// What was shortened or left out, in the order of the keys; empty when the whole context is shown.
    pub omissions: Vec<Omission>,
    /// Says that what is critical alone is larger than the budget.
    pub overflow: Option<Overflow>,
}

/// A part of a context that a view does not show whole. The checkpoint has it under this path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Omission {
    /// Where it is.
    pub path: String,
    /// Its layer.
    pub layer: Layer,
    /// What was done to it.
    pub kind: OmissionKind,
    /// Its bytes in the checkpoint.
    pub original_bytes: usize,
    /// Its bytes in the view.
    pub kept_bytes: usize,
}

/// What was done to a part of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum OmissionKind {
    /// It was shortened.
    Condensed,
    /// It is not there.
    LeftOut,
}

/// By how much the critical part of a context exceeds a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Overflow {
    /// The budget.
    pub budget_bytes: usize,
    /// What is critical, shown whole nevertheless.
    pub critical_bytes: usize,
}

impl View {
    /// Makes the view of a classified context.
    ///
    /// The view is never larger than the budget, unless it says so in [`View::overflow`]. Critical values are unchanged.
    /// A larger budget never loses a key that a smaller one has.
    pub fn of(classification: &Classification<'_>, options: ViewOptions) -> Self {
        let context = classification.context();
        let budget = options.budget.bytes();
        let whole = object_size(context);
        if whole <= budget {
            return Self {
                context: context.clone(),
                size_bytes: whole,
                omissions: Vec::new(),
                overflow: None,
            };
        }
        let mut layout = Layout::new(classification.members(), options.level);
        let critical = layout.keep_critical();
        let overflow = (critical.max("{}".len()) > budget)
            .then(|| Overflow { budget_bytes: budget, critical_bytes: critical.max("{}".len()) });
        if overflow.is_none() {
            let room = layout.allowances(budget, critical, options.shares);
            for (layer, allowance) in
                [Layer::Important, Layer::Useful, Layer::Ephemeral].into_iter().zip(room)
            {
                layout.keep(layer, allowance);
            }
        }
        let mut writer = Writer { leaves: layout.into_leaves().into_iter(), omissions: Vec::new() };
        let context = writer.members(classification.members());
        Self { size_bytes: object_size(&context), context, omissions: writer.omissions, overflow }
    }
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
        let shown = leaf.kept.map(|bytes| condense(leaf.value, bytes));
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
