//! Times as file systems keep them, and when to believe them.
//!
//! A file whose status information is the same as before has the same content, unless it was written twice within
//! one tick of the clock that stamps it. So what was read is only remembered if the file's last change (its `ctime`,
//! which nobody can set) lies clearly before the reading.

use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::error::GitError;

/// A point of time of a file system: seconds and nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Moment {
    pub(crate) seconds: i64,
    pub(crate) nanoseconds: u32,
}

/// Longer than a tick of any kernel's clock (10 ms at the slowest).
const TICK_NANOSECONDS: i128 = 20_000_000;

/// Longer than the coarsest time stamps that file systems keep (2 s on FAT).
const COARSE_NANOSECONDS: i128 = 2_000_000_000;

impl Moment {
    pub(crate) const fn new(seconds: i64, nanoseconds: i64) -> Self {
        Self { seconds, nanoseconds: nanoseconds.unsigned_abs() as u32 }
    }

    /// Asks the file system what time it is, by making a file.
    pub(crate) fn now(folder: &Path) -> Result<Self, GitError> {
        let file = tempfile::tempfile_in(folder).map_err(GitError::folder(folder))?;
        let meta = File::metadata(&file).map_err(GitError::folder(folder))?;
        Ok(Self::new(meta.mtime(), meta.mtime_nsec()))
    }

    fn total(self) -> i128 {
        i128::from(self.seconds) * 1_000_000_000 + i128::from(self.nanoseconds)
    }

    /// Whether this lies so far before `other` that nothing can happen now and bear this time stamp.
    pub(crate) fn is_settled_before(self, other: Self) -> bool {
        let grain = if self.nanoseconds == 0 { COARSE_NANOSECONDS } else { TICK_NANOSECONDS };
        self.total() + grain < other.total()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_clearly_before_is_settled() {
        let at = Moment::new;
        assert!(at(9, 1).is_settled_before(at(10, 0)));
        assert!(!at(10, 990_000_000).is_settled_before(at(11, 0)));
        assert!(at(10, 970_000_000).is_settled_before(at(11, 0)));
        assert!(!at(11, 1).is_settled_before(at(10, 0)), "from the future");
        assert!(!at(9, 0).is_settled_before(at(10, 500)), "a coarse time stamp");
        assert!(at(7, 0).is_settled_before(at(10, 0)));
    }
}
