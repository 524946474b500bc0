//! The live session of a client that works in a checkout.
//!
//! The hooks of a client open a session with the chat id, which its MCP connection does not learn. The newest live
//! session of the same program in the repository is used instead, so that a chat has one session.

use baton_app::session::{ListSessions, SessionView, session_of_client};
use baton_app::{Filled, operation};
use baton_core::{ErrorCode, Fault, Repo, Venture};
use rmcp::model::Implementation;
use serde_json::{Map, Value, json};

use super::caller::Caller;
use super::server::McpServer;

impl McpServer {
    /// Fills in parameters that name the live session of the client, if the call omits them. Does nothing without a
    /// checkout.
    pub(crate) async fn fill_session(
        &self,
        filled: &[Filled],
        arguments: &mut Map<String, Value>,
        client: Option<&Implementation>,
        caller: &Caller,
        venture: &Venture,
    ) -> Result<(), Fault> {
        arguments.retain(|_, value| !value.is_null());
        for filled in filled {
            let omitted = match filled {
                Filled::Session => "session_id",
                Filled::RecordedSession(name) => name,
                Filled::LiveSession => "client_session_id",
                _ => continue,
            };
            if arguments.contains_key(omitted) {
                continue;
            }
            let Some(here) = self.defaults.repository().await else { return Ok(()) };
            let is_elsewhere = arguments.get("repo").is_some_and(|repo| repo != here.as_str());
            if is_elsewhere && *filled != Filled::LiveSession {
                continue;
            }
            let live = self.live_session(&here, arguments, client, caller, venture).await?;
            match (filled, live) {
                (Filled::LiveSession, live) => {
                    arguments.insert("checkout_repo".into(), here.as_str().into());
                    let Some(live) = live else { continue };
                    // An invalid value is left for the operation to report.
                    if arguments.get("agent").is_none_or(Value::is_string) {
                        arguments.insert("agent".into(), live.agent.into());
                    }
                    arguments.extend(live.track.map(|track| ("track".to_owned(), track.into())));
                    arguments.extend(live.client_session_id.map(|id| (omitted.to_owned(), id.into())));
                }
                (_, Some(live)) => _ = arguments.insert(omitted.into(), live.id.to_string().into()),
                (Filled::Session, None) => return Err(no_session(&here)),
                (_, None) => {}
            }
        }
        Ok(())
    }

    /// Finds the newest live session of the client in the repository of the call, by default the repository
    /// of the checkout.
    async fn live_session(
        &self,
        here: &Repo,
        arguments: &Map<String, Value>,
        client: Option<&Implementation>,
        caller: &Caller,
        venture: &Venture,
    ) -> Result<Option<SessionView>, Fault> {
        let given = |name: &str| arguments.get(name).and_then(Value::as_str);
        let params = json!({
            "repo": given("repo").unwrap_or(here.as_str()),
            "venture": given("venture").unwrap_or(venture.as_str()),
            "limit": 200,
        });
        let Value::Object(params) = params else { return Ok(None) };
        let reply = self.call(caller.clone(), operation::<ListSessions>(), params).await;
        let answer: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        // If the list failed, the call itself reports the problem.
        let sessions: Vec<SessionView> =
            serde_json::from_value(answer["sessions"].clone()).unwrap_or_default();
        Ok(session_of_client(&sessions, client.map(|client| client.name.as_str())).cloned())
    }
}

fn no_session(here: &Repo) -> Fault {
    Fault::new(ErrorCode::SessionNotFound, format!("there is no active session of this client in {here}"))
        .hint("call session_start first, or give the id of a session")
}
