//! The dashboard over HTTP: pages, assets, sign-in, forms and the event stream.
//!
//! A form must come from a page of this server. A form that calls an operation of `baton_web::ACTIONS` on behalf of the
//! browser's cookie must also contain the token of the cookie.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{FromRequestParts, RawPathParams};
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, HOST, HeaderName, LOCATION, ORIGIN, SET_COOKIE};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Request, Response, StatusCode};
use axum::routing::{MethodRouter, get, post};
use baton_app::request_params::{form_params, from_query, literal_params};
use baton_app::token::{CreateToken, RevokeToken};
use baton_app::{Call, Face, OnStore, Operation, PageRequest, Reply, operation};
use baton_core::{Actor, CorrelationId, ErrorCode, Fault, IdempotencyKey, PresentedToken};
use baton_web::{ACTIONS, Page, Problem, Query, SIGN_IN_DAYS, Theme, Visitor};
use futures_util::future::BoxFuture;
use futures_util::stream;
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use crate::http::body::{discard, read_body};
use crate::http::connections::Connection;
use crate::http::exchange::{Admitted, Authentication, Shared, peer, presented};
use crate::http::pages::{
    SIGN_IN, THEME_COOKIE, add_headers, cookie, header, html, problem, problem_page, theme,
};
use crate::http::respond::respond;

const EVENTS: &str = "/ui/events";
/// Maximum size of a form.
const MAX_FORM_BYTES: usize = 1024 * 1024;
/// Interval between the comments that keep an event stream without events open.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Adds the routes of the dashboard.
pub(super) fn add(mut router: Router, shared: &Arc<Shared>) -> Router {
    for page in baton_web::pages() {
        router = router
            .route(page.path, reading(shared, move |shared, parts| Box::pin(show(shared, parts, page))));
    }
    router
        .route("/ui/assets/{name}", reading(shared, |shared, parts| Box::pin(send_asset(shared, parts))))
        .route(EVENTS, reading(shared, |shared, parts| Box::pin(send_events(shared, parts))))
        .route(
            SIGN_IN,
            reading(shared, |shared, parts| Box::pin(sign_in_form(shared, parts)))
                .merge(writing(shared, |shared, parts, form| Box::pin(sign_in(shared, parts, form)))),
        )
        .route("/ui/signin/link", writing(shared, |shared, parts, _| Box::pin(make_link(shared, parts))))
        .route("/ui/signout", writing(shared, |shared, parts, _| Box::pin(sign_out(shared, parts))))
        .route(
            "/ui/theme",
            writing(shared, |_, parts, form| Box::pin(async move { choose_theme(&parts, &form) })),
        )
        .route(
            "/ui/call/{operation}",
            writing(shared, |shared, parts, form| Box::pin(call(shared, parts, form))),
        )
}

type Answering = BoxFuture<'static, Result<Response<Body>, Problem>>;
type Form = Map<String, Value>;

/// Creates a route that answers GET requests.
fn reading(
    shared: &Arc<Shared>,
    answer: impl Fn(Arc<Shared>, Parts) -> Answering + Clone + Send + Sync + 'static,
) -> MethodRouter {
    let shared = shared.clone();
    get(move |request: Request<Body>| {
        let (shared, answer) = (shared.clone(), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            discard(&parts, body).await;
            finish(&shared, parts, |parts| answer(shared.clone(), parts)).await
        }
    })
}

/// Creates a route that answers forms.
fn writing(
    shared: &Arc<Shared>,
    answer: impl Fn(Arc<Shared>, Parts, Form) -> Answering + Clone + Send + Sync + 'static,
) -> MethodRouter {
    let shared = shared.clone();
    post(move |request: Request<Body>| {
        let (shared, answer) = (shared.clone(), answer.clone());
        async move {
            let (parts, body) = request.into_parts();
            let received = read_body(&parts.headers, body, MAX_FORM_BYTES, &shared.budget).await;
            let answering = |parts: Parts| -> Answering {
                let form = received.and_then(|received| {
                    let text = String::from_utf8(received.bytes)
                        .map_err(|_| Fault::new(ErrorCode::InvalidRequest, "the form is not valid UTF-8"))?;
                    from_query(&text, &BTreeMap::new())
                });
                match form {
                    Ok(form) => answer(shared.clone(), parts, form),
                    Err(fault) => Box::pin(async move { Err(problem(&fault)) }),
                }
            };
            finish(&shared, parts, answering).await
        }
    })
}

