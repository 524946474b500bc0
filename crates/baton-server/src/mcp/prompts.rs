//! The table of MCP prompts: a line each.

use std::pin::Pin;

use baton_app::{App, Call, Face, Operation, operation};
use baton_core::{ErrorCode, Fault, Venture};
use rmcp::model::{Prompt, PromptArgument};
use serde_json::{Map, Value};

use crate::mcp::briefing::{handoff, resume};
use crate::mcp::server::Caller;

/// An instruction for an agent, written from what is stored.
#[derive(Clone, Copy)]
pub struct PromptBinding {
    /// Its name.
    pub name: &'static str,
    /// What it is for.
    pub description: &'static str,
    /// What it may be told, each with its meaning. Nothing is required: an instruction that knows less says less.
    pub arguments: &'static [(&'static str, &'static str)],
    pub(super) write: Writer,
}

pub(super) type Writer =
    for<'a> fn(&'a Desk) -> Pin<Box<dyn Future<Output = Result<String, Fault>> + Send + 'a>>;

const REPO: (&str, &str) = ("repo", "The repository, owner/name.");
const VENTURE: (&str, &str) = ("venture", "The undertaking; the configured one when left out.");
const AGENT: (&str, &str) = ("agent", "Your name as an agent.");
const TRACK: (&str, &str) = ("track", "The lane of work, a whole number.");
const SESSION: (&str, &str) = ("session_id", "Your session, sess_….");

/// Gives every prompt.
pub fn prompts() -> Vec<PromptBinding> {
    let prompt = |name, description, arguments, write| PromptBinding { name, description, arguments, write };
    vec![
        prompt(
            "resume",
            "Take up the work that the agent before you left.",
            &[REPO, VENTURE, AGENT, TRACK],
            |desk| Box::pin(resume(desk)),
        ),
        prompt(
            "handoff",
            "Hand your work over so that another agent can go on.",
            &[SESSION, REPO, VENTURE, AGENT],
            |desk| Box::pin(handoff(desk)),
        ),
    ]
}

impl PromptBinding {
    /// Describes the prompt to a client.
    pub(super) fn describe(&self) -> Prompt {
        let argument = |(name, meaning): &(&str, &str)| {
            PromptArgument::new(*name).with_description(*meaning).with_required(false)
        };
        let arguments = self.arguments.iter().map(argument).collect();
        Prompt::new(self.name, Some(self.description), Some(arguments))
    }
}

/// Where an instruction is written: what was given for it, and a way to look things up for whoever asked.
pub(super) struct Desk {
    pub(super) app: App,
    pub(super) caller: Caller,
    pub(super) given: Map<String, Value>,
}

impl Desk {
    /// Reads an argument. Clients send what a person left empty as empty text.
    pub(super) fn given(&self, name: &str) -> Result<Option<&str>, Fault> {
        match self.given.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            Some(_) => Err(Fault::invalid(name, "must be a string")),
        }
    }

    /// Reads an argument that is a whole number.
    pub(super) fn given_number(&self, name: &str) -> Result<Option<i64>, Fault> {
        let parse = |text: &str| text.parse().map_err(|_| Fault::invalid(name, "must be a whole number"));
        self.given(name)?.map(parse).transpose()
    }

    /// The venture that is meant.
    pub(super) fn venture(&self) -> Result<Venture, Fault> {
        match self.given("venture")? {
            Some(text) => text.parse().map_err(|error| Fault::invalid("venture", error)),
            None => Ok(self.app.settings().default_venture.clone()),
        }
    }

    /// Asks an operation.
    pub(super) async fn ask<O: Operation>(&self, params: Value) -> Result<O::Output, Fault> {
        let Caller { actor, correlation_id } = self.caller.clone();
        let call = Call { actor, face: Face::Mcp, correlation_id, idempotency_key: None, attachment: None };
        let reply = self.app.call(operation::<O>(), call, params).await;
        let unreadable = |_| Fault::new(ErrorCode::Internal, format!("{} gave no answer", O::NAME));
        let Some(code) = reply.error else { return serde_json::from_str(&reply.body).map_err(unreadable) };
        let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
        Err(Fault::new(code, body["message"].as_str().unwrap_or_default()).details(body["details"].clone()))
    }
}
