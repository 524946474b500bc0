//! Power cuts: an in-memory file system that records the changes of real processes, and the disk images that a power
//! cut at any time could have left.
//!
//! [`Disk`] is mounted with FUSE, so the process needs `/dev/fuse` and permission to mount. A workload is recorded
//! once; [`Recording::write_image`] then writes the folder as it could be after a power cut following any of the
//! recorded operations. Data is guaranteed to survive only if its file was synced, a name only if its folder was
//! synced.

mod cut;
mod disk;
mod image;
mod operation;

pub use cut::check_each_cut;
pub use disk::Disk;
pub use image::Damage;
pub use operation::Recording;
