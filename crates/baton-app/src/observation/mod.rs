//! Observations: hook reports, the queue of captured tool uses, observations of them and session summaries.

mod activity;
mod automatic;
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
mod material;
mod packed;
mod queue;
mod raw;
mod recall;
mod renew;
mod repair;
mod show;
mod summarize;
mod transcript;
mod trouble;
mod view;
mod work;

pub use activity::{RunningWorker, WorkerActivity};
pub(crate) use automatic::{add_automatic_content, automatic_content};
pub(crate) use compact::workflow_of;
pub use finishing::Finished;
pub use health::{DayCost, HourCount, ModelCost, SessionCost, WorkerHealth, WorkerHealthOutput};
pub use hook_params::{Hook, HookOutput, HookSpecificOutput};
pub use import::{
    ImportObservations, ImportObservationsOutput, ImportedObservation, MAX_IMPORTED_OBSERVATIONS,
};
pub use intake::{Intake, MAX_REPORT_BYTES, MAX_WHOLE_BYTES, Report};
pub use list::{ListObservations, ListObservationsOutput};
pub use packed::PackedOutput;
pub use queue::{
    ListQueue, ListQueueOutput, PurgeQueue, PurgeQueueOutput, QueueItemView, ReadQueueStats, RetryQueue,
    RetryQueueOutput,
};
pub(crate) use renew::renew_session_texts;
pub use show::{ShowObservation, ShowObservationOutput};
pub use summarize::{SummarizeSession, SummarizeSessionOutput};
pub use transcript::{
    ImportTranscript, ImportTranscriptOutput, MAX_TRANSCRIPT_BYTES, PreparedReport, TranscriptProgress,
};
pub use trouble::{ModelTrouble, ModelTroubles};
pub use view::{ObservationView, SummaryView};
pub use work::{Claimed, SummaryJob, WorkQueue};
