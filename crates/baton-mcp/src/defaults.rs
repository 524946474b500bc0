//! Values that calls may omit because Baton knows them: the repository of the checkout, and the client with its agent.

use std::sync::Arc;

use baton_app::Filled;
use baton_core::{Agent, Repo, Venture};
use baton_observation::{agent_of_client, client_name};
use rmcp::RoleServer;
use rmcp::model::Implementation;
use rmcp::service::RequestContext;
use serde_json::{Map, Value};

/// Returns the repository of the checkout, or `None` if it has no name. May block.
pub type FindRepo = Arc<dyn Fn() -> Option<Repo> + Send + Sync>;

/// Whether the client and the server share a checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Locality {
    /// `baton mcp`, started by the client in its folder.
    Local,
    /// `/mcp` of a server.
    Remote,
}

/// Sources of the values that calls may omit.
#[derive(Clone, Default)]
pub(crate) struct Defaults {
    /// Finds the repository of the checkout in which the only client works.
    pub(crate) find_repo: Option<FindRepo>,
    /// The configured agent.
    pub(crate) agent: Option<Agent>,
}

/// Returns the parameters that the caller may omit, and the default that their description states.
pub(crate) fn optional_params(filled: Filled, locality: Locality) -> &'static [(&'static str, &'static str)] {
    match (filled, locality) {
        (Filled::Repo, Locality::Local) => &[("repo", "Defaults to the current checkout.")],
        (Filled::Agent, Locality::Local) => {
            &[("agent", "Defaults to the configured agent, otherwise to a name derived from your client.")]
        }
        (Filled::Scope, Locality::Local) => {
            &[("repo", "Defaults to the current checkout if venture and agent are omitted as well.")]
        }
        (Filled::Session | Filled::RecordedSession("session_id"), Locality::Local) => {
            &[("session_id", "Defaults to your newest active session.")]
        }
        (Filled::Venture, _) => &[("venture", "Defaults to the configured venture.")],
        (Filled::Client | Filled::LiveSession | Filled::RecordedSession(_), _) | (_, Locality::Remote) => &[],
    }
}

impl Defaults {
    /// Adds the values that the call omits.
    pub(crate) async fn fill(
        &self,
        filled: &[Filled],
        arguments: &mut Map<String, Value>,
        client: Option<&Implementation>,
        venture: &Venture,
    ) {
        arguments.retain(|_, value| !value.is_null());
        for filled in filled {
            match filled {
                Filled::Repo => self.fill_repo(arguments).await,
                Filled::Agent => {
                    let agent = self.agent.clone().or_else(|| agent_of_client(&client?.name));
                    add(arguments, "agent", agent.as_ref().map(Agent::as_str));
                }
                Filled::Client => {
                    add(arguments, "client", client.map(|client| client_name(&client.name)));
                    add(arguments, "client_version", client.map(|client| client.version.as_str()));
                }
                Filled::Venture => add(arguments, "venture", Some(venture.as_str())),
                // Filled in earlier, because this requires a call of the store.
                Filled::Session | Filled::RecordedSession(_) | Filled::LiveSession => {}
                Filled::Scope
                    if ["venture", "repo", "agent"].iter().any(|name| arguments.contains_key(*name)) => {}
                Filled::Scope => {
                    self.fill_repo(arguments).await;
                    if !arguments.contains_key("repo") {
                        add(arguments, "venture", Some(venture.as_str()));
                    }
                }
            }
        }
    }

    async fn fill_repo(&self, arguments: &mut Map<String, Value>) {
        if !arguments.contains_key("repo")
            && let Some(repo) = self.repository().await
        {
            add(arguments, "repo", Some(repo.as_str()));
        }
    }

    /// Returns the repository of the checkout.
    pub(crate) async fn repository(&self) -> Option<Repo> {
        let find_repo = self.find_repo.clone()?;
        tokio::task::spawn_blocking(move || find_repo()).await.ok().flatten()
    }
}

fn add(arguments: &mut Map<String, Value>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        arguments.entry(name).or_insert_with(|| value.into());
    }
}

/// Name of the library that implements the protocol.
const LIBRARY: &str = "rmcp";

/// Returns the client as it named itself in the request, or in the handshake.
pub(crate) fn client_of(context: &RequestContext<RoleServer>) -> Option<Implementation> {
    // Without a handshake the library states its own name.
    let from_handshake = || {
        let info = context.peer.peer_info().map(|info| info.client_info.clone());
        info.filter(|client| client.name != LIBRARY)
    };
    context.meta.client_info().or_else(from_handshake)
}

/// Converts text to integers for parameters that are integers, because some models send numbers as text.
pub(crate) fn integers_from_text(schema: &Value, arguments: &mut Map<String, Value>) {
    for (name, value) in arguments {
        let is_integer = match &schema["properties"][name.as_str()]["type"] {
            Value::String(kind) => kind == "integer",
            Value::Array(kinds) => {
                kinds.iter().any(|kind| kind == "integer") && !kinds.iter().any(|kind| kind == "string")
            }
            _ => false,
        };
        if is_integer && let Some(integer) = integer_of(value) {
            *value = integer.into();
        }
    }
}

/// Returns true if a value is text that contains an integer, so that the schema must be consulted.
pub(crate) fn has_integer_text(arguments: &Map<String, Value>) -> bool {
    arguments.values().any(|value| integer_of(value).is_some())
}

fn integer_of(value: &Value) -> Option<i64> {
    value.as_str()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn converts_text_only_where_the_schema_has_an_integer() {
        let schema = json!({ "properties": {
            "limit": { "type": ["integer", "null"] }, "track": { "type": ["integer", "string"] },
            "name": { "type": "string" }, "offset": { "type": "integer" },
        } });
        let mut arguments = json!({ "limit": "20", "track": "1", "name": "7", "offset": "x", "other": "3" })
            .as_object()
            .cloned()
            .unwrap();
        assert!(has_integer_text(&arguments));
        integers_from_text(&schema, &mut arguments);
        let expected = json!({ "limit": 20, "track": "1", "name": "7", "offset": "x", "other": "3" });
        assert_eq!(Value::Object(arguments), expected);
    }
}