/// Answers a request, and logs it and counts it.
async fn finish(
    shared: &Arc<Shared>,
    parts: Parts,
    answer: impl FnOnce(Parts) -> Answering,
) -> Response<Body> {
    let Admitted { correlation_id, face } = match shared.admit(&parts) {
        Ok(admitted) => admitted,
        Err(response) => return *response,
    };
    let (started, started_at, theme, peer) = (Instant::now(), shared.app.now(), theme(&parts), peer(&parts));
    let path = parts.uri.path().to_owned();
    let mut parts = parts;
    parts.extensions.insert(correlation_id.clone());
    let mut response = match answer(parts).await {
        Ok(response) => response,
        Err(problem) => problem_page(&problem, theme),
    };
    let status = response.status().as_u16();
    shared.metrics.record(if path.starts_with("/ui") { "/ui" } else { "/" }, status, started.elapsed());
    // Pages that were shown would only hide the requests of agents.
    if status >= 400 {
        shared.app.log_page(PageRequest {
            face,
            correlation_id: correlation_id.clone(),
            actor_key_id: response.extensions().get().cloned(),
            peer: peer.0,
            status,
            started_at,
        });
    }
    add_headers(&mut response, &correlation_id);
    response
}

fn redirect(to: &str) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::SEE_OTHER;
    let to = HeaderValue::from_str(to).unwrap_or(HeaderValue::from_static("/"));
    response.headers_mut().insert(LOCATION, to);
    response
}

/// Returns a path of this server to redirect to. Anything else becomes the start page.
fn local_path(form: &Form, name: &str) -> String {
    let path = form.get(name).and_then(Value::as_str).unwrap_or_default();
    let is_local = path.starts_with('/') && !path.starts_with("//") && !path.contains(['\\', '\r', '\n']);
    if is_local { path.to_owned() } else { "/".to_owned() }
}

async fn show(shared: Arc<Shared>, mut parts: Parts, page: &'static Page) -> Result<Response<Body>, Problem> {
    let theme = theme(&parts);
    let path = parts.uri.path_and_query().map_or_else(|| "/".to_owned(), ToString::to_string);
    let actor = match authenticate_visitor(&shared, &parts).await {
        Ok(actor) => actor,
        Err(fault) if fault.code == ErrorCode::Unauthorized => {
            let had_cookie = cookie(&parts, &shared.dashboard.cookie_name).is_some();
            let expired = had_cookie.then_some("Your sign-in has expired or was revoked.");
            let form = baton_web::sign_in_page(&path, expired, theme);
            return Ok(html(StatusCode::UNAUTHORIZED, form));
        }
        Err(fault) => return Err(problem(&fault)),
    };
    let query = query(&mut parts).await?;
    let csrf = shared.dashboard.csrf(&parts);
    let visitor = visitor(&shared, &parts, actor, csrf)?;
    let content = (page.render)(&visitor, &query).await?;
    let mut response = html(StatusCode::OK, baton_web::page(&content, &path, theme));
    // For the request log.
    response.extensions_mut().insert(visitor.actor.key_id);
    Ok(response)
}

/// Authenticates the visitor of a page. A visitor without any credential is not a failed authentication.
async fn authenticate_visitor(shared: &Shared, parts: &Parts) -> Result<Actor, Fault> {
    if presented(parts).is_none_or(str::is_empty)
        && shared.needs_credential()
        && shared.dashboard.cookie(parts).is_none()
    {
        return Err(Fault::new(ErrorCode::Unauthorized, "not signed in"));
    }
    shared.authenticate(parts).await
}

