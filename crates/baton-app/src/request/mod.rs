//! Operations on the request log, one file per operation.

mod list;

pub use list::{ListRequests, ListRequestsOutput};
