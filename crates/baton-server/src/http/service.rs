//! Pages about the server: liveness, readiness, API reference and metrics.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::http::header::{CONTENT_TYPE, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use axum::routing::get;
use baton_app::{PageRequest, RefusedCall};
use baton_core::{ActorKeyId, ErrorCode, Fault, Timestamp};
use futures_util::future::BoxFuture;
use serde_json::json;

use crate::api_page::api_page;
use crate::http::body::discard;
use crate::http::exchange::{Admitted, Shared, peer};
use crate::http::peer::Peer;
use crate::http::respond::respond;
use crate::openapi::openapi;

const JSON: &str = "application/json";
/// Time limit of the readiness check. Load balancers usually wait two seconds.
const READY_TIMEOUT: Duration = Duration::from_millis(1_500);

/// Time limit for counting stored rows. A slower count continues and is shown by a later request.
const COUNT_TIMEOUT: Duration = Duration::from_secs(2);

/// Adds the pages. `/metrics` requires a credential.
pub(super) fn add(router: Router, shared: &Arc<Shared>) -> Router {
    let page = |answer: fn(Arc<Shared>, Parts) -> Answering| {
        let (shared, unrouted) = (shared.clone(), shared.clone());
        let found = get(move |request: Request<Body>| {
            let shared = shared.clone();
            async move {
                let (parts, body) = request.into_parts();
                discard(&parts, body).await;
                match shared.admit(&parts) {
                    Ok(admitted) => {
                        let received =
                            Received { started_at: shared.app.now(), peer: peer(&parts), admitted };
                        let content = answer(shared.clone(), parts).await;
                        content.finish(&shared, received)
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

type Answering = BoxFuture<'static, Content>;

/// Data of a request for a page.
struct Received {
    admitted: Admitted,
    peer: Peer,
    started_at: Timestamp,
}

/// Content of a page, without the headers that every response has.
enum Content {
    Page { status: u16, kind: &'static str, body: String, actor_key_id: Option<ActorKeyId> },
    Refused { fault: Fault },
}

impl Content {
    const fn new(status: u16, kind: &'static str, body: String) -> Self {
        Self::Page { status, kind, body, actor_key_id: None }
    }

    fn json(status: u16, value: &serde_json::Value) -> Self {
        Self::new(status, JSON, value.to_string())
    }

    /// Logs the request and creates the response.
    fn finish(self, shared: &Shared, received: Received) -> Response<Body> {
        let Received { admitted: Admitted { correlation_id, face }, peer, started_at } = received;
        match self {
            Self::Page { status, kind, body, actor_key_id } => {
                let mut response = Response::new(Body::from(body));
                *response.status_mut() =
                    StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
                let headers = response.headers_mut();
                headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
                if let Ok(id) = HeaderValue::from_str(correlation_id.as_str()) {
                    headers.insert(HeaderName::from_static("x-correlation-id"), id);
                }
                let peer = peer.0;
                shared.app.log_page(PageRequest {
                    face,
                    correlation_id,
                    actor_key_id,
                    peer,
                    status,
                    started_at,
                });
                response
            }
            Self::Refused { fault } => {
                let refused = RefusedCall { face, correlation_id, actor_key_id: None, peer: peer.0 };
                respond(shared.app.refuse(refused, &fault))
            }
        }
    }
}

/// Checks whether requests can be served: the store must answer in time.
async fn ready(shared: Arc<Shared>) -> Content {
    let checked = tokio::time::timeout(READY_TIMEOUT, shared.app.ready()).await;
    let checked = checked.unwrap_or_else(|_| {
        let message = format!("the database did not answer within {} ms", READY_TIMEOUT.as_millis());
        Err(Fault::new(ErrorCode::StoreUnavailable, message).hint("run baton doctor to find the cause"))
    });
    match checked {
        Ok(()) => Content::json(200, &json!({ "status": "ready" })),
        Err(fault) => Content::Refused { fault },
    }
}

async fn metrics(shared: Arc<Shared>, parts: Parts) -> Content {
    match shared.authenticate(&parts).await.and_then(|actor| actor.require_every_venture().map(|()| actor)) {
        Ok(actor) => {
            let (app, metrics) = (&shared.app, &shared.metrics);
            // The previous numbers are kept while the store does not answer.
            if let Ok(Ok(Some(cached))) = tokio::time::timeout(COUNT_TIMEOUT, app.store_counts()).await {
                metrics.set_store_counts(&cached);
            }
            metrics.set("baton_request_log_dropped_total", app.unlogged_calls());
            metrics.set_store_errors(&app.store_errors());
            metrics.set_worker(&app.settings().observations.activity);
            Content::Page {
                status: 200,
                kind: "text/plain; version=0.0.4",
                body: metrics.render(),
                actor_key_id: Some(actor.key_id),
            }
        }
        Err(fault) => Content::Refused { fault },
    }
}
