//! The server: a listener, the routes on it, a shutdown that finishes what is under way.

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::http::Request;
use axum::routing::{MethodRouter, any, post};
use axum::serve::ListenerExt;
use baton_app::App;
use baton_app::token::Authenticator;
use baton_core::ErrorCode;
use tokio::net::TcpListener;

use crate::http::exchange::{Doorkeeper, Endpoint, Shared};
use crate::http::limit::Limiter;
use crate::http::mcp::{self, McpEndpoint};
use crate::http::metrics::Metrics;
use crate::http::service;
use crate::routes::{Verb, routes};

/// What a server is told.
#[derive(Clone)]
pub struct ServerConfig {
    /// Where to listen.
    pub listen: String,
    /// Host names beside the address itself and loopback under which it may be called.
    pub allowed_hosts: Vec<String>,
    /// The shared key.
    pub relay_key: String,
    /// How many requests a minute one credential may make; none is no limit.
    pub requests_per_minute: Option<u32>,
    /// What clients of MCP are told of the version.
    pub version: String,
}

/// Why a server could not be started or broke off.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The server broke off.
    #[error("the server broke off: {0}")]
    Broken(#[source] io::Error),
}

/// A server that listens already and answers once it is run.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
}

impl Server {
    /// Listens.
    pub async fn bind(app: App, config: ServerConfig) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Listen { address: config.listen.clone(), source };
        let listener = TcpListener::bind(&config.listen).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let shared = Arc::new(Shared {
            doorkeeper: Doorkeeper::Keys(Authenticator::new(app.clone(), &config.relay_key)),
            app,
            limiter: Limiter::per_minute(config.requests_per_minute),
            metrics: Metrics::new(),
            hosts: host_names(address, config.allowed_hosts.clone()),
        });
        Ok(Self { listener, address, router: router(&shared, &config.version) })
    }

    /// Where it listens.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Answers until `stop` is done, then finishes what is under way.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<(), ServeError> {
        let listener = self.listener.tap_io(|stream| {
            if let Err(error) = stream.set_nodelay(true) {
                tracing::debug!(%error, "could not turn off write delays");
            }
        });
        axum::serve(listener, self.router).with_graceful_shutdown(stop).await.map_err(ServeError::Broken)
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
        *methods = match route.verb {
            Verb::Get => std::mem::take(methods).get(handler),
            Verb::Post => std::mem::take(methods).post(handler),
            Verb::Delete => std::mem::take(methods).delete(handler),
        };
        names.push(route.verb.as_str());
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
    service::add(router, shared).fallback(move |request: Request<Body>| {
        let shared = outer.clone();
        async move { shared.unrouted(request, ErrorCode::NotFound, "").await }
    })
}

/// The names that a request's `Host` may have: loopback, the address itself, and what was configured.
fn host_names(address: SocketAddr, allowed: Vec<String>) -> BTreeSet<String> {
    let mut names: BTreeSet<String> = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned).into();
    names.insert(match address {
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    });
    names.extend(allowed.into_iter().map(|name| name.to_ascii_lowercase()));
    names
}
