//! Runs a transaction: begin, run the work, commit. Retries from the start if the server aborts it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use crate::engine::{Durability, Work};
use crate::error::StoreError;
use crate::postgres::availability::{Admission, Availability, PROBE_TIMEOUT};
use crate::postgres::client::{Client, ClientError};
use crate::postgres::open::{Address, cannot_connect, try_connect};
use crate::postgres::sql::{Connection, PostgresTx, is_transient};
use crate::tx::Outcome;

/// Kind of transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Write(Durability),
    Read,
}

const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// One connection, opened on demand and reopened after a failure.
pub(super) struct Runner {
    address: Address,
    connection: Option<Connection>,
    availability: Arc<Availability>,
}

/// Why an attempt failed.
enum Failed {
    /// Rolled back; a retry may succeed.
    Again(StoreError),
    /// A retry would not help, or could execute the work twice.
    Final(StoreError),
    /// The server did not answer in time. An immediate retry would time out again.
    TimedOut(StoreError),
}

impl From<ClientError> for Failed {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::TimedOut(_) => Self::TimedOut(error.into()),
            error if is_transient(&error) => Self::Again(error.into()),
            error => Self::Final(error.into()),
        }
    }
}

impl Runner {
    /// Creates a runner that uses an open connection first, if there is one.
    pub(super) fn new(address: Address, open: Option<Client>, availability: Arc<Availability>) -> Self {
        Self { address, connection: open.map(Connection::new), availability }
    }

    /// Runs the work with a bounded number of retries, and finishes it.
    pub(super) fn run(&mut self, mode: Mode, mut work: Box<dyn Work>) {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            match self.attempt(mode, work.as_mut()) {
                Ok(()) => return work.finish(Ok(())),
                Err(Failed::Final(error)) => return work.finish(Err(error)),
                Err(Failed::TimedOut(error)) => {
                    self.availability.timed_out();
                    return work.finish(Err(error));
                }
                Err(Failed::Again(error)) if attempt == ATTEMPTS => return work.finish(Err(error)),
                Err(Failed::Again(error)) => {
                    tracing::debug!(%error, attempt, "retrying a transaction");
                    std::thread::sleep(pause);
                    pause *= 2;
                }
            }
        }
    }

    fn attempt(&mut self, mode: Mode, work: &mut dyn Work) -> Result<(), Failed> {
        let mut connection = match (self.availability.admit().map_err(Failed::Final)?, self.connection.take())
        {
            (Admission::Usual, Some(connection)) if !connection.client.is_closed() => connection,
            (Admission::Usual, _) => self.connect(&self.address)?,
            (Admission::Probe, _) => {
                let timeout = PROBE_TIMEOUT.min(self.address.timeouts().connect);
                self.connect(&self.address.with_connect_timeout(timeout))?
            }
        };
        let result = transact(&mut connection, mode, work);
        if !connection.client.is_closed() {
            self.connection = Some(connection);
        }
        result
    }

    fn connect(&self, address: &Address) -> Result<Connection, Failed> {
        let connected = try_connect(address).map_err(|error| {
            let timed_out = matches!(error, ClientError::TimedOut(_));
            let error = cannot_connect(error);
            if timed_out { Failed::TimedOut(error) } else { Failed::Again(error) }
        });
        let client = connected?;
        self.availability.answered();
        Ok(Connection::new(client))
    }
}

fn transact(connection: &mut Connection, mode: Mode, work: &mut dyn Work) -> Result<(), Failed> {
    connection.client.batch_execute(match mode {
        // The isolation level is explicit because a server may have another default: after a lock is granted, the
        // latest committed state must be visible.
        Mode::Write(Durability::Full) => "BEGIN ISOLATION LEVEL READ COMMITTED",
        Mode::Write(Durability::Lazy) => {
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off"
        }
        Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
    })?;
    let mut tx = PostgresTx { connection, retry: false, failed: false, timed_out: false };
    let outcome = catch_unwind(AssertUnwindSafe(|| work.run(&mut tx)));
    let PostgresTx { retry, failed, timed_out, .. } = tx;
    if timed_out {
        // The connection is dropped, so the server rolls the transaction back.
        return Err(Failed::TimedOut(StoreError::unavailable("PostgreSQL does not answer")));
    }
    let should_commit = matches!(outcome, Ok(Outcome::Commit));
    if !should_commit || retry || failed {
        // If the connection is closed, the server has rolled back.
        let _ = connection.end_transaction("ROLLBACK");
        return match outcome {
            _ if retry => Err(Failed::Again(StoreError::unavailable("the server aborted the transaction"))),
            Ok(Outcome::RollBack) => Ok(()),
            // The work panicked, or returned `Commit` after a statement failed.
            Ok(Outcome::Commit) | Err(_) => Err(Failed::Final(StoreError::WorkFailed)),
        };
    }
    connection.end_transaction("COMMIT").map_err(|error| match error.code() {
        // The server answered with an error: nothing was committed.
        Some(_) => error.into(),
        None if mode == Mode::Read => match error {
            ClientError::TimedOut(_) => error.into(),
            error => Failed::Again(error.into()),
        },
        None => Failed::Final(StoreError::CommitUnknown { source: error.into() }),
    })
}
