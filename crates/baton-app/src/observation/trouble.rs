//! What is wrong with the model, as whoever works last heard: for those who ask how things stand.

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::{Timestamp, secrets};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why the model cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ModelTrouble {
    /// Since when.
    pub since: Timestamp,
    /// What was said the last time that it was tried.
    pub error: String,
    /// When it is tried again.
    pub retry_at: Timestamp,
    /// Whether it lasts until somebody sees to the key, the model or the address.
    pub needs_attention: bool,
}

/// What this process knows of it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ModelTroubles {
    current: Arc<Mutex<Option<ModelTrouble>>>,
}

impl ModelTroubles {
    /// Notes that the model could not be asked.
    pub fn note(&self, now: Timestamp, error: &str, retry_at: Timestamp, needs_attention: bool) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let since = current.as_ref().map_or(now, |before| before.since);
        *current = Some(ModelTrouble {
            since,
            error: secrets::redact(error).into_owned(),
            retry_at,
            needs_attention,
        });
    }

    /// Notes that it answered.
    pub fn clear(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Tells what is wrong, if anything.
    pub fn current(&self) -> Option<ModelTrouble> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
