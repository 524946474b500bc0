//! The store as callers hold it: submit work, wait for its durable answer.

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
    /// When it is on disk.
    Full,
    /// When it is visible to others; the next full write, or the system in its own time, puts it on disk. It survives
    /// a crash of the process, not one of the machine. For logs.
    Lazy,
}

/// Who does the work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Threads {
    /// The caller's own thread: nothing is started, for commands that do one thing and exit.
    Caller,
    /// Threads of the store: callers wait without blocking, concurrent writes share a commit.
    Background,
}

/// Where the store is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreConfig {
    /// In one file.
    Sqlite {
        /// The file; it and its folder are made when missing.
        path: PathBuf,
        /// Who does the work.
        threads: Threads,
    },
    /// On a PostgreSQL server.
    Postgres {
        /// Its address.
        url: String,
        /// Who does the work.
        threads: Threads,
        /// How many connections at the most, with background threads.
        connections: usize,
        /// How long the server may take to answer.
        timeouts: PostgresTimeouts,
    },
}

impl StoreConfig {
    /// Identifies the database in files that wait for it.
    pub fn target(&self) -> Target {
        match self {
            Self::Sqlite { .. } => Target::sqlite(),
            Self::Postgres { url, .. } => Target::postgres(url),
        }
    }
}

/// What happens to a database whose schema is older than [`LATEST_VERSION`](crate::LATEST_VERSION).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OlderSchema {
    /// It is backed up (SQLite) and migrated.
    Migrate,
    /// Opening fails with [`StoreError::OlderSchema`].
    Refuse,
}

/// How long a SQLite statement waits for a lock that another process holds. PostgreSQL has timeouts of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockTimeout {
    /// Ten seconds.
    Long,
    /// One second.
    Short,
    /// A tenth of a second: enough for the commit of another process, not for an outage.
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
}

/// Time limits of a store on PostgreSQL. A server that exceeds them counts as unavailable.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PostgresTimeouts {
    /// Limit for opening a connection, including authentication.
    pub connect: Duration,
    /// Limit for one statement. Migration and maintenance have a larger one of their own.
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
    /// Its version and schema; the time does not depend on its size.
    Quick,
    /// Every page of a SQLite file too, which takes half a minute for a gigabyte.
    Full,
}

/// How the store is, for `baton doctor`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// `sqlite` or `postgres`.
    pub engine: &'static str,
    /// The version of the engine.
    pub engine_version: String,
    /// The version of the schema; older than [`LATEST_VERSION`](crate::LATEST_VERSION) when it is yet to be migrated.
    pub schema_version: i64,
    /// What a check of the whole database found; empty when it is sound.
    pub problems: Vec<String>,
}

/// Work that an engine runs: at least once inside a transaction, then exactly one `finish`.
pub(crate) trait Work: Send {
    fn run(&mut self, tx: &mut dyn Tx) -> Outcome;
    fn finish(self: Box<Self>, committed: Result<(), StoreError>);
}

/// What stands behind a [`Store`].
pub(crate) trait Engine: Send + Sync {
    fn write(&self, durability: Durability, work: Box<dyn Work>);
    /// Writes on the caller's own thread when nobody else is writing, which spares two changes of thread.
    fn write_here(&self, durability: Durability, work: Box<dyn Work>) {
        self.write(durability, work);
    }
    fn read(&self, work: Box<dyn Work>);
    /// Releases the disk reserve, if there can be one.
    fn release_reserve(&self) -> Option<ReleasedReserve> {
        None
    }
}

/// A database, opened and migrated. Clones share it; it closes with the last of them.
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
    /// Opens the database, making and migrating it as needed.
    ///
    /// Blocks. An older schema is backed up before it is migrated, by one process while others wait; a newer one is
    /// refused.
    pub fn open(config: &StoreConfig) -> Result<Self, StoreError> {
        open_engine(config, OpenMode::MIGRATE)
            .map(|engine| Self { engine })
            .or_else(|error| Self::open_read_only(config, error))
    }

    /// Opens a file that cannot be written, or that is on a full disk, for reading. Work that writes fails until the file can
    /// be opened for writing: that is tried again every few seconds.
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
            // An older schema, for example: it cannot be upgraded before the file can be written.
            Err(_) => Err(error),
        }
    }

    /// Opens the database without migrating it, for processes that must finish soon. An older schema is refused with
    /// [`StoreError::OlderSchema`]; a missing or empty database is created.
    pub fn open_current(config: &StoreConfig, lock_timeout: LockTimeout) -> Result<Self, StoreError> {
        let mode = OpenMode { older_schema: OlderSchema::Refuse, lock_timeout };
        open_engine(config, mode).map(|engine| Self { engine })
    }

    /// Takes a store that could not be opened. Work on it fails, saying why, until it can be: it is tried again every few
    /// seconds.
    pub fn open_later(config: &StoreConfig, reason: &StoreError) -> Self {
        Self { engine: Arc::new(Reopening::new(config.clone(), reason)) }
    }

    /// Runs work that writes. Its writes are kept when it answers `Ok`, undone when it answers `Err`.
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

    /// Runs work that writes and blocks until its answer is there: [`Store::write`] for threads that may wait.
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

    /// Runs work that only reads, on one consistent view. Never waits for writers.
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

    /// Gives the space of the disk reserve back to the file system until the returned value is dropped, for work that frees
    /// space on a full disk. None for a database on another machine.
    pub fn release_reserve(&self) -> Option<ReleasedReserve> {
        self.engine.release_reserve()
    }

    /// Inspects a database without changing it: nothing is created, nothing is migrated. Blocks.
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

/// The answer to submitted work: `.await` it, or [`Pending::wait`] for it where there is no async runtime.
#[derive(Debug)]
pub struct Pending<T, E> {
    receiver: oneshot::Receiver<Result<T, E>>,
}

impl<T, E: From<StoreError>> Pending<T, E> {
    /// Blocks until the answer is there.
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
        // The caller may have gone away; the work is done all the same.
        let _ = self.reply.send(answer);
    }
}
