//! Pages about the server itself: is it alive, is it ready, what can it do, what has it done.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use axum::routing::get;
use baton_app::RefusedCall;
use baton_core::{ErrorCode, Fault};
use serde_json::json;

use crate::api_page::api_page;
use crate::http::body::discard;
use crate::http::exchange::{Admitted, Shared, peer};
use crate::http::peer::Peer;
use crate::http::respond::respond;
use crate::openapi::openapi;

const JSON: &str = "application/json";
/// Limit of the readiness check. Load balancers usually wait two seconds for it.
const READY_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Adds the pages. Those that tell of other people's work need a credential.
pub(super) fn add(router: Router, shared: &Arc<Shared>) -> Router {
    let page = |answer: fn(Arc<Shared>, Parts) -> Page| {
        let (shared, unrouted) = (shared.clone(), shared.clone());
        let found = get(move |request: Request<Body>| {
            let shared = shared.clone();
            async move {
                let (parts, body) = request.into_parts();
                discard(&parts, body).await;
                match shared.admit(&parts) {
                    Ok(admitted) => {
                        let peer = peer(&parts);
                        answer(shared, parts).await.finish(&admitted, peer)
                    }
                    Err(response) => *response,
                }
            }
        });
        found.fallback(move |request: Request<Body>| {
            let shared = unrouted.clone();
            async move { shared.unrouted(request, ErrorCode::MethodNotAllowed, "GET").await }
        })
    };
    router
        .route("/healthz", page(|_, _| Box::pin(async { Content::json(200, &json!({ "status": "ok" })) })))
        .route("/readyz", page(|shared, _| Box::pin(ready(shared))))
        .route("/openapi.json", page(|_, _| Box::pin(async { Content::json(200, &openapi()) })))
        .route(
            "/docs",
            page(|_, _| Box::pin(async { Content::new(200, "text/html; charset=utf-8", api_page()) })),
        )
        .route("/metrics", page(|shared, parts| Box::pin(metrics(shared, parts))))
}

type Page = std::pin::Pin<Box<dyn Future<Output = Content> + Send>>;

/// What a page answers, before it is named.
enum Content {
    Page { status: u16, kind: &'static str, body: String },
    Refused { shared: Arc<Shared>, fault: Fault },
}

impl Content {
    const fn new(status: u16, kind: &'static str, body: String) -> Self {
        Self::Page { status, kind, body }
    }

    fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::new(status, JSON, value.to_string())
    }

    fn finish(self, admitted: &Admitted, peer: Peer) -> Response<Body> {
        match self {
            Self::Page { status, kind, body } => {
                let mut response = Response::new(Body::from(body));
                *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
                let headers = response.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                if let Ok(id) = HeaderValue::from_str(admitted.correlation_id.as_str()) {
                    headers.insert(HeaderName::from_static("x-correlation-id"), id);
                }
                response
            }
            Self::Refused { shared, fault } => {
                let refused = RefusedCall {
                    face: admitted.face.clone(),
                    correlation_id: admitted.correlation_id.clone(),
                    actor_key_id: None,
                    peer: peer.0,
                };
                respond(shared.app.refuse(refused, &fault))
            }
        }
    }
}

/// Answers whether requests can be served: the store works, and says so in time.
async fn ready(shared: Arc<Shared>) -> Content {
    let checked = tokio::time::timeout(READY_TIMEOUT, shared.app.ready()).await;
    let checked = checked.unwrap_or_else(|_| {
        let message = format!("the database did not answer within {} ms", READY_TIMEOUT.as_millis());
        Err(Fault::new(ErrorCode::StoreUnavailable, message)
            .hint("run `baton doctor` to see what is wrong with it"))
    });
    match checked {
        Ok(()) => Content::json(200, &json!({ "status": "ready" })),
        Err(fault) => Content::Refused { shared, fault },
    }
}

async fn metrics(shared: Arc<Shared>, parts: Parts) -> Content {
    match shared.authenticate(&parts).await {
        Ok(_) => {
            shared.metrics.set("baton_request_log_dropped_total", shared.app.unlogged_calls());
            Content::new(200, "text/plain; version=0.0.4", shared.metrics.render())
        }
        Err(fault) => Content::Refused { shared, fault },
    }
}
