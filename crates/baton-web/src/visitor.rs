//! The signed-in visitor of a page, and calls of operations on its behalf.

use std::collections::BTreeMap;

pub(crate) use baton_app::request_params::encode;
use baton_app::{AnyOperation, App, Call, Face, OnStore, Operation, operation, read_error};
use baton_core::{Access, Actor, CorrelationId, ErrorCode, Fault, Timestamp};
use serde_json::Value;

/// A signed-in visitor.
#[derive(Debug, Clone)]
pub struct Visitor {
    /// The application.
    pub app: App,
    /// Credential of the visitor.
    pub actor: Actor,
    /// Correlation id of the request.
    pub correlation_id: CorrelationId,
    /// Token that forms send back, as protection against requests that another site makes the browser send.
    pub csrf: String,
    /// Time of the request.
    pub now: Timestamp,
}

impl Visitor {
    /// Returns true if forms of this visitor are accepted.
    pub(crate) fn can_write(&self) -> bool {
        self.actor.access >= Access::Write
    }

    /// Calls an operation that reads.
    pub(crate) async fn ask<O: Operation<OnStore>>(&self, params: Value) -> Result<O::Output, Problem> {
        let body = self.call(operation::<O>(), params).await?;
        serde_json::from_str(&body).map_err(|_| Problem {
            code: ErrorCode::Internal,
            message: "cannot read the response of an operation".to_owned(),
            hint: None,
        })
    }

    /// Calls an operation and returns the body of the response.
    async fn call(&self, operation: &'static AnyOperation, params: Value) -> Result<String, Problem> {
        let call = Call {
            actor: self.actor.clone(),
            face: Face::Page,
            correlation_id: self.correlation_id.clone(),
            idempotency_key: None,
            attachment: None,
        };
        let reply = self.app.call(operation, call, params).await;
        match reply.error {
            Some(code) => Err(Problem::of_body(code, &reply.body)),
            None => Ok(reply.body),
        }
    }
}

/// Why a page cannot be shown.
#[derive(Debug, Clone)]
pub struct Problem {
    pub code: ErrorCode,
    /// What failed.
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
}

impl Problem {
    /// Reads the error body of a reply.
    pub fn of_body(code: ErrorCode, body: &str) -> Self {
        let Fault { code, message, hint, .. } = read_error(code, body);
        Self { code, message, hint }
    }

    pub(crate) fn not_found(message: &str) -> Self {
        Self { code: ErrorCode::NotFound, message: message.to_owned(), hint: None }
    }
}

/// Parameters of a page from its path and query.
#[derive(Debug, Clone, Default)]
pub struct Query(pub BTreeMap<String, String>);

impl Query {
    /// Returns a parameter, unless it is missing or blank.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|value| value.trim()).filter(|value| !value.is_empty())
    }

    /// Returns the parameters with these names, and more, as an object for an operation. Numbers are not converted.
    pub(crate) fn params(&self, names: &[&str], mut more: Value) -> Value {
        for (name, value) in names.iter().filter_map(|name| Some((name, self.get(name)?))) {
            more[*name] = value.into();
        }
        more
    }

    /// Returns the number of entries before this page, for lists without a cursor.
    pub(crate) fn offset(&self) -> usize {
        self.get("offset").and_then(|offset| offset.parse().ok()).unwrap_or_default()
    }

    /// Returns a URL with these parameters. Parameters without a value are omitted.
    pub(crate) fn url(&self, path: &str, names: &[&str]) -> String {
        let pairs = names.iter().filter_map(|name| Some((*name, self.get(name)?)));
        url(path, pairs)
    }
}

/// Returns a URL with a query.
pub(crate) fn url<'a>(path: &str, pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut url = path.to_owned();
    for (index, (name, value)) in pairs.into_iter().enumerate() {
        url.push(if index == 0 { '?' } else { '&' });
        url.push_str(name);
        url.push('=');
        url.push_str(&encode(value));
    }
    url
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_in_urls_are_encoded() {
        let pairs = [("q", "a b&c=<\"é"), ("repo", "o/r")];
        assert_eq!(url("/x", pairs), "/x?q=a%20b%26c%3D%3C%22%C3%A9&repo=o%2Fr");
        assert_eq!(url("/x", []), "/x");
    }
}
