//! What a context is while work runs, while it is stored and after it was loaded.
//!
//! Each state is a type of its own that can be read but not changed, so that nobody alters a loaded context by accident;
//! whoever wants to change one takes it out and owns the copy.

use serde_json::{Map, Value};

use crate::classify::object_size;

/// Where a running loop keeps its place; never stored.
const CURRENT_LOOP: &str = "_currentLoop";
/// How large the context was when it was loaded; never stored.
pub(super) const CONTEXT_SIZE: &str = "_contextSize";

/// A context without its run-time keys: what is hashed, compared and stored.
#[derive(Debug, Clone, PartialEq)]
pub struct PersistableContext(Map<String, Value>);

/// A context as it is given to whoever loads it, with its run-time keys.
#[derive(Debug, Clone, PartialEq)]
pub struct RestoredContext(Map<String, Value>);

/// Takes the run-time keys `_currentLoop` and `_contextSize` out of a context; the given one is left as it is.
pub fn prepare_for_persistence(context: &Map<String, Value>) -> PersistableContext {
    let is_stored = |key: &str| key != CURRENT_LOOP && key != CONTEXT_SIZE;
    let stored = context.iter().filter(|(key, _)| is_stored(key));
    PersistableContext(stored.map(|(key, value)| (key.clone(), value.clone())).collect())
}

/// Puts `_contextSize`, the bytes of the stored context as JSON without blanks, back into a context.
pub fn restore_from_persistence(stored: PersistableContext) -> RestoredContext {
    let PersistableContext(mut context) = stored;
    let size = object_size(&context);
    context.insert(CONTEXT_SIZE.to_owned(), size.into());
    RestoredContext(context)
}

impl PersistableContext {
    /// Reads a context back from its canonical text.
    ///
    /// # Errors
    ///
    /// Fails when the text is not one JSON object, which no stored context is.
    pub fn read(text: &[u8]) -> Result<Self, serde_json::Error> {
        serde_json::from_slice(text).map(Self)
    }
}

macro_rules! read_only {
    ($name:ident) => {
        impl $name {
            /// Reads the context.
            pub const fn as_map(&self) -> &Map<String, Value> {
                &self.0
            }

            /// Gives the context away, to be changed.
            pub fn into_inner(self) -> Map<String, Value> {
                self.0
            }
        }
    };
}

read_only!(PersistableContext);
read_only!(RestoredContext);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn map(value: Value) -> Map<String, Value> {
        value.as_object().unwrap().clone()
    }

    #[test]
    fn run_time_keys_are_taken_out_at_the_top_only() {
        let context = map(
            json!({ "_currentLoop": { "i": 3 }, "_contextSize": 9, "a": { "_currentLoop": 1 }, "_b": 2 }),
        );
        let stored = prepare_for_persistence(&context);
        assert_eq!(stored.as_map(), &map(json!({ "a": { "_currentLoop": 1 }, "_b": 2 })));
        assert_eq!(context.len(), 4);
    }

    #[test]
    fn the_size_is_that_of_the_stored_text() {
        let stored = prepare_for_persistence(&map(json!({ "a": "é\n", "_contextSize": 1 })));
        let restored = restore_from_persistence(stored);
        assert_eq!(restored.as_map()["_contextSize"], json!({ "a": "é\n" }).to_string().len());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn loading_and_saving_changes_nothing(context in crate::classify::any_context()) {
            let stored = prepare_for_persistence(&context);
            let restored = restore_from_persistence(stored.clone());
            prop_assert_eq!(prepare_for_persistence(restored.as_map()), stored);
        }
    }
}
