//! An HTTP endpoint: connection, timeouts, limits, keys in headers.
//!
//! Owns the HTTP client and the errors for missing answers. The meaning of error answers is in `error_response`;
//! requests and the parsing of answers belong to the compressors.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use crate::api_key::ApiKey;
use crate::compressor::CompressError;
use crate::retry_after::retry_after;

/// Default timeout of a call.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(60);

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum size of the answer of a compressor, which has about a thousand tokens; an error has a few lines.
pub(crate) const MAX_BODY_BYTES: u64 = 1024 * 1024;

/// Number of idle connections kept: as many as the worker uses at a time.
const MAX_IDLE_CONNECTIONS: usize = 16;

/// Why a compressor cannot be created from its configuration.
#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    /// The base URL is invalid.
    #[error(
        "the base URL of the {compressor} endpoint must be http:// or https:// and a host, without a user"
    )]
    BaseUrl { compressor: &'static str },
    /// The key contains characters that are invalid in a header.
    #[error("the key of the {compressor} endpoint contains characters that cannot be sent")]
    Key { compressor: &'static str },
    /// The certificate file is invalid.
    #[error("cannot use the certificates in {}: {problem}", path.display())]
    Certificates {
        /// The file.
        path: PathBuf,
        /// What is wrong with the file.
        problem: String,
    },
}

pub(crate) struct EndpointSettings<'a> {
    /// Name of the compressor, for messages.
    pub(crate) compressor: &'static str,
    /// URL of the requests.
    pub(crate) url: &'a str,
    /// Header name, value prefix and key.
    pub(crate) key: Option<(HeaderName, &'static str, &'a ApiKey)>,
    /// Headers of every request.
    pub(crate) headers: Vec<(HeaderName, HeaderValue)>,
    /// Timeout of a call.
    pub(crate) timeout: Duration,
    /// Maximum size of an answer.
    pub(crate) max_body_bytes: u64,
    /// Trusted certificates, instead of the public ones.
    pub(crate) ca_file: Option<&'a Path>,
}

/// A client for one URL.
pub(crate) struct Endpoint {
    agent: Agent,
    uri: Uri,
    headers: HeaderMap,
    /// Compressor and host, for messages.
    place: String,
    timeout: Duration,
    max_body_bytes: u64,
}

pub(crate) struct HttpAnswer {
    pub(crate) status: u16,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) body: Vec<u8>,
}

