//! One HTTP exchange: parses the request, calls the operation, sends the reply.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::header::{AUTHORIZATION, HeaderName};
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, Request, Response};
use baton_app::observation::Report;
use baton_app::request_params::{Literal, add_path, from_body, from_query, literal_params};
use baton_app::token::Authenticator;
use baton_app::{App, Attachment, Call, Face, RefusedCall, Reply, Route};
use baton_checkpoint::SavedContext;
use baton_core::{Access, Actor, CorrelationId, ErrorCode, Fault, IdempotencyKey};
use baton_web::SignInCookie;
use serde_json::{Map, Value};

use crate::http::body::{discard, read_body};
use crate::http::budget::{BodyBudget, Reservation};
use crate::http::connections::{BusyConnection, Connection};
use crate::http::failures::FailedAuthentications;
use crate::http::limit::Limiter;
use crate::http::metrics::Metrics;
use crate::http::pages::{Dashboard, answer, is_page};
use crate::http::peer::Peer;
use crate::http::report::{ReceivedReport, receive_report};
use crate::http::respond::{allow, respond};
use crate::http::wire::{CorrelationIds, HasTwoLengths};

/// State shared by all exchanges.
pub(super) struct Shared {
    pub(super) app: App,
    pub(super) authentication: Authentication,
    pub(super) limiter: Limiter,
    pub(super) failures: FailedAuthentications,
    pub(super) budget: BodyBudget,
    pub(super) metrics: Arc<Metrics>,
    pub(super) hosts: BTreeSet<String>,
    pub(super) dashboard: Dashboard,
}

/// Creates the generator of correlation ids for responses that are not sent by a route.
pub(super) fn correlation_ids(shared: &Arc<Shared>) -> CorrelationIds {
    let app = shared.app.clone();
    Arc::new(move || app.correlation_id().ok())
}

/// How requests are authenticated.
pub(super) enum Authentication {
    /// By relay key or token. Requests from web pages of other sites are rejected.
    Keys(Authenticator),
    /// Not at all: only the owner can open the socket. The callback is called for every request.
    Owner(Box<dyn Fn() + Send + Sync>),
}

/// A route with its precomputed parameter types.
pub(super) struct Endpoint {
    pub(super) shared: Arc<Shared>,
    pub(super) route: Route,
    literals: BTreeMap<String, Literal>,
}

impl Endpoint {
    pub(super) fn new(shared: Arc<Shared>, route: Route) -> Self {
        let literals = literal_params(&route.operation.params_schema());
        Self { shared, route, literals }
    }

    pub(super) async fn exchange(&self, request: Request<Body>) -> Response<Body> {
        let (mut parts, body) = request.into_parts();
        let Admitted { correlation_id, face } = match self.shared.admit(&parts) {
            Ok(admitted) => admitted,
            Err(response) => {
                discard(&parts, body).await;
                return *response;
            }
        };
        let mut actor_key_id = None;
        let started = Instant::now();
        let accepted = match self.shared.enter(&parts).await {
            Ok((actor, busy)) => {
                actor_key_id = Some(actor.key_id.clone());
                match self.check_headers(&actor, &parts.headers) {
                    Ok(key) => {
                        self.accept(&mut parts, body, key).await.map(|accepted| (actor, busy, accepted))
                    }
                    Err(fault) => {
                        discard(&parts, body).await;
                        Err(fault)
                    }
                }
            }
            Err(fault) => {
                discard(&parts, body).await;
                Err(fault)
            }
        };
        let reply = match accepted {
            Ok((actor, busy, Accepted { idempotency_key, params, attachment, reservation })) => {
                let call = Call { actor, face, correlation_id, idempotency_key, attachment };
                self.call(call, Value::Object(params), busy, reservation).await
            }
            Err(fault) => {
                let refused = RefusedCall { face, correlation_id, actor_key_id, peer: peer(&parts).0 };
                self.shared.app.refuse(refused, &fault)
            }
        };
        self.shared.metrics.record(self.route.path, reply.status, started.elapsed());
        respond(reply)
    }

