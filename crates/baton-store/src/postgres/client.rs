//! One connection to PostgreSQL on which every statement has a client-side deadline.
//!
//! A server that hangs (stopped, swapped out, disconnected from the network) keeps its connections open, and its kernel
//! may still acknowledge packets. Neither `statement_timeout` nor TCP keepalives detect that, so the client has its own
//! timeout. After a missed deadline the state of the connection is unknown: it reports itself as closed and must be
//! dropped.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::error::SqlState;
use tokio_postgres::tls::MakeTlsConnect;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{AsyncMessage, Config, Row, Socket, Statement};

/// Time limit for closing a healthy connection.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// Why a statement failed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientError {
    /// The server or the connection reported an error.
    #[error(transparent)]
    Database(#[from] tokio_postgres::Error),
    /// The server did not answer in time.
    #[error("no answer within {} ms", .0.as_millis())]
    TimedOut(Duration),
    /// The runtime that drives the connection could not be created.
    #[error("cannot create the runtime of a connection: {0}")]
    Runtime(#[from] std::io::Error),
}

impl ClientError {
    /// Returns the error code that the server sent, if it sent one.
    pub(super) fn code(&self) -> Option<&SqlState> {
        match self {
            Self::Database(error) => error.code(),
            Self::TimedOut(_) | Self::Runtime(_) => None,
        }
    }
}

/// A synchronous client. It must not be used on a thread of an async runtime.
pub(super) struct Client {
    // Dropped before the link, which makes the server close the connection.
    client: tokio_postgres::Client,
    link: Link,
    statement_timeout: Duration,
}

type PollMessage =
    dyn FnMut(&mut Context<'_>) -> Poll<Option<Result<AsyncMessage, tokio_postgres::Error>>> + Send;

/// Drives the I/O of a connection while a statement waits for its answer.
struct Link {
    /// `None` only during drop.
    runtime: Option<Runtime>,
    poll: Box<PollMessage>,
    state: LinkState,
}

#[derive(Default)]
struct LinkState {
    /// Number of notifications received and not reported yet.
    notifications: usize,
    /// The connection is closed and must not be polled again.
    ended: bool,
    /// A statement missed its deadline.
    timed_out: bool,
}

impl Client {
    /// Connects and authenticates. `timeout` is also the deadline of each statement until another one is set.
    pub(super) fn connect<T>(config: &Config, tls: T, timeout: Duration) -> Result<Self, ClientError>
    where
        T: MakeTlsConnect<Socket>,
        T::Stream: Send + 'static,
    {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let connected = runtime.block_on(async { tokio::time::timeout(timeout, config.connect(tls)).await });
        let (client, mut connection) = match connected {
            Ok(Ok(connected)) => connected,
            Ok(Err(error)) => return Err(error.into()),
            Err(_) => {
                // A DNS lookup may still block a thread of the runtime.
                runtime.shutdown_background();
                return Err(ClientError::TimedOut(timeout));
            }
        };
        let poll = Box::new(move |context: &mut Context<'_>| connection.poll_message(context));
        let link = Link { runtime: Some(runtime), poll, state: LinkState::default() };
        Ok(Self { client, link, statement_timeout: timeout })
    }

    /// Changes the deadline of the statements that follow.
    pub(super) fn set_statement_timeout(&mut self, timeout: Duration) {
        self.statement_timeout = timeout;
    }

    pub(super) const fn statement_timeout(&self) -> Duration {
        self.statement_timeout
    }

    /// Returns true when the connection cannot be used any more.
    pub(super) fn is_closed(&self) -> bool {
        self.link.state.timed_out || self.client.is_closed()
    }

    pub(super) fn batch_execute(&mut self, sql: &str) -> Result<(), ClientError> {
        self.link.run(self.statement_timeout, self.client.batch_execute(sql))
    }

    pub(super) fn prepare(&mut self, sql: &str) -> Result<Statement, ClientError> {
        self.link.run(self.statement_timeout, self.client.prepare(sql))
    }

    pub(super) fn execute(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<u64, ClientError> {
        self.link.run(self.statement_timeout, self.client.execute(statement, params))
    }

    pub(super) fn query(
        &mut self,
        statement: &Statement,
        params: &[&(dyn ToSql + Sync)],
    ) -> Result<Vec<Row>, ClientError> {
        self.link.run(self.statement_timeout, self.client.query(statement, params))
    }

    /// Executes a statement that is not prepared.
    pub(super) fn execute_once(
        &mut self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<u64, ClientError> {
        self.link.run(self.statement_timeout, self.client.execute_typed(sql, params))
    }

    /// Executes a query that is not prepared.
    pub(super) fn query_once(
        &mut self,
        sql: &str,
        params: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Vec<Row>, ClientError> {
        self.link.run(self.statement_timeout, self.client.query_typed(sql, params))
    }

    /// Waits for notifications and returns whether any arrived within `timeout`.
    pub(super) fn wait_for_notification(&mut self, timeout: Duration) -> Result<bool, ClientError> {
        self.link.wait_for_notification(timeout)
    }
}

impl Link {
    /// Drives the connection until the statement is answered or times out.
    fn run<T>(
        &mut self,
        timeout: Duration,
        statement: impl Future<Output = Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ClientError> {
        let mut statement = pin!(statement);
        self.drive(timeout, |context, _| statement.as_mut().poll(context))
    }

    fn wait_for_notification(&mut self, timeout: Duration) -> Result<bool, ClientError> {
        let arrived = self.drive(timeout, |_, state| {
            if state.notifications > 0 || state.ended { Poll::Ready(Ok(())) } else { Poll::Pending }
        });
        match arrived {
            Ok(()) => Ok(std::mem::take(&mut self.state.notifications) > 0),
            // No notification is the usual case and not a failure.
            Err(ClientError::TimedOut(_)) => {
                self.state.timed_out = false;
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    fn drive<T>(
        &mut self,
        timeout: Duration,
        mut done: impl FnMut(&mut Context<'_>, &mut LinkState) -> Poll<Result<T, tokio_postgres::Error>>,
    ) -> Result<T, ClientError> {
        let Self { runtime: Some(runtime), poll, state } = self else {
            return Err(ClientError::TimedOut(timeout));
        };
        if state.timed_out {
            return Err(ClientError::TimedOut(timeout));
        }
        let answer = poll_fn(|context| {
            while !state.ended
                && let Poll::Ready(message) = poll(context)
            {
                match message {
                    Some(Ok(AsyncMessage::Notification(_))) => state.notifications += 1,
                    Some(Ok(_)) => {}
                    Some(Err(error)) => {
                        state.ended = true;
                        return Poll::Ready(Err(error));
                    }
                    None => state.ended = true,
                }
            }
            done(context, state)
        });
        match runtime.block_on(async { tokio::time::timeout(timeout, answer).await }) {
            Ok(answer) => Ok(answer?),
            Err(_) => {
                state.timed_out = true;
                Err(ClientError::TimedOut(timeout))
            }
        }
    }
}

impl Drop for Link {
    /// Closes a healthy connection cleanly, so that the server frees its slot immediately.
    fn drop(&mut self) {
        if !self.state.ended && !self.state.timed_out {
            let _ = self.drive(
                CLOSE_TIMEOUT,
                |_, state| if state.ended { Poll::Ready(Ok(())) } else { Poll::Pending },
            );
        }
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}
