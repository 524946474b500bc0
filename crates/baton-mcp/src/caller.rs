//! The caller of a request.

use baton_core::{Actor, CorrelationId};

/// The caller of a request. Over HTTP it is attached to each request.
#[derive(Clone)]
pub struct Caller {
    /// Actor of the credential.
    pub actor: Actor,
    pub correlation_id: CorrelationId,
}
