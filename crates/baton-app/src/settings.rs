//! What operations go by: numbers, rules, and where contexts are kept.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use baton_core::classify::Classifier;
use baton_core::observation::Price;
use baton_core::{Fault, HeartbeatPolicy, Liveness, Timestamp, Venture};
use baton_llm::Compressor;
use baton_store::Outbox;

use crate::checkpoint::Vault;
use crate::observation::{ModelTroubles, WorkerActivity};

/// What is configured about operations. The binary reads it from files, environment and flags.
#[derive(Debug, Clone)]
pub struct Settings {
    /// When a silent session is stale, and when it is given up.
    pub liveness: Liveness,
    /// When clients are asked to come back.
    pub heartbeat: HeartbeatPolicy,
    /// How long an idempotency key is remembered.
    pub idempotency_ttl: Duration,
    /// How long records of the request log are kept.
    pub request_retention: Duration,
    /// How many records the request log keeps.
    pub request_log_max_records: u64,
    /// The venture of calls that name none.
    pub default_venture: Venture,
    /// How checkpoints are kept.
    pub checkpoints: CheckpointSettings,
    /// How observations are made.
    pub observations: ObservationSettings,
    /// When the process began.
    pub started_at: Timestamp,
}

/// How observations are made.
#[derive(Clone)]
pub struct ObservationSettings {
    /// Who makes them.
    pub compressor: Arc<dyn Compressor>,
    /// Who makes them where no model may or can be asked.
    pub offline: Arc<dyn Compressor>,
    /// How many tokens models may count a day; none is no limit.
    pub daily_token_budget: Option<u64>,
    /// What the model costs, where it is not one whose price is known.
    pub price: Option<Price>,
    /// How long an item belongs to whoever claimed it.
    pub lease: Duration,
    /// How often an item is tried.
    pub max_attempts: u32,
    /// How long raw output is kept once it became an observation.
    pub raw_retention: Duration,
    /// What is wrong with the model, as far as this process knows.
    pub troubles: ModelTroubles,
    /// What the workers of this process do.
    pub activity: WorkerActivity,
}

impl ObservationSettings {
    /// Who makes observations now: the one who should, or the one without a model when the day's tokens are used up.
    /// How many were used is only asked where it matters.
    pub fn compressor_within_budget(
        &self,
        tokens_today: impl FnOnce() -> Result<u64, Fault>,
    ) -> Result<&Arc<dyn Compressor>, Fault> {
        let is_used_up = match self.daily_token_budget {
            Some(budget) if self.compressor.model().is_some() => tokens_today()? >= budget,
            _ => false,
        };
        Ok(if is_used_up { &self.offline } else { &self.compressor })
    }
}

impl fmt::Debug for ObservationSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObservationSettings")
            .field("compressor", &self.compressor.name())
            .field("daily_token_budget", &self.daily_token_budget)
            .finish_non_exhaustive()
    }
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
    /// Where saves are kept while the database cannot be written.
    pub outbox: Option<Outbox>,
}
