//! What operations go by: numbers, rules, and where contexts are kept.

use std::sync::Arc;
use std::time::Duration;

use baton_core::classify::Classifier;
use baton_core::{HeartbeatPolicy, Liveness, Venture};

use crate::checkpoint::Vault;

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
    /// How checkpoints are kept.
    pub checkpoints: CheckpointSettings,
}

/// How checkpoints are kept.
#[derive(Debug, Clone)]
pub struct CheckpointSettings {
    /// How many checkpoints a workflow may have.
    pub max_checkpoints: u64,
    /// How many bytes all checkpoints together may take.
    pub max_total_bytes: u64,
    /// How long a workflow that nobody uses keeps checkpoints without a name, beside the latest.
    pub retention: Duration,
    /// What tells which part of a context matters how much.
    pub classifier: Arc<Classifier>,
    /// Where and how contexts are kept.
    pub vault: Vault,
}
