//! HTTP client of a server: calls operations over their routes.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use baton_app::request_params::encode;
use baton_app::{AnyOperation, KeyUse, Method, Route, read_error, routes};
use baton_checkpoint::SavedContext;
use baton_core::{ErrorCode, IdempotencyKey};
use serde_json::Value;
use ureq::{Agent, SendBody};

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::Failure;

/// Maximum size of a response: a context of 16 MiB with JSON escapes, and the fields around it.
const MAX_ANSWER_BYTES: u64 = 128 * 1024 * 1024;

/// HTTP client of a server.
pub(crate) struct Remote {
    agent: Agent,
    url: String,
    key: Option<String>,
}

impl Remote {
    pub(crate) fn new(url: &str, config: &Config, timeout: Duration) -> Self {
        let agent = http_agent(timeout);
        let key = match &config.relay_key {
            Some(key) => Some(key.expose().to_owned()),
            None => DataDir::at(&config.data_dir).read_relay_key(),
        };
        Self { agent, url: url.trim_end_matches('/').to_owned(), key }
    }

    /// Sends a request and returns the body of the response. The body of the request is `document`, streamed, or
    /// otherwise the parameters.
    pub(crate) fn send(
        &self,
        operation: &'static AnyOperation,
        params: Value,
        key: Option<IdempotencyKey>,
        document: Option<Box<dyn Read + Send>>,
    ) -> Result<String, Failure> {
        let name = operation.name;
        let route = routes().into_iter().find(|route| route.operation.name == name);
        let route = route.ok_or_else(|| Failure::internal(format!("{name} has no HTTP route")))?;
        let key = match key {
            None if operation.key == KeyUse::Required => {
                let mut random = [0; 16];
                getrandom::fill(&mut random).map_err(|error| Failure::internal(error.to_string()))?;
                Some(format!("cli-{:032x}", u128::from_le_bytes(random)))
            }
            key => key.map(|key| key.to_string()),
        };
        let (path, params) = fill_path(&route, params);
        let mut request = ureq::http::Request::builder().method(route.method.as_str());
        if let Some(key) = &self.key {
            request = request.header("x-relay-key", key);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let (uri, body) = match route.method {
            Method::Get | Method::Delete => (format!("{}{path}{}", self.url, query(&params)), String::new()),
            Method::Post if document.is_some() => (format!("{}{path}", self.url), String::new()),
            Method::Post => (format!("{}{path}", self.url), params.to_string()),
        };
        let request = request.uri(uri).header("content-type", "application/json");
        let unusable = |error: ureq::http::Error| {
            Failure::new(Exit::Usage, "invalid_config", format!("server {}: {error}", self.url))
        };
        let sent = match document {
            Some(document) => {
                self.agent.run(request.body(SendBody::from_owned_reader(document)).map_err(unusable)?)
            }
            None => self.agent.run(request.body(body).map_err(unusable)?),
        };
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string();
        let body = body.map_err(|error| self.unreachable(&error))?;
        match response.status().as_u16() {
            200 => Ok(body),
            status => Err(self.refused(status, &body)),
        }
    }

    /// Converts the body of an error response. A proxy in front of the server sends pages of its own.
    fn refused(&self, status: u16, body: &str) -> Failure {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        match parsed["error"].as_str() {
            // A newer server may have codes that this version does not know.
            Some(code) => Failure {
                code: code.to_owned(),
                ..read_error(ErrorCode::from_wire(code).unwrap_or(ErrorCode::Internal), body).into()
            },
            None => {
                let (exit, code) = match status {
                    500.. => (Exit::StoreUnavailable, "server_unreachable"),
                    _ => (Exit::Failure, "unexpected_response"),
                };
                let message = format!(
                    "cannot use the server {}: HTTP status {status} without an error of Baton",
                    self.url
                );
                Failure::new(exit, code, message)
                    .hint("check the address, and that baton serve runs behind the proxy that answered")
            }
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        Failure::new(
            Exit::StoreUnavailable,
            "server_unreachable",
            format!("cannot reach the server {}: {error}", self.url),
        )
        .hint("check that baton serve runs there, or omit --server to use the local store")
    }
}

/// Inserts path parameters into the path; returns the path and the remaining parameters.
fn fill_path(route: &Route, params: Value) -> (String, Value) {
    let mut rest = params;
    let mut path = String::new();
    for part in route.path.split_inclusive('/') {
        let (name, slash) = part.strip_suffix('/').map_or((part, ""), |name| (name, "/"));
        match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => {
                let value = rest.as_object_mut().and_then(|map| map.remove(name)).unwrap_or_default();
                path.push_str(&encode(&text_of(&value)));
            }
            None => path.push_str(name),
        }
        path.push_str(slash);
    }
    (path, rest)
}

fn query(params: &Value) -> String {
    let pairs: Vec<String> = params
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{}={}", encode(name), encode(&text_of(value))))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// Builds a request body from parameters and a context. The context is inserted as text.
pub(crate) fn with_context(
    params: &Value,
    name: Option<&str>,
    context: &SavedContext,
) -> Box<dyn Read + Send> {
    let fields = params.to_string();
    let rest = fields.strip_prefix('{').unwrap_or(&fields);
    let comma = if rest == "}" { "" } else { "," };
    let body = format!("{{\"{}\":{}{comma}{rest}", name.unwrap_or_default(), context.to_sent_text());
    Box::new(std::io::Cursor::new(body))
}

/// Returns a client that treats every status as a response.
pub(crate) fn http_agent(timeout: Duration) -> Agent {
    let tls = ureq::tls::TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(timeout))
        .tls_config(tls)
        .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}
