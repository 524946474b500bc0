//! Store failure counters, for monitoring.

use std::sync::atomic::{AtomicU64, Ordering};

use baton_core::Fault;
use baton_store::StoreError;

/// Kinds of failures.
const KINDS: [&str; 9] = [
    "unavailable",
    "busy",
    "overloaded",
    "full",
    "read_only",
    "schema",
    "commit_unknown",
    "corrupt",
    "internal",
];

/// Store failures since the start of the process, by kind.
#[derive(Debug, Default)]
pub(crate) struct StoreErrors([AtomicU64; KINDS.len()]);

impl StoreErrors {
    /// Counts a fault that was caused by a store failure.
    pub(crate) fn count(&self, fault: &Fault) {
        let Some(error) = store_error(fault) else { return };
        let counters = KINDS.iter().zip(&self.0);
        for (_, counter) in counters.filter(|(kind, _)| **kind == kind_of(error)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Returns all kinds with their counts.
    pub(crate) fn by_kind(&self) -> Vec<(&'static str, u64)> {
        KINDS.into_iter().zip(self.0.iter().map(|counter| counter.load(Ordering::Relaxed))).collect()
    }
}

const fn kind_of(error: &StoreError) -> &'static str {
    match error {
        StoreError::Unavailable { .. } | StoreError::Folder { .. } | StoreError::Closed => "unavailable",
        StoreError::Busy => "busy",
        StoreError::Overloaded => "overloaded",
        StoreError::Full => "full",
        StoreError::ReadOnly => "read_only",
        StoreError::NewerSchema { .. }
        | StoreError::OlderSchema { .. }
        | StoreError::ForeignDatabase { .. } => "schema",
        StoreError::CommitUnknown { .. } => "commit_unknown",
        StoreError::Corrupt { .. } | StoreError::BlobMissing { .. } => "corrupt",
        StoreError::Encode { .. } | StoreError::Statement { .. } | StoreError::WorkFailed => "internal",
    }
}

/// Returns the store failure that caused a fault.
pub(crate) fn store_error(fault: &Fault) -> Option<&StoreError> {
    fault.source.as_ref()?.downcast_ref()
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
