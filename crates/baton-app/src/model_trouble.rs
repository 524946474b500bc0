//! Model problem last reported by the workers of this process, for `worker.health`.

use std::sync::{Arc, Mutex, PoisonError};

use baton_core::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Reason why the model is unavailable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ModelTrouble {
    /// Time of the first failure.
    pub since: Timestamp,
    /// Error of the last request.
    pub error: String,
    /// Time of the next attempt.
    pub retry_at: Timestamp,
    /// True if the problem lasts until the key, model or address is corrected.
    pub needs_attention: bool,
}

/// Model state known to this process. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct ModelTroubles {
    current: Arc<Mutex<Option<ModelTrouble>>>,
}

impl ModelTroubles {
    /// Records a failed request.
    pub fn record_failure(&self, now: Timestamp, error: &str, retry_at: Timestamp, needs_attention: bool) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let since = current.as_ref().map_or(now, |before| before.since);
        *current = Some(ModelTrouble {
            since,
            error: baton_secrets::redact(error).into_owned(),
            retry_at,
            needs_attention,
        });
    }

    /// Records a successful request.
    pub fn record_success(&self) {
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Returns the current problem, if any.
    pub fn current(&self) -> Option<ModelTrouble> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