    /// Calls the operation. A call with reserved memory is finished even if its client disconnects, so that the memory
    /// stays reserved while it is in use.
    async fn call(
        &self,
        call: Call,
        params: Value,
        busy: Option<BusyConnection>,
        reservation: Option<Reservation>,
    ) -> Reply {
        let operation = self.route.operation;
        let Some(reservation) = reservation else {
            let reply = self.shared.app.call(operation, call, params).await;
            drop(busy);
            return reply;
        };
        let (app, correlation_id) = (self.shared.app.clone(), call.correlation_id.clone());
        let calling = tokio::spawn(async move {
            let reply = app.call(operation, call, params).await;
            drop((busy, reservation));
            reply
        });
        calling.await.unwrap_or_else(|error| {
            let fault = Fault::new(ErrorCode::Internal, "internal error").caused_by(error);
            Reply::fault(&fault, correlation_id)
        })
    }

    /// Checks the access level of the actor and the idempotency key, before the client is asked to send its body.
    fn check_headers(&self, actor: &Actor, headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Fault> {
        let is_write = self.route.operation.effect.is_write();
        actor.require_access(if is_write { Access::Write } else { Access::Read })?;
        idempotency_key(headers)
    }

    async fn accept(
        &self,
        parts: &mut Parts,
        body: Body,
        idempotency_key: Option<IdempotencyKey>,
    ) -> Result<Accepted, Fault> {
        let lenient = self.route.operation.request.repair.is_some();
        let (mut attachment, mut reservation) = (None, None);
        let sent = match self.route.method {
            baton_app::Method::Get | baton_app::Method::Delete => {
                discard(parts, body).await;
                from_query(parts.uri.query().unwrap_or_default(), &self.literals)
            }
            baton_app::Method::Post if lenient => {
                let intake = self.shared.app.intake();
                let received = receive_report(intake, &parts.headers, body, &self.shared.budget).await;
                received.map(|ReceivedReport { report, reservation: reserved }| {
                    let Report { fields, output } = report;
                    attachment = output.map(Attachment::Output);
                    reservation = reserved;
                    fields
                })
            }
            baton_app::Method::Post => {
                let limit = self.route.operation.request.max_bytes;
                let received = read_body(&parts.headers, body, limit, &self.shared.budget).await;
                received.and_then(|received| {
                    reservation = received.reservation;
                    let (fields, context) =
                        from_body(&received.bytes, self.route.operation.request.context_param)?;
                    drop(received.bytes);
                    attachment =
                        context.map(|text| Attachment::Context(Arc::new(SavedContext::of_canonical(text))));
                    Ok(fields)
                })
            }
        };
        let mut params = sent?;
        if self.route.path.contains('{') {
            let found = RawPathParams::from_request_parts(parts, &())
                .await
                .map_err(|_| Fault::new(ErrorCode::InvalidRequest, "the path is not valid UTF-8"))?;
            let names: Vec<(String, String)> =
                found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
            if lenient {
                // An agent may send fields with the names of path parameters; they mean something else.
                for (name, _) in &names {
                    params.remove(name);
                }
            }
            add_path(&mut params, names, &self.literals)?;
        }
        Ok(Accepted { idempotency_key, params, attachment, reservation })
    }
}

/// The parsed parts of a request.
struct Accepted {
    idempotency_key: Option<IdempotencyKey>,
    params: Map<String, Value>,
    attachment: Option<Attachment>,
    reservation: Option<Reservation>,
}

/// Correlation id and endpoint of a request that passed the host and origin checks.
pub(super) struct Admitted {
    pub(super) correlation_id: CorrelationId,
    pub(super) face: Face,
}

impl Shared {
    /// Assigns a correlation id, and rejects requests that a web page of another site may have sent.
    pub(super) fn admit(&self, parts: &Parts) -> Result<Admitted, Box<Response<Body>>> {
        let face = Face::Http { method: parts.method.as_str().to_owned(), path: parts.uri.path().to_owned() };
        let correlation_id = self.correlation_id(&parts.headers)?;
        match require_one_length(parts).and_then(|()| self.check_origin(parts)) {
            Ok(()) => Ok(Admitted { correlation_id, face }),
            Err(fault) => {
                let refused = RefusedCall { face, correlation_id, actor_key_id: None, peer: peer(parts).0 };
                Err(Box::new(answer(parts, self.app.refuse(refused, &fault))))
            }
        }
    }

