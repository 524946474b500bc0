//! A key that must not be seen.

use std::fmt;

/// The key of an endpoint: it has no `Display`, and its `Debug` tells nothing of it.
#[derive(Clone, PartialEq, Eq)]
pub struct ApiKey(String);

impl ApiKey {
    /// Takes a key as it was configured; blanks around it are no part of it.
    pub fn new(key: &str) -> Self {
        Self(key.trim().to_owned())
    }

    /// Gives the key itself, for the one header that needs it.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for ApiKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ApiKey(***)")
    }
}
