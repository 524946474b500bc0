//! Number of rounds of long tests.

use std::ops::Mul;

/// Returns the number of rounds of a crash, race or power-cut test: `default` times `BATON_TEST_FACTOR`, which
/// `scripts/test --full` sets to 10.
pub fn rounds<N: From<u8> + Mul<Output = N>>(default: N) -> N {
    let factor = std::env::var("BATON_TEST_FACTOR").ok().and_then(|text| text.parse().ok()).unwrap_or(1_u8);
    N::from(factor) * default
}
