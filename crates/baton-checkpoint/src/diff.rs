//! Differences between two contexts, by path.

use std::cmp::Ordering;
use std::collections::HashMap;

use baton_core::{JsonKind, JsonText, compare_keys};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::condense::{Emphasis, condense};
use crate::classify::{push_index, push_key};

/// Maximum number of items of arrays that are aligned. Longer arrays are compared item by item.
const MAX_ALIGNED_ITEMS: usize = 500;

/// Limits of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiffLimits {
    /// Size in bytes of JSON to which values are shortened.
    pub max_value_bytes: usize,
    /// Maximum number of listed changes. Further changes are only counted.
    pub max_changes: usize,
}

impl Default for DiffLimits {
    fn default() -> Self {
        Self { max_value_bytes: 512, max_changes: 500 }
    }
}

/// Kind of change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline)]
pub enum ChangeKind {
    /// The value exists only in the later context.
    Added,
    /// The value exists only in the earlier context.
    Removed,
    /// The value differs.
    Changed,
}

/// One changed value.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// Path of the value. Array indexes refer to the later context, or to the earlier one for removed items.
    pub path: String,
    /// `added`, `removed` or `changed`.
    pub kind: ChangeKind,
    /// Earlier value, shortened; null if it was added.
    pub old: Option<Value>,
    /// Later value, shortened; null if it was removed.
    pub new: Option<Value>,
}

/// Differences between two contexts.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Diff {
    /// Changes, in the order of the keys.
    pub changes: Vec<Change>,
    /// Number of added values.
    pub added: usize,
    /// Number of removed values.
    pub removed: usize,
    /// Number of changed values.
    pub changed: usize,
    /// Number of changes that are counted but not listed.
    pub unlisted: usize,
}

impl Diff {
    /// Compares an older context with a newer one, both as canonical JSON. Equal contexts give an empty difference.
    pub fn between(old: JsonText<'_>, new: JsonText<'_>, limits: DiffLimits) -> Self {
        let mut comparison = Comparison { diff: Self::default(), path: String::new(), limits };
        comparison.compare_members(old, new);
        comparison.diff
    }

    /// Returns true if the contexts are equal.
    pub const fn is_empty(&self) -> bool {
        self.added + self.removed + self.changed == 0
    }
}

struct Comparison {
    diff: Diff,
    path: String,
    limits: DiffLimits,
}

impl Comparison {
    fn compare_members(&mut self, old: JsonText<'_>, new: JsonText<'_>) {
        let (mut old, mut new) = (old.members().peekable(), new.members().peekable());
        loop {
            let order = match (old.peek(), new.peek()) {
                (None, None) => return,
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(old), Some(new)) => compare_keys(&old.key.decode(), &new.key.decode()),
            };
            let old = if order == Ordering::Greater { None } else { old.next() };
            let new = if order == Ordering::Less { None } else { new.next() };
            let Some(key) = old.or(new).map(|member| member.key.decode()) else { return };
            let (old, new) = (old.map(|member| member.value), new.map(|member| member.value));
            self.within(|path| push_key(path, &key), |this| this.compare_values(old, new));
        }
    }

    fn compare_values(&mut self, old: Option<JsonText<'_>>, new: Option<JsonText<'_>>) {
        match (old, new) {
            (old, new) if old == new => {}
            (Some(old), Some(new)) => match (old.kind(), new.kind()) {
                (JsonKind::Object, JsonKind::Object) => self.compare_members(old, new),
                (JsonKind::Array, JsonKind::Array) => {
                    self.compare_items(&old.items().collect::<Vec<_>>(), &new.items().collect::<Vec<_>>());
                }
                _ => self.record(Some(old), Some(new)),
            },
            (old, new) => self.record(old, new),
        }
    }

    fn compare_items(&mut self, old: &[JsonText<'_>], new: &[JsonText<'_>]) {
        let prefix = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let rest = old[prefix..].iter().rev().zip(new[prefix..].iter().rev());
        let suffix = rest.take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[prefix..old.len() - suffix], &new[prefix..new.len() - suffix]);
        let mut from = (0, 0);
        for (old_index, new_index) in alignment(old, new).into_iter().chain([(old.len(), new.len())]) {
            self.compare_gap(
                &old[from.0..old_index],
                &new[from.1..new_index],
                prefix + from.0,
                prefix + from.1,
            );
            from = (old_index + 1, new_index + 1);
        }
    }

    /// Compares the items between two equal items: first in pairs, then the remaining items of the longer
    /// side.
    fn compare_gap(
        &mut self,
        old: &[JsonText<'_>],
        new: &[JsonText<'_>],
        old_start: usize,
        new_start: usize,
    ) {
        for offset in 0..old.len().max(new.len()) {
            let index = if offset < new.len() { new_start + offset } else { old_start + offset };
            self.within(
                |path| push_index(path, index),
                |this| this.compare_values(old.get(offset).copied(), new.get(offset).copied()),
            );
        }
    }

    fn within(&mut self, step: impl FnOnce(&mut String), compare: impl FnOnce(&mut Self)) {
        let length = self.path.len();
        step(&mut self.path);
        compare(self);
        self.path.truncate(length);
    }

    fn record(&mut self, old: Option<JsonText<'_>>, new: Option<JsonText<'_>>) {
        let (kind, count) = match (old, new) {
            (None, _) => (ChangeKind::Added, &mut self.diff.added),
            (_, None) => (ChangeKind::Removed, &mut self.diff.removed),
            (Some(_), Some(_)) => (ChangeKind::Changed, &mut self.diff.changed),
        };
        *count += 1;
        if self.diff.changes.len() == self.limits.max_changes {
            self.diff.unlisted += 1;
            return;
        }
        let clip = |value: JsonText<'_>| {
            let text = condense(value, self.limits.max_value_bytes, || Emphasis::Start);
            serde_json::from_str(&text).ok()
        };
        let (old, new) = (old.and_then(clip), new.and_then(clip));
        self.diff.changes.push(Change { path: self.path.clone(), kind, old, new });
    }
}

/// Pairs the items of a longest common subsequence; none for arrays that are too long to align.
fn alignment(old: &[JsonText<'_>], new: &[JsonText<'_>]) -> Vec<(usize, usize)> {
    if old.is_empty() || new.is_empty() || old.len().max(new.len()) > MAX_ALIGNED_ITEMS {
        return Vec::new();
    }
    let mut numbers = HashMap::new();
    let mut number = |value| {
        let next = numbers.len();
        *numbers.entry(value).or_insert(next)
    };
    let old: Vec<usize> = old.iter().map(&mut number).collect();
    let new: Vec<usize> = new.iter().map(&mut number).collect();
    let width = new.len() + 1;
    let mut lengths = vec![0_u16; (old.len() + 1) * width];
    for (i, a) in old.iter().enumerate().rev() {
        for (j, b) in new.iter().enumerate().rev() {
            let (down, right) = (lengths[(i + 1) * width + j], lengths[i * width + j + 1]);
            let both = lengths[(i + 1) * width + j + 1] + 1;
            lengths[i * width + j] = if a == b { both } else { down.max(right) };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut pairs = Vec::new();
    while i < old.len() && j < new.len() {
        if old[i] == new[j] {
            pairs.push((i, j));
            (i, j) = (i + 1, j + 1);
        } else if lengths[(i + 1) * width + j] >= lengths[i * width + j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    pairs
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
