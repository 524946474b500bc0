//! Settings of a store, and what a database backend does for it.

use std::path::PathBuf;
use std::time::Duration;

use crate::error::StoreError;
use crate::reserve::ReleasedReserve;
use crate::target::Target;
use crate::tx::{Outcome, Tx};

/// When a write is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When it is synced to disk.
    Full,
    /// When it is visible to other connections. The next full write, or the operating system, syncs it to disk later.
    /// It survives a crash of the process but not of the machine. For logs.
    Lazy,
}

/// Which thread runs the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The caller's thread. No thread is started; for commands that do one thing and exit.
    Caller,
    /// Threads of the store. Callers wait without blocking, and concurrent writes share a commit.
    Background,
}

/// Location and settings of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// A SQLite file.
    Sqlite {
        /// Path of the file. The file and its folder are created if missing.
        path: PathBuf,
        /// Which thread runs the work.
        threads: Threads,
    },
    /// A database on a PostgreSQL server.
    Postgres {
        /// The `postgres://` address.
        url: String,
        /// Which thread runs the work.
        threads: Threads,
        /// Maximum number of connections with background threads.
        connections: usize,
        /// Time limits for the server.
        timeouts: PostgresTimeouts,
    },
}

impl StoreConfig {
    /// Identifies the database in files of the outbox.
    pub fn target(&self) -> Target {
        match self {
            Self::Sqlite { .. } => Target::sqlite(),
            Self::Postgres { url, .. } => Target::postgres(url),
        }
    }
}

/// What to do with a database whose schema is older than [`LATEST_VERSION`](crate::LATEST_VERSION).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OlderSchema {
    /// Back it up (SQLite only) and migrate it.
    Migrate,
    /// Fail with [`StoreError::OlderSchema`].
    Refuse,
}

/// How long a SQLite statement waits for a lock that another process holds. PostgreSQL has timeouts of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockTimeout {
    /// Ten seconds.
    Long,
    /// One second.
    Short,
    /// A tenth of a second: enough to wait for the commit of another process, but not for an outage.
    Minimal,
}

/// How a database is opened.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OpenMode {
    pub(crate) older_schema: OlderSchema,
    pub(crate) lock_timeout: LockTimeout,
}

impl OpenMode {
    pub(crate) const MIGRATE: Self =
        Self { older_schema: OlderSchema::Migrate, lock_timeout: LockTimeout::Long };

    /// Returns true for a process that writes once and exits, such as a hook. Such processes do not migrate: see
    /// [`Store::open_current`].
    pub(crate) fn is_for_one_write(self) -> bool {
        self.older_schema == OlderSchema::Refuse
    }
}

/// Time limits of a store on PostgreSQL. A server that exceeds them counts as unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresTimeouts {
    /// Limit for opening a connection, including authentication.
    pub connect: Duration,
    /// Limit for one statement. Migration and maintenance use a larger limit.
    pub statement: Duration,
}

impl Default for PostgresTimeouts {
    fn default() -> Self {
        Self { connect: Duration::from_secs(5), statement: Duration::from_secs(10) }
    }
}

/// How thoroughly a database is inspected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inspection {
    /// Version and schema; the duration does not depend on the size of the database.
    Quick,
    /// Also every page of a SQLite file, which takes about half a minute per gigabyte.
    Full,
}

/// State of the store, for `baton doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `sqlite` or `postgres`.
    pub engine: &'static str,
    pub engine_version: String,
    /// Version of the schema. Lower than [`LATEST_VERSION`](crate::LATEST_VERSION) if the database was not migrated
    /// yet.
    pub schema_version: i64,
    /// Problems found by a full inspection. Empty for a sound database.
    pub problems: Vec<String>,
}

/// Minimum time between two calls of the callback of a queue watch: a busy store changes thousands of times a second.
pub(crate) const MIN_NOTIFY_INTERVAL: Duration = Duration::from_millis(20);
/// How often a watcher thread checks whether it was asked to stop.
pub(crate) const STOP_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// Work that an engine runs one or more times inside a transaction and then finishes exactly once.
pub(crate) trait Work: Send {
    fn run(&mut self, tx: &mut dyn Tx) -> Outcome;
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

/// A database backend of a [`Store`].
pub(crate) trait Engine: Send + Sync {
    fn write(&self, durability: Durability, work: Box<dyn Work>);
    /// Writes on the caller's thread if no other write is running or queued, which saves two thread switches.
    fn write_here(&self, durability: Durability, work: Box<dyn Work>) {
        self.write(durability, work);
    }
    fn read(&self, work: Box<dyn Work>);
    /// Releases the disk reserve. `None` if the backend has no reserve.
    fn release_reserve(&self) -> Option<ReleasedReserve> {
        None
    }
}
