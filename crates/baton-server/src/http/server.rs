//! The HTTP server: address, routes and configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::{MethodRouter, any, post};
use baton_app::{App, Method, routes};
use baton_core::{ErrorCode, Fault};
use futures_util::future::BoxFuture;
use tokio::net::{TcpListener, TcpSocket, lookup_host};

use crate::http::accept::Accepting;
use crate::http::budget::BodyBudget;
use crate::http::connections::Connections;
use crate::http::dashboard;
use crate::http::exchange::{Authentication, Endpoint, Shared, correlation_ids};
use crate::http::failures::FailedAuthentications;
use crate::http::limit::Limiter;
use crate::http::mcp::{self, McpEndpoint};
use crate::http::metrics::Metrics;
use crate::http::pages::Dashboard;
use crate::http::service;

/// How long requests in progress may take to finish during shutdown.
const DRAIN_TIMEOUT: Duration = Duration::from_secs(5);

/// Configuration of a server.
#[derive(Clone)]
pub struct ServerConfig {
    /// Additional host names under which the server may be called. The address itself and loopback are always allowed.
    pub allowed_hosts: Vec<String>,
    pub relay_key: String,
    /// Maximum number of requests per minute and credential; `None` means no limit.
    pub requests_per_minute: Option<u32>,
    /// Maximum number of failed authentications per minute and address; `None` means no limit.
    pub failed_per_minute: Option<u32>,
    /// Maximum number of open connections.
    pub max_connections: usize,
    /// Memory for the bodies of requests in progress.
    pub body_memory_bytes: usize,
    /// Version reported to MCP clients.
    pub version: String,
}

/// Why a server could not be started.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The server cannot listen on the address.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        address: String,
        /// Error of the operating system.
        source: io::Error,
    },
}

/// Maximum number of connections that wait to be accepted. A client whose connection does not fit retries only after a
/// second.
const BACKLOG: u32 = 4096;

/// An open port, for a [`Server`].
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on the first usable address of a name with a port.
    pub async fn bind(name: &str) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address: name.to_owned(), source };
        let socket = listen(name).await.map_err(failed)?;
        let address = socket.local_addr().map_err(failed)?;
        Ok(Self { socket, address })
    }
}

async fn listen(name: &str) -> io::Result<TcpListener> {
    let mut failed = io::Error::new(io::ErrorKind::InvalidInput, "the name has no address");
    for address in lookup_host(name).await? {
        let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        socket.set_reuseaddr(true)?;
        match socket.bind(address).and_then(|()| socket.listen(BACKLOG)) {
            Ok(listener) => return Ok(listener),
            Err(error) => failed = error,
        }
    }
    Err(failed)
}

/// A server that listens on its address and starts to answer when it is run.
pub struct Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: Accepting<TcpListener>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Server({})", self.address)
    }
}

impl Server {
    pub fn new(listener: Listener, app: App, config: ServerConfig) -> Self {
        let Listener { socket, address } = listener;
        let metrics = Arc::new(Metrics::default());
        let shared = Arc::new(Shared {
            authentication: Authentication::Keys(app.authenticator(&config.relay_key)),
            app,
            limiter: Limiter::per_minute(config.requests_per_minute),
            failures: FailedAuthentications::new(config.failed_per_minute),
            budget: BodyBudget::new(config.body_memory_bytes, metrics.clone()),
            metrics: metrics.clone(),
            hosts: host_names(address, config.allowed_hosts),
            dashboard: Dashboard::new(&config.relay_key, address.port()),
        });
        let accepting = Accepting {
            listener: socket,
            router: router(&shared, &config.version),
            connections: Arc::new(Connections::new(config.max_connections, metrics.clone())),
            metrics,
            correlation_ids: correlation_ids(&shared),
            drain_timeout: DRAIN_TIMEOUT,
        };
        Self { address, shared, accepting }
    }

    /// Returns the address that the server listens on.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns a link that signs a browser in once.
    ///
    /// # Errors
    ///
    /// Fails if the system has no random numbers.
    pub fn sign_in_link(&self) -> Result<String, Fault> {
        // A server that listens on all addresses is also reached through loopback.
        let ip = match self.address.ip() {
            ip if !ip.is_unspecified() => ip,
            IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
            IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
        };
        let host = SocketAddr::new(ip, self.address.port());
        Ok(format!("http://{host}{}", self.shared.dashboard.sign_in_path(&self.shared.app)?))
    }

    /// Serves until `stop` completes, then finishes the requests in progress.
    pub fn run(self, stop: BoxFuture<'_, ()>) -> BoxFuture<'_, ()> {
        Box::pin(self.accepting.serve(stop))
    }
}

pub(super) fn router(shared: &Arc<Shared>, version: &str) -> Router {
    let mut paths: BTreeMap<&'static str, (MethodRouter, Vec<&'static str>)> = BTreeMap::new();
    for route in routes() {
        let endpoint = Arc::new(Endpoint::new(shared.clone(), route));
        let handler = move |request: Request<Body>| {
            let endpoint = endpoint.clone();
            async move { endpoint.exchange(request).await }
        };
        let (methods, names) = paths.entry(route.path).or_default();
        *methods = match route.method {
            Method::Get => std::mem::take(methods).get(handler),
            Method::Post => std::mem::take(methods).post(handler),
            Method::Delete => std::mem::take(methods).delete(handler),
        };
        names.push(route.method.as_str());
    }
    let endpoint = Arc::new(McpEndpoint::new(shared.clone(), version));
    let handler = move |request: Request<Body>| {
        let endpoint = endpoint.clone();
        async move { endpoint.exchange(request).await }
    };
    paths.insert(mcp::PATH, (post(handler), vec!["POST"]));
    let mut router = Router::new();
    for (path, (methods, names)) in paths {
        let (shared, names) = (shared.clone(), names.join(", "));
        let other = any(move |request: Request<Body>| {
            let (shared, names) = (shared.clone(), names.clone());
            async move { shared.unrouted(request, ErrorCode::MethodNotAllowed, &names).await }
        });
        router = router.route(path, methods.fallback_service(other));
    }
    let outer = shared.clone();
    dashboard::add(service::add(router, shared), shared).fallback(move |request: Request<Body>| {
        let shared = outer.clone();
        async move { shared.unrouted(request, ErrorCode::NotFound, "").await }
    })
}

/// Returns the allowed values of `Host`: loopback, the address itself, and the configured names.
fn host_names(address: SocketAddr, allowed: Vec<String>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
    names.insert(match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    });
    names.extend(allowed.into_iter().map(|name| name.to_ascii_lowercase()));
    names
}
