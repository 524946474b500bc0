//! Distributes limited space fairly among values.

/// Minimum and maximum size of one value, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Want {
    /// Minimum size of a useful value.
    pub(super) floor: usize,
    /// Size of the full value.
    pub(super) full: usize,
}

impl Want {
    /// Returns the size of the value if each value is limited to `cap` or its floor, whichever is larger.
    pub(super) fn at(self, cap: usize) -> usize {
        self.full.min(cap.max(self.floor))
    }
}

/// Returns the largest cap at which all values together fit into `room`. Small values stay complete, large ones are
/// truncated.
///
/// The cap is zero if the sum of all floors exceeds `room`.
pub(super) fn fair_cap(wants: &[Want], room: usize) -> usize {
    let fits = |cap: usize| wants.iter().map(|want| want.at(cap)).sum::<usize>() <= room;
    let (mut low, mut high) = (0, wants.iter().map(|want| want.full).max().unwrap_or(0));
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if fits(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    low
}

/// Subtracts `bytes` from `room` if they fit. Returns false if they do not.
pub(super) const fn take_room(room: &mut usize, bytes: usize) -> bool {
    let Some(rest) = room.checked_sub(bytes) else { return false };
    *room = rest;
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn want(floor: usize, full: usize) -> Want {
        Want { floor, full }
    }

    #[test]
    fn small_values_stay_complete_and_large_ones_share_the_rest() {
        let wants = [want(5, 10), want(20, 500), want(20, 900)];
        let cap = fair_cap(&wants, 210);
        assert_eq!(wants.map(|want| want.at(cap)), [10, 100, 100]);
        let cap = fair_cap(&wants, 2000);
        assert_eq!(wants.map(|want| want.at(cap)), [10, 500, 900]);
        assert_eq!(fair_cap(&[], 10), 0);
    }

    proptest! {
        #[test]
        fn values_whose_floors_fit_also_fit_at_the_cap(
            wants in prop::collection::vec((0..200_usize, 0..2000_usize), 0..20),
            spare in 0..5000_usize,
        ) {
            let wants: Vec<Want> = wants.into_iter().map(|(floor, more)| want(floor, floor + more)).collect();
            let room = wants.iter().map(|want| want.floor).sum::<usize>() + spare;
            let used = |cap: usize| wants.iter().map(|want| want.at(cap)).sum::<usize>();
            let cap = fair_cap(&wants, room);
            prop_assert!(used(cap) <= room);
            prop_assert!(used(cap + 1) > room || used(cap + 1) == used(usize::MAX));
        }
    }
}
