//! The filter of lists by track.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer, Visitor};
use serde::ser::{Serialize, Serializer};

use crate::name::Track;
use crate::schema::inline_schema;

const EXPECTED: &str = "a track number or \"none\"";

/// Selects the sessions or handoffs of one track, or sessions and handoffs without a track. On the wire, it
/// is a number or `"none"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TrackFilter {
    Track(Track),
    /// No track.
    Untracked,
}

impl TrackFilter {
    /// Returns the track to match; `None` matches sessions and handoffs without a track.
    pub const fn track(self) -> Option<Track> {
        match self {
            Self::Track(track) => Some(track),
            Self::Untracked => None,
        }
    }
}

/// Reason why a text is not a track filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("must be a track number or none")]
pub struct TrackFilterError;

impl FromStr for TrackFilter {
    type Err = TrackFilterError;

    fn from_str(text: &str) -> Result<Self, TrackFilterError> {
        if text == "none" {
            return Ok(Self::Untracked);
        }
        let number = text.parse::<i64>().map_err(|_| TrackFilterError)?;
        Track::try_from(number).map(Self::Track).map_err(|_| TrackFilterError)
    }
}

impl Serialize for TrackFilter {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Track(track) => track.serialize(serializer),
            Self::Untracked => serializer.serialize_str("none"),
        }
    }
}

impl<'de> Deserialize<'de> for TrackFilter {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TrackVisitor)
    }
}

struct TrackVisitor;

impl Visitor<'_> for TrackVisitor {
    type Value = TrackFilter;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(EXPECTED)
    }

    fn visit_i64<E: de::Error>(self, number: i64) -> Result<TrackFilter, E> {
        Track::try_from(number).map(TrackFilter::Track).map_err(E::custom)
    }

    fn visit_u64<E: de::Error>(self, number: u64) -> Result<TrackFilter, E> {
        self.visit_i64(i64::try_from(number).unwrap_or(i64::MAX))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<TrackFilter, E> {
        match text {
            "none" => Ok(TrackFilter::Untracked),
            _ => Err(E::custom(format!("must be {EXPECTED}"))),
        }
    }
}

inline_schema!(TrackFilter, {
    "type": ["integer", "string"], "minimum": 0, "maximum": Track::MAX, "pattern": "^none$",
});

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, from_value, json, to_value};

    #[test]
    fn filter_is_a_number_or_none() {
        let zero = TrackFilter::Track(Track::try_from(0).unwrap());
        for (wire, text, filter) in [(json!(0), "0", zero), (json!("none"), "none", TrackFilter::Untracked)] {
            assert_eq!(from_value::<TrackFilter>(wire.clone()).unwrap(), filter);
            assert_eq!(to_value(filter).unwrap(), wire);
            assert_eq!(text.parse(), Ok(filter));
        }
    }

    #[test]
    fn values_other_than_a_number_or_none_are_rejected() {
        for bad in [json!(-1), json!(u64::MAX), json!(1.5), json!("1"), json!("None"), json!(true), json!([])]
        {
            let bad: Value = bad;
            assert!(from_value::<TrackFilter>(bad.clone()).is_err(), "{bad}");
        }
        for bad in ["", "-1", "null", "1.0", "NONE", "9007199254740992"] {
            assert_eq!(bad.parse::<TrackFilter>(), Err(TrackFilterError), "{bad}");
        }
    }
}
