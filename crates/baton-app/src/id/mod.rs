//! Operations on ids.

mod find;

pub use find::{FindIds, FindIdsOutput};
