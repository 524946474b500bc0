//! Sharing room among values that want more than there is.

/// What one value needs at least and at most, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Want {
    /// Below this it is not worth having.
    pub(super) floor: usize,
    /// Above this it gains nothing.
    pub(super) full: usize,
}

impl Want {
    /// Gives what the value gets when no value may have more than `cap`, except to reach its floor.
    pub(super) fn at(self, cap: usize) -> usize {
        self.full.min(cap.max(self.floor))
    }
}

/// Finds the largest cap at which all values together fit into `room`: small ones stay whole, large ones are cut.
///
/// Their floors have to fit; the cap is zero when they do not.
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn want(floor: usize, full: usize) -> Want {
        Want { floor, full }
    }

    #[test]
    fn small_values_stay_whole_and_large_ones_share_the_rest() {
        let wants = [want(5, 10), want(20, 500), want(20, 900)];
        let cap = fair_cap(&wants, 210);
        assert_eq!(wants.map(|want| want.at(cap)), [10, 100, 100]);
        let cap = fair_cap(&wants, 2000);
        assert_eq!(wants.map(|want| want.at(cap)), [10, 500, 900]);
        assert_eq!(fair_cap(&[], 10), 0);
    }

    proptest! {
        #[test]
        fn what_fits_by_its_floors_fits_at_the_cap(
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
