//! Running a piece of work: begin, run, commit; again from the start when the server undid it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use crate::error::StoreError;
use crate::postgres::open::{Address, connect};
use crate::postgres::sql::{Connection, PostgresTx, is_transient, store_error};
use crate::store::{Durability, Work};
use crate::tx::Outcome;

/// What the work is allowed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Write(Durability),
    Read,
}

const ATTEMPTS: u32 = 8;
const FIRST_PAUSE: Duration = Duration::from_millis(5);

/// One connection, opened when it is needed and opened anew when it broke.
pub(super) struct Runner {
    address: Address,
    connection: Option<Connection>,
}

/// Why an attempt did not get through.
enum Failed {
    /// Nothing was kept; running it again may succeed.
    Again(StoreError),
    /// Running it again would not help, or might do it twice.
    Final(StoreError),
}

impl Runner {
    pub(super) const fn new(address: Address) -> Self {
        Self { address, connection: None }
    }

    /// Runs the work, with a bounded number of further attempts, and answers it.
    pub(super) fn run(&mut self, mode: Mode, mut work: Box<dyn Work>) {
        let mut pause = FIRST_PAUSE;
        for attempt in 1..=ATTEMPTS {
            match self.attempt(mode, work.as_mut()) {
                Ok(()) => return work.finish(Ok(())),
                Err(Failed::Final(error)) => return work.finish(Err(error)),
                Err(Failed::Again(error)) if attempt == ATTEMPTS => return work.finish(Err(error)),
                Err(Failed::Again(error)) => {
                    tracing::debug!(%error, attempt, "running a transaction again");
                    std::thread::sleep(pause);
                    pause *= 2;
                }
            }
        }
    }

    fn attempt(&mut self, mode: Mode, work: &mut dyn Work) -> Result<(), Failed> {
        let mut connection = match self.connection.take() {
            Some(connection) if !connection.client.is_closed() => connection,
            _ => Connection::new(connect(&self.address).map_err(Failed::Again)?),
        };
        let result = transact(&mut connection, mode, work);
        if !connection.client.is_closed() {
            self.connection = Some(connection);
        }
        result
    }
}

fn transact(connection: &mut Connection, mode: Mode, work: &mut dyn Work) -> Result<(), Failed> {
    let again = |error: postgres::Error| {
        if is_transient(&error) {
            Failed::Again(store_error(error))
        } else {
            Failed::Final(store_error(error))
        }
    };
    connection
        .client
        .batch_execute(match mode {
            // Spelt out, as a server may have other defaults: behind a lock, the newest state must be seen.
            Mode::Write(Durability::Full) => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Mode::Write(Durability::Lazy) => {
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off"
            }
            Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
        })
        .map_err(again)?;
    let mut tx = PostgresTx { connection, retry: false, failed: false };
    let outcome = catch_unwind(AssertUnwindSafe(|| work.run(&mut tx)));
    let PostgresTx { retry, failed, .. } = tx;
    let keep = matches!(outcome, Ok(Outcome::Keep));
    if !keep || retry || failed {
        // When the connection is gone so is the transaction.
        let _ = connection.client.batch_execute("ROLLBACK");
        return match outcome {
            _ if retry => Err(Failed::Again(StoreError::unavailable("the server undid the transaction"))),
            Ok(Outcome::Undo) => Ok(()),
            // It panicked, or wants to keep what the server has given up.
            Ok(Outcome::Keep) | Err(_) => Err(Failed::Final(StoreError::Broken)),
        };
    }
    connection.client.batch_execute("COMMIT").map_err(|error| match error.code() {
        // The server answered: it was not kept.
        Some(_) => again(error),
        None if mode == Mode::Read => Failed::Again(store_error(error)),
        None => Failed::Final(StoreError::CommitUnknown { source: error.into() }),
    })
}
