//! Runs work either on the caller's thread, or on one writer thread and a few reader threads.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::{Receiver, Sender, bounded};
use rusqlite::Connection;

use crate::engine::{Durability, Engine, OpenMode, Threads, Work};
use crate::error::StoreError;
use crate::migration::LATEST_VERSION;
use crate::reserve::{RefillOnDrop, ReleasedReserve, Reserve};
use crate::sqlite::open::{
    check_version, open_read_only, open_reader, open_writer, prepare_file, tune_for_one_write,
    tune_for_service,
};
use crate::sqlite::sql::SqliteTx;
use crate::sqlite::writer::{Finished, Write, Writer};
use crate::threads::{ThreadQueue, join, spawn};

/// Maximum number of writes that share a commit.
const MAX_BATCH: usize = 256;
/// Maximum number of batches that wait to be acknowledged.
const FINISHED_CAPACITY: usize = 8_192;
const READERS: usize = 4;
/// Batches of at least this size are acknowledged by a separate thread.
const ACKNOWLEDGER_THRESHOLD: usize = 8;

/// A store in one SQLite file.
pub(crate) struct SqliteEngine {
    runner: Runner,
    reserve: Reserve,
    /// Set if opening the file on a full disk used part of the reserve. Dropped after the runner, which frees the space
    /// of SQLite's side files.
    _refill: Option<RefillOnDrop>,
}

enum Runner {
    Caller(Mutex<Writer>),
    Background(Background),
}

struct Background {
    /// Locked by the writer thread, or by a caller that finds the queue empty and nothing being written.
    writer: Arc<Mutex<Writer>>,
    writes: ThreadQueue<Write>,
    reads: ThreadQueue<Box<dyn Work>>,
    threads: Vec<JoinHandle<()>>,
}

impl SqliteEngine {
    /// Opens the file. Uses the disk reserve if the disk is full.
    pub(crate) fn open(path: &Path, threads: Threads, mode: OpenMode) -> Result<Self, StoreError> {
        let reserve = Reserve::of(path);
        let (connection, refill) = match open_migrated(path, mode) {
            Ok(connection) => (connection, None),
            Err(StoreError::Full) => {
                // Allocate the rest of the reserve again immediately: only work that frees space may use it.
                let released = reserve.release();
                let connection = open_migrated(path, mode)?;
                drop(released);
                (connection, Some(RefillOnDrop(reserve.clone())))
            }
            Err(error) => return Err(error),
        };
        reserve.ensure();
        if threads == Threads::Background {
            tune_for_service(&connection)?;
        } else if mode.is_for_one_write() {
            tune_for_one_write(&connection, path)?;
        }
        let runner = Runner::start(path, connection, threads, open_reader)?;
        Ok(Self { runner, reserve, _refill: refill })
    }

    /// Opens a file read-only because it cannot be written or the disk is full. Writes fail.
    pub(crate) fn open_read_only(path: &Path, threads: Threads) -> Result<Self, StoreError> {
        let connection = open_read_only(path)?;
        let version = check_version(&connection)?;
        if version < LATEST_VERSION {
            return Err(StoreError::OlderSchema { found: version, known: LATEST_VERSION });
        }
        let runner = Runner::start(path, connection, threads, open_read_only)?;
        Ok(Self { runner, reserve: Reserve::of(path), _refill: None })
    }
}

fn open_migrated(path: &Path, mode: OpenMode) -> Result<Connection, StoreError> {
    prepare_file(path)?;
    let mut connection = open_writer(path, mode.lock_timeout)?;
    super::migrate::migrate(&mut connection, path, mode.older_schema)?;
    Ok(connection)
}

/// Opens a connection for a reader thread.
type OpenReader = fn(&Path) -> Result<Connection, StoreError>;

impl Runner {
    fn start(
        path: &Path,
        connection: Connection,
        threads: Threads,
        open_reader: OpenReader,
    ) -> Result<Self, StoreError> {
        let writer = Writer::new(connection, path);
        Ok(match threads {
            Threads::Caller => Self::Caller(Mutex::new(writer)),
            Threads::Background => Self::Background(Background::start(path, writer, open_reader)?),
        })
    }
}

impl Engine for SqliteEngine {
    fn write(&self, durability: Durability, work: Box<dyn Work>) {
        let write = Write { durability, work };
        match &self.runner {
            Runner::Caller(writer) => run_here(&mut lock(writer), write),
            Runner::Background(background) => background.writes.add(write),
        }
    }