    /// Returns the client's correlation id if it is valid, otherwise a new one.
    fn correlation_id(&self, headers: &HeaderMap) -> Result<CorrelationId, Box<Response<Body>>> {
        let own = headers.get("x-correlation-id").and_then(|value| value.to_str().ok()?.parse().ok());
        match own {
            Some(id) => Ok(id),
            None => self.app.correlation_id().map_err(|fault| {
                tracing::error!(%fault, "cannot create a correlation id");
                let mut response = Response::new(Body::empty());
                *response.status_mut() = axum::http::StatusCode::INTERNAL_SERVER_ERROR;
                Box::new(response)
            }),
        }
    }

    /// A page that uses DNS rebinding sends its own name as `Host`; a page of another site sends its `Origin`.
    fn check_origin(&self, parts: &Parts) -> Result<(), Fault> {
        if matches!(self.authentication, Authentication::Owner(_)) {
            return Ok(());
        }
        let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap_or("?"));
        let host = header("host").or_else(|| parts.uri.host());
        if let Some(host) = host
            && !self.knows_host(host)
        {
            return Err(Fault::new(ErrorCode::Forbidden, "this host name is not served here")
                .hint("use the address that baton listens on, or add the name to server.allowed_hosts"));
        }
        match header("origin") {
            Some(origin) if !self.knows_origin(origin) => {
                Err(Fault::new(ErrorCode::Forbidden, "requests from web pages of other origins are rejected"))
            }
            _ => Ok(()),
        }
    }

    /// Returns true if requests need a credential.
    pub(super) const fn needs_credential(&self) -> bool {
        matches!(self.authentication, Authentication::Keys(_))
    }

    /// Returns true if an actor is the holder of the relay key.
    pub(super) fn is_relay_key(&self, actor: &Actor) -> bool {
        match &self.authentication {
            Authentication::Keys(authenticator) => authenticator.shared_key_actor().key_id == actor.key_id,
            Authentication::Owner(_) => false,
        }
    }

    fn knows_origin(&self, origin: &str) -> bool {
        let rest = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
        rest.is_some_and(|host| self.knows_host(host))
    }

