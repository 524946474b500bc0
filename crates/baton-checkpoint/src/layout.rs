//! Selects the parts of a context that fit into a view, and the size of each part.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::condense::min_size;
use super::fair_cap::{SizeRange, fair_cap};
use crate::classify::{Classification, Layer, Shares};

/// Length and number of excerpts.
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
    const fn min_piece(self, layer: Layer) -> usize {
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

/// Shown size of each key of a context.
pub(super) struct Layout<'c, 'a> {
    classification: &'c Classification<'a>,
    /// One slot for each key that is classified separately.
    slots: Vec<Slot>,
}

/// Shown size of a key. A context has less than 4 GiB.
#[derive(Clone, Copy)]
struct Slot {
    /// Minimum bytes of the value, if it is shown at all; unused for an object whose members are kept one by one.
    floor: u32,
    /// Bytes of the value that are shown.
    shown: u32,
    is_kept: bool,
}

impl<'c, 'a> Layout<'c, 'a> {
    pub(super) fn new(classification: &'c Classification<'a>, level: Level) -> Self {
        let slot = |index: usize| {
            let floor = if classification.is_leaf(index) {
                let (value, min_piece) =
                    (classification.value(index), level.min_piece(classification.layer(index)));
                if value.size() <= min_piece { value.size() } else { min_piece.max(min_size(value)) }
            } else {
                0
            };
            Slot { floor: u32::try_from(floor).unwrap_or(u32::MAX), shown: 0, is_kept: false }
        };
        Self { classification, slots: (0..classification.len()).map(slot).collect() }
    }

    pub(super) const fn classification(&self) -> &'c Classification<'a> {
        self.classification
    }

    /// Omits everything again.
    pub(super) fn clear(&mut self) {
        for slot in &mut self.slots {
            slot.is_kept = false;
        }
    }

    /// Returns the number of shown bytes of a value; `None` if it is omitted.
    pub(super) fn shown(&self, index: usize) -> Option<usize> {
        let slot = self.slots[index];
        slot.is_kept.then_some(slot.shown as usize)
    }

    /// Keeps all critical values and returns the size of a context that contains only them.
    pub(super) fn keep_critical(&mut self) -> usize {
        let mut bytes = "{".len();
        for index in self.of_layer(Layer::Critical) {
            bytes += self.cost(index);
            self.take(index);
        }
        bytes
    }

    /// Decides how many bytes IMPORTANT, USEFUL and EPHEMERAL may add to the critical values.
    pub(super) fn allowances(&self, budget: usize, critical: usize, shares: Shares) -> [usize; 3] {
        let share = |layers: &[Layer]| {
            let percent: usize = layers.iter().map(|layer| usize::from(shares.percent(*layer))).sum();
            usize::try_from(budget as u128 * percent as u128 / 100).unwrap_or(budget)
        };
        let [important_need, useful_need] = self.needs();
        let room = budget - critical;
        let own = share(&[Layer::Important]);
        // IMPORTANT also gets what the critical values leave of their share.
        let with_unused = share(&[Layer::Critical, Layer::Important]).saturating_sub(critical);
        let important_share = own.max(with_unused).min(room);
        let important = important_share.min(important_need);
        let useful_share = share(&[Layer::Useful]) + (important_share - important);
        let useful = useful_share.min(useful_need).min(room - important);
        // Ephemeral values are omitted first, so the other layers get their share before them.
        let important = important_need.min(room - useful);
        let useful = useful_need.min(room - important);
        [important, useful, room - important - useful]
    }

    /// Sums the bytes that IMPORTANT and USEFUL need to be shown completely.
    fn needs(&self) -> [usize; 2] {
        let mut kept: Vec<bool> = self.slots.iter().map(|slot| slot.is_kept).collect();
        [Layer::Important, Layer::Useful].map(|layer| {
            let mut bytes = 0;
            for leaf in self.of_layer(layer) {
                bytes += self.classification.value(leaf).size() + self.key_bytes(leaf);
                let mut parent = self.classification.parent(leaf);
                while let Some(index) = parent.filter(|index| !kept[*index]) {
                    kept[index] = true;
                    bytes += self.object_bytes(index);
                    parent = self.classification.parent(index);
                }
            }
            bytes
        })
    }

    /// Keeps as much of a layer as fits into the allowance.
    ///
    /// Leaves are taken in an order that does not depend on the allowance, up to the first that does not fit,
    /// so a larger allowance never omits a leaf that a smaller one keeps.
    pub(super) fn keep(&mut self, layer: Layer, allowance: usize) {
        let mut order: Vec<usize> = self.of_layer(layer).collect();
        order.sort_unstable_by_key(|index| (self.size_range(*index).min + self.key_bytes(*index), *index));
        let mut room = allowance;
        let mut taken = 0;
        for index in &order {
            let Some(rest) = room.checked_sub(self.cost(*index)) else { break };
            room = rest;
            taken += 1;
            self.take(*index);
        }
        order.truncate(taken);
        let ranges: Vec<SizeRange> = order.iter().map(|index| self.size_range(*index)).collect();
        let cap = fair_cap(&ranges, room + ranges.iter().map(|range| range.min).sum::<usize>());
        for (index, range) in order.into_iter().zip(ranges) {
            self.slots[index].shown = u32::try_from(range.size_at(cap)).unwrap_or(u32::MAX);
        }
    }

    /// Lists the values of a layer that are classified as a whole.
    fn of_layer(&self, layer: Layer) -> impl Iterator<Item = usize> + use<'c, 'a> {
        let classification = self.classification;
        let is_wanted =
            move |index: &usize| classification.layer(*index) == layer && classification.is_leaf(*index);
        (0..classification.len()).filter(is_wanted)
    }

    fn size_range(&self, index: usize) -> SizeRange {
        SizeRange { min: self.slots[index].floor as usize, full: self.classification.value(index).size() }
    }

    /// Returns the bytes of a key, its colon and its comma.
    fn key_bytes(&self, index: usize) -> usize {
        self.classification.key(index).size() + ":,".len()
    }

    /// Returns the bytes that an object adds besides its members: key, colon, comma and braces, less the comma that its
    /// last member does not have.
    fn object_bytes(&self, index: usize) -> usize {
        self.key_bytes(index) + "{".len()
    }

    /// Returns the number of bytes that a leaf adds to the view in its shortest form, including enclosing
    /// objects that are not kept yet.
    fn cost(&self, index: usize) -> usize {
        let around: usize = self.missing_parents(index).map(|parent| self.object_bytes(parent)).sum();
        self.size_range(index).min + self.key_bytes(index) + around
    }

    fn take(&mut self, index: usize) {
        let missing: Vec<usize> = self.missing_parents(index).collect();
        for parent in missing {
            self.slots[parent].is_kept = true;
        }
        let slot = &mut self.slots[index];
        (slot.is_kept, slot.shown) = (true, slot.floor);
    }

    /// Lists the enclosing objects of a leaf that are not kept yet.
    fn missing_parents(&self, leaf: usize) -> impl Iterator<Item = usize> {
        let missing =
            |index: usize| self.classification.parent(index).filter(|parent| !self.slots[*parent].is_kept);
        std::iter::successors(missing(leaf), move |index| missing(*index))
    }
}
