//! Observations: hook reports, the queue of captured tool uses, and observations of them.

mod capture;
mod closing;
mod compact;
mod end;
mod finishing;
mod health;
mod hook;
mod hook_params;
mod import;
mod imported;
mod intake;
mod list;
mod queue;
mod raw;
mod recall;
mod repair;
mod show;
mod transcript;
mod view;
mod work;

pub use crate::call::PackedOutput;
pub use crate::model_trouble::{ModelTrouble, ModelTroubles};
pub use crate::summary::{SummarizeSession, SummarizeSessionOutput, SummaryView};
pub use crate::worker_activity::{RunningWorker, WorkerActivity};
pub use finishing::Finished;
pub use health::{DayCost, HourCount, ModelCost, SessionCost, WorkerHealth, WorkerHealthOutput};
pub use hook_params::{Hook, HookOutput, HookSpecificOutput};
pub use import::{
    ImportObservations, ImportObservationsOutput, ImportedObservation, MAX_IMPORTED_OBSERVATIONS,
};
pub use intake::{Intake, MAX_REPORT_BYTES, MAX_WHOLE_BYTES, Report};
pub use list::{ListObservations, ListObservationsOutput};
pub use queue::{
    ListQueue, ListQueueOutput, PurgeQueue, PurgeQueueOutput, QueueItemView, ReadQueueStats, RetryQueue,
    RetryQueueOutput,
};
pub use show::{ShowObservation, ShowObservationOutput};
pub use transcript::{
    ImportTranscript, ImportTranscriptOutput, MAX_TRANSCRIPT_BYTES, PreparedReport, TranscriptProgress,
};
pub use view::ObservationView;
pub use work::{Claimed, SummaryJob, WorkQueue};
