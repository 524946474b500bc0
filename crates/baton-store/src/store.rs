//! The handle that callers hold: they submit work and wait for its committed result.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::error::StoreError;
use crate::postgres::PostgresEngine;
use crate::reopening::Reopening;
use crate::sqlite::{ReleasedReserve, SqliteEngine, is_read_only};
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

    /// Returns true for processes that must finish quickly; see [`Store::open_current`].
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

/// An opened and migrated database. Clones share it; it is closed when the last clone is dropped.
#[derive(Clone)]
pub struct Store {
    engine: Arc<dyn Engine>,
}

impl fmt::Debug for Store {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Store")
    }
}

impl Store {
    /// Opens the database and creates or migrates it if necessary.
    ///
    /// Blocks. An older schema is backed up and migrated by one process while others wait; a newer schema is rejected.
    pub fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        open_engine(config, OpenMode::MIGRATE)
            .map(|engine| Self { engine })
            .or_else(|error| Self::open_read_only(config, error))
    }

    /// Opens a file read-only if it cannot be written or the disk is full. Writes fail until the file can be opened for
    /// writing, which is retried every few seconds.
    fn open_read_only(config: &StoreConfig, error: StoreError) -> Result<Self, StoreError> {
        let StoreConfig::Sqlite { path, threads } = config else { return Err(error) };
        let reason = match &error {
            StoreError::Full => StoreError::Full,
            _ if is_read_only(path) => StoreError::ReadOnly,
            _ => return Err(error),
        };
        match SqliteEngine::open_read_only(path, *threads) {
            Ok(engine) => {
                let reopening = Reopening::with_reader(config.clone(), &reason, Some(Arc::new(engine)));
                Ok(Self { engine: Arc::new(reopening) })
            }
            // For example an older schema, which can be upgraded only after the file becomes writable.
            Err(_) => Err(error),
        }
    }

    /// Opens the database without migrating it, for processes that must finish quickly. An older schema is rejected
    /// with [`StoreError::OlderSchema`]; a missing or empty database is created.
    pub fn open_current(config: &StoreConfig, lock_timeout: LockTimeout) -> Result<Self, StoreError> {
        let mode = OpenMode { older_schema: OlderSchema::Refuse, lock_timeout };
        open_engine(config, mode).map(|engine| Self { engine })
    }

    /// Creates a store for a database that could not be opened. Work fails with `reason` until the database can be
    /// opened, which is retried every few seconds.
    pub fn open_later(config: &StoreConfig, reason: &StoreError) -> Self {
        Self { engine: Arc::new(Reopening::new(config.clone(), reason)) }
    }

    /// Runs work that writes. Commits its writes if it returns `Ok` and rolls them back if it returns `Err`.
    pub fn write<T, E, F>(&self, durability: Durability, work: F) -> Pending<T, E>
    where
        F: FnMut(&mut dyn Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (job, pending) = Job::submit(work);
        self.engine.write(durability, job);
        pending
    }

    /// Runs work that writes and blocks until it is committed: [`Store::write`] for threads that may block.
    pub fn write_blocking<T, E, F>(&self, durability: Durability, work: F) -> Result<T, E>
    where
        F: FnMut(&mut dyn Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (job, pending) = Job::submit(work);
        self.engine.write_here(durability, job);
        pending.wait()
    }

    /// Runs read-only work on one consistent snapshot. Never waits for writers.
    pub fn read<T, E, F>(&self, work: F) -> Pending<T, E>
    where
        F: FnMut(&mut dyn Tx) -> Result<T, E> + Send + 'static,
        T: Send + 'static,
        E: From<StoreError> + Send + 'static,
    {
        let (job, pending) = Job::submit(work);
        self.engine.read(job);
        pending
    }

    /// Returns the space of the disk reserve to the file system until the result is dropped, for work that frees space
    /// on a full disk. `None` for PostgreSQL.
    pub fn release_reserve(&self) -> Option<ReleasedReserve> {
        self.engine.release_reserve()
    }

    /// Inspects a database without creating, migrating or changing it. Blocks.
    pub fn inspect(config: &StoreConfig, inspection: Inspection) -> Result<Health, StoreError> {
        match config {
            StoreConfig::Sqlite { path, .. } => crate::sqlite::inspect(path, inspection),
            StoreConfig::Postgres { url, timeouts, .. } => crate::postgres::inspect(url, *timeouts),
        }
    }
}

pub(crate) fn open_engine(config: &StoreConfig, mode: OpenMode) -> Result<Arc<dyn Engine>, StoreError> {
    Ok(match config {
        StoreConfig::Sqlite { path, threads } => Arc::new(SqliteEngine::open(path, *threads, mode)?),
        StoreConfig::Postgres { url, threads, connections, timeouts } => {
            Arc::new(PostgresEngine::open(url, *timeouts, *threads, *connections, mode.older_schema)?)
        }
    })
}

/// The pending result of submitted work: `.await` it, or call [`Pending::wait`] where there is no async runtime.
#[derive(Debug)]
pub struct Pending<T, E> {
    receiver: oneshot::Receiver<Result<T, E>>,
}

impl<T, E: From<StoreError>> Pending<T, E> {
    /// Blocks until the result is available.
    pub fn wait(self) -> Result<T, E> {
        self.receiver.blocking_recv().unwrap_or_else(|_| Err(E::from(StoreError::Closed)))
    }
}

impl<T, E> IntoFuture for Pending<T, E>
where
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    type Output = Result<T, E>;
    type IntoFuture = Pin<Box<dyn Future<Output = Self::Output> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(async move { self.receiver.await.unwrap_or_else(|_| Err(E::from(StoreError::Closed))) })
    }
}

struct Job<F, T, E> {
    work: F,
    answer: Option<Result<T, E>>,
    reply: oneshot::Sender<Result<T, E>>,
}

impl<F, T, E> Job<F, T, E>
where
    F: FnMut(&mut dyn Tx) -> Result<T, E> + Send + 'static,
    T: Send + 'static,
    E: From<StoreError> + Send + 'static,
{
    fn submit(work: F) -> (Box<dyn Work>, Pending<T, E>) {
        let (reply, receiver) = oneshot::channel();
        (Box::new(Self { work, answer: None, reply }), Pending { receiver })
    }
}

impl<F, T, E> Work for Job<F, T, E>
where
    F: FnMut(&mut dyn Tx) -> Result<T, E> + Send,
    T: Send,
    E: From<StoreError> + Send,
{
    fn run(&mut self, tx: &mut dyn Tx) -> Outcome {
        let answer = (self.work)(tx);
        let outcome = if answer.is_ok() { Outcome::Keep } else { Outcome::Undo };
        self.answer = Some(answer);
        outcome
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (committed, self.answer) {
            (Ok(()), Some(answer)) => answer,
            (Ok(()), None) => Err(E::from(StoreError::Broken)),
            (Err(error), _) => Err(E::from(error)),
        };
        // The caller may have dropped the receiver; the transaction is committed anyway.
        let _ = self.reply.send(answer);
    }
}
