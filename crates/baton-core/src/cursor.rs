//! Keyset cursors: where a page of a list ended, as a text that callers pass back unread.
//!
//! Lists are ordered by id, newest first. An id never changes, so a page neither skips nor repeats a row however many
//! heartbeats arrive between two pages.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ulid::Ulid;

/// Why a text is not a cursor of this list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("is not a cursor of this list; pass `next_cursor` of the page before, or leave it out to start anew")]
pub struct CursorError;

/// The id that the page before ended with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// The last id that was seen; the next page starts below it.
    pub before: Ulid,
}

const VERSION: &str = "1";

impl Cursor {
    /// Writes the cursor for a list named `list`.
    pub fn encode(self, list: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("{VERSION}:{list}:{}", self.before))
    }

    /// Reads a cursor back, refusing what is not one or belongs to another list.
    pub fn decode(list: &str, text: &str) -> Result<Self, CursorError> {
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|_| CursorError)?;
        let plain = String::from_utf8(bytes).map_err(|_| CursorError)?;
        let before = plain
            .strip_prefix(VERSION)
            .and_then(|rest| rest.strip_prefix(':'))
            .and_then(|rest| rest.strip_prefix(list))
            .and_then(|rest| rest.strip_prefix(':'))
            .and_then(|id| Ulid::from_string(id).ok())
            .ok_or(CursorError)?;
        let cursor = Self { before };
        // One spelling only: what decodes must be what we would have written.
        if cursor.encode(list) == text { Ok(cursor) } else { Err(CursorError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_cursor_of_another_list_is_refused() {
        let text = Cursor { before: Ulid(42) }.encode("sessions");
        assert_eq!(Cursor::decode("sessions", &text), Ok(Cursor { before: Ulid(42) }));
        assert_eq!(Cursor::decode("handoffs", &text), Err(CursorError));
        assert_eq!(Cursor::decode("session", &text), Err(CursorError));
    }

    proptest! {
        #[test]
        fn cursors_round_trip(number in any::<u128>()) {
            let cursor = Cursor { before: Ulid(number) };
            prop_assert_eq!(Cursor::decode("x", &cursor.encode("x")), Ok(cursor));
        }

        #[test]
        fn noise_is_refused_without_a_panic(text in "\\PC{0,80}") {
            prop_assert_eq!(Cursor::decode("x", &text), Err(CursorError));
        }
    }
}
