//! MCP over streamable HTTP: answers requests whose caller is known.
//!
//! No state is kept between requests, so any of several servers can answer any request.

use std::convert::Infallible;
use std::sync::Arc;

use baton_app::App;
use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::request::Parts;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::caller::Caller;
use crate::message::{MAX_MESSAGE_BYTES, RejectedMessage, read_message};
use crate::server::McpServer;

pub type ResponseBody = BoxBody<Bytes, Infallible>;

/// Answers MCP requests over HTTP.
pub struct HttpService {
    service: StreamableHttpService<McpServer, NeverSessionManager>,
}

impl HttpService {
    /// Creates a service. `version` is the version of the server.
    pub fn new(app: App, version: &str) -> Self {
        let server = McpServer::for_callers(app, version);
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
            // Both are already checked against the configured names.
            .disable_allowed_hosts()
            .disable_allowed_origins();
        Self { service: StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config) }
    }

    /// Answers a request with a message in its body, or returns why the message is rejected.
    pub fn answer(
        &self,
        mut parts: Parts,
        message: Vec<u8>,
        caller: Caller,
    ) -> Result<BoxFuture<'static, Response<ResponseBody>>, RejectedMessage> {
        read_message(&message)?;
        parts.extensions.insert(caller);
        Ok(self.handle(parts, message))
    }

    /// Answers a request whose body is not JSON. Its body is not needed.
    pub fn reject_content_type(&self, parts: Parts) -> BoxFuture<'static, Response<ResponseBody>> {
        self.handle(parts, Vec::new())
    }

    /// Passes a request to the SDK, whose code is compiled in this crate because the future is boxed.
    fn handle(&self, parts: Parts, body: Vec<u8>) -> BoxFuture<'static, Response<ResponseBody>> {
        let service = self.service.clone();
        let request = Request::from_parts(parts, Full::new(Bytes::from(body)));
        Box::pin(async move { service.handle(request).await })
    }
}
