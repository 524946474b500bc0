//! Settings of operations.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_checkpoint::classify::Classifier;
use baton_core::{Fault, HeartbeatPolicy, Liveness, Timestamp, Venture};
use baton_llm::{Compressor, Embedder, Price};
use baton_store::Outbox;

use crate::context_storage::ContextStorage;
use crate::machine::Machine;
use crate::model_trouble::ModelTroubles;
use crate::worker_activity::WorkerActivity;

/// Settings of operations. The binary reads them from files, environment and flags.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Time limits after which sessions are stale and abandoned.
    pub liveness: Liveness,
    /// Heartbeat interval that clients are asked to use.
    pub heartbeat: HeartbeatPolicy,
    /// Time to live of idempotency keys.
    pub idempotency_ttl: Duration,
    /// Retention time of request log records.
    pub request_retention: Duration,
    /// Maximum number of request log records.
    pub request_log_max_records: u64,
    /// Default venture of calls.
    pub default_venture: Venture,
    /// Outbox for writes that the store cannot accept; `None` if they are not saved.
    pub outbox: Option<Outbox>,
    pub checkpoints: CheckpointSettings,
    pub observations: ObservationSettings,
    /// The machine of the server; `None` in processes that do not answer for one.
    pub machine: Option<Arc<dyn Machine>>,
    /// Start time of the process.
    pub started_at: Timestamp,
}

/// What hooks add to a chat while it runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ChatRecall {
    /// Items that are closely related to a prompt.
    pub on_prompt: bool,
    /// A line about a file before it is edited.
    pub before_edit: bool,
}

/// Reads the last text of the agent in a period of a transcript. Returns why the transcript was not read.
pub type ReadClosing = Arc<dyn Fn(&Path, TurnPeriod) -> Result<Option<String>, String> + Send + Sync>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TurnPeriod {
    /// Start of the turn.
    pub from: Timestamp,
    /// Start of the next turn.
    pub until: Option<Timestamp>,
}

#[derive(Clone)]
pub struct ObservationSettings {
    /// Configured compressor.
    pub compressor: Arc<dyn Compressor>,
    /// Compressor without a model, used if the model is not allowed or not available.
    pub offline: Arc<dyn Compressor>,
    /// Maximum number of model tokens per day; `None` for no limit.
    pub daily_token_budget: Option<u64>,
    /// Price of the model, if it is not a known one.
    pub price: Option<Price>,
    /// Reads closing messages from transcripts of chats on this machine; `None` if transcripts are not read.
    pub read_closing: Option<ReadClosing>,
    /// Lease duration of a claimed item.
    pub lease: Duration,
    /// Maximum number of attempts per item.
    pub max_attempts: u32,
    /// Retention time of raw output after its observation was created.
    pub raw_retention: Duration,
    /// What hooks add to a chat while it runs.
    pub recall: ChatRecall,
    /// Model failures known to this process.
    pub troubles: ModelTroubles,
    /// Computes vectors for search; `None` if search uses words only.
    pub embedder: Option<Arc<Embedder>>,
    /// Failures of the embedding endpoint known to this process.
    pub embedding_troubles: ModelTroubles,
    /// Activity of the workers of this process.
    pub activity: WorkerActivity,
}

impl ObservationSettings {
    /// Returns the configured compressor, or the offline one if the daily token budget is used up. `tokens_today` is
    /// called only if there is a budget and the compressor uses a model.
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

#[derive(Debug, Clone)]
pub struct CheckpointSettings {
    /// Maximum number of checkpoints per workflow.
    pub max_checkpoints: u64,
    /// Maximum total size of all checkpoints in bytes.
    pub max_total_bytes: u64,
    /// Time after which unnamed checkpoints of an inactive workflow are deleted, except the latest.
    pub retention: Duration,
    /// Classifier of context keys by importance.
    pub classifier: Arc<Classifier>,
    /// Storage of contexts.
    pub storage: ContextStorage,
}
