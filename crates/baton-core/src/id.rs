//! Ids: a prefix for the kind of object, and a ULID that sorts by creation time.
//!
//! Owns parsing, formatting and the monotonic sequence. The clock and the random bits are arguments of
//! [`UlidSequence::next`].

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use ulid::Ulid;

use crate::time::Timestamp;

/// Reason why a text is not an id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdError {
    /// The text does not start with the prefix of this id type.
    #[error("id must start with `{prefix}`")]
    Prefix {
        /// The prefix that was expected.
        prefix: &'static str,
    },
    /// The text after the prefix is not a canonical ULID.
    #[error("id must be `{prefix}` followed by 26 characters of upper-case Crockford base 32")]
    Ulid {
        /// The prefix that was expected.
        prefix: &'static str,
    },
}

fn parse_ulid(text: &str, prefix: &'static str) -> Result<Ulid, IdError> {
    let body = text.strip_prefix(prefix).ok_or(IdError::Prefix { prefix })?;
    let ulid = Ulid::from_string(body).map_err(|_| IdError::Ulid { prefix })?;
    // The ULID parser also accepts lower case and look-alike characters; ids must have exactly one form.
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
            /// Prefix of all ids of this type.
            pub const PREFIX: &'static str = $prefix;

            /// Creates an id from a ULID.
            pub const fn new(ulid: Ulid) -> Self {
                Self(ulid)
            }

            /// Returns the ULID without the prefix.
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

        $crate::wire::wire_text!($name, IdError, {
            "type": "string",
            "pattern": concat!("^", $prefix, "[0-7][0-9A-HJKMNP-TV-Z]{25}$"),
        });
    };
}

id!(
    /// Id of a session.
    SessionId,
    "sess_"
);
id!(
    /// Id of a handoff.
    HandoffId,
    "ho_"
);
id!(
    /// Id of a checkpoint.
    CheckpointId,
    "ckpt_"
);
id!(
    /// Id of a note.
    NoteId,
    "note_"
);
id!(
    /// Id of an observation.
    ObservationId,
    "obs_"
);

/// Kind of a stored object whose id is a prefix and a ULID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, strum::IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum IdKind {
    Session,
    Handoff,
    Checkpoint,
    Note,
    Observation,
}

impl IdKind {
    pub const ALL: [Self; 5] =
        [Self::Session, Self::Handoff, Self::Checkpoint, Self::Note, Self::Observation];

    /// Returns the prefix of all ids of this kind.
    pub const fn prefix(self) -> &'static str {
        match self {
            Self::Session => SessionId::PREFIX,
            Self::Handoff => HandoffId::PREFIX,
            Self::Checkpoint => CheckpointId::PREFIX,
            Self::Note => NoteId::PREFIX,
            Self::Observation => ObservationId::PREFIX,
        }
    }

    /// Returns the name of such an object.
    pub fn noun(self) -> &'static str {
        self.into()
    }
}

/// Minimum number of characters after the prefix of a partial id. The first characters change only every few days, so
/// fewer would hardly be unique.
const MIN_PARTIAL_CHARS: usize = 4;

/// Beginning of an id, for example `sess_01M7H6`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartialId {
    kind: IdKind,
    text: String,
}

impl PartialId {
    /// Parses the beginning of an id: a prefix and 4 to 25 of the 26 characters. Returns `None` for anything else,
    /// including complete ids.
    pub fn parse(text: &str) -> Option<Self> {
        let kind = IdKind::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()))?;
        let body = text.get(kind.prefix().len()..)?;
        let is_base32 = |c: u8| matches!(c, b'0'..=b'9' | b'A'..=b'Z') && !b"ILOU".contains(&c);
        let fits = (MIN_PARTIAL_CHARS..ulid::ULID_LEN).contains(&body.len()) && body.bytes().all(is_base32);
        fits.then(|| Self { kind, text: text.to_owned() })
    }

    pub const fn kind(&self) -> IdKind {
        self.kind
    }
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

/// Maximum distance of two ULIDs of a sequence in one millisecond. It is large enough that processes choose different ones,
/// and small enough that a millisecond never runs out of them.
const MAX_STEP: u128 = 1 << 40;

/// Generates strictly increasing ULIDs, also within one millisecond and when the clock moves backwards.
#[derive(Debug, Default)]
pub struct UlidSequence {
    last: Option<Ulid>,
}

impl UlidSequence {
    /// Creates an empty sequence.
    pub const fn new() -> Self {
        Self { last: None }
    }

    /// Continues the sequence after a ULID that another process, or this one before a restart, generated.
    pub fn skip_past(&mut self, ulid: Ulid) {
        self.last = self.last.max(Some(ulid));
    }

    /// Returns the next ULID for `now`.
    ///
    /// If `now` is later than the last ULID, its random part is the low 80 bits of `random`. Otherwise it is that of the
    /// last ULID plus a random number, so that two processes that continue after the same ULID choose different ones; if it
    /// overflows, the sequence moves to the next millisecond. The sequence never fails and never repeats before the largest
    /// ULID (year 10889), where it stays.
    pub fn next(&mut self, now: Timestamp, random: u128) -> Ulid {
        let millis = u64::try_from(now.as_millis()).unwrap_or(0);
        let next = match self.last {
            Some(last) if last.timestamp_ms() >= millis => {
                let step = 1 + random % MAX_STEP;
                let following = Ulid(last.0.saturating_add(step));
                let is_same_millisecond = following.timestamp_ms() == last.timestamp_ms();
                if is_same_millisecond {
                    following
                } else {
                    Ulid::from_parts(last.timestamp_ms() + 1, random)
                }
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
    fn partial_ids_are_the_beginning_of_an_id() {
        let kind = |text: &str| PartialId::parse(text).map(|id| id.kind());
        assert_eq!(kind("sess_01M7"), Some(IdKind::Session));
        assert_eq!(kind(&format!("ckpt_{}", &ULID[..25])), Some(IdKind::Checkpoint));
        for other in [
            "sess_01M",
            "sess_01m7",
            "sess_O1M7",
            "turn_4242",
            "01M7H",
            "sess_01M7 ",
            &format!("sess_{ULID}"),
        ] {
            assert_eq!(kind(other), None, "{other}");
        }
    }

    #[test]
    fn ids_round_trip_with_their_prefix() {
        let id: SessionId = format!("sess_{ULID}").parse().unwrap();
        assert_eq!(id.to_string(), format!("sess_{ULID}"));
        assert_eq!(serde_json::to_string(&id).unwrap(), format!("\"sess_{ULID}\""));
        assert_eq!(serde_json::from_str::<SessionId>(&format!("\"sess_{ULID}\"")).unwrap(), id);
        assert_eq!(format!("{id:?}"), id.to_string());
    }

    #[test]
    fn ids_in_any_other_form_are_rejected() {
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
    fn sequence_continues_after_a_skipped_ulid() {
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
        fn sequence_is_strictly_increasing(steps in prop::collection::vec((-5i64..5, any::<u128>()), 1..200)) {
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