/// Returns the correlation id that `finish` assigned to the request.
fn correlation_id(shared: &Shared, parts: &Parts) -> Result<CorrelationId, Problem> {
    match parts.extensions.get::<CorrelationId>() {
        Some(id) => Ok(id.clone()),
        None => shared.app.correlation_id().map_err(|fault| problem(&fault)),
    }
}

fn visitor(shared: &Shared, parts: &Parts, actor: Actor, csrf: String) -> Result<Visitor, Problem> {
    let correlation_id = correlation_id(shared, parts)?;
    Ok(Visitor { app: shared.app.clone(), actor, correlation_id, csrf, now: shared.app.now() })
}

/// Returns the parameters of the path and the query.
async fn query(parts: &mut Parts) -> Result<Query, Problem> {
    let given = from_query(parts.uri.query().unwrap_or_default(), &BTreeMap::new());
    let mut all: BTreeMap<String, String> = given
        .map_err(|fault| problem(&fault))?
        .into_iter()
        .filter_map(|(name, value)| Some((name, value.as_str()?.to_owned())))
        .collect();
    all.extend(path_params(parts).await?);
    Ok(Query(all))
}

async fn path_params(parts: &mut Parts) -> Result<Vec<(String, String)>, Problem> {
    let found = RawPathParams::from_request_parts(parts, &())
        .await
        .map_err(|_| problem(&Fault::new(ErrorCode::InvalidRequest, "the path is not valid UTF-8")))?;
    Ok(found.iter().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
}

async fn send_asset(_: Arc<Shared>, mut parts: Parts) -> Result<Response<Body>, Problem> {
    let name = path_params(&mut parts).await?.into_iter().next().map(|(_, value)| value).unwrap_or_default();
    let missing = || problem(&Fault::new(ErrorCode::NotFound, "there is no such file"));
    let asset = baton_web::asset(&name).ok_or_else(missing)?;
    let mut response = Response::new(Body::from(asset.body));
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(asset.kind));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    Ok(response)
}

/// Answers with a stream that has a `change` event for each change of the store.
async fn send_events(shared: Arc<Shared>, parts: Parts) -> Result<Response<Body>, Problem> {
    authenticate_visitor(&shared, &parts).await.map_err(|fault| problem(&fault))?;
    let changes = shared.dashboard.live.subscribe(&shared.app);
    let connection = parts.extensions.get::<Arc<Connection>>().cloned();
    let first = Some("retry: 1000\n\n");
    let events =
        stream::unfold((first, changes, connection), |(first, mut changes, connection)| async move {
            let text = match first {
                Some(first) => first,
                None => match timeout(KEEP_ALIVE, changes.changed()).await {
                    Ok(Ok(())) => "event: change\ndata:\n\n",
                    Ok(Err(_)) => return None,
                    Err(_) => ":\n\n",
                },
            };
            if let Some(connection) = &connection {
                // Otherwise the connection would be closed as idle.
                connection.received_head();
            }
            Some((Ok::<_, Infallible>(text), (None, changes, connection)))
        });
    let mut response = Response::new(Body::from_stream(events));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    Ok(response)
}

/// Shows the sign-in form, or signs in with the one-time code of a link.
async fn sign_in_form(shared: Arc<Shared>, parts: Parts) -> Result<Response<Body>, Problem> {
    let given = from_query(parts.uri.query().unwrap_or_default(), &BTreeMap::new()).unwrap_or_default();
    let next = local_path(&given, "next");
    let Some(code) = given.get("code").and_then(Value::as_str) else {
        return Ok(html(StatusCode::OK, baton_web::sign_in_page(&next, None, theme(&parts))));
    };
    if !shared.dashboard.sign_in.redeem(code, shared.app.now()) {
        let problem = "This link was already used or has expired. Run baton open for a new one.";
        let page = baton_web::sign_in_page(&next, Some(problem), theme(&parts));
        return Ok(html(StatusCode::UNAUTHORIZED, page));
    }
    sign_in_with_new_token(&shared, &parts, &next).await
}

