//! The same API on a Unix socket that only its owner can open: no key is asked for.

use std::collections::BTreeSet;
use std::fs::Permissions;
use std::future::Future;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use axum::Router;
use baton_app::App;
use tokio::net::{UnixListener, UnixSocket};

use crate::http::exchange::{Doorkeeper, Shared};
use crate::http::limit::Limiter;
use crate::http::metrics::Metrics;
use crate::http::server::{ServeError, router};

/// How many connections may wait to be taken.
const BACKLOG: u32 = 128;

/// A server on a Unix socket that listens already and answers once it is run.
#[derive(Debug)]
pub struct LocalServer {
    listener: UnixListener,
    router: Router,
}

impl LocalServer {
    /// Listens on a socket that is made here, for its owner alone. `used` is called at every request.
    pub fn bind(
        app: App,
        socket: &Path,
        version: &str,
        used: impl Fn() + Send + Sync + 'static,
    ) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address: socket.display().to_string(), source };
        let listener = listen(socket).map_err(failed)?;
        let shared = Arc::new(Shared {
            app,
            doorkeeper: Doorkeeper::Owner(Box::new(used)),
            limiter: Limiter::per_minute(None),
            metrics: Metrics::new(),
            hosts: BTreeSet::new(),
        });
        Ok(Self { listener, router: router(&shared, version) })
    }

    /// Answers until `stop` is done, then finishes what is under way.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        axum::serve(self.listener, self.router).with_graceful_shutdown(stop).await.map_err(ServeError::Broken)
    }
}

/// Makes the socket, its mode before anybody can connect.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket = UnixSocket::new_stream()?;
    socket.bind(path)?;
    std::fs::set_permissions(path, Permissions::from_mode(0o600))?;
    socket.listen(BACKLOG)
}
