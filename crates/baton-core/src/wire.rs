//! Forms of types on the wire and in the store.

/// Implements `as_str` and `from_wire` of an enum, with the names that `strum` derives.
macro_rules! wire_names {
    ($name:ident) => {
        impl $name {
            /// Returns the name on the wire and in the store.
            pub fn as_str(self) -> &'static str {
                self.into()
            }

            /// Parses a name on the wire or in the store.
            pub fn from_wire(text: &str) -> Option<Self> {
                text.parse().ok()
            }
        }
    };
}

/// Implements the conversions and the JSON schema of a type that is a text on the wire: the one that `Display` writes and
/// `FromStr` reads.
macro_rules! wire_text {
    ($name:ident, $error:ty, $schema:tt) => {
        impl TryFrom<String> for $name {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, $error> {
                text.parse()
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> String {
                value.to_string()
            }
        }

        $crate::schema::inline_schema!($name, $schema);
    };
}

pub(crate) use {wire_names, wire_text};