    fn knows_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        self.hosts.contains(&name.to_ascii_lowercase())
    }

    /// Authenticates a request and marks its connection as busy until the result is dropped.
    pub(super) async fn enter(&self, parts: &Parts) -> Result<(Actor, Option<BusyConnection>), Fault> {
        let actor = self.authenticate(parts).await?;
        let connection = parts.extensions.get::<Arc<Connection>>();
        Ok((actor, connection.map(Connection::start_request).transpose()?))
    }

    /// Authenticates a request and checks the rate limit of the actor. The cookie of the dashboard is accepted for
    /// reading only, because a browser sends it without being asked.
    pub(super) async fn authenticate(&self, parts: &Parts) -> Result<Actor, Fault> {
        let credential = presented(parts);
        let cookie = match (credential, &parts.method) {
            (None | Some(""), &Method::GET | &Method::HEAD) => self.dashboard.cookie(parts),
            _ => None,
        };
        self.actor(parts, credential, cookie).await
    }

    /// Finds the actor of a credential, or else of a cookie, and checks the rate limit of the actor.
    pub(super) async fn actor(
        &self,
        parts: &Parts,
        credential: Option<&str>,
        cookie: Option<SignInCookie>,
    ) -> Result<Actor, Fault> {
        let actor = match &self.authentication {
            Authentication::Keys(authenticator) => {
                let token = cookie.as_ref().map(|cookie| cookie.token.as_str());
                let (peer, credential) = (peer(parts), token.or(credential));
                if authenticator.needs_lookup(credential) {
                    self.failures.check_lookup(peer)?;
                }
                match authenticator.actor(credential).await {
                    Err(fault) if fault.code == ErrorCode::Unauthorized => {
                        self.failures.count(peer)?;
                        return Err(fault);
                    }
                    actor => actor?,
                }
            }
            Authentication::Owner(on_request) => {
                on_request();
                Actor::local()
            }
        };
        self.limiter.check(&actor.key_id)?;
        Ok(actor)
    }

    /// Answers requests that match no route. Without a credential the response does not reveal which paths
    /// exist.
    pub(super) async fn unrouted(
        &self,
        request: Request<Body>,
        code: ErrorCode,
        methods: &str,
    ) -> Response<Body> {
        let (parts, body) = request.into_parts();
        discard(&parts, body).await;
        let Admitted { correlation_id, face } = match self.admit(&parts) {
            Ok(admitted) => admitted,
            Err(response) => return *response,
        };
        let actor = self.authenticate(&parts).await;
        let actor_key_id = actor.as_ref().ok().map(|actor| actor.key_id.clone());
        let fault = match actor {
            Err(fault) => fault,
            Ok(_) if code == ErrorCode::MethodNotAllowed => {
                Fault::new(code, "this path does not support this method").hint(format!("use {methods}"))
            }
            Ok(_) if is_page(&parts) => Fault::new(code, "there is no page at this address"),
            Ok(_) => Fault::new(code, "there is no endpoint at this path")
                .hint("see GET /openapi.json for the list of paths"),
        };
        let method_matters = fault.code == ErrorCode::MethodNotAllowed;
        let refused = RefusedCall { face, correlation_id, actor_key_id, peer: peer(&parts).0 };
        let response = answer(&parts, self.app.refuse(refused, &fault));
        if method_matters { allow(response, methods) } else { response }
    }
}

/// Returns the relay key or token in the headers of a request. An empty relay key counts as a credential: it
/// is rejected, and no other header is used instead.
pub(super) fn presented(parts: &Parts) -> Option<&str> {
    let header = |name: HeaderName| parts.headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || {
        let (scheme, token) = header(AUTHORIZATION)?.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(token.trim())
    };
    header(HeaderName::from_static("x-relay-key")).or_else(bearer)
}

/// Rejects a request with two lengths, because a proxy in front may have used the other one.
fn require_one_length(parts: &Parts) -> Result<(), Fault> {
    if parts.extensions.get::<HasTwoLengths>().is_none() {
        return Ok(());
    }
    let message = "cannot read the request: it has both Content-Length and Transfer-Encoding";
    Err(Fault::new(ErrorCode::InvalidRequest, message).hint("send one of the two headers"))
}

/// Returns the address that a request came from.
pub(super) fn peer(parts: &Parts) -> Peer {
    parts.extensions.get::<Arc<Connection>>().map_or(Peer::LOCAL, |connection| connection.peer())
}

fn idempotency_key(headers: &HeaderMap) -> Result<Option<IdempotencyKey>, Fault> {
    let mut keys = headers.get_all("idempotency-key").iter();
    let Some(key) = keys.next() else { return Ok(None) };
    if keys.next().is_some() {
        return Err(Fault::invalid("Idempotency-Key", "must be given only once"));
    }
    let text = std::str::from_utf8(key.as_bytes())
        .map_err(|_| Fault::invalid("Idempotency-Key", "must be 1 to 255 visible characters"))?;
    IdempotencyKey::parse(text).map(Some)
}
