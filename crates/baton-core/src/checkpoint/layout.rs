//! Which parts of a context a view has room for, and how much of each.

use serde_json::Value;

use super::allot::{Want, fair_cap};
use super::condense::min_size;
use super::view::Level;
use crate::classify::{Layer, Member, Shares, member_size};

/// A value that is kept, shortened or left out as one.
pub(super) struct Leaf<'a> {
    pub(super) layer: Layer,
    pub(super) value: &'a Value,
    pub(super) want: Want,
    /// The bytes of its key, colon and comma.
    key_bytes: usize,
    /// The object it is in; none at the top.
    parent: Option<usize>,
    /// How many bytes of the value are shown; none while it is left out.
    pub(super) kept: Option<usize>,
}

/// An object whose members are kept one by one.
struct Holder {
    parent: Option<usize>,
    /// The bytes of its key, colon, braces and comma, less one: its last member has no comma.
    bytes: usize,
    is_kept: bool,
}

/// The context as a list of leaves, in the order in which they are written.
pub(super) struct Layout<'a> {
    leaves: Vec<Leaf<'a>>,
    holders: Vec<Holder>,
}

impl<'a> Layout<'a> {
    pub(super) fn new(members: &[Member<'a>], level: Level) -> Self {
        let mut layout = Self { leaves: Vec::new(), holders: Vec::new() };
        layout.lay_out(members, level, None);
        layout
    }

    fn lay_out(&mut self, members: &[Member<'a>], level: Level, parent: Option<usize>) {
        for member in members {
            let key_bytes = member_size(member.key(), 0) + ",".len();
            if member.members().is_empty() {
                let (layer, full) = (member.explanation().layer, member.explanation().size_bytes);
                let floor = full.min(level.min_piece(layer).max(min_size(member.value())));
                let want = Want { floor, full };
                self.leaves.push(Leaf { layer, value: member.value(), want, key_bytes, parent, kept: None });
            } else {
                self.holders.push(Holder { parent, bytes: key_bytes + "{".len(), is_kept: false });
                self.lay_out(member.members(), level, Some(self.holders.len() - 1));
            }
        }
    }

    /// Gives the leaves away, each with what is kept of it.
    pub(super) fn into_leaves(self) -> Vec<Leaf<'a>> {
        self.leaves
    }

    /// Keeps everything critical and gives the bytes of a context of nothing else.
    pub(super) fn keep_critical(&mut self) -> usize {
        let mut bytes = "{".len();
        for index in self.of_layer(Layer::Critical) {
            bytes += self.cost(index);
            self.take(index);
        }
        bytes
    }

    /// Decides how many bytes IMPORTANT, USEFUL and EPHEMERAL may add to what is critical.
    pub(super) fn allowances(&self, budget: usize, critical: usize, shares: Shares) -> [usize; 3] {
        let share = |layers: &[Layer]| {
            let percent: usize = layers.iter().map(|layer| usize::from(shares.percent(*layer))).sum();
            usize::try_from(budget as u128 * percent as u128 / 100).unwrap_or(budget)
        };
        let [important_need, useful_need] = self.needs();
        let room = budget - critical;
        let own = share(&[Layer::Important]);
        let with_unused = share(&[Layer::Critical, Layer::Important]).saturating_sub(critical);
        let important_share = own.max(with_unused).min(room);
        let important = important_share.min(important_need);
        let useful_share = share(&[Layer::Useful]) + (important_share - important);
        let useful = useful_share.min(useful_need).min(room - important);
        // What is ephemeral goes first, so its share is offered to the others before it gets any of it.
        let important = important_need.min(room - useful);
        let useful = useful_need.min(room - important);
        [important, useful, room - important - useful]
    }

    /// Adds up what IMPORTANT and USEFUL need to be shown whole.
    fn needs(&self) -> [usize; 2] {
        let mut kept: Vec<bool> = self.holders.iter().map(|holder| holder.is_kept).collect();
        [Layer::Important, Layer::Useful].map(|layer| {
            let mut bytes = 0;
            for leaf in self.leaves.iter().filter(|leaf| leaf.layer == layer) {
                bytes += leaf.want.full + leaf.key_bytes;
                let mut parent = leaf.parent;
                while let Some(index) = parent.filter(|index| !kept[*index]) {
                    kept[index] = true;
                    bytes += self.holders[index].bytes;
                    parent = self.holders[index].parent;
                }
            }
            bytes
        })
    }

    /// Keeps as much of a layer as the allowance has room for.
    ///
    /// Leaves are taken in an order that does not depend on the allowance, up to the first that does not fit: so more
    /// room never loses one.
    pub(super) fn keep(&mut self, layer: Layer, allowance: usize) {
        let mut order = self.of_layer(layer);
        order.sort_by_key(|index| (self.leaves[*index].want.floor + self.leaves[*index].key_bytes, *index));
        let mut room = allowance;
        let mut taken = 0;
        for index in &order {
            let Some(rest) = room.checked_sub(self.cost(*index)) else { break };
            room = rest;
            taken += 1;
            self.take(*index);
        }
        order.truncate(taken);
        let wants: Vec<Want> = order.iter().map(|index| self.leaves[*index].want).collect();
        let cap = fair_cap(&wants, room + wants.iter().map(|want| want.floor).sum::<usize>());
        for index in order {
            let leaf = &mut self.leaves[index];
            leaf.kept = Some(leaf.want.at(cap));
        }
    }

    fn of_layer(&self, layer: Layer) -> Vec<usize> {
        (0..self.leaves.len()).filter(|index| self.leaves[*index].layer == layer).collect()
    }

    /// Counts what a leaf adds to the view in its shortest form, with the objects around it that are not there yet.
    fn cost(&self, index: usize) -> usize {
        let leaf = &self.leaves[index];
        let around: usize = self.missing_holders(leaf.parent).map(|holder| self.holders[holder].bytes).sum();
        leaf.want.floor + leaf.key_bytes + around
    }

    fn take(&mut self, index: usize) {
        let missing: Vec<usize> = self.missing_holders(self.leaves[index].parent).collect();
        for holder in missing {
            self.holders[holder].is_kept = true;
        }
        self.leaves[index].kept = Some(self.leaves[index].want.floor);
    }

    fn missing_holders(&self, parent: Option<usize>) -> impl Iterator<Item = usize> {
        let missing = |index: Option<usize>| index.filter(|index| !self.holders[*index].is_kept);
        std::iter::successors(missing(parent), move |index| missing(self.holders[*index].parent))
    }
}
