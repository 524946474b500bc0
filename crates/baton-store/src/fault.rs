//! Conversion of store errors to faults: error code, message, hint.

use std::io;

use baton_core::{ErrorCode, Fault};
use serde_json::json;

use crate::error::StoreError;

impl From<StoreError> for Fault {
    fn from(error: StoreError) -> Self {
        let fault = match &error {
            StoreError::Overloaded => {
                Self::new(ErrorCode::Overloaded, "the database queue is full").hint("try again in a moment")
            }
            StoreError::Busy => {
                Self::new(ErrorCode::Overloaded, "the database is locked by other writers")
                    .hint("try again in a moment")
            }
            StoreError::Full => {
                Self::new(ErrorCode::StoreUnavailable, "cannot store anything: the disk is full")
                    .hint("free some space, then repeat the request; baton doctor shows how much is left")
                    .details(json!({ "reason": "disk_full", "retryable": false }))
            }
            StoreError::ReadOnly => {
                Self::new(ErrorCode::StoreUnavailable, "cannot store anything: the database is read-only")
                    .hint("make the data folder and the files in it writable, then repeat the request")
                    .details(json!({ "reason": "read_only", "retryable": false }))
            }
            StoreError::Folder { source, .. }
                if matches!(
                    source.kind(),
                    io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
                ) =>
            {
                Self::new(ErrorCode::StoreUnavailable, format!("cannot write to the data folder: {source}"))
                    .hint("make the data folder and the files in it writable, then repeat the request")
                    .details(json!({ "reason": "read_only", "retryable": false }))
            }
            StoreError::Unavailable { .. } | StoreError::Folder { .. } | StoreError::Closed => {
                Self::new(ErrorCode::StoreUnavailable, "the database is unavailable")
                    .hint("run baton doctor to see the reason")
            }
            StoreError::NewerSchema { found, known } => Self::new(
                ErrorCode::StoreUnavailable,
                format!("the database has schema version {found}; this binary supports versions up to {known}"),
            )
            .hint(
                "use the version of baton that wrote it, or another database (BATON_DATA_DIR, BATON_DATABASE_URL)",
            ),
            StoreError::OlderSchema { .. } => Self::new(ErrorCode::StoreUnavailable, error.to_string())
                .hint("run baton worker start or any other baton command; it upgrades the database"),
            StoreError::ForeignDatabase { .. } => Self::new(ErrorCode::StoreUnavailable, error.to_string())
                .hint("move the file away, or use another database (BATON_DATA_DIR, BATON_DATABASE_URL)"),
            StoreError::CommitUnknown { .. } => Self::new(
                ErrorCode::StoreUnavailable,
                "the database connection failed during commit; the outcome is unknown",
            )
            .hint("send the request again with the same idempotency key; it is then executed exactly once"),
            StoreError::Corrupt { .. } | StoreError::BlobMissing { .. } => {
                Self::new(ErrorCode::Internal, "a stored row is invalid")
                    .hint("check the database with baton doctor; restore a backup if it is damaged")
            }
            StoreError::Encode { .. } | StoreError::Statement { .. } | StoreError::WorkFailed => {
                Self::new(ErrorCode::Internal, "internal error").hint(
                    "look up the cause in the log: standard error of the command, or the log of the server under this \
                     correlation id",
                )
            }
        };
        fault.caused_by(error)
    }
}
