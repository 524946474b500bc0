use proptest::prelude::*;

use super::*;

const PACKINGS: [Packing; 3] = [
    Packing { effort: Effort::Basic, min_bytes: 0 },
    Packing { effort: Effort::Standard, min_bytes: 0 },
    Packing { effort: Effort::Aggressive, min_bytes: 0 },
];

fn prose(seed: u64, bytes: usize) -> Vec<u8> {
    let words = ["cache", "login", "the", "failing", "test", "plan", "decided", "retry", "because", "module"];
    let mut text = String::new();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    while text.len() < bytes {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        text.push_str(words[(state % 10) as usize]);
        text.push_str(&(state % 1000).to_string());
        text.push(' ');
    }
    text.truncate(bytes);
    text.into_bytes()
}

#[test]
fn deltas_of_small_changes_are_small_at_every_size() {
    for bytes in [2_000, 100_000, 1_000_000, 3_900_000, 4_500_000, MAX_FRAME_BYTES - 100] {
        let base = prose(1, bytes);
        let mut context = base.clone();
        context.splice(bytes / 2..bytes / 2, prose(2, 100));
        for packing in PACKINGS {
            let packed = packing.delta(&context, &base).unwrap().unwrap();
            // Each unchanged block of 128 KiB takes a few bytes.
            let allowed = 1_000 + bytes / 10_000;
            assert!(packed.bytes.len() < allowed, "{bytes} bytes: {} with {packing:?}", packed.bytes.len());
            let hash = Sha256Hash::of(&context);
            assert_eq!(packed.unpack(Some(&base), context.len(), Some(hash)).unwrap(), context);
        }
    }
}

#[test]
fn short_contexts_and_effort_off_are_not_compressed() {
    let short = Packing { effort: Effort::Standard, min_bytes: 1024 };
    let off = Packing { effort: Effort::Off, min_bytes: 0 };
    for (packing, context) in [(short, prose(1, 1023)), (off, prose(1, 5000))] {
        let packed = packing.whole(&context).unwrap();
        assert_eq!(packed, Packed { encoding: Encoding::Plain, bytes: context.clone() });
        assert_eq!(packing.delta(&context, &context).unwrap(), None);
        assert_eq!(packed.unpack(None, context.len(), Some(Sha256Hash::of(&context))).unwrap(), context);
    }
}

#[test]
fn decompression_stops_at_the_recorded_size() {
    let zeros = vec![b' '; 8 * 1024 * 1024];
    let bomb = PACKINGS[1].whole(&zeros).unwrap();
    assert!(bomb.bytes.len() < 2_000);
    assert!(matches!(
        bomb.unpack(None, 1_000, Some(Sha256Hash::of(&zeros))),
        Err(FrameError::Damaged { .. })
    ));
    let huge = bomb.unpack(None, MAX_FRAME_BYTES + 1, Some(Sha256Hash::of(&zeros)));
    assert!(matches!(huge, Err(FrameError::TooLarge { .. })));
}

#[test]
fn oversized_contexts_are_rejected() {
    let context = vec![b'x'; MAX_FRAME_BYTES + 1];
    assert_eq!(PACKINGS[0].whole(&context), Err(FrameError::TooLarge { bytes: context.len() }));
    let fits = &context[..MAX_FRAME_BYTES];
    let packed = PACKINGS[0].whole(fits).unwrap();
    assert_eq!(packed.unpack(None, fits.len(), Some(Sha256Hash::of(fits))).unwrap(), fits);
}

#[test]
fn delta_without_its_base_or_with_another_base_is_damaged() {
    let (base, context) = (prose(1, 5_000), prose(1, 6_000));
    let packed = PACKINGS[1].delta(&context, &base).unwrap().unwrap();
    let hash = Sha256Hash::of(&context);
    assert!(packed.unpack(None, context.len(), Some(hash)).is_err());
    assert!(packed.unpack(Some(&prose(2, 5_000)), context.len(), Some(hash)).is_err());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn packed_contexts_unpack_to_the_original(
        base in prop::collection::vec(any::<u8>(), 0..3000),
        context in prop::collection::vec(any::<u8>(), 0..3000),
    ) {
        let hash = Sha256Hash::of(&context);
        for packing in PACKINGS {
            let whole = packing.whole(&context).unwrap();
            prop_assert_eq!(whole.unpack(None, context.len(), Some(hash)), Ok(context.clone()));
            let delta = packing.delta(&context, &base).unwrap().unwrap();
            prop_assert_eq!(delta.unpack(Some(&base), context.len(), Some(hash)), Ok(context.clone()));
        }
    }

    #[test]
    fn damaged_deltas_never_yield_another_context(at in any::<prop::sample::Index>(), bit in 0..8u8) {
        let (base, context) = (prose(1, 3_000), prose(3, 3_000));
        let hash = Sha256Hash::of(&context);
        let sound = PACKINGS[1].delta(&context, &base).unwrap().unwrap();
        let index = at.index(sound.bytes.len());
        let mut flipped = sound.clone();
        flipped.bytes[index] ^= 1 << bit;
        if let Ok(read) = flipped.unpack(Some(&base), context.len(), Some(hash)) {
            prop_assert_eq!(read, context.clone());
        }
        let mut cut = sound;
        cut.bytes.truncate(index);
        prop_assert!(cut.unpack(Some(&base), context.len(), Some(hash)).is_err());
    }
}
