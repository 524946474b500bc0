//! Views within a budget: the part of a context that is shown if the whole context does not fit.
//!
//! Critical values are always complete. The other layers share the remaining space: IMPORTANT and USEFUL each
//! get their share of the budget, an unused share goes to the next layer, and EPHEMERAL gets the rest. Within
//! a layer, short values stay complete and long ones are shortened evenly. The longest values are omitted
//! only if there is no space for a useful part of each.
//!
//! A budget in bytes is for the context alone. A budget in tokens also covers the list of omissions. The list has at most
//! [`MAX_OMISSIONS`] entries, because a context may have hundreds of thousands of keys.

use std::ops::Range;

use baton_core::estimate_tokens;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condense::{Emphasis, condense};
use super::fair_cap::take_room;
use super::layout::{Layout, Level};
use crate::classify::{Classification, Layer, Shares};

/// Maximum number of omissions that are listed.
const MAX_OMISSIONS: usize = 1_000;

/// Tokens of a view report besides its omissions: sizes, budget and the hint how to load the rest.
const REPORT_TOKENS: usize = 80;
/// Maximum part of a token budget for the list of omissions: one in this many tokens.
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
    /// The context as compact JSON, shortened to the budget.
    pub context: String,
    /// Size as compact JSON in bytes.
    pub size_bytes: usize,
    /// Estimated tokens as compact JSON.
    pub tokens: usize,
    /// Values that were shortened or omitted, in the order of the keys.
    pub omissions: Vec<Omission>,
    /// Further omissions that are not listed.
    pub unlisted: Option<Unlisted>,
    /// Set when the critical values alone exceed the budget.
    pub overflow: Option<Overflow>,
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
    /// `condensed` if a part of the value is left, `left_out` if nothing is.
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
    /// Maximum size of the view in bytes that the caller asked for.
    pub budget_bytes: usize,
    /// Size of the critical values in bytes.
    pub critical_bytes: usize,
}

impl View {
    /// Creates the view of a classified context.
    ///
    /// The view is never larger than the budget unless [`View::overflow`] is set. Critical values are
    /// unchanged. A larger byte budget never omits a key that a smaller one contains.
    pub fn of(classification: &Classification<'_>, options: ViewOptions) -> Self {
        match options.budget {
            Budget::Bytes(bytes) => Self::within_bytes(classification, bytes, options),
            Budget::Tokens(tokens) => Self::within_tokens(classification, tokens, options),
        }
    }

    fn within_bytes(classification: &Classification<'_>, budget: usize, options: ViewOptions) -> Self {
        if classification.context().size() <= budget {
            return Self::whole(classification);
        }
        let mut layout = Layout::new(classification, options.level);
        let Draft { context, omitted, overflow } = Draft::new(&mut layout, budget, options.shares);
        let list = OmissionList::new(classification, &omitted, usize::MAX);
        Self::new(context, list, overflow)
    }