/// Creates a token for a browser whose user has the relay key, and signs it in.
async fn sign_in_with_new_token(
    shared: &Shared,
    parts: &Parts,
    next: &str,
) -> Result<Response<Body>, Problem> {
    let params = json!({ "name": "browser", "access": "write", "expires_in_days": SIGN_IN_DAYS });
    let created = call_as_owner::<CreateToken>(shared, parts, params).await?;
    let token = created["token"].as_str().unwrap_or_default();
    Ok(signed_in(shared, parts, &shared.dashboard.sign_in.own_token_cookie(token), next))
}

/// Calls an operation on a token with the rights of the relay key.
async fn call_as_owner<O: Operation<OnStore>>(
    shared: &Shared,
    parts: &Parts,
    params: Value,
) -> Result<Value, Problem> {
    let actor = match &shared.authentication {
        Authentication::Keys(authenticator) => authenticator.shared_key_actor().clone(),
        Authentication::Owner(_) => Actor::local(),
    };
    let correlation_id = correlation_id(shared, parts)?;
    let face = Face::Http { method: parts.method.to_string(), path: parts.uri.path().to_owned() };
    let call = Call { actor, face, correlation_id, idempotency_key: None, attachment: None };
    let reply = shared.app.call(operation::<O>(), call, params).await;
    match reply.error {
        Some(code) => Err(Problem::of_body(code, &reply.body)),
        None => Ok(serde_json::from_str(&reply.body).unwrap_or_default()),
    }
}

/// Sets the cookie and shows a page that leads on. A redirect would not send the cookie if another site linked here.
fn signed_in(shared: &Shared, parts: &Parts, cookie: &str, next: &str) -> Response<Body> {
    let mut response = html(StatusCode::OK, baton_web::signed_in_page(next, theme(parts)));
    let seconds = u64::from(SIGN_IN_DAYS) * 24 * 60 * 60;
    if let Some(cookie) = shared.dashboard.set_cookie(cookie, seconds, parts) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}

/// Signs in with a token or the relay key.
async fn sign_in(shared: Arc<Shared>, parts: Parts, form: Form) -> Result<Response<Body>, Problem> {
    require_same_origin(&parts)?;
    let next = local_path(&form, "next");
    let credential = form.get("credential").and_then(Value::as_str).unwrap_or_default().trim();
    match shared.actor(&parts, Some(credential), None).await {
        Ok(_) if credential.starts_with("bt_") => Ok(signed_in(&shared, &parts, credential, &next)),
        Ok(_) => sign_in_with_new_token(&shared, &parts, &next).await,
        Err(fault) if fault.code == ErrorCode::Unauthorized => {
            let problem = "This token is unknown, expired or revoked.";
            let form = baton_web::sign_in_page(&next, Some(problem), theme(&parts));
            Ok(html(StatusCode::UNAUTHORIZED, form))
        }
        Err(fault) => Err(problem(&fault)),
    }
}

/// Makes a sign-in link for the holder of the relay key.
async fn make_link(shared: Arc<Shared>, parts: Parts) -> Result<Response<Body>, Problem> {
    let made = async {
        let actor = shared.authenticate(&parts).await?;
        if shared.is_relay_key(&actor) {
            return shared.dashboard.sign_in_path(&shared.app);
        }
        Err(Fault::new(ErrorCode::Forbidden, "cannot make a sign-in link: the relay key is required"))
    };
    match made.await {
        Ok(path) => {
            let mut response = Response::new(Body::from(json!({ "path": path }).to_string()));
            response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
            Ok(response)
        }
        // `finish` writes the log record.
        Err(fault) => Ok(respond(Reply::fault(&fault, correlation_id(&shared, &parts)?))),
    }
}

