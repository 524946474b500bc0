//! Repeated power cuts of one recording.
#![expect(clippy::expect_used, clippy::print_stdout, reason = "a test without its image must fail loudly")]

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::Path;

use super::{Damage, Recording};
use crate::contract::fixture::Dice;

/// Cuts the power `count` times. Each time, the folder is replaced with a possible state of the disk after
/// the cut, and `check` is called with the number of operations before the cut.
///
/// Every second cut is made directly after one of `acknowledged`, the positions at which a client got an
/// acknowledgement: nothing acknowledged may be lost then. If a check fails, the image is kept and its path is printed.
///
/// # Panics
///
/// Panics if an image cannot be written, or if `check` panics.
pub fn check_each_cut(
    recording: &Recording,
    folder: &Path,
    acknowledged: &[usize],
    count: u64,
    mut check: impl FnMut(usize),
) {
    let mut dice = Dice::new(RandomState::new().build_hasher().finish());
    for number in 0..count {
        let cut = if number.is_multiple_of(2) && !acknowledged.is_empty() {
            dice.pick(acknowledged)
        } else {
            usize::try_from(dice.below(recording.len() as u64 + 1)).expect("a position")
        };
        let damage = dice.pick(&Damage::ALL);
        let seed = dice.below(u64::MAX);
        recording.write_image(cut, damage, seed, folder).expect("the image can be written");
        let _kept = KeptOnFailure { recording, cut, damage, seed };
        check(cut);
    }
}

/// Writes the image of a cut to a separate folder if its check fails.
struct KeptOnFailure<'a> {
    recording: &'a Recording,
    cut: usize,
    damage: Damage,
    seed: u64,
}

impl Drop for KeptOnFailure<'_> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            return;
        }
        let Self { recording, cut, damage, seed } = self;
        println!(
            "the power was cut after {cut} of {} operations with {damage:?}, seed {seed}",
            recording.len()
        );
        let kept = tempfile::Builder::new().prefix("power-cut-").disable_cleanup(true).tempdir();
        if let Ok(kept) = kept
            && recording.write_image(*cut, *damage, *seed, kept.path()).is_ok()
        {
            println!("the disk at that moment is in {}", kept.path().display());
        }
    }
}