    /// Finds the byte budget whose view has at most `budget` tokens. Bytes per token differ by a factor of two between
    /// contexts, so the ratio of this context is measured and corrected until the view fits.
    fn within_tokens(classification: &Classification<'_>, budget: usize, options: ViewOptions) -> Self {
        let whole = classification.context();
        let whole_tokens = estimate_tokens(whole.as_str());
        if whole_tokens <= budget {
            return Self::whole(classification);
        }
        let mut layout = Layout::new(classification, options.level);
        let critical_bytes = layout.keep_critical().max("{}".len());
        let room = budget.saturating_sub(REPORT_TOKENS + budget / OMISSION_SHARE);
        let mut bytes = scale(whole.size(), room, whole_tokens);
        let mut attempts = 0;
        loop {
            bytes = bytes.max(critical_bytes);
            let Draft { context, omitted, overflow } = Draft::new(&mut layout, bytes, options.shares);
            let list = OmissionList::new(classification, &omitted, budget / OMISSION_SHARE);
            let tokens = estimate_tokens(&context) + list.tokens() + REPORT_TOKENS;
            if tokens <= budget {
                return Self::new(context, list, overflow);
            }
            if bytes == critical_bytes {
                let mut view = Self::new(context, OmissionList::new(classification, &omitted, 0), None);
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

    fn whole(classification: &Classification<'_>) -> Self {
        let nothing = OmissionList { listed: Vec::new(), unlisted: None };
        Self::new(classification.context().as_str().to_owned(), nothing, None)
    }

    fn new(context: String, list: OmissionList, overflow: Option<Overflow>) -> Self {
        Self {
            size_bytes: context.len(),
            tokens: estimate_tokens(&context),
            context,
            omissions: list.listed,
            unlisted: list.unlisted,
            overflow,
        }
    }
}

/// Omissions as they are reported: the largest, and the number of the others.
struct OmissionList {
    listed: Vec<Omission>,
    unlisted: Option<Unlisted>,
}

impl OmissionList {
    /// Lists the largest omissions that fit into a number of tokens, in the order of the keys, and counts the others.
    fn new(classification: &Classification<'_>, omitted: &[Omitted], tokens: usize) -> Self {
        let size = |index: usize| classification.value(omitted[index].key as usize).size();
        let largest_first = |index: &usize| (std::cmp::Reverse(size(*index)), *index);
        let mut order: Vec<usize> = (0..omitted.len()).collect();
        if order.len() > MAX_OMISSIONS {
            order.select_nth_unstable_by_key(MAX_OMISSIONS, largest_first);
            order.truncate(MAX_OMISSIONS);
        }
        order.sort_unstable_by_key(largest_first);
        let mut left = tokens;
        let fits = |(_, omission): &(usize, Omission)| take_room(&mut left, json_tokens(omission));
        let listed = order.into_iter().map(|index| (index, omitted[index].report(classification)));
        let mut listed: Vec<(usize, Omission)> = listed.take_while(fits).collect();
        listed.sort_unstable_by_key(|(index, _)| *index);
        let listed: Vec<Omission> = listed.into_iter().map(|(_, omission)| omission).collect();
        let all_bytes: usize = (0..omitted.len()).map(size).sum();
        let unlisted = Unlisted {
            count: omitted.len() - listed.len(),
            original_bytes: all_bytes - listed.iter().map(|omission| omission.original_bytes).sum::<usize>(),
        };
        Self { listed, unlisted: (unlisted.count > 0).then_some(unlisted) }
    }

    fn tokens(&self) -> usize {
        json_tokens(&self.listed) + self.unlisted.as_ref().map_or(0, json_tokens)
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

/// A key that was shortened or omitted. Only listed omissions get a path.
struct Omitted {
    /// Index of the key in the classification.
    key: u32,
    /// Bytes in the view; 0 if the value was omitted.
    kept_bytes: u32,
    layer: Layer,
}

impl Omitted {
    fn new(key: usize, layer: Layer, kept_bytes: usize) -> Self {
        let narrow = |number| u32::try_from(number).unwrap_or(u32::MAX);
        Self { key: narrow(key), kept_bytes: narrow(kept_bytes), layer }
    }

    fn report(&self, classification: &Classification<'_>) -> Omission {
        Omission {
            path: classification.path(self.key as usize),
            layer: self.layer,
            kind: if self.kept_bytes > 0 { OmissionKind::Condensed } else { OmissionKind::LeftOut },
            original_bytes: classification.value(self.key as usize).size(),
            kept_bytes: self.kept_bytes as usize,
        }
    }
}

/// A context that is shortened to a number of bytes.
struct Draft {
    context: String,
    /// Omissions in the order of the keys.
    omitted: Vec<Omitted>,
    overflow: Option<Overflow>,
}

impl Draft {
    fn new(layout: &mut Layout<'_, '_>, budget: usize, shares: Shares) -> Self {
        layout.clear();
        let critical_bytes = layout.keep_critical().max("{}".len());
        let overflow = (critical_bytes > budget).then_some(Overflow { budget_bytes: budget, critical_bytes });
        if overflow.is_none() {
            let room = layout.allowances(budget, critical_bytes, shares);
            for (layer, allowance) in
                [Layer::Important, Layer::Useful, Layer::Ephemeral].into_iter().zip(room)
            {
                layout.keep(layer, allowance);
            }
        }
        let classification = layout.classification();
        let mut writer = Writer { classification, layout, text: String::new(), omitted: Vec::new() };
        writer.object(0..classification.len());
        Self { context: writer.text, omitted: writer.omitted, overflow }
    }
}

/// Writes the kept values and records the omitted ones.
struct Writer<'c, 'a> {
    classification: &'c Classification<'a>,
    layout: &'c Layout<'c, 'a>,
    text: String,
    omitted: Vec<Omitted>,
}

impl Writer<'_, '_> {
    /// Writes an object with the keys in a range.
    fn object(&mut self, keys: Range<usize>) {
        self.text.push('{');
        let mut index = keys.start;
        while index < keys.end {
            self.member(index);
            index = self.classification.next(index);
        }
        if self.text.ends_with(',') {
            self.text.pop();
        }
        self.text.push('}');
    }

    fn member(&mut self, index: usize) {
        let (text_length, omissions) = (self.text.len(), self.omitted.len());
        let key = self.classification.key(index);
        self.text.push_str(key.as_str());
        self.text.push(':');
        let is_shown = if self.classification.is_leaf(index) {
            self.leaf(index)
        } else {
            let start = self.text.len();
            self.object(index + 1..self.classification.next(index));
            let is_shown = self.text.len() > start + "{}".len();
            if !is_shown {
                self.merge_omissions(index, omissions);
            }
            is_shown
        };
        if is_shown {
            self.text.push(',');
        } else {
            self.text.truncate(text_length);
        }
    }

    /// Writes a value that is classified as a whole. Returns false if it is omitted.
    fn leaf(&mut self, index: usize) -> bool {
        let (key, value) = (self.classification.key(index), self.classification.value(index));
        let short = self
            .layout
            .shown(index)
            .map(|bytes| condense(value, bytes, || Emphasis::of(&key.decode(), value)));
        if short.as_ref().is_none_or(|short| short.len() != value.size()) {
            let kept_bytes = short.as_ref().map_or(0, |short| short.len());
            self.omitted.push(Omitted::new(index, self.classification.layer(index), kept_bytes));
        }
        self.text.push_str(short.as_deref().unwrap_or_default());
        short.is_some()
    }

    /// Replaces the omissions of a completely omitted object, which begin at `first`, by one omission if all its values
    /// have the same layer.
    fn merge_omissions(&mut self, index: usize, first: usize) {
        let Some(layer) = self.omitted.get(first).map(|omitted| omitted.layer) else { return };
        if self.omitted[first..].iter().all(|omitted| omitted.layer == layer) {
            self.omitted.truncate(first);
            self.omitted.push(Omitted::new(index, layer, 0));
        }
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
