//! One file per entity: what a transaction can do with it, and the SQL, written once for both databases.

mod checkpoint;
mod handoff;
mod idempotency;
mod queue;
mod request;
mod session;
mod task;
mod token;
mod turn;
mod workflow;

pub use checkpoint::{CheckpointRows, Frame, FrameBody, SeriesMember, StoredFrame};
pub use handoff::{HandoffFilter, HandoffRows};
pub use idempotency::KeyRows;
pub use queue::{NewQueueItem, QueueClaim, QueueItem, QueueRows};
pub use request::RequestRows;
pub use session::{SessionFilter, SessionRows};
pub use task::{TaskFilter, TaskRows};
pub use token::TokenRows;
pub use turn::TurnRows;
pub use workflow::{WorkflowFilter, WorkflowRows};

#[cfg(test)]
mod plan_tests;
