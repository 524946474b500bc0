//! The accept loop: one task per connection, timeouts, graceful shutdown.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request};
use futures_util::future::BoxFuture;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, UnixListener};
use tokio::sync::watch;
use tokio::time::{Instant, interval, sleep, timeout};
use tower::Service;

use crate::http::body::waits_to_send;
use crate::http::connections::{Connection, Connections};
use crate::http::metrics::Metrics;
use crate::http::peer::Peer;
use crate::http::wire::{CorrelationIds, HasTwoLengths, RequestNumbers, Wire};

/// Time limit for sending the head of a request, which is also the limit for idle time between requests.
const HEAD_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for reading a response.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
const IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Maximum size of a request head. Limits the memory of a connection before authentication.
const MAX_HEAD_BYTES: usize = 64 * 1024;
/// Pause before accepting again after an error.
const ACCEPT_RETRY: Duration = Duration::from_millis(50);
/// Minimum interval between logged accept errors.
const ACCEPT_LOG_INTERVAL: Duration = Duration::from_secs(10);
/// How long idle connections, and connections that are sending a request, may stay open during shutdown.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

/// A listening socket.
pub(super) trait Listener {
    type Stream: AsyncRead + AsyncWrite + Unpin + Send + 'static;
    fn accept(&self) -> impl Future<Output = io::Result<(Self::Stream, Peer)>> + Send;
}

impl Listener for TcpListener {
    type Stream = tokio::net::TcpStream;

    async fn accept(&self) -> io::Result<(Self::Stream, Peer)> {
        let (stream, address) = Self::accept(self).await?;
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!(%error, "cannot turn off write delays");
        }
        Ok((stream, Peer::of(address.ip())))
    }
}

impl Listener for UnixListener {
    type Stream = tokio::net::UnixStream;

    async fn accept(&self) -> io::Result<(Self::Stream, Peer)> {
        let (stream, _) = Self::accept(self).await?;
        Ok((stream, Peer::LOCAL))
    }
}

/// State of the accept loop.
pub(super) struct Accepting<L> {
    pub(super) listener: L,
    pub(super) router: Router,
    pub(super) connections: Arc<Connections>,
    pub(super) metrics: Arc<Metrics>,
    pub(super) correlation_ids: CorrelationIds,
    /// How long requests in progress may take to finish during shutdown.
    pub(super) drain_timeout: Duration,
}

impl<L: Listener> Accepting<L> {
    /// Serves until `stop` completes, then finishes the requests in progress.
    pub(super) async fn serve(self, mut stop: BoxFuture<'_, ()>) {
        let Self { listener, router, connections, metrics, correlation_ids, drain_timeout } = self;
        let (stopping, stopped) = watch::channel(false);
        let mut idle_check = interval(IDLE_CHECK_INTERVAL);
        let mut logged_error: Option<Instant> = None;
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stop => break,
                _ = idle_check.tick() => {
                    connections.close_idle(ANSWER_TIMEOUT);
                    continue;
                }
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, peer)) => {
                    let connection = connections.open(peer);
                    let numbers = Arc::new(RequestNumbers::default());
                    tokio::spawn(serve_connection(
                        Wire::new(stream, numbers.clone(), correlation_ids.clone()),
                        numbers,
                        connection,
                        router.clone(),
                        stopped.clone(),
                        metrics.clone(),
                    ));
                    connections.settled().await;
                }
                Err(error) if is_connection_error(&error) => {}
                Err(error) => {
                    metrics.count("baton_accept_errors_total", accept_error_reason(&error));
                    if logged_error.is_none_or(|logged| logged.elapsed() >= ACCEPT_LOG_INTERVAL) {
                        tracing::warn!(%error, "cannot accept a connection; closing an idle one");
                        logged_error = Some(Instant::now());
                    }
                    connections.close_one();
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
        drop(listener);
        stopping.send_replace(true);
        drain(&connections, drain_timeout).await;
    }
}

/// Returns true for an error of a single connection, which its client closed before it was accepted.
fn is_connection_error(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// Returns the cause of an accept error for the metrics.
fn accept_error_reason(error: &io::Error) -> &'static str {
    const ENFILE: i32 = 23;
    const EMFILE: i32 = 24;
    match error.raw_os_error() {
        Some(ENFILE | EMFILE) => "open_files",
        _ => "other",
    }
}

/// Waits for requests in progress. Closes idle connections and half-sent requests first.
async fn drain(connections: &Connections, drain_timeout: Duration) {
    let closing = async {
        sleep(CLOSE_TIMEOUT).await;
        connections.close_idle(CLOSE_TIMEOUT);
        std::future::pending().await
    };
    let all_closed = async {
        tokio::select! {
            () = connections.all_closed() => {}
            () = closing => {}
        }
    };
    if timeout(drain_timeout, all_closed).await.is_err() {
        let unfinished = connections.close_all();
        if unfinished > 0 {
            tracing::warn!(unfinished, "stopped before all requests were finished");
        }
    }
}

async fn serve_connection<S>(
    stream: Wire<S>,
    numbers: Arc<RequestNumbers>,
    connection: Arc<Connection>,
    router: Router,
    mut stopped: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn({
        let connection = connection.clone();
        move |request: Request<Incoming>| {
            connection.received_head();
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(connection.clone());
            if numbers.count() {
                request.extensions_mut().insert(HasTwoLengths);
            }
            let waits_to_send = waits_to_send(request.headers());
            // A router is always ready.
            let answering = router.clone().call(request);
            async move {
                let mut response = answering.await?;
                if waits_to_send && !response.status().is_success() {
                    // The body was not read. Closing the connection spares the client sending it.
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                Ok::<_, Infallible>(response)
            }
        }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_buf_size(MAX_HEAD_BYTES);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(stream), service));
    let mut is_stopping = false;
    loop {
        tokio::select! {
            served = serving.as_mut() => {
                if served.is_err_and(|error| error.is_timeout()) {
                    metrics.count("baton_connections_closed_total", "timeout");
                }
                return;
            }
            () = connection.close_requested() => return,
            _ = stopped.wait_for(|stopped| *stopped), if !is_stopping => {
                is_stopping = true;
                serving.as_mut().graceful_shutdown();
            }
        }
    }
}
