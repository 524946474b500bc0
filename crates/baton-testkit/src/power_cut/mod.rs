//! Power cuts: a file system in memory that records what real processes do to it, and the disk images that a loss of
//! power at any moment could have left.
//!
//! [`Disk`] is mounted with FUSE, so the process needs `/dev/fuse` and the right to mount. A workload is recorded once;
//! [`Recording::write_image`] then writes the folder as a computer could find it after the power was cut after any of
//! the recorded operations. Data survives for certain only if its file was synced, a name only if its folder was.

mod cut;
mod disk;
mod image;
mod operation;

pub use cut::{check_each_cut, cuts};
pub use disk::Disk;
pub use image::Damage;
pub use operation::Recording;
