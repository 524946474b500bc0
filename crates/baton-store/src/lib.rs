//! Persistent storage on SQLite or PostgreSQL behind one interface.
//!
//! Owns transactions, rows, migrations and durability. Does not own rules: an operation reads rows through a [`Tx`],
//! decides in `baton-core`, and writes rows back. No type of SQLite or PostgreSQL is part of the public API.
//!
//! - `store` is the handle that callers hold; `tx` is the transaction that their work receives.
//! - `rows` has one file per entity: the methods of `dyn Tx`, with their SQL written once for both databases.
//! - `column` and `record` bind values and structs to columns and read them back.
//! - `archive` is the format of backups and exports; `export` and `import` copy every record of a database.
//! - `sqlite` and `postgres` run transactions and statements. Both folders use the same file names.

mod archive;
mod blobs;
mod column;
mod engine;
mod error;
mod export;
mod fallback_folder;
mod fault;
mod files;
mod frame;
mod import;
mod migration;
mod outbox;
mod page;
mod postgres;
mod raw;
mod record;
mod reopening;
mod reserve;
mod rows;
mod seal;
mod sql;
mod sqlite;
mod store;
mod target;
mod threads;
mod tx;
mod watch;

pub use archive::{
    ArchiveError, ArchivePart, ArchiveReader, ArchiveTable, ArchiveWriter, FolderReader, FolderWriter,
    Header, Record, Replace, StreamReader, StreamWriter, Totals, Value, verify,
};
pub use blobs::{BlobFolder, BlobUsage, MAX_ROW_BYTES};
pub use engine::{Durability, Health, Inspection, LockTimeout, PostgresTimeouts, StoreConfig, Threads};
pub use error::StoreError;
pub use export::{Exported, export};
pub use fallback_folder::FallbackFolder;
pub use frame::{Effort, Encoding, FrameError, MAX_FRAME_BYTES, Packed, Packing};
pub use import::{Conflict, ImportReport, Imported, import, replace};
pub use migration::{LATEST_VERSION, Migration};
pub use outbox::{Outbox, OutboxEntry, Replay, ReplayLimits, ReplayResult, SpooledTo, SpooledWrite};
pub use page::Page;
pub use raw::{MAX_RAW_BYTES, RawPacker, RawReader, pack_raw, place_raw, unpack_raw, unpacked_size};
pub use reserve::ReleasedReserve;
pub use rows::{
    Acknowledgement, DailyUsage, FileOf, ForgetFilter, Frame, FrameBody, HandoffFilter, MarkFilter,
    MatchPlan, NewQueueItem, NewSummary, NoteFilter, ObservationFiles, ObservationFilter, PendingItem,
    PurgedItems, QueueClaim, QueueItem, QueueRelease, RawOutput, RecallFilter, RequestFilter, RequestPage,
    SeriesMember, SessionCounts, SessionFilter, Spent, StoredFrame, StoredSummary, SummaryClaim, TaskFilter,
    TimelinePosition, TurnEnd, TurnStarts, WorkflowFilter,
};
pub use seal::{
    KeyId, KeyIdError, KeyRing, NONCE_BYTES, NoRandomness, SEAL_OVERHEAD_BYTES, SealError, SecretKey,
    is_sealed, random_nonce, sealed_with,
};
pub use sqlite::{ForeignDatabase, ForeignError};
pub use store::{Pending, Store};
pub use target::Target;
pub use tx::{Outcome, Tx};
pub use watch::QueueWatch;
