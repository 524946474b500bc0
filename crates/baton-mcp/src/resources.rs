//! The table of MCP resources, one line each.

use baton_app::bundle::ReadContext;
use baton_app::checkpoint::LoadCheckpoint;
use baton_app::handoff::{LatestHandoff, ShowHandoff};
use baton_app::request_params::{add_path, decode, from_query, literal_params};
use baton_app::session::{ListSessions, ShowSession};
use baton_app::{AnyOperation, operation};
use baton_core::{ErrorCode, Fault, Venture};
use rmcp::model::{Resource, ResourceTemplate};
use serde_json::{Map, Value};

const MIME_TYPE: &str = "application/json";

/// A resource and the operation that reads it.
#[derive(Clone, Copy)]
pub struct ResourceBinding {
    /// URI template (RFC 6570): `{name}` in the path and `{?a,b}` at the end are parameters of the operation. Those at
    /// the end are optional.
    pub uri: &'static str,
    pub name: &'static str,
    /// Content of the resource, for clients.
    description: &'static str,
    /// The operation, which must be read-only.
    pub operation: &'static AnyOperation,
}

/// Returns all resources. The first one with a matching path is used.
pub fn resources() -> Vec<ResourceBinding> {
    let resource = |uri, name, description, operation| ResourceBinding { uri, name, description, operation };
    vec![
        resource(
            "baton://handoff/latest{?venture,repo,track}",
            "latest-handoff",
            "Latest handoff of a venture.",
            operation::<LatestHandoff>(),
        ),
        resource(
            "baton://handoff/{handoff_id}",
            "handoff",
            "A handoff with its full payload.",
            operation::<ShowHandoff>(),
        ),
        resource(
            "baton://session/{session_id}",
            "session",
            "A session with its summary and the handoff that ended it.",
            operation::<ShowSession>(),
        ),
        resource(
            "baton://sessions/active{?venture,repo,agent}",
            "active-sessions",
            "Active sessions, newest first.",
            operation::<ListSessions>(),
        ),
        resource(
            "baton://workflow/{sessionId}/latest{?venture,maxBytes,maxTokens}",
            "latest-checkpoint",
            "Latest checkpoint of a workflow, shortened to maxBytes or maxTokens if one is given.",
            operation::<LoadCheckpoint>(),
        ),
        resource(
            "baton://checkpoint/{checkpointId}{?venture}",
            "checkpoint",
            "A checkpoint with its whole context.",
            operation::<LoadCheckpoint>(),
        ),
        resource(
            "baton://context{?venture,repo,track,prompt,branch,max_tokens}",
            "context",
            "What a new chat should know about a repository, within a token budget.",
            operation::<ReadContext>(),
        ),
    ]
}

/// Finds the resource of a URI and the parameters of its operation. If the venture is optional and absent, the default
/// venture is used.
pub(crate) fn find_resource(
    uri: &str,
    default_venture: &Venture,
) -> Result<(ResourceBinding, Map<String, Value>), Fault> {
    let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
    let matching = resources().into_iter().find_map(|binding| Some((binding, binding.path_params(path)?)));
    let Some((binding, path_params)) = matching else {
        return Err(Fault::new(ErrorCode::NotFound, "there is no resource at this address")
            .hint("list the addresses with resources/list and resources/templates/list"));
    };
    let literals = literal_params(&binding.operation.params_schema());
    let mut params = from_query(query, &literals)?;
    if let Some(unknown) = params.keys().find(|name| !binding.query_names().any(|known| known == *name)) {
        return Err(Fault::invalid(unknown, format!("is not a part of {}", binding.uri)));
    }
    let decoded = path_params.into_iter().map(|(name, value)| Ok((name.to_owned(), decode(value)?)));
    add_path(&mut params, decoded.collect::<Result<Vec<_>, Fault>>()?, &literals)?;
    if binding.query_names().any(|name| name == "venture") {
        params.entry("venture").or_insert_with(|| default_venture.to_string().into());
    }
    Ok((binding, params))
}

