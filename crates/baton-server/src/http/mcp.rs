//! `/mcp`: MCP over streamable HTTP, through the same door as every other path.
//!
//! Nothing is kept between two requests, so that any of several servers may answer any of them.

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
use crate::mcp::{Caller, MAX_MESSAGE_BYTES, McpServer, Refusal, read_message};

pub(super) const PATH: &str = "/mcp";

/// The endpoint, prepared for being called many times.
pub(super) struct McpEndpoint {
    shared: Arc<Shared>,
    service: StreamableHttpService<McpServer, NeverSessionManager>,
}

/// An authenticated request, its message read, and what it occupies until its answer.
struct Entered {
    request: Request<Body>,
    busy: Option<BusyConnection>,
    reservation: Option<Reservation>,
}

/// Why a request did not get to the protocol.
enum Stopped {
    /// At the door, answered as on every path.
    Door(Fault),
    /// It brought something that is no message, answered in the words of the protocol.
    Message(Refusal),
}

impl McpEndpoint {
    pub(super) fn new(shared: Arc<Shared>, version: &str) -> Self {
        let server = McpServer::for_callers(shared.app.clone(), version);
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
            // The door has checked both, by the configured names.
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
        name(response, &admitted)
    }

    /// Hands a message to the protocol. One with reserved memory is finished even if its client disconnects, so that the
    /// memory stays reserved for as long as it is in use.
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
            tracing::error!(%error, "a call failed");
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
            response
        })
    }

    /// Lets a request in: finds who calls, reads the message, and puts both together for the protocol.
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
                return Err(Stopped::Door(fault));
            }
        };
        *actor_key_id = Some(actor.key_id.clone());
        if parts.method == Method::POST && !is_json(&parts.headers) {
            // The protocol answers this from the head alone.
            discard(&parts, body).await;
            let request = Request::from_parts(parts, Body::empty());
            return Ok(Entered { request, busy, reservation: None });
        }
        let received = receive_body(&parts.headers, body, MAX_MESSAGE_BYTES, &self.shared.budget)
            .await
            .map_err(Stopped::Door)?;
        if !received.is_whole {
            return Err(Stopped::Message(Refusal::too_large(&received.bytes)));
        }
        read_message(&received.bytes).map_err(Stopped::Message)?;
        parts.extensions.insert(Caller { actor, correlation_id: admitted.correlation_id.clone() });
        let request = Request::from_parts(parts, Body::from(received.bytes));
        Ok(Entered { request, busy, reservation: received.reservation })
    }

    fn refuse(&self, stopped: Stopped, call: RefusedCall) -> Response<Body> {
        match stopped {
            Stopped::Door(fault) => respond(self.shared.app.refuse(call, &fault)),
            Stopped::Message(Refusal { error, code }) => {
                let fault = Fault::new(code, error.error.message.clone());
                let reply = self.shared.app.refuse(call, &fault);
                let body = serde_json::to_vec(&error).unwrap_or_default();
                let mut response = Response::new(Body::from(body));
                *response.status_mut() =
                    StatusCode::from_u16(reply.status).unwrap_or(StatusCode::BAD_REQUEST);
                response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
                if code == ErrorCode::PayloadTooLarge {
                    // There may be more of the body than anyone wants to read.
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

/// Puts on what every answer carries.
fn name(mut response: Response<Body>, admitted: &Admitted) -> Response<Body> {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(admitted.correlation_id.as_str()) {
        headers.insert(HeaderName::from_static("x-correlation-id"), id);
    }
    response
}
