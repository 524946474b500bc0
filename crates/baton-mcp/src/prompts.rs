//! MCP prompts.

use baton_app::{App, Call, Face, OnStore, Operation, operation, read_error};
use baton_core::{ErrorCode, Fault, Venture};
use futures_util::future::BoxFuture;
use rmcp::model::{Prompt, PromptArgument};
use serde_json::{Map, Value};

use crate::briefing::{handoff, resume};
use crate::server::Caller;

/// A prompt that is generated from stored data.
#[derive(Clone, Copy)]
pub struct PromptBinding {
    pub name: &'static str,
    pub description: &'static str,
    /// Names and descriptions of the arguments. All are optional.
    pub arguments: &'static [(&'static str, &'static str)],
    pub(crate) write: Writer,
}

pub(crate) type Writer = for<'a> fn(&'a PromptInput) -> BoxFuture<'a, Result<String, Fault>>;

const REPO: (&str, &str) = ("repo", "Repository as owner/name, for example acme/webshop.");
const VENTURE: (&str, &str) = ("venture", "Venture. Defaults to the configured venture.");
const AGENT: (&str, &str) = ("agent", "Your agent name, for example claude-1.");
const TRACK: (&str, &str) = ("track", "Track number, for example 2.");
const SESSION: (&str, &str) = ("session_id", "Id of your session (sess_…).");

pub fn prompts() -> Vec<PromptBinding> {
    let prompt = |name, description, arguments, write| PromptBinding { name, description, arguments, write };
    vec![
        prompt(
            "resume",
            "Continue the work of the previous agent.",
            &[REPO, VENTURE, AGENT, TRACK],
            |input| Box::pin(resume(input)),
        ),
        prompt(
            "handoff",
            "Write a handoff so that another agent can continue your work.",
            &[SESSION, REPO, VENTURE, AGENT],
            |input| Box::pin(handoff(input)),
        ),
    ]
}

impl PromptBinding {
    /// Describes the prompt to a client.
    pub(crate) fn describe(&self) -> Prompt {
        let argument = |(name, meaning): &(&str, &str)| {
            PromptArgument::new(*name).with_description(*meaning).with_required(false)
        };
        let arguments = self.arguments.iter().map(argument).collect();
        Prompt::new(self.name, Some(self.description), Some(arguments))
    }
}

/// Arguments of a prompt request, with access to the operations of the caller.
pub(crate) struct PromptInput {
    pub(crate) app: App,
    pub(crate) caller: Caller,
    pub(crate) given: Map<String, Value>,
}

impl PromptInput {
    /// Returns an argument. Clients send empty input as empty text, which counts as absent.
    pub(crate) fn given(&self, name: &str) -> Result<Option<&str>, Fault> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            Some(_) => Err(Fault::invalid(name, "must be a string")),
        }
    }

    /// Returns an integer argument.
    pub(crate) fn given_number(&self, name: &str) -> Result<Option<i64>, Fault> {
        let parse = |text: &str| text.parse().map_err(|_| Fault::invalid(name, "must be a whole number"));
        self.given(name)?.map(parse).transpose()
    }

    /// Returns the venture argument or the configured venture.
    pub(crate) fn venture(&self) -> Result<Venture, Fault> {
        match self.given("venture")? {
            Some(text) => text.parse().map_err(|error| Fault::invalid("venture", error)),
            None => {
                let only = self.caller.actor.only_venture();
                Ok(only.unwrap_or(&self.app.settings().default_venture).clone())
            }
        }
    }

    /// Calls an operation.
    pub(crate) async fn ask<O: Operation<OnStore>>(&self, params: Value) -> Result<O::Output, Fault> {
        let Caller { actor, correlation_id } = self.caller.clone();
        let call = Call { actor, face: Face::Mcp, correlation_id, idempotency_key: None, attachment: None };
        let reply = self.app.call(operation::<O>(), call, params).await;
        let unreadable = |_| Fault::new(ErrorCode::Internal, format!("{} returned no response", O::NAME));
        match reply.error {
            Some(code) => Err(read_error(code, &reply.body)),
            None => serde_json::from_str(&reply.body).map_err(unreadable),
        }
    }
}
