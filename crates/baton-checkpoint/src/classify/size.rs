//! Computes the size of compact JSON without serializing it.

/// Returns the size of an object member without the comma, given the size of its value.
pub(crate) fn member_size(key: &str, value_bytes: usize) -> usize {
    text_size(key) + ":".len() + value_bytes
}

/// Returns the size of an array or object, given the sizes of its items.
pub(crate) fn list_size(items: impl Iterator<Item = usize>) -> usize {
    let (count, bytes) = items.fold((0, 0), |(count, bytes), item| (count + 1, bytes + item));
    "[]".len() + bytes + usize::saturating_sub(count, 1)
}

/// Returns the size of a string with quotes and escapes.
pub(crate) fn text_size(text: &str) -> usize {
    "\"\"".len() + text.bytes().map(byte_size).sum::<usize>()
}

/// Returns the size of one byte of a string after escaping.
pub(crate) const fn byte_size(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 0x08 | 0x0c => 2,
        0..0x20 => 6,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::{Value, json};

    #[test]
    fn size_equals_the_length_of_serialized_json() {
        let text = "\u{0}\u{8}\u{b}\u{c}\u{1f}\u{7f}é\n\"\\目的";
        let member = member_size(text, text_size(text));
        assert_eq!(list_size([member].into_iter()), json!({ text: text }).to_string().len());
        assert_eq!(list_size([1, 2].into_iter()), "[1,22]".len());
        assert_eq!(list_size(std::iter::empty()), "[]".len());
    }

    proptest! {
        #[test]
        fn text_size_equals_the_serialized_length(text in "\\PC*|[\\x00-\\x7f]*") {
            prop_assert_eq!(text_size(&text), Value::from(text).to_string().len());
        }
    }
}
