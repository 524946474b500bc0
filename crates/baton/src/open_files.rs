//! The limit of open files, which long-running processes raise to the allowed maximum.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Maximum number of open files to request: more is not useful, and child processes inherit the limit.
const MAX_OPEN_FILES: u64 = 65_536;
/// Number of open files that a server reserves for the database, blobs, logs and child processes.
const OTHER_FILES: u64 = 128;

/// Raises the limit of open files to what the system allows and returns the resulting limit.
pub(crate) fn raise_open_file_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    let current = limit.current.unwrap_or(MAX_OPEN_FILES);
    let wanted = limit.maximum.unwrap_or(MAX_OPEN_FILES).min(MAX_OPEN_FILES);
    if current >= wanted {
        return current;
    }
    match setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), maximum: limit.maximum }) {
        Ok(()) => wanted,
        Err(error) => {
            tracing::warn!(%error, current, wanted, "cannot raise the limit of open files");
            current
        }
    }
}

/// Returns the maximum number of connections: the configured one, reduced to what the limit of open files allows.
pub(crate) fn max_connections(configured: usize, open_files: u64) -> usize {
    let available = usize::try_from(open_files.saturating_sub(OTHER_FILES)).unwrap_or(usize::MAX);
    if available < configured {
        tracing::warn!(open_files, available, configured, "the limit of open files allows fewer connections");
    }
    configured.min(available)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limit_reserves_open_files_for_other_uses() {
        assert_eq!(max_connections(1_024, 20_000), 1_024);
        assert_eq!(max_connections(1_024, 1_024), 896);
        assert_eq!(max_connections(1_024, 64), 0);
    }
}
