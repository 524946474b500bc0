//! Exit codes: documented and stable, one for each kind of outcome.

use std::process::ExitCode;

use baton_core::ErrorCode;

/// Exit code of the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Success.
    Ok = 0,
    /// Failure without a more specific code.
    Failure = 1,
    /// The command line or the configuration is wrong.
    Usage = 2,
    /// The requested record does not exist.
    NotFound = 3,
    /// The request conflicts with stored data.
    Conflict = 4,
    /// The working tree differs from the last snapshot.
    Drift = 5,
    /// A decision or a fix is needed first.
    Blocked = 6,
    /// The input is invalid.
    Validation = 7,
    /// The input contains a secret.
    SecretFound = 8,
    /// The store cannot be opened, read or written.
    StoreUnavailable = 9,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

impl From<ErrorCode> for Exit {
    fn from(code: ErrorCode) -> Self {
        match code {
            ErrorCode::InvalidJson
            | ErrorCode::InvalidRequest
            | ErrorCode::UnsupportedSchemaVersion
            | ErrorCode::MissingIdempotencyKey
            | ErrorCode::PayloadTooLarge => Self::Validation,
            ErrorCode::NotFound
            | ErrorCode::SessionNotFound
            | ErrorCode::HandoffNotFound
            | ErrorCode::CheckpointNotFound
            | ErrorCode::TaskNotFound => Self::NotFound,
            ErrorCode::SessionEnded
            | ErrorCode::HandoffConflict
            | ErrorCode::IdempotencyMismatch
            | ErrorCode::TaskExists
            | ErrorCode::TaskConflict => Self::Conflict,
            ErrorCode::DriftDetected => Self::Drift,
            ErrorCode::TaskBlocked => Self::Blocked,
            ErrorCode::SecretFound => Self::SecretFound,
            ErrorCode::StoreUnavailable | ErrorCode::Overloaded => Self::StoreUnavailable,
            ErrorCode::Unauthorized
            | ErrorCode::Forbidden
            | ErrorCode::MethodNotAllowed
            | ErrorCode::RateLimited
            | ErrorCode::CheckpointCorrupt
            | ErrorCode::StorageQuotaExceeded
            | ErrorCode::TaskCorrupt
            | ErrorCode::GitUnavailable
            | ErrorCode::Internal => Self::Failure,
        }
    }
}

/// List of exit codes at the end of `baton --help`.
pub(crate) const HELP: &str = "\
Exit codes: 0 ok, 1 failure, 2 usage, 3 not found, 4 conflict, 5 drift, 6 blocked, 7 validation, 8 secret found, \
9 store unavailable";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_map_to_stable_statuses_and_exit_codes() {
        let line = |code: ErrorCode| {
            let exit = Exit::from(code);
            format!("{:<27}{}  {} {exit:?}\n", code.as_str(), code.status(), exit as u8)
        };
        let list: String = ErrorCode::ALL.iter().copied().map(line).collect();
        insta::with_settings!({ snapshot_path => "../tests/it/snapshots", prepend_module_to_snapshot => false }, {
            insta::assert_snapshot!("error_codes", list);
        });
    }
}
