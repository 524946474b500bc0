//! Runs work on the caller's thread, or on a fixed number of threads with one connection each.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use crossbeam_channel::Receiver;

use crate::engine::{Durability, Engine, OlderSchema, PostgresTimeouts, Threads, Work};
use crate::error::StoreError;
use crate::postgres::availability::Availability;
use crate::postgres::open::{Address, connect, parse};
use crate::postgres::writer::{Mode, Runner};
use crate::threads::{ThreadQueue, join, spawn};

/// A store on a PostgreSQL server.
pub(crate) struct PostgresEngine {
    pool: Pool,
}

enum Pool {
    Caller(Mutex<Box<Runner>>),
    Background { queue: ThreadQueue<Submitted>, threads: Vec<JoinHandle<()>> },
}

type Submitted = (Mode, Box<dyn Work>);

impl From<Submitted> for Box<dyn Work> {
    fn from((_, work): Submitted) -> Self {
        work
    }
}

impl PostgresEngine {
    pub(crate) fn open(
        url: &str,
        timeouts: PostgresTimeouts,
        threads: Threads,
        connections: usize,
        older_schema: OlderSchema,
    ) -> Result<Self, StoreError> {
        let config = parse(url, timeouts)?;
        // The synchronous client has its own runtime and must not be used on a thread of another one.
        let migrated = std::thread::scope(|scope| {
            let migrate = || {
                let mut client = connect(&config)?;
                super::migrate::migrate(&mut client, older_schema)?;
                // A short-lived process keeps this connection, because opening a second one takes several milliseconds.
                Ok::<_, StoreError>(matches!(threads, Threads::Caller).then_some(client))
            };
            scope.spawn(migrate).join()
        });
        let client = migrated.map_err(|_| StoreError::WorkFailed)??;
        let pool = match threads {
            Threads::Caller => {
                Pool::Caller(Mutex::new(Box::new(Runner::new(config, client, Arc::default()))))
            }
            Threads::Background => background(&config, connections.max(1))?,
        };
        Ok(Self { pool })
    }

    fn submit(&self, mode: Mode, work: Box<dyn Work>) {
        match &self.pool {
            Pool::Caller(runner) => {
                runner.lock().unwrap_or_else(PoisonError::into_inner).run(mode, work);
            }
            Pool::Background { queue, .. } => queue.add((mode, work)),
        }
    }
}

impl Engine for PostgresEngine {
    fn write(&self, durability: Durability, work: Box<dyn Work>) {
        self.submit(Mode::Write(durability), work);
    }

    fn read(&self, work: Box<dyn Work>) {
        self.submit(Mode::Read, work);
    }
}

impl Drop for Pool {
    /// Lets the threads finish the queued work.
    fn drop(&mut self) {
        if let Self::Background { queue, threads } = self {
            queue.close();
            join(threads);
        }
    }
}

fn background(config: &Address, connections: usize) -> Result<Pool, StoreError> {
    let (queue, waiting) = ThreadQueue::new();
    let availability = Arc::<Availability>::default();
    let start = |_| {
        let runner = Runner::new(config.clone(), None, availability.clone());
        let waiting = waiting.clone();
        spawn("baton-postgres", move || work_loop(runner, &waiting))
    };
    let threads = (0..connections).map(start).collect::<Result<_, _>>()?;
    Ok(Pool::Background { queue, threads })
}

fn work_loop(mut runner: Runner, waiting: &Receiver<Submitted>) {
    while let Ok((mode, work)) = waiting.recv() {
        runner.run(mode, work);
    }
}
