//! Operations on the request log, one file a verb.

mod list;

pub use list::{ListRequests, ListRequestsOutput, ListRequestsParams, RequestView};
