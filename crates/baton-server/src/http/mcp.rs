//! `/mcp`: MCP over streamable HTTP, with the same authentication and limits as every other path.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONNECTION, CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode};
use baton_app::RefusedCall;
use baton_core::{ActorKeyId, ErrorCode, Fault};
use baton_mcp::{Caller, HttpService, MAX_MESSAGE_BYTES, RejectedMessage, ResponseBody};
use futures_util::future::BoxFuture;

use crate::http::body::{discard, receive_body};
use crate::http::budget::Reservation;
use crate::http::connections::BusyConnection;
use crate::http::exchange::{Admitted, Shared, peer};
use crate::http::respond::respond;

pub(super) const PATH: &str = "/mcp";

/// The `/mcp` endpoint.
pub(super) struct McpEndpoint {
    shared: Arc<Shared>,
    service: HttpService,
}

/// The pending response to an authenticated request, with the resources that the request holds until then.
struct Entered {
    response: BoxFuture<'static, Response<ResponseBody>>,
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
        let service = HttpService::new(shared.app.clone(), version);
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
            Ok(entered) => Self::answer(entered).await,
            Err(stopped) => {
                let Admitted { correlation_id, face } = &admitted;
                let (correlation_id, face) = (correlation_id.clone(), face.clone());
                self.refuse(stopped, RefusedCall { face, correlation_id, actor_key_id, peer: peer.0 })
            }
        };
        self.shared.metrics.record(PATH, response.status().as_u16(), started.elapsed());
        add_headers(response, &admitted)
    }

    /// Waits for the response. A call with reserved memory is finished even if its client disconnects, so
    /// that the memory stays reserved while it is in use.
    async fn answer(entered: Entered) -> Response<Body> {
        let Entered { response, busy, reservation } = entered;
        let Some(reservation) = reservation else {
            let response = response.await.map(Body::new);
            drop(busy);
            return response;
        };
        let calling = tokio::spawn(async move {
            let response = response.await.map(Body::new);
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

    /// Authenticates a request, reads its message and passes it to the MCP service.
    async fn enter(
        &self,
        parts: Parts,
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
            discard(&parts, body).await;
            return Ok(Entered {
                response: self.service.reject_content_type(parts),
                busy,
                reservation: None,
            });
        }
        let received = receive_body(&parts.headers, body, MAX_MESSAGE_BYTES, &self.shared.budget)
            .await
            .map_err(Stopped::Rejected)?;
        if !received.is_whole {
            return Err(Stopped::Message(RejectedMessage::too_large(&received.bytes)));
        }
        let caller = Caller { actor, correlation_id: admitted.correlation_id.clone() };
        let response = self.service.answer(parts, received.bytes, caller).map_err(Stopped::Message)?;
        Ok(Entered { response, busy, reservation: received.reservation })
    }

    fn refuse(&self, stopped: Stopped, call: RefusedCall) -> Response<Body> {
        match stopped {
            Stopped::Rejected(fault) => respond(self.shared.app.refuse(call, &fault)),
            Stopped::Message(message) => {
                let code = message.code;
                let reply = self.shared.app.refuse(call, &Fault::new(code, message.text()));
                let mut response = Response::new(Body::from(message.to_json()));
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
    let kind = kind.and_then(|kind| kind.split(';').next());
    kind.is_some_and(|kind| kind.trim().eq_ignore_ascii_case("application/json"))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_type_of_json_is_compared_without_case_and_parameters() {
        let is_json = |kind| is_json(&HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]));
        for json in ["application/json", "Application/JSON", "application/json ; charset=utf-8"] {
            assert!(is_json(json), "{json}");
        }
        for other in ["application/jsonp", "application/json-seq", "text/plain", ""] {
            assert!(!is_json(other), "{other}");
        }
        assert!(!super::is_json(&HeaderMap::new()));
    }
}
