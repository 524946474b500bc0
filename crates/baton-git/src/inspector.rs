//! Whoever must see what is in a working tree before it is stored.

use crate::path::RepoPath;

/// Looks at what is about to be stored, before it is.
pub trait Inspector {
    /// Begins anew: the checkout changed, and what was seen before is not what will be stored.
    fn begin(&mut self);

    /// Takes the next piece of a file. All pieces of one come in a row, the first of them empty.
    fn look(&mut self, path: &RepoPath, piece: &[u8]);

    /// Tells whether all that was seen may be stored.
    fn permits(&mut self) -> bool;
}

/// Nobody looks, and everything may be stored.
pub(crate) struct Unasked;

impl Inspector for Unasked {
    fn begin(&mut self) {}

    fn look(&mut self, _: &RepoPath, _: &[u8]) {}

    fn permits(&mut self) -> bool {
        true
    }
}
