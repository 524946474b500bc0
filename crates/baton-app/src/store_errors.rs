//! Failures of the store: counters for monitoring, and errors of stored rows.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_core::{Fault, Handoff};
use baton_store::StoreError;
use strum::{IntoStaticStr, VariantArray};

/// Kind of a failure, by which failures are counted.
#[derive(Debug, Clone, Copy, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "snake_case")]
enum Kind {
    Unavailable,
    Busy,
    Overloaded,
    Full,
    ReadOnly,
    Schema,
    CommitUnknown,
    Corrupt,
    Internal,
}

/// Store failures since the start of the process, by kind.
#[derive(Debug, Default)]
pub(crate) struct StoreErrors([AtomicU64; Kind::VARIANTS.len()]);

impl StoreErrors {
    /// Counts a fault that was caused by a store failure.
    pub(crate) fn count(&self, fault: &Fault) {
        if let Some(error) = store_error(fault) {
            self.0[Kind::of(error) as usize].fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns all kinds with their counts.
    pub(crate) fn by_kind(&self) -> Vec<(&'static str, u64)> {
        let counts = self.0.iter().map(|counter| counter.load(Ordering::Relaxed));
        Kind::VARIANTS.iter().map(Into::into).zip(counts).collect()
    }
}

impl Kind {
    const fn of(error: &StoreError) -> Self {
        match error {
            StoreError::Unavailable { .. } | StoreError::Folder { .. } | StoreError::Closed => {
                Self::Unavailable
            }
            StoreError::Busy => Self::Busy,
            StoreError::Overloaded => Self::Overloaded,
            StoreError::Full => Self::Full,
            StoreError::ReadOnly => Self::ReadOnly,
            StoreError::NewerSchema { .. }
            | StoreError::OlderSchema { .. }
            | StoreError::ForeignDatabase { .. } => Self::Schema,
            StoreError::CommitUnknown { .. } => Self::CommitUnknown,
            StoreError::Corrupt { .. } | StoreError::BlobMissing { .. } => Self::Corrupt,
            StoreError::Encode { .. } | StoreError::Statement { .. } | StoreError::WorkFailed => {
                Self::Internal
            }
        }
    }
}

/// Returns the store failure that caused a fault.
pub(crate) fn store_error(fault: &Fault) -> Option<&StoreError> {
    fault.source.as_ref()?.downcast_ref()
}

/// Makes the error for stored JSON of a handoff that cannot be read.
pub(crate) fn corrupt_handoff(handoff: &Handoff, error: &serde_json::Error) -> StoreError {
    StoreError::corrupt("handoffs", format!("the content of {} is invalid: {error}", handoff.id))
}

#[cfg(test)]
mod tests {
    use super::*;
    use baton_core::ErrorCode;

    #[test]
    fn store_failures_are_counted_by_kind() {
        let errors = StoreErrors::default();
        errors.count(&Fault::from(StoreError::Busy));
        errors.count(&Fault::from(StoreError::Busy));
        errors.count(&Fault::from(StoreError::WorkFailed));
        errors.count(&Fault::new(ErrorCode::InvalidRequest, "not a store failure"));
        let counted: Vec<_> = errors.by_kind().into_iter().filter(|(_, number)| *number > 0).collect();
        assert_eq!(counted, [("busy", 2), ("internal", 1)]);
    }
}
