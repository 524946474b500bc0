//! Keyset cursors: the end of a page of a list, as opaque text for the next request.
//!
//! Lists are ordered by id, newest first. Ids never change, so pages neither skip nor repeat a row while other columns
//! are updated.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ulid::Ulid;

/// Reason why a text is not a cursor of this list.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "is not a cursor of this list; pass `next_cursor` of the previous page, or omit it to start from the beginning"
)]
pub struct CursorError;

/// Last id of the previous page.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Last id of the previous page; the next page starts below it.
    pub before: Ulid,
}

const VERSION: &str = "1";

impl Cursor {
    /// Encodes the cursor for the list named `list`.
    pub fn encode(self, list: &str) -> String {
        URL_SAFE_NO_PAD.encode(format!("{VERSION}:{list}:{}", self.before))
    }

    /// Decodes a cursor. Rejects malformed text and cursors of other lists.
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
        // Reject other encodings of the same cursor.
        if cursor.encode(list) == text { Ok(cursor) } else { Err(CursorError) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn cursor_of_another_list_is_rejected() {
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
        fn arbitrary_text_is_rejected_without_a_panic(text in "\\PC{0,80}") {
            prop_assert_eq!(Cursor::decode("x", &text), Err(CursorError));
        }
    }
}
