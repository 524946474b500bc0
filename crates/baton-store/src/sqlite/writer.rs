//! The single writer. Queued work shares a transaction and one fsync; a piece that is rolled back does not affect the
//! others.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode};

use crate::engine::{Durability, Work};
use crate::error::StoreError;
use crate::sqlite::sql::SqliteTx;
use crate::sqlite::watch::{notification_file, notify};
use crate::tx::Outcome;

/// A piece of work and its durability.
pub(super) struct Write {
    pub(super) durability: Durability,
    pub(super) work: Box<dyn Work>,
}

impl From<Write> for Box<dyn Work> {
    fn from(write: Write) -> Self {
        write.work
    }
}

/// A writing connection and the durability of its next commit.
pub(super) struct Writer {
    connection: Connection,
    durability: Durability,
    notification_file: PathBuf,
    /// Set by work that adds queue items.
    has_new_items: Cell<bool>,
}

/// Work that is committed or rolled back, but not yet acknowledged.
#[must_use]
pub(super) struct Finished(Vec<(Box<dyn Work>, Result<(), StoreError>)>);

impl Finished {
    /// Sends the results to the waiting callers.
    pub(super) fn acknowledge(self) {
        for (work, committed) in self.0 {
            work.finish(committed);
        }
    }

    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }
}

/// Result of one piece in a shared transaction.
enum Piece {
    Done,
    /// The piece panicked and was rolled back.
    Panicked,
}

impl Writer {
    pub(super) fn new(connection: Connection, database: &Path) -> Self {
        Self {
            connection,
            durability: Durability::Full,
            notification_file: notification_file(database),
            has_new_items: Cell::new(false),
        }
    }

