//! File system time stamps, and when they can be trusted.
//!
//! A file whose stat information is unchanged has the same content, unless it was written twice within one tick of the
//! file system clock. So the content of a file is cached only if its last change (its `ctime`, which cannot be set) is
//! clearly before the time of reading.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::GitError;

/// A file system time: seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct StatTime {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// Longer than a tick of any kernel clock (at most 10 ms).
const TICK_NANOSECONDS: i128 = 20_000_000;

/// Longer than the coarsest time stamp of common file systems (2 s on FAT).
const COARSE_NANOSECONDS: i128 = 2_000_000_000;

impl StatTime {
    pub(crate) const fn new(seconds: i64, nanoseconds: i64) -> Self {
        Self { seconds, nanoseconds: nanoseconds.unsigned_abs() as u32 }
    }

    /// Returns the current time of the file system by creating a file.
    pub(crate) fn now(folder: &Path) -> Result<Self, GitError> {
        let file = tempfile::tempfile_in(folder).map_err(GitError::folder(folder))?;
        let meta = File::metadata(&file).map_err(GitError::folder(folder))?;
        Ok(Self::new(meta.mtime(), meta.mtime_nsec()))
    }

    fn total(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }

    /// Returns true if this time is so far before `other` that a later change cannot get this time stamp.
    pub(crate) fn is_settled_before(self, other: Self) -> bool {
        let grain = if self.nanoseconds == 0 { COARSE_NANOSECONDS } else { TICK_NANOSECONDS };
        self.total() + grain < other.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_clearly_earlier_times_are_settled() {
        let at = StatTime::new;
        assert!(at(9, 1).is_settled_before(at(10, 0)));
        assert!(!at(10, 990_000_000).is_settled_before(at(11, 0)));
        assert!(at(10, 970_000_000).is_settled_before(at(11, 0)));
        assert!(!at(11, 1).is_settled_before(at(10, 0)), "time stamp in the future");
        assert!(!at(9, 0).is_settled_before(at(10, 500)), "coarse time stamp");
        assert!(at(7, 0).is_settled_before(at(10, 0)));
    }
}
