//! Pages of the dashboard as HTTP responses, and the cookies of browsers.

use std::sync::Arc;

use axum::body::Body;
use axum::http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, COOKIE, HeaderName, ORIGIN, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use axum::http::request::Parts;
use axum::http::{HeaderValue, Response, StatusCode};
use baton_app::{App, Reply};
use baton_core::{CorrelationId, ErrorCode, Fault};
use baton_web::{Problem, SignIn, SignInCookie, Theme};

use crate::http::live::LiveUpdates;
use crate::http::respond::respond;

pub(super) const SIGN_IN: &str = "/ui/signin";
pub(super) const THEME_COOKIE: &str = "baton-theme";
/// Content security policy of every page: no inline scripts or styles, nothing from other origins, no frames.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// State of the dashboard of a server.
pub(super) struct Dashboard {
    pub(super) sign_in: SignIn,
    /// Contains the port, because browsers send the cookies of one server to the other ports of its host.
    pub(super) cookie_name: String,
    pub(super) live: Arc<LiveUpdates>,
}

impl Dashboard {
    pub(super) fn new(relay_key: &str, port: u16) -> Self {
        let live = Arc::new(LiveUpdates::new());
        Self { sign_in: SignIn::new(relay_key), cookie_name: format!("baton-{port}"), live }
    }

    /// Returns the path that signs a browser in once.
    pub(super) fn sign_in_path(&self, app: &App) -> Result<String, Fault> {
        let random = [app.random_bits()?, app.random_bits()?];
        Ok(format!("{SIGN_IN}?code={}", self.sign_in.add_code(random, app.now())))
    }

    /// Returns the valid cookie of a request.
    pub(super) fn cookie(&self, parts: &Parts) -> Option<SignInCookie> {
        self.sign_in.read_cookie(cookie(parts, &self.cookie_name)?)
    }

    pub(super) fn csrf(&self, parts: &Parts) -> String {
        cookie(parts, &self.cookie_name).map_or_else(String::new, |cookie| self.sign_in.csrf(cookie))
    }

    pub(super) fn set_cookie(&self, value: &str, seconds: u64, parts: &Parts) -> Option<HeaderValue> {
        let is_https = header(parts, ORIGIN).is_some_and(|origin| origin.starts_with("https://"));
        let secure = if is_https { "; Secure" } else { "" };
        let name = &self.cookie_name;
        let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict; Max-Age={seconds}{secure}");
        HeaderValue::from_str(&text).ok()
    }
}

/// Adds the headers of every page.
pub(super) fn add_headers(response: &mut Response<Body>, correlation_id: &CorrelationId) {
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(correlation_id.as_str()) {
        headers.insert(HeaderName::from_static("x-correlation-id"), id);
    }
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    // Not `no-referrer`, because browsers then send forms without their origin.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
}

pub(super) fn problem_page(problem: &Problem, theme: Theme) -> Response<Body> {
    let status = StatusCode::from_u16(problem.code.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    html(status, baton_web::error_page(problem, theme))
}

/// Returns true for addresses of the dashboard.
pub(super) fn is_page(parts: &Parts) -> bool {
    let path = parts.uri.path();
    path == "/" || path.starts_with("/ui/")
}

/// Answers a request that no page or operation handles: with a page at addresses of the dashboard, otherwise with JSON.
pub(super) fn answer(parts: &Parts, reply: Reply) -> Response<Body> {
    let Some(code) = reply.error.filter(|_| is_page(parts)) else { return respond(reply) };
    let mut response = match code {
        ErrorCode::Unauthorized => {
            html(StatusCode::UNAUTHORIZED, baton_web::sign_in_page("/", None, theme(parts)))
        }
        _ => problem_page(&Problem::of_body(code, &reply.body), theme(parts)),
    };
    add_headers(&mut response, &reply.correlation_id);
    response
}

pub(super) fn problem(fault: &Fault) -> Problem {
    Problem { code: fault.code, message: fault.message.clone(), hint: fault.hint.clone() }
}

pub(super) fn html(status: StatusCode, body: String) -> Response<Body> {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    response
}

pub(super) fn header(parts: &Parts, name: HeaderName) -> Option<&str> {
    parts.headers.get(name)?.to_str().ok()
}

pub(super) fn cookie<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    let all = parts.headers.get_all(COOKIE).iter().filter_map(|line| line.to_str().ok());
    let mut pairs = all.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

pub(super) fn theme(parts: &Parts) -> Theme {
    cookie(parts, THEME_COOKIE).and_then(Theme::from_wire).unwrap_or_default()
}
