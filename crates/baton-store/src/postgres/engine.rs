//! Runs work on the caller's thread, or on a fixed number of threads with one connection each.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Builder, JoinHandle};

use crossbeam_channel::{Receiver, Sender, TrySendError, bounded};

use crate::error::StoreError;
use crate::postgres::availability::Availability;
use crate::postgres::open::{Address, connect, parse};
use crate::postgres::writer::{Mode, Runner};
use crate::store::{Durability, Engine, OlderSchema, PostgresTimeouts, Threads, Work};

/// Capacity of the queue. More work is rejected instead of being kept in memory.
const QUEUE_CAPACITY: usize = 8_192;

/// A store on a PostgreSQL server.
pub(crate) struct PostgresEngine {
    pool: Pool,
}

enum Pool {
    Caller(Mutex<Box<Runner>>),
    Background { work: Option<Sender<(Mode, Box<dyn Work>)>>, threads: Vec<JoinHandle<()>> },
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
                // A short process goes on with this connection, because a second one takes several milliseconds.
                Ok(matches!(threads, Threads::Caller).then_some(client))
            };
            scope.spawn(migrate).join()
        });
        let client = migrated.map_err(|_| StoreError::Broken)??;
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
            Pool::Background { work: None, .. } => work.finish(Err(StoreError::Closed)),
            Pool::Background { work: Some(queue), .. } => match queue.try_send((mode, work)) {
                Ok(()) => {}
                Err(TrySendError::Full((_, work))) => work.finish(Err(StoreError::Overloaded)),
                Err(TrySendError::Disconnected((_, work))) => work.finish(Err(StoreError::Closed)),
            },
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
        if let Self::Background { work, threads } = self {
            *work = None;
            let own = std::thread::current().id();
            for thread in threads.drain(..) {
                if thread.thread().id() != own && thread.join().is_err() {
                    tracing::error!("a store thread panicked");
                }
            }
        }
    }
}

fn background(config: &Address, connections: usize) -> Result<Pool, StoreError> {
    let (work, waiting) = bounded(QUEUE_CAPACITY);
    let availability = Arc::<Availability>::default();
    let threads = (0..connections)
        .map(|_| {
            let (runner, waiting) =
                (Runner::new(config.clone(), None, availability.clone()), waiting.clone());
            Builder::new().name("baton-postgres".into()).spawn(move || work_loop(runner, &waiting)).map_err(
                |source| StoreError::Unavailable {
                    message: "cannot start a store thread".into(),
                    source: Some(source.into()),
                },
            )
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Pool::Background { work: Some(work), threads })
}

fn work_loop(mut runner: Runner, waiting: &Receiver<(Mode, Box<dyn Work>)>) {
    while let Ok((mode, work)) = waiting.recv() {
        runner.run(mode, work);
    }
}
