//! The numbers that operations go by.

use std::time::Duration;

use baton_core::{HeartbeatPolicy, Liveness, Venture};

/// What is configured about operations. The binary reads it from files, environment and flags.
#[derive(Debug, Clone)]
pub struct Settings {
    /// When a silent session is stale, and when it is given up.
    pub liveness: Liveness,
    /// When clients are asked to come back.
    pub heartbeat: HeartbeatPolicy,
    /// How long an idempotency key is remembered.
    pub idempotency_ttl: Duration,
    /// How long the request log is kept.
    pub request_retention: Duration,
    /// The venture of calls that name none.
    pub default_venture: Venture,
}
