//! The handle that callers hold: they submit work and wait for its committed result.

use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::oneshot;

use crate::engine::{
    Durability, Engine, Health, Inspection, LockTimeout, OlderSchema, OpenMode, StoreConfig, Work,
};
use crate::error::StoreError;
use crate::reopening::{Reopening, open_engine};
use crate::reserve::ReleasedReserve;
use crate::sqlite::{SqliteEngine, is_read_only};
use crate::tx::{Outcome, Tx};

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
        let outcome = if answer.is_ok() { Outcome::Commit } else { Outcome::RollBack };
        self.answer = Some(answer);
        outcome
    }

    fn finish(self: Box<Self>, committed: Result<(), StoreError>) {
        let answer = match (committed, self.answer) {
            (Ok(()), Some(answer)) => answer,
            (Ok(()), None) => Err(E::from(StoreError::WorkFailed)),
            (Err(error), _) => Err(E::from(error)),
        };
        // The caller may have dropped the receiver; the transaction is committed anyway.
        let _ = self.reply.send(answer);
    }
}
