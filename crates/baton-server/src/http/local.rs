//! The same API on a Unix socket that only its owner can open. No credential is required.

use std::collections::BTreeSet;
use std::fmt;
use std::fs::Permissions;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_app::App;
use futures_util::future::BoxFuture;
use tokio::net::{UnixListener, UnixSocket};

use crate::http::accept::Accepting;
use crate::http::budget::BodyBudget;
use crate::http::connections::Connections;
use crate::http::exchange::{Authentication, Shared, correlation_ids};
use crate::http::failures::FailedAuthentications;
use crate::http::limit::Limiter;
use crate::http::metrics::Metrics;
use crate::http::pages::Dashboard;
use crate::http::server::{ServeError, router};

/// Maximum number of connections that wait to be accepted.
const BACKLOG: u32 = 128;
/// Maximum number of open connections. Hooks and commands open short-lived connections.
const MAX_CONNECTIONS: usize = 512;
/// Memory for the bodies of requests in progress.
const BODY_MEMORY_BYTES: usize = 128 * 1024 * 1024;
/// How long requests in progress may take to finish during shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// A server that listens on a Unix socket and starts to answer when it is run.
pub struct LocalServer {
    accepting: Accepting<UnixListener>,
}

impl fmt::Debug for LocalServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("LocalServer")
    }
}

impl LocalServer {
    /// Creates a socket with access for its owner only and listens on it. `on_request` is called for every request.
    pub fn bind(
        app: App,
        socket: &Path,
        version: &str,
        on_request: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address: socket.display().to_string(), source };
        let listener = listen(socket).map_err(failed)?;
        let metrics = Arc::new(Metrics::default());
        let shared = Arc::new(Shared {
            app,
            authentication: Authentication::Owner(Box::new(on_request)),
            limiter: Limiter::per_minute(None),
            failures: FailedAuthentications::new(None),
            budget: BodyBudget::new(BODY_MEMORY_BYTES, metrics.clone()),
            metrics: metrics.clone(),
            hosts: BTreeSet::new(),
            // The owner needs no cookie, so nothing is signed.
            dashboard: Dashboard::new("", 0),
        });
        let accepting = Accepting {
            listener,
            router: router(&shared, version),
            connections: Arc::new(Connections::new(MAX_CONNECTIONS, metrics.clone())),
            metrics,
            correlation_ids: correlation_ids(&shared),
            drain_timeout: DRAIN_TIMEOUT,
        };
        Ok(Self { accepting })
    }

    /// Serves until `stop` completes, then finishes the requests in progress.
    pub fn run(self, stop: BoxFuture<'_, ()>) -> BoxFuture<'_, ()> {
        Box::pin(self.accepting.serve(stop))
    }
}

/// Creates the socket. Its mode is set before it listens, so that no other user can connect.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)
}