    fn tx(&self) -> SqliteTx<'_> {
        SqliteTx { connection: &self.connection, notify_queue: Some(&self.has_new_items) }
    }

    pub(super) const fn connection(&self) -> &Connection {
        &self.connection
    }

    /// Runs the queued work in one transaction. The result must be [acknowledged](Finished::acknowledge).
    ///
    /// If the shared transaction fails, each piece is run again in its own transaction, so that a piece that cannot be
    /// stored does not fail the others.
    pub(super) fn run(&mut self, mut batch: Vec<Write>) -> Finished {
        match self.attempt(&mut batch) {
            Ok(pieces) => Finished(
                batch.into_iter().zip(pieces).map(|(write, piece)| (write.work, piece.into())).collect(),
            ),
            Err(error) if batch.len() == 1 || matches!(error, StoreError::Busy) => {
                let mut error = Some(error);
                let mut failed = |write: Write| (write.work, Err(error.take().unwrap_or(StoreError::Busy)));
                Finished(batch.into_iter().map(&mut failed).collect())
            }
            Err(error) => {
                tracing::warn!(%error, pieces = batch.len(), "a batch commit failed; committing each write separately");
                Finished(batch.into_iter().flat_map(|write| self.run(vec![write]).0).collect())
            }
        }
    }

    fn attempt(&mut self, batch: &mut [Write]) -> Result<Vec<Piece>, StoreError> {
        self.set_durability(batch)?;
        self.command("BEGIN IMMEDIATE")?;
        let ran = match batch {
            // A single piece needs no savepoint: the whole transaction is rolled back.
            [write] => match run_piece(write, &mut self.tx()) {
                (Outcome::Commit, piece) => Ok(vec![piece]),
                (Outcome::RollBack, piece) => {
                    self.roll_back();
                    return Ok(vec![piece]);
                }
            },
            batch => match self.run_together(batch) {
                Ok(Some(pieces)) => Ok(pieces),
                Ok(None) => self.start_over().and_then(|()| self.run_pieces(batch)),
                Err(error) => Err(error),
            },
        };
        let pieces = match ran {
            Ok(pieces) => pieces,
            Err(error) => {
                self.roll_back();
                return Err(error);
            }
        };
        if let Err(error) = self.commit() {
            self.roll_back();
            return Err(error);
        }
        Ok(pieces)
    }

    /// Runs the pieces in sequence without savepoints. Returns `None` if a piece that wrote must be rolled back; then
    /// all pieces are run again, each in a savepoint. Most rejections happen before anything is written.
    fn run_together(&self, batch: &mut [Write]) -> Result<Option<Vec<Piece>>, StoreError> {
        let mut tx = self.tx();
        let mut pieces = Vec::with_capacity(batch.len());
        for write in batch {
            let before = self.connection.total_changes();
            let (outcome, piece) = run_piece(write, &mut tx);
            if self.connection.is_autocommit() {
                // SQLite rolled the whole transaction back, as it does when the disk is full.
                return Err(StoreError::Full);
            }
            if outcome == Outcome::RollBack && self.connection.total_changes() != before {
                return Ok(None);
            }
            pieces.push(piece);
        }
        Ok(Some(pieces))
    }

    fn start_over(&self) -> Result<(), StoreError> {
        self.roll_back();
        self.command("BEGIN IMMEDIATE")
    }

    /// Runs the pieces, each in its own savepoint.
    fn run_pieces(&self, batch: &mut [Write]) -> Result<Vec<Piece>, StoreError> {
        let mut tx = self.tx();
        let mut pieces = Vec::with_capacity(batch.len());
        for write in batch {
            tx.run_cached("SAVEPOINT piece")?;
            let (outcome, piece) = run_piece(write, &mut tx);
            if self.connection.is_autocommit() {
                return Err(StoreError::Full);
            }
            if outcome == Outcome::RollBack {
                tx.run_cached("ROLLBACK TO piece")?;
            }
            tx.run_cached("RELEASE piece")?;
            pieces.push(piece);
        }
        Ok(pieces)
    }

    fn set_durability(&mut self, batch: &[Write]) -> Result<(), StoreError> {
        let full = batch.iter().any(|write| write.durability == Durability::Full);
        let wanted = if full { Durability::Full } else { Durability::Lazy };
        if wanted != self.durability {
            self.command(match wanted {
                Durability::Full => "PRAGMA synchronous = FULL",
                Durability::Lazy => "PRAGMA synchronous = NORMAL",
            })?;
            self.durability = wanted;
        }
        Ok(())
    }

    fn command(&self, sql: &str) -> Result<(), StoreError> {
        self.tx().run_cached(sql)
    }

    /// Commits. After a failed fsync the state on disk is unknown, so the process aborts and the next start reads what
    /// is really stored.
    fn commit(&self) -> Result<(), StoreError> {
        let result = self.connection.prepare_cached("COMMIT").and_then(|mut statement| statement.execute([]));
        match result {
            Ok(_) => {
                if self.has_new_items.take() {
                    notify(&self.notification_file);
                }
                Ok(())
            }
            Err(error) if is_sync_failure(&error) => {
                tracing::error!(%error, "the disk failed to sync; aborting to protect the stored data");
                std::process::abort();
            }
            Err(error) => Err(error.into()),
        }
    }

    fn roll_back(&self) {
        if !self.connection.is_autocommit()
            && let Err(error) = self.command("ROLLBACK")
        {
            tracing::error!(%error, "cannot roll back");
        }
    }
}

/// Runs a piece. A panic is caught and rolls the piece back.
fn run_piece(write: &mut Write, tx: &mut SqliteTx<'_>) -> (Outcome, Piece) {
    match catch_unwind(AssertUnwindSafe(|| write.work.run(tx))) {
        Ok(outcome) => (outcome, Piece::Done),
        Err(_) => (Outcome::RollBack, Piece::Panicked),
    }
}

impl From<Piece> for Result<(), StoreError> {
    fn from(piece: Piece) -> Self {
        match piece {
            Piece::Done => Ok(()),
            Piece::Panicked => Err(StoreError::WorkFailed),
        }
    }
}

fn is_sync_failure(error: &rusqlite::Error) -> bool {
    const SYNC_FAILURES: [i32; 2] =
        [rusqlite::ffi::SQLITE_IOERR_FSYNC, rusqlite::ffi::SQLITE_IOERR_DIR_FSYNC];
    error.sqlite_error().is_some_and(|inner| {
        inner.code == ErrorCode::SystemIoFailure && SYNC_FAILURES.contains(&inner.extended_code)
    })
}
