//! Parameters and output of `hook.report`.

use std::collections::BTreeMap;

use baton_core::observation::{TurnStatus, closing_message};
use baton_core::{
    Actor, Agent, ClientSessionId, HandoffId, Label, Repo, Session, Sha256Hash, Timestamp, Track, Venture,
};
use baton_observation::{HookEvent, SUBAGENT, is_own_call};
use baton_store::TurnEnd;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::context::Context;

/// Hook report of a coding agent, with information about its checkout. Unknown fields are ignored.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HookParams")]
pub struct Hook {
    /// Reported event, for example `post-tool-use`.
    pub event: HookEvent,
    /// Chat id assigned by the client, for example `chat-7`. All reports of one chat belong to one session.
    pub session_id: Option<ClientSessionId>,
    /// Working directory of the agent, for example `/home/ada/webshop/src`.
    pub cwd: Option<String>,
    /// Root of the checkout. File paths are stored relative to it.
    pub root: Option<String>,
    /// Path of the client's transcript file.
    pub transcript_path: Option<String>,
    /// `post-tool-use`: name of the tool, for example `Bash`. Required.
    pub tool_name: Option<String>,
    /// `post-tool-use`: input of the tool.
    pub tool_input: Option<Value>,
    /// `post-tool-use`: output of the tool.
    pub tool_response: Option<Value>,
    /// `post-tool-use`: error message of a failed tool, instead of an output.
    pub error: Option<String>,
    /// `post-tool-use`: client's id of this tool use. A repeated id is ignored.
    pub tool_use_id: Option<String>,
    /// SHA-256 of the current content of files that the input of the tool names, by path relative to `root`.
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub file_hashes: Option<BTreeMap<String, Sha256Hash>>,
    /// `user-prompt-submit`: prompt of the user. Required.
    pub prompt: Option<String>,
    /// `session-start`: `startup`, `resume`, `clear`, `compact` or `fork`. A resumed chat gets no context again; a
    /// compacted one gets its own.
    pub source: Option<String>,
    /// `session-start`: handoff whose work this chat continues, and which its first prompt contains. Set by `baton relay`.
    pub handoff_id: Option<HandoffId>,
    /// `pre-compact`: trigger of the compaction.
    pub trigger: Option<String>,
    /// `pre-compact`: user instructions for the compaction.
    pub custom_instructions: Option<String>,
    /// `post-compact`: summary that replaces the compacted context.
    pub compact_summary: Option<String>,
    /// `stop`, `subagent-stop`: closing message of the agent.
    pub last_assistant_message: Option<String>,
    /// `subagent-stop`: client's id of the sub-agent.
    pub agent_id: Option<String>,
    /// `subagent-stop`: kind of the sub-agent, for example `Explore`.
    pub agent_type: Option<String>,
    /// Event name in the agent's protocol. `StopFailure` and `Interrupt` are reported as `stop`.
    pub hook_event_name: Option<String>,
    /// `session-end`: reason for the end of the chat.
    pub reason: Option<String>,
    /// `session-end`: local branches that are not merged into the main branch of the repository.
    pub unmerged_branches: Option<Vec<String>>,
    /// Agent name. Defaults to a name derived from the client.
    pub agent: Option<Agent>,
    /// Program that runs the agent, for example `claude-code` or `codex`.
    pub client: Option<Label>,
    /// Venture. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Repository as owner/name. Defaults to `local/` and the folder name of `cwd`.
    pub repo: Option<Repo>,
    /// Track number, for example 2.
    pub track: Option<Track>,
    /// Git branch, for example `feature/login`.
    pub branch: Option<Label>,
    /// Git commit, for example `9f3c2d1`.
    pub commit_sha: Option<Label>,
    /// Host name of the machine, for example `build-3`.
    pub host: Option<Label>,
    /// Time of the event. Defaults to the current time. Set it for reports that are sent late.
    pub reported_at: Option<Timestamp>,
}

/// Response in the agent's hook protocol: empty, or context to add.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookOutput {
    /// Response for this event.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hook_specific_output: Option<HookSpecificOutput>,
}

impl HookOutput {
    /// Returns the response that adds a text to the agent's context; empty without a text.
    pub(super) fn adding(event: HookEvent, additional_context: String) -> Self {
        let hook_event_name = event.wire_name().to_owned();
        let output = HookSpecificOutput { hook_event_name, additional_context };
        Self { hook_specific_output: Some(output).filter(|output| !output.additional_context.is_empty()) }
    }
}

/// Response for one event.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookSpecificOutput {
    /// Event name in the agent's protocol.
    pub hook_event_name: String,
    /// Text to add to the agent's context.
    pub additional_context: String,
}

impl Hook {
    /// Converts the closing message of a sub-agent to a tool use. The same message of the same sub-agent is
    /// captured once.
    pub(super) fn report_as_tool_use(&mut self) {
        let message = self.last_assistant_message.as_deref().and_then(closing_message);
        let agent = self.agent_id.as_deref().unwrap_or_default();
        let hash = Sha256Hash::of(message.as_deref().unwrap_or_default().as_bytes()).to_string();
        self.tool_name = Some(SUBAGENT.to_owned());
        self.tool_use_id = Some(format!("subagent {agent} {}", &hash[..16]));
        self.tool_input = Some(json!({ "subagent_type": self.agent_type }));
        self.tool_response = message.map(Value::from);
        self.error = None;
    }

    /// Returns true when the tool is one of Baton's own.
    pub(super) fn is_own_call(&self) -> bool {
        let input = self.tool_input.as_ref().unwrap_or(&Value::Null);
        self.tool_name.as_deref().is_some_and(|name| is_own_call(name, input))
    }

    /// Returns how the turn ended, for `stop`.
    pub(super) fn turn_end(&self, context: &Context<'_>, session: &Session) -> TurnEnd {
        let failure = self.error.as_deref().and_then(closing_message);
        let status = match self.hook_event_name.as_deref() {
            Some("Interrupt") => TurnStatus::Interrupted,
            Some("StopFailure") => TurnStatus::Failed,
            _ if failure.is_some() => TurnStatus::Failed,
            _ => TurnStatus::Done,
        };
        let closing = self.last_assistant_message.as_deref().and_then(closing_message);
        TurnEnd {
            status,
            closing,
            failure,
            // The path is of this machine only if the report was stored here.
            transcript_path: self.transcript_path.clone().filter(|_| *context.actor == Actor::local()),
            at: self.at(context, session),
        }
    }

    /// Returns the reported time of the event, but at most now.
    pub(super) fn time(&self, context: &Context<'_>) -> Timestamp {
        self.reported_at.map_or(context.now, |at| at.min(context.now))
    }

    /// Returns the time of the event: as reported, but at most now. If the clock was set back and is behind the last
    /// heartbeat of the session, returns at least the time of that heartbeat, so that events sort after earlier ones.
    pub(super) fn at(&self, context: &Context<'_>, session: &Session) -> Timestamp {
        let at = self.time(context);
        if context.now < session.last_heartbeat_at { at.max(session.last_heartbeat_at) } else { at }
    }
}