/// Removes the cookie, and revokes the token if it was created for this browser.
async fn sign_out(shared: Arc<Shared>, parts: Parts) -> Result<Response<Body>, Problem> {
    require_same_origin(&parts)?;
    let cookie = shared.dashboard.cookie(&parts).filter(|cookie| cookie.has_own_token);
    if let Some(token) = cookie.and_then(|cookie| PresentedToken::parse(&cookie.token)) {
        call_as_owner::<RevokeToken>(&shared, &parts, json!({ "token_id": token.id.as_str() })).await?;
        if let Authentication::Keys(authenticator) = &shared.authentication {
            authenticator.evict(&token.id);
        }
    }
    let mut response = redirect(SIGN_IN);
    if let Some(cookie) = shared.dashboard.set_cookie("", 0, &parts) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

fn choose_theme(parts: &Parts, form: &Form) -> Result<Response<Body>, Problem> {
    require_same_origin(parts)?;
    let chosen = form.get("theme").and_then(Value::as_str).and_then(Theme::from_wire).unwrap_or_default();
    let mut response = redirect(&local_path(form, "back"));
    let text =
        format!("{THEME_COOKIE}={}; Path=/; HttpOnly; SameSite=Strict; Max-Age=31536000", chosen.as_str());
    if let Ok(cookie) = HeaderValue::from_str(&text) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    Ok(response)
}

/// Calls an operation with the fields of a form, then shows the page that the form names.
async fn call(shared: Arc<Shared>, mut parts: Parts, mut form: Form) -> Result<Response<Body>, Problem> {
    require_same_origin(&parts)?;
    let name = path_params(&mut parts).await?.into_iter().next().map(|(_, value)| value).unwrap_or_default();
    let fault = |code, message: &str| problem(&Fault::new(code, message));
    let operation = baton_app::find(&name)
        .filter(|_| ACTIONS.contains(&name.as_str()))
        .ok_or_else(|| fault(ErrorCode::NotFound, "there is no such form"))?;
    let dashboard = &shared.dashboard;
    let mut take = |name: &str| form.remove(name).and_then(|value| value.as_str().map(str::to_owned));
    let (token, key) = (take("csrf").unwrap_or_default(), take("idempotency_key"));
    let back = local_path(&form, "back");
    form.remove("back");
    let (raw, found) = (cookie(&parts, &dashboard.cookie_name), dashboard.cookie(&parts));
    let is_own_form = raw.is_some_and(|cookie| dashboard.sign_in.is_valid_csrf(cookie, &token));
    if found.is_none() || !is_own_form {
        return Err(Problem {
            hint: Some("Load the page again and repeat the action.".to_owned()),
            ..fault(ErrorCode::Forbidden, "the form has expired or does not come from this dashboard")
        });
    }
    let actor = shared.actor(&parts, None, found).await.map_err(|fault| problem(&fault))?;
    let params =
        form_params(form, &literal_params(&operation.params_schema())).map_err(|fault| problem(&fault))?;
    let correlation_id = correlation_id(&shared, &parts)?;
    let idempotency_key =
        key.as_deref().map(IdempotencyKey::parse).transpose().map_err(|fault| problem(&fault))?;
    let face = Face::Http { method: "POST".to_owned(), path: parts.uri.path().to_owned() };
    let call = Call { actor, face, correlation_id, idempotency_key, attachment: None };
    let reply = shared.app.call(operation, call, Value::Object(params)).await;
    match reply.error {
        Some(code) => Err(Problem::of_body(code, &reply.body)),
        None => Ok(redirect(&back)),
    }
}

/// Rejects a form that a page of another site sent.
fn require_same_origin(parts: &Parts) -> Result<(), Problem> {
    let is_same = match header(parts, HeaderName::from_static("sec-fetch-site")) {
        Some(site) => site == "same-origin",
        None => header(parts, ORIGIN)
            .and_then(|origin| origin.split_once("://"))
            .is_some_and(|(_, host)| header(parts, HOST).is_some_and(|own| own.eq_ignore_ascii_case(host))),
    };
    if is_same {
        return Ok(());
    }
    Err(problem(&Fault::new(ErrorCode::Forbidden, "this form was not sent by a page of this server")))
}
