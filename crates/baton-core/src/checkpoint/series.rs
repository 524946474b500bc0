//! How the checkpoints of a workflow lean on each other, so that the hundredth costs the change and not the context.
//!
//! A series begins with a whole context at position 0. Each later position is the difference to one before it: the
//! position with its lowest bit cleared. Half of the steps are differences to the direct neighbour, and yet no position
//! is more than six steps away from the whole one, because a position below 64 has six bits.

use std::collections::BTreeSet;

/// How many checkpoints lean on one whole context at the most.
pub const SERIES_LENGTH: u32 = 64;

/// Where a checkpoint stands in its workflow. Later checkpoints have greater places.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// Which whole context it leans on; counted from 0.
    pub series: u32,
    /// Where it stands after that one; 0 is the whole context itself.
    pub position: u32,
}

impl Place {
    /// The place of the first checkpoint of a workflow.
    pub const FIRST: Self = Self { series: 0, position: 0 };

    /// Gives the place after this one in the same series; none when the series is full.
    pub const fn next_in_series(self) -> Option<Self> {
        let position = self.position + 1;
        if position < SERIES_LENGTH { Some(Self { series: self.series, position }) } else { None }
    }

    /// Gives the first place of the next series.
    pub const fn next_series(self) -> Self {
        Self { series: self.series + 1, position: 0 }
    }

    /// Gives the place that this one is the difference to; none for a whole context.
    pub fn base(self) -> Option<Self> {
        base_of(self.position).map(|position| Self { series: self.series, position })
    }

    /// Gives the positions that are read to get at this one: from the whole context to itself.
    pub fn chain(self) -> Vec<u32> {
        let mut chain: Vec<u32> = std::iter::successors(Some(self.position), |at| base_of(*at)).collect();
        chain.reverse();
        chain
    }
}

/// The position that another one is the difference to; none for the whole context.
const fn base_of(position: u32) -> Option<u32> {
    if position == 0 { None } else { Some(position & (position - 1)) }
}

/// Gives every position of a series that must be kept so that the wanted ones can be read.
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
    fn a_chain_leads_from_the_whole_context_to_the_position() {
        assert_eq!(at(0).chain(), [0]);
        assert_eq!(at(1).chain(), [0, 1]);
        assert_eq!(at(7).chain(), [0, 4, 6, 7]);
        assert_eq!(at(63).chain(), [0, 32, 48, 56, 60, 62, 63]);
    }

    #[test]
    fn a_series_is_full_after_its_length() {
        assert_eq!(at(62).next_in_series(), Some(at(63)));
        assert_eq!(at(63).next_in_series(), None);
        assert_eq!(at(63).next_series(), Place { series: 4, position: 0 });
        assert!(at(63) < at(63).next_series());
    }

    proptest! {
        #[test]
        fn chains_are_short_and_go_up(position in 0..SERIES_LENGTH) {
            let chain = at(position).chain();
            prop_assert!(chain.len() <= 7);
            prop_assert!(chain.is_sorted_by(|a, b| a < b));
            prop_assert_eq!((chain.first(), chain.last()), (Some(&0), Some(&position)));
        }

        #[test]
        fn what_is_needed_is_closed(wanted in prop::collection::btree_set(0..SERIES_LENGTH, 0..20)) {
            let needed = needed_positions(wanted.iter().copied());
            prop_assert!(needed.is_superset(&wanted));
            prop_assert_eq!(&needed_positions(needed.iter().copied()), &needed);
        }
    }
}
