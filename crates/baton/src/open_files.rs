//! The limit of open files, which long-lived processes raise as far as they may.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More open files than this are of no use, and child processes inherit the limit.
const MAX_OPEN_FILES: u64 = 65_536;
/// The number of open files that a server needs for other things than connections: the database, blobs, logs, programs
/// that it starts.
const OTHER_FILES: u64 = 128;

/// Raises the limit of open files to what the system allows, and returns the limit that holds now.
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

/// The number of connections that a server may have open: the configured one, as far as the open files allow.
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
    fn connections_leave_open_files_for_the_database() {
        assert_eq!(max_connections(1_024, 20_000), 1_024);
        assert_eq!(max_connections(1_024, 1_024), 896);
        assert_eq!(max_connections(1_024, 64), 0);
    }
}