    fn write_here(&self, durability: Durability, work: Box<dyn Work>) {
        let write = Write { durability, work };
        match &self.runner {
            Runner::Caller(writer) => run_here(&mut lock(writer), write),
            Runner::Background(background) => background.write_here(write),
        }
    }

    fn read(&self, work: Box<dyn Work>) {
        match &self.runner {
            Runner::Caller(writer) => run_read(lock(writer).connection(), work),
            Runner::Background(background) => background.reads.add(work),
        }
    }

    fn release_reserve(&self) -> Option<ReleasedReserve> {
        Some(self.reserve.release())
    }
}

impl Background {
    fn start(path: &Path, writer: Writer, open_reader: OpenReader) -> Result<Self, StoreError> {
        let (writes, waiting_writes) = ThreadQueue::new();
        let (reads, waiting_reads) = ThreadQueue::new();
        let writer = Arc::new(Mutex::new(writer));
        let (acknowledgements, finished) = bounded::<Finished>(FINISHED_CAPACITY);
        let threads_writer = writer.clone();
        let mut threads = vec![
            spawn("baton-writer", move || write_loop(&threads_writer, &waiting_writes, &acknowledgements))?,
            spawn("baton-acknowledger", move || finished.iter().for_each(Finished::acknowledge))?,
        ];
        for _ in 0..READERS {
            let (path, waiting_reads) = (path.to_owned(), waiting_reads.clone());
            threads.push(spawn("baton-reader", move || read_loop(&path, &waiting_reads, open_reader))?);
        }
        Ok(Self { writer, writes, reads, threads })
    }

    fn write_here(&self, write: Write) {
        let is_queue_empty = self.writes.is_empty();
        match self.writer.try_lock() {
            Ok(mut writer) if is_queue_empty => run_here(&mut writer, write),
            _ => self.writes.add(write),
        }
    }
}

impl Drop for Background {
    /// Lets the threads finish the queued work, then closes the file.
    fn drop(&mut self) {
        self.writes.close();
        self.reads.close();
        join(&mut self.threads);
    }
}

fn run_here(writer: &mut Writer, write: Write) {
    writer.run(vec![write]).acknowledge();
}

fn write_loop(writer: &Mutex<Writer>, waiting: &Receiver<Write>, acknowledgements: &Sender<Finished>) {
    while let Ok(first) = waiting.recv() {
        let finished = {
            let mut writer = lock(writer);
            let mut batch = Vec::with_capacity(waiting.len().min(MAX_BATCH) + 1);
            batch.push(first);
            batch.extend(waiting.try_iter().take(MAX_BATCH - 1));
            writer.run(batch)
        };
        // Waking many callers takes as long as a few writes, so another thread does it while the next batch is written.
        if finished.len() < ACKNOWLEDGER_THRESHOLD {
            finished.acknowledge();
        } else if let Err(unsent) = acknowledgements.send(finished) {
            unsent.into_inner().acknowledge();
        }
    }
}

fn read_loop(path: &Path, waiting: &Receiver<Box<dyn Work>>, open_reader: OpenReader) {
    // Opened at the first read: a server that only writes needs no reader connections.
    let mut connection = None;
    while let Ok(work) = waiting.recv() {
        if connection.is_none() {
            match open_reader(path) {
                Ok(opened) => connection = Some(opened),
                Err(error) => {
                    work.finish(Err(error));
                    continue;
                }
            }
        }
        if let Some(connection) = &connection {
            run_read(connection, work);
        }
    }
}

/// Runs work in a read transaction, which sees one consistent snapshot.
fn run_read(connection: &Connection, mut work: Box<dyn Work>) {
    let mut tx = SqliteTx { connection, notify_queue: None };
    if let Err(error) = tx.run_cached("BEGIN") {
        return work.finish(Err(error));
    }
    let outcome = catch_unwind(AssertUnwindSafe(|| work.run(&mut tx)));
    let ended = tx.run_cached("ROLLBACK");
    work.finish(match outcome {
        Ok(_) => ended,
        Err(_) => Err(StoreError::WorkFailed),
    });
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Panics inside work are caught, so a poisoned lock does not mean that the connection is in an unknown state.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
