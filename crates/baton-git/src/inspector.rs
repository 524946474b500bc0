//! Inspection of the working tree before it is stored.

use crate::path::RepoPath;

/// Examines content before it is stored.
pub trait Inspector {
    /// Starts again: the checkout changed, so earlier content is not what will be stored.
    fn begin(&mut self);

    /// Receives the next piece of a file. The pieces of a file are consecutive, and the first one is empty.
    fn look(&mut self, path: &RepoPath, piece: &[u8]);

    /// Returns true if everything that was examined may be stored.
    fn permits(&mut self) -> bool;
}

/// Permits everything without examining it.
pub(crate) struct PermitAll;

impl Inspector for PermitAll {
    fn begin(&mut self) {}

    fn look(&mut self, _: &RepoPath, _: &[u8]) {}

    fn permits(&mut self) -> bool {
        true
    }
}
