//! Timestamps: whole milliseconds since the Unix epoch internally, RFC 3339 on the wire.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::wire::wire_text;

/// Reason why a text is not a timestamp.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("time must be RFC 3339, like 2026-01-17T10:00:00.000Z")]
pub struct TimeError;

/// Reason why a number of milliseconds is not a timestamp.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("is not a time of the years 1970 to 9999")]
pub struct TimeRangeError;

/// A point in time, to the millisecond, in UTC.
///
/// Values are limited to the years 1970 to 9999, so every RFC 3339 form has exactly 24 characters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Timestamp(i64);

/// 9999-12-30T22:00:00Z, the last time whose year has four digits at every UTC offset.
const MAX_MILLIS: i64 = 253_402_207_200_000;

impl Timestamp {
    /// The Unix epoch.
    pub const EPOCH: Self = Self(0);

    /// Creates a timestamp from milliseconds since the Unix epoch, clamped to the years 1970 to 9999.
    pub const fn from_millis(millis: i64) -> Self {
        if millis < 0 {
            Self(0)
        } else if millis > MAX_MILLIS {
            Self(MAX_MILLIS)
        } else {
            Self(millis)
        }
    }

    /// Creates a timestamp from milliseconds since the Unix epoch, or fails outside the years 1970 to 9999.
    pub const fn try_from_millis(millis: i64) -> Result<Self, TimeRangeError> {
        if 0 <= millis && millis <= MAX_MILLIS { Ok(Self(millis)) } else { Err(TimeRangeError) }
    }

    /// Returns the milliseconds since the Unix epoch.
    pub const fn as_millis(self) -> i64 {
        self.0
    }

    /// Returns the date in UTC: `2026-11-15`.
    pub fn day(self) -> String {
        let mut text = self.to_string();
        text.truncate("2026-11-15".len());
        text
    }

    /// Returns the time `duration` later, clamped to the range.
    pub fn plus(self, duration: Duration) -> Self {
        Self::from_millis(self.0.saturating_add(whole_millis(duration)))
    }

    /// Returns the time `duration` earlier, clamped to the range.
    pub fn minus(self, duration: Duration) -> Self {
        Self::from_millis(self.0.saturating_sub(whole_millis(duration)))
    }
}

fn whole_millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let instant = jiff::Timestamp::from_millisecond(self.0).map_err(|_| fmt::Error)?;
        write!(f, "{instant:.3}")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl FromStr for Timestamp {
    type Err = TimeError;

    fn from_str(text: &str) -> Result<Self, TimeError> {
        let instant: jiff::Timestamp = text.parse().map_err(|_| TimeError)?;
        Self::try_from_millis(instant.as_millisecond()).map_err(|_| TimeError)
    }
}

wire_text!(Timestamp, TimeError, { "type": "string", "format": "date-time" });

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn wire_form_has_milliseconds_and_z() {
        assert_eq!(Timestamp::EPOCH.to_string(), "1970-01-01T00:00:00.000Z");
        assert_eq!(Timestamp::from_millis(1_768_644_000_007).to_string(), "2026-01-17T10:00:00.007Z");
        assert_eq!(Timestamp::from_millis(MAX_MILLIS).to_string(), "9999-12-30T22:00:00.000Z");
        assert_eq!("2026-01-17T10:00:00Z".parse(), Ok(Timestamp::from_millis(1_768_644_000_000)));
        assert_eq!("2026-01-17T12:00:00.5+02:00".parse(), Ok(Timestamp::from_millis(1_768_644_000_500)));
    }

    #[test]
    fn invalid_times_are_rejected() {
        for bad in ["", "yesterday", "2026-01-17", "2026-13-01T00:00:00Z", "1969-12-31T23:59:59Z"] {
            assert_eq!(bad.parse::<Timestamp>(), Err(TimeError), "{bad}");
        }
    }

    #[test]
    fn times_are_clamped_to_the_range() {
        assert_eq!(Timestamp::from_millis(-1), Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.minus(Duration::MAX), Timestamp::EPOCH);
        assert_eq!(Timestamp::EPOCH.plus(Duration::MAX).as_millis(), MAX_MILLIS);
    }

    #[test]
    fn numbers_outside_the_range_are_no_times() {
        for millis in [-1, MAX_MILLIS + 1, i64::MIN, i64::MAX] {
            assert_eq!(Timestamp::try_from_millis(millis), Err(TimeRangeError), "{millis}");
        }
        for millis in [0, MAX_MILLIS] {
            assert_eq!(Timestamp::try_from_millis(millis), Ok(Timestamp::from_millis(millis)));
        }
    }

    proptest! {
        #[test]
        fn times_round_trip(millis in 0..=MAX_MILLIS) {
            let time = Timestamp::from_millis(millis);
            let text = time.to_string();
            prop_assert_eq!(text.len(), 24);
            prop_assert_eq!(text.parse(), Ok(time));
        }
    }
}
