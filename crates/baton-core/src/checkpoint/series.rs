//! Delta chains of the checkpoints of a workflow: a checkpoint is stored as the difference from an earlier
//! one.
//!
//! A series starts with a full context at position 0. Each later position is stored as the difference from
//! its base: the position with the lowest set bit cleared. Half of the positions are differences from their
//! direct predecessor, and a chain has at most six differences, because positions below 64 have six bits.

use std::collections::BTreeSet;

/// Maximum number of checkpoints in a series, including the full context.
pub const SERIES_LENGTH: u32 = 64;

/// Position of a checkpoint in its workflow. Later checkpoints compare greater.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Number of the series, from 0.
    pub series: u32,
    /// Position in the series; 0 is the full context.
    pub position: u32,
}

impl Place {
    /// Place of the first checkpoint of a workflow.
    pub const FIRST: Self = Self { series: 0, position: 0 };

    /// Returns the next place in the same series; `None` if the series is full.
    pub const fn next_in_series(self) -> Option<Self> {
        let position = self.position + 1;
        if position < SERIES_LENGTH { Some(Self { series: self.series, position }) } else { None }
    }

    /// Returns the first place of the next series.
    pub const fn next_series(self) -> Self {
        Self { series: self.series + 1, position: 0 }
    }

    /// Returns the base of the difference; `None` for a full context.
    pub fn base(self) -> Option<Self> {
        base_of(self.position).map(|position| Self { series: self.series, position })
    }

    /// Returns the positions needed to restore this one, from the full context to this position.
    pub fn chain(self) -> Vec<u32> {
        let mut chain: Vec<u32> = std::iter::successors(Some(self.position), |at| base_of(*at)).collect();
        chain.reverse();
        chain
    }
}

const fn base_of(position: u32) -> Option<u32> {
    if position == 0 { None } else { Some(position & (position - 1)) }
}

/// Returns all positions of a series that are needed to restore the wanted ones.
pub fn needed_positions(wanted: impl IntoIterator<Item = u32>) -> BTreeSet<u32> {
    wanted.into_iter().flat_map(|position| Place { series: 0, position }.chain()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(position: u32) -> Place {
        Place { series: 3, position }
    }

    #[test]
    fn chain_starts_at_the_full_context_and_ends_at_the_position() {
        assert_eq!(at(0).chain(), [0]);
        assert_eq!(at(1).chain(), [0, 1]);
        assert_eq!(at(7).chain(), [0, 4, 6, 7]);
        assert_eq!(at(63).chain(), [0, 32, 48, 56, 60, 62, 63]);
    }

    #[test]
    fn series_is_full_after_64_checkpoints() {
        assert_eq!(at(62).next_in_series(), Some(at(63)));
        assert_eq!(at(63).next_in_series(), None);
        assert_eq!(at(63).next_series(), Place { series: 4, position: 0 });
        assert!(at(63) < at(63).next_series());
    }

    proptest! {
        #[test]
        fn chains_are_short_and_increasing(position in 0..SERIES_LENGTH) {
            let chain = at(position).chain();
            prop_assert!(chain.len() <= 7);
            prop_assert!(chain.is_sorted_by(|a, b| a < b));
            prop_assert_eq!((chain.first(), chain.last()), (Some(&0), Some(&position)));
        }

        #[test]
        fn needed_positions_include_all_bases(wanted in prop::collection::btree_set(0..SERIES_LENGTH, 0..20)) {
            let needed = needed_positions(wanted.iter().copied());
            prop_assert!(needed.is_superset(&wanted));
            prop_assert_eq!(&needed_positions(needed.iter().copied()), &needed);
        }
    }
}
