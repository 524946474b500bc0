//! Distributes limited space fairly among values.

/// Minimum and maximum size of one value, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SizeRange {
    /// Minimum size of a useful value.
    pub(super) min: usize,
    /// Size of the full value.
    pub(super) full: usize,
}

impl SizeRange {
    /// Returns the size of the value if each value is limited to `cap` or its minimum, whichever is larger.
    pub(super) fn size_at(self, cap: usize) -> usize {
        self.full.min(cap.max(self.min))
    }
}

/// Returns the largest cap at which all values together fit into `room`. Small values stay complete, large ones are
/// truncated.
///
/// The cap is zero if the sum of all minimums exceeds `room`.
pub(super) fn fair_cap(ranges: &[SizeRange], room: usize) -> usize {
    let fits = |cap: usize| ranges.iter().map(|range| range.size_at(cap)).sum::<usize>() <= room;
    let (mut low, mut high) = (0, ranges.iter().map(|range| range.full).max().unwrap_or(0));
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

    fn range(min: usize, full: usize) -> SizeRange {
        SizeRange { min, full }
    }

    #[test]
    fn small_values_stay_complete_and_large_ones_share_the_rest() {
        let ranges = [range(5, 10), range(20, 500), range(20, 900)];
        let cap = fair_cap(&ranges, 210);
        assert_eq!(ranges.map(|range| range.size_at(cap)), [10, 100, 100]);
        let cap = fair_cap(&ranges, 2000);
        assert_eq!(ranges.map(|range| range.size_at(cap)), [10, 500, 900]);
        assert_eq!(fair_cap(&[], 10), 0);
    }

    proptest! {
        #[test]
        fn values_whose_minimums_fit_also_fit_at_the_cap(
            ranges in prop::collection::vec((0..200_usize, 0..2000_usize), 0..20),
            spare in 0..5000_usize,
        ) {
            let ranges: Vec<SizeRange> = ranges.into_iter().map(|(min, more)| range(min, min + more)).collect();
            let room = ranges.iter().map(|range| range.min).sum::<usize>() + spare;
            let used = |cap: usize| ranges.iter().map(|range| range.size_at(cap)).sum::<usize>();
            let cap = fair_cap(&ranges, room);
            prop_assert!(used(cap) <= room);
            prop_assert!(used(cap + 1) > room || used(cap + 1) == used(usize::MAX));
        }
    }
}