impl ResourceBinding {
    /// Describes the resource to a client; `None` if its URI has required parameters.
    pub(crate) fn describe(&self) -> Option<Resource> {
        let is_one = !self.path().contains('{');
        is_one.then(|| {
            Resource::new(self.path(), self.name).with_description(self.description).with_mime_type(MIME_TYPE)
        })
    }

    /// Describes the URI template to a client.
    pub(crate) fn describe_template(&self) -> ResourceTemplate {
        ResourceTemplate::new(self.uri, self.name)
            .with_description(self.description)
            .with_mime_type(MIME_TYPE)
    }

    fn path(&self) -> &'static str {
        self.uri.split_once("{?").map_or(self.uri, |(path, _)| path)
    }

    fn query_names(&self) -> impl Iterator<Item = &'static str> {
        let names = self.uri.split_once("{?").and_then(|(_, names)| names.strip_suffix('}'));
        names.into_iter().flat_map(|names| names.split(','))
    }

    /// Matches a path and returns its parameters; `None` if it does not match.
    fn path_params<'a>(&self, path: &'a str) -> Option<Vec<(&'static str, &'a str)>> {
        let (known, given) = (self.path().split('/'), path.split('/'));
        let mut params = Vec::new();
        if known.clone().count() != given.clone().count() {
            return None;
        }
        for (known, given) in known.zip(given) {
            match known.strip_prefix('{').and_then(|known| known.strip_suffix('}')) {
                Some(name) if !given.is_empty() => params.push((name, given)),
                None if known == given => {}
                _ => return None,
            }
        }
        Some(params)
    }
}

#[cfg(test)]
mod tests {
    use baton_app::Effect;
    use serde_json::json;

    use super::*;

    fn find(uri: &str) -> Result<(&'static str, Value), ErrorCode> {
        let found = find_resource(uri, &"usual".parse().unwrap());
        found.map(|(binding, params)| (binding.name, params.into())).map_err(|fault| fault.code)
    }

    #[test]
    fn uris_become_parameters() {
        let latest = |params: Value| Ok(("latest-handoff", params));
        assert_eq!(find("baton://handoff/latest"), latest(json!({ "venture": "usual" })));
        assert_eq!(
            find("baton://handoff/latest?repo=o%2Fr&venture=v&track=0"),
            latest(json!({ "venture": "v", "repo": "o/r", "track": 0 }))
        );
        assert_eq!(find("baton://handoff/ho_1"), Ok(("handoff", json!({ "handoff_id": "ho_1" }))));
        assert_eq!(find("baton://session/a%20b"), Ok(("session", json!({ "session_id": "a b" }))));
        assert_eq!(
            find("baton://sessions/active?agent=a"),
            Ok(("active-sessions", json!({ "venture": "usual", "agent": "a" })))
        );
    }

    #[test]
    fn unknown_and_invalid_uris_are_rejected() {
        for uri in [
            "",
            "baton://",
            "baton://handoff",
            "baton://handoff/",
            "baton://handoff/a/b",
            "baton:/handoff/a",
            "http://handoff/a",
            "baton://session/",
            "baton://sessions/activ",
            "handoff/latest",
            "baton://handoff/latest/",
            "baton://Session/a",
        ] {
            assert_eq!(find(uri), Err(ErrorCode::NotFound), "{uri}");
        }
        for uri in [
            "baton://handoff/latest?limit=1",
            "baton://handoff/ho_1?handoff_id=ho_2",
            "baton://session/%ff",
            "baton://handoff/latest?issue_number=x",
            "baton://handoff/latest?repo=a/b&repo=a/c",
            "baton://handoff/%",
        ] {
            assert_eq!(find(uri), Err(ErrorCode::InvalidRequest), "{uri}");
        }
    }

    #[test]
    fn every_resource_is_read_only_and_has_known_parameters() {
        for binding in resources() {
            assert_eq!(binding.operation.effect, Effect::Read, "{}", binding.uri);
            let schema = binding.operation.params_schema();
            let in_path = binding.path_params(binding.path()).unwrap();
            for name in in_path.into_iter().map(|(name, _)| name).chain(binding.query_names()) {
                assert!(schema["properties"].get(name).is_some(), "{}: {name}", binding.uri);
            }
        }
    }
}