impl Endpoint {
    /// Checks the settings and creates a client without sending anything.
    pub(crate) fn new(settings: EndpointSettings<'_>) -> Result<Self, EndpointError> {
        let compressor = settings.compressor;
        let uri: Uri = settings.url.parse().map_err(|_| EndpointError::BaseUrl { compressor })?;
        let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
            return Err(EndpointError::BaseUrl { compressor });
        };
        // A password in an address would appear in messages and logs.
        if authority.host().is_empty() || authority.as_str().contains('@') {
            return Err(EndpointError::BaseUrl { compressor });
        }
        let host = authority.host();
        let place = match uri.port_u16() {
            Some(port) => format!("{compressor} endpoint {host}:{port}"),
            None => format!("{compressor} endpoint {host}"),
        };
        let mut headers: HeaderMap = settings.headers.into_iter().collect();
        headers.insert(ureq::http::header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some((name, prefix, key)) = settings.key {
            let value = format!("{prefix}{}", key.expose());
            let mut value = HeaderValue::try_from(value).map_err(|_| EndpointError::Key { compressor })?;
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            // A redirect would send the key and the payload to another host.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .max_idle_connections(MAX_IDLE_CONNECTIONS)
            .max_idle_connections_per_host(MAX_IDLE_CONNECTIONS)
            .tls_config(tls(settings.ca_file)?)
            .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")));
        if is_this_machine(host) {
            config = config.proxy(None);
        }
        let (timeout, max_body_bytes) = (settings.timeout, settings.max_body_bytes);
        Ok(Self { agent: config.build().new_agent(), uri, headers, place, timeout, max_body_bytes })
    }

    /// Returns compressor and host, for messages.
    pub(crate) fn place(&self) -> &str {
        &self.place
    }

    /// Sends a request and reads the answer of any status.
    ///
    /// # Errors
    ///
    /// Returns an outage if there is no complete answer in time, and an unusable error for a body above the size limit.
    pub(crate) fn post(&self, request: &Value) -> Result<HttpAnswer, CompressError> {
        self.post_within(request, self.timeout)
    }

    /// Like [`post`](Self::post), with another timeout.
    pub(crate) fn post_within(
        &self,
        request: &Value,
        timeout: Duration,
    ) -> Result<HttpAnswer, CompressError> {
        let mut sent = ureq::http::Request::new(request.to_string());
        *sent.method_mut() = ureq::http::Method::POST;
        *sent.uri_mut() = self.uri.clone();
        *sent.headers_mut() = self.headers.clone();
        let sent = self.agent.configure_request(sent).timeout_global(Some(timeout)).build();
        let mut response = self.agent.run(sent).map_err(|error| self.failure(&error))?;
        let status = response.status().as_u16();
        let retry_after = retry_after(response.headers());
        let body = response.body_mut().with_config().limit(self.max_body_bytes).read_to_vec();
        let body = match body {
            Ok(body) => body,
            // The body of an error answer is only an explanation.
            Err(ureq::Error::BodyExceedsLimit(_)) if status != 200 => Vec::new(),
            Err(error) => return Err(self.failure(&error)),
        };
        Ok(HttpAnswer { status, retry_after, body })
    }

    /// Converts an error of the client. Its text is used only where it cannot contain the request.
    fn failure(&self, error: &ureq::Error) -> CompressError {
        let place = &self.place;
        let (problem, may_be_caused_by_item) = match error {
            ureq::Error::BodyExceedsLimit(limit) => {
                let message = format!("{place}: the answer is larger than {limit} bytes");
                return CompressError::Unusable { message, usage: crate::TokenUsage::default() };
            }
            ureq::Error::Timeout(timeout) => {
                let is_connected = !matches!(timeout, ureq::Timeout::Resolve | ureq::Timeout::Connect);
                (format!("no answer in time ({timeout})"), is_connected)
            }
            ureq::Error::HostNotFound => ("the host is not found".to_owned(), false),
            ureq::Error::Io(error) => (error.to_string(), error.kind() != ErrorKind::ConnectionRefused),
            ureq::Error::Rustls(error) => (error.to_string(), false),
            ureq::Error::Protocol(_) => ("the response is not valid HTTP".to_owned(), true),
            _ => ("no connection".to_owned(), false),
        };
        let message = format!("{place}: {problem}");
        CompressError::Outage { message, retry_after: None, needs_attention: false, may_be_caused_by_item }
    }
}

fn tls(ca_file: Option<&Path>) -> Result<TlsConfig, EndpointError> {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = TlsConfig::builder().unversioned_rustls_crypto_provider(provider);
    let config = match ca_file {
        Some(path) => config.root_certs(certificates(path)?),
        None => config.root_certs(RootCerts::WebPki),
    };
    Ok(config.build())
}

fn certificates(path: &Path) -> Result<RootCerts, EndpointError> {
    let invalid = |problem: String| EndpointError::Certificates { path: path.to_owned(), problem };
    let text = std::fs::read(path).map_err(|error| invalid(error.to_string()))?;
    let mut found: Vec<Certificate<'static>> = Vec::new();
    for item in parse_pem(&text) {
        let item = item.map_err(|_| invalid("the file is not PEM".to_owned()))?;
        if let PemItem::Certificate(certificate) = item {
            found.push(certificate);
        }
    }
    if found.is_empty() { Err(invalid("the file has none".to_owned())) } else { Ok(found.into()) }
}

/// Returns true if a host is this machine, for which no proxy is used.
fn is_this_machine(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']').parse::<std::net::IpAddr>();
    host == "localhost" || address.is_ok_and(|address| address.is_loopback())
}
