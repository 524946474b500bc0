//! Ids: a prefix that says what the thing is, and a ULID that sorts by when it was made.
//!
//! Owns parsing, printing and the monotonic sequence. Does not own a clock or a source of random bits: both are
//! arguments of [`UlidSequence::next`].

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::time::Timestamp;

/// Why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text does not start with the prefix of this kind of id.
    #[error("id must start with `{prefix}`")]
    Prefix {
        /// The prefix that was expected.
        prefix: &'static str,
    },
    /// What follows the prefix is not a canonical ULID.
    #[error("id must be `{prefix}` followed by 26 characters of upper-case Crockford base 32")]
    Ulid {
        /// The prefix that was expected.
        prefix: &'static str,
    },
}

fn parse_ulid(text: &str, prefix: &'static str) -> Result<Ulid, IdError> {
    let body = text.strip_prefix(prefix).ok_or(IdError::Prefix { prefix })?;
    let ulid = Ulid::from_string(body).map_err(|_| IdError::Ulid { prefix })?;
    // Crockford base 32 also reads lower case and look-alikes; an id has one spelling only.
    let mut buffer = [0; ulid::ULID_LEN];
    if ulid.array_to_str(&mut buffer) == body { Ok(ulid) } else { Err(IdError::Ulid { prefix }) }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(into = "String", try_from = "String")]
        pub struct $name(Ulid);

        impl $name {
            /// What every id of this kind starts with.
            pub const PREFIX: &'static str = $prefix;

            /// Makes an id from the next ULID of a sequence.
            pub const fn new(ulid: Ulid) -> Self {
                Self(ulid)
            }

            /// Gives the bare ULID.
            pub const fn ulid(self) -> Ulid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let mut buffer = [0; ulid::ULID_LEN];
                f.write_str($prefix)?;
                f.write_str(self.0.array_to_str(&mut buffer))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = IdError;
            fn from_str(text: &str) -> Result<Self, IdError> {
                parse_ulid(text, $prefix).map(Self)
            }
        }

        impl TryFrom<String> for $name {
            type Error = IdError;
            fn try_from(text: String) -> Result<Self, IdError> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.to_string()
            }
        }

        impl JsonSchema for $name {
            fn inline_schema() -> bool {
                true
            }
            fn schema_name() -> std::borrow::Cow<'static, str> {
                stringify!($name).into()
            }
            fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
                schemars::json_schema!({
                    "type": "string",
                    "pattern": concat!("^", $prefix, "[0-7][0-9A-HJKMNP-TV-Z]{25}$"),
                })
            }
        }
    };
}

id!(
    /// A run of one agent, alive or not.
    SessionId,
    "sess_"
);
id!(
    /// What one session leaves for the next.
    HandoffId,
    "ho_"
);
id!(
    /// A saved context.
    CheckpointId,
    "ckpt_"
);
id!(
    /// What one tool call taught.
    ObservationId,
    "obs_"
);

/// Makes ULIDs that only ever go up, also within one millisecond and when the clock steps back.
#[derive(Debug, Default)]
pub struct UlidSequence {
    last: Option<Ulid>,
}

impl UlidSequence {
    /// Starts a sequence with nothing before it.
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// Makes the sequence go on after a ULID that was made elsewhere, by another process or before a restart.
    pub fn skip_past(&mut self, ulid: Ulid) {
        self.last = self.last.max(Some(ulid));
    }

    /// Gives the next ULID for `now`.
    ///
    /// A later millisecond takes `random` (80 bits of it). The same or an earlier one takes the successor of the
    /// last; when its 80 random bits are used up it moves to the next millisecond, so the sequence never fails and
    /// never repeats before the end of ULID time (the year 10889), where it stays on the last value.
    pub fn next(&mut self, now: Timestamp, random: u128) -> Ulid {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let next = match self.last {
            Some(last) if last.timestamp_ms() >= millis => {
                last.increment().unwrap_or_else(|_| Ulid::from_parts(last.timestamp_ms() + 1, random))
            }
            _ => Ulid::from_parts(millis, random),
        };
        self.last = Some(next);
        next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ULID: &str = "01HQXV3NK8ZZZZZZZZZZZZZZZZ";

    #[test]
    fn ids_round_trip_with_their_prefix() {
        let id: SessionId = format!("sess_{ULID}").parse().unwrap();
        assert_eq!(id.to_string(), format!("sess_{ULID}"));
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"sess_{ULID}\""));
        assert_eq!(serde_json::from_str::<SessionId>(&format!("\"sess_{ULID}\"")).unwrap(), id);
        assert_eq!(format!("{id:?}"), id.to_string());
    }

    #[test]
    fn an_id_has_one_spelling() {
        assert_eq!(format!("ho_{ULID}").parse::<SessionId>(), Err(IdError::Prefix { prefix: "sess_" }));
        for bad in [
            "sess_".to_string(),
            "sess_01HQXV3NK8".to_string(),
            format!("sess_{}", ULID.to_lowercase()),
            format!("sess_{ULID}0"),
            "sess_81HQXV3NK8ZZZZZZZZZZZZZZZZ".to_string(),
            "sess_O1HQXV3NK8ZZZZZZZZZZZZZZZZ".to_string(),
            "sess_é1HQXV3NK8ZZZZZZZZZZZZZZZ".to_string(),
        ] {
            assert_eq!(bad.parse::<SessionId>(), Err(IdError::Ulid { prefix: "sess_" }), "{bad}");
        }
    }

    #[test]
    fn overflow_of_the_random_part_moves_to_the_next_millisecond() {
        let mut sequence = UlidSequence::new();
        let now = Timestamp::from_millis(1_000);
        let first = sequence.next(now, u128::MAX);
        assert_eq!(first.timestamp_ms(), 1_000);
        let second = sequence.next(now, 7);
        assert_eq!(second.timestamp_ms(), 1_001);
        assert!(second > first);
        assert!(sequence.next(now, 9) > second, "the clock is behind the sequence now");
    }

    #[test]
    fn the_sequence_goes_on_after_a_ulid_that_was_made_elsewhere() {
        let mut sequence = UlidSequence::new();
        let elsewhere = Ulid::from_parts(5_000, 7);
        sequence.skip_past(elsewhere);
        let next = sequence.next(Timestamp::from_millis(1_000), 1);
        assert!(next > elsewhere);
        sequence.skip_past(elsewhere);
        assert!(sequence.next(Timestamp::from_millis(1_000), 1) > next, "an older one changes nothing");
    }

    proptest! {
        #[test]
        fn the_sequence_only_goes_up(steps in prop::collection::vec((-5i64..5, any::<u128>()), 1..200)) {
            let mut sequence = UlidSequence::new();
            let mut clock = 1_700_000_000_000;
            let mut last = None;
            for (step, random) in steps {
                clock += step;
                let next = sequence.next(Timestamp::from_millis(clock), random);
                prop_assert!(Some(next) > last);
                last = Some(next);
            }
        }
    }
}
