//! `/mcp`: MCP over streamable HTTP, with the same authentication and limits as every other path.
//!
//! No state is kept between requests, so any of several servers can answer any request.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use baton_app::RefusedCall;
use baton_core::{ActorKeyId, ErrorCode, Fault};
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};

use crate::http::body::{discard, receive_body};
use crate::http::budget::Reservation;
use crate::http::connections::BusyConnection;
use crate::http::exchange::{Admitted, Shared, peer};
use crate::http::respond::respond;
use crate::mcp::{Caller, MAX_MESSAGE_BYTES, McpServer, RejectedMessage, read_message};

pub(super) const PATH: &str = "/mcp";

/// The `/mcp` endpoint.
pub(super) struct McpEndpoint {
    shared: Arc<Shared>,
    service: StreamableHttpService<McpServer, NeverSessionManager>,
}

/// An authenticated request with its message and the resources it holds until it is answered.
struct Entered {
    request: Request<Body>,
    busy: Option<BusyConnection>,
    reservation: Option<Reservation>,
}

/// Why a request did not reach the MCP service.
enum Stopped {
    /// Rejected before the message was read, answered as on every path.
    Rejected(Fault),
    /// The body is not a valid message, answered with a JSON-RPC error.
    Message(RejectedMessage),
}

impl McpEndpoint {
    pub(super) fn new(shared: Arc<Shared>, version: &str) -> Self {
        let server = McpServer::for_callers(shared.app.clone(), version);
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
            // Both are already checked against the configured names.
            .disable_allowed_hosts()
            .disable_allowed_origins();
        let service = StreamableHttpService::new(move || Ok(server.clone()), Arc::default(), config);
        Self { shared, service }
    }

    pub(super) async fn exchange(&self, request: Request<Body>) -> Response<Body> {
        let (parts, body) = request.into_parts();
        let admitted = match self.shared.admit(&parts) {
            Ok(admitted) => admitted,
            Err(response) => {
                discard(&parts, body).await;
                return *response;
            }
        };
        let (started, peer) = (Instant::now(), peer(&parts));
        let mut actor_key_id = None;
        let response = match self.enter(parts, body, &admitted, &mut actor_key_id).await {
            Ok(entered) => self.call(entered).await,
            Err(stopped) => {
                let Admitted { correlation_id, face } = &admitted;
                let (correlation_id, face) = (correlation_id.clone(), face.clone());
                self.refuse(stopped, RefusedCall { face, correlation_id, actor_key_id, peer: peer.0 })
            }
        };
        self.shared.metrics.record(PATH, response.status().as_u16(), started.elapsed());
        add_headers(response, &admitted)
    }

    /// Passes a message to the MCP service. A call with reserved memory is finished even if its client disconnects, so
    /// that the memory stays reserved while it is in use.
    async fn call(&self, entered: Entered) -> Response<Body> {
        let Entered { request, busy, reservation } = entered;
        let Some(reservation) = reservation else {
            let response = self.service.handle(request).await.map(Body::new);
            drop(busy);
            return response;
        };
        let service = self.service.clone();
        let calling = tokio::spawn(async move {
            let response = service.handle(request).await.map(Body::new);
            drop((busy, reservation));
            response
        });
        calling.await.unwrap_or_else(|error| {
            tracing::error!(%error, "an MCP request panicked");
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
    }

    /// Authenticates a request, reads its message, and attaches the caller for the MCP service.
    async fn enter(
        &self,
        mut parts: Parts,
        body: Body,
        admitted: &Admitted,
        actor_key_id: &mut Option<ActorKeyId>,
    ) -> Result<Entered, Stopped> {
        let (actor, busy) = match self.shared.enter(&parts).await {
            Ok(entered) => entered,
            Err(fault) => {
                discard(&parts, body).await;
                return Err(Stopped::Rejected(fault));
            }
        };
        *actor_key_id = Some(actor.key_id.clone());
        if parts.method == Method::POST && !is_json(&parts.headers) {
            // The MCP service answers this without reading the body.
            discard(&parts, body).await;
            let request = Request::from_parts(parts, Body::empty());
            return Ok(Entered { request, busy, reservation: None });
        }
        let received = receive_body(&parts.headers, body, MAX_MESSAGE_BYTES, &self.shared.budget)
            .await
            .map_err(Stopped::Rejected)?;
        if !received.is_whole {
            return Err(Stopped::Message(RejectedMessage::too_large(&received.bytes)));
        }
        read_message(&received.bytes).map_err(Stopped::Message)?;
        parts.extensions.insert(Caller { actor, correlation_id: admitted.correlation_id.clone() });
        let request = Request::from_parts(parts, Body::from(received.bytes));
        Ok(Entered { request, busy, reservation: received.reservation })
    }

    fn refuse(&self, stopped: Stopped, call: RefusedCall) -> Response<Body> {
        match stopped {
            Stopped::Rejected(fault) => respond(self.shared.app.refuse(call, &fault)),
            Stopped::Message(RejectedMessage { error, code }) => {
                let fault = Fault::new(code, error.error.message.clone());
                let reply = self.shared.app.refuse(call, &fault);
                let body = serde_json::to_vec(&error).unwrap_or_default();
                let mut response = Response::new(Body::from(body));
                *response.status_mut() =
                    StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_REQUEST);
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                if code == ErrorCode::PayloadTooLarge {
                    // The rest of the body is not read.
                    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                }
                response
            }
        }
    }
}

fn is_json(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    kind.is_some_and(|kind| kind.starts_with("application/json"))
}

/// Adds the headers of every response.
fn add_headers(mut response: Response<Body>, admitted: &Admitted) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(admitted.correlation_id.as_str()) {
        headers.insert(HeaderName::from_static("x-correlation-id"), id);
    }
    response
}
