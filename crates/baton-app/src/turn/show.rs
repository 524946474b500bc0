//! `turn.show`: one turn, with what the agent did in it.

use std::collections::BTreeMap;

use baton_core::observation::{Observation, Turn, TurnId};
use baton_core::{ErrorCode, ObservationId};
use baton_observation::{check, commit_message, is_failure};

use crate::prelude::*;

/// Maximum number of tool uses that are read, and listed.
const MAX_ACTIONS: u32 = 500;

/// The turn to show.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowTurn {
    /// Turn id, for example `turn_42`.
    pub turn_id: TurnId,
}

/// A turn and what the agent did in it.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowTurnOutput {
    /// The request of the user and its outcome.
    pub turn: Turn,
    /// Tools used, most used first.
    pub tools: Vec<ToolCount>,
    /// Paths of the files that were changed during the turn.
    pub files_changed: Vec<String>,
    /// Files that were read or mentioned and not changed.
    pub files_read: Vec<String>,
    /// Latest run of each check, with its result.
    pub checks: Vec<TurnAction>,
    /// Messages of the commits that succeeded.
    pub commits: Vec<String>,
    /// Tool uses that failed.
    pub failures: Vec<TurnAction>,
    /// Tool uses in order, at most 500, without pending ones.
    pub actions: Vec<TurnAction>,
}

/// Number of uses of a tool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ToolCount {
    /// Tool name, for example `Bash` or `Edit`.
    pub tool: String,
    /// Number of times the tool was used.
    pub uses: u32,
}

/// One tool use of a turn.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnAction {
    /// Observation id. Read it with observation_show.
    pub observation_id: ObservationId,
    /// Title: what was done and the result, for example "Run cargo test: 14 passed".
    pub title: String,
}

impl Operation<OnStore> for ShowTurn {
    const NAME: &'static str = "turn.show";
    const SUMMARY: &'static str = "Show one turn of a chat: the request, the closing message of the agent, the tools it \
        used, the files it changed, checks with results, commits and failures.";
    const EFFECT: Effect = Effect::Read;
    type Output = ShowTurnOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let missing = || {
            Fault::new(ErrorCode::NotFound, format!("there is no turn {}", params.turn_id))
                .hint("list turns with turn_list (GET /api/turns, baton turn list)")
        };
        let turn = tx.turn(params.turn_id)?.ok_or_else(missing)?;
        context.session(tx, turn.session_id).map_err(|fault| match fault.code {
            ErrorCode::SessionNotFound => missing(),
            _ => fault,
        })?;
        let until = tx.next_turn(&turn)?.map(|next| next.started_at);
        let observations = tx.observations_between(turn.session_id, turn.started_at, until, MAX_ACTIONS)?;
        let (files_changed, files_read) = files(&observations);
        let tools = tools(&observations);
        let actions: Vec<TurnAction> = observations
            .into_iter()
            .map(|one| TurnAction { observation_id: one.id, title: one.compressed.title })
            .collect();
        let commits = actions.iter().filter_map(|action| commit_message(&action.title));
        Ok(ShowTurnOutput {
            turn,
            tools,
            files_changed,
            files_read,
            checks: latest_checks(&actions),
            commits: commits.map(str::to_owned).collect(),
            failures: actions.iter().filter(|action| is_failure(&action.title)).cloned().collect(),
            actions,
        })
    }
}

/// Returns the latest run of each check, in order.
fn latest_checks(actions: &[TurnAction]) -> Vec<TurnAction> {
    let command = |action: &TurnAction| check(&action.title).map(|check| check.command.to_owned());
    let mut checks: Vec<TurnAction> = Vec::new();
    for action in actions.iter().filter(|action| command(action).is_some()) {
        checks.retain(|earlier| command(earlier) != command(action));
        checks.push(action.clone());
    }
    checks
}

fn tools(observations: &[Observation]) -> Vec<ToolCount> {
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for observation in observations {
        *counts.entry(&observation.tool_name).or_default() += 1;
    }
    let counts = counts.into_iter().map(|(tool, uses)| ToolCount { tool: tool.to_owned(), uses });
    let mut tools: Vec<ToolCount> = counts.collect();
    tools.sort_by_key(|tool| std::cmp::Reverse(tool.uses));
    tools
}

/// Returns the changed files and the other ones, each once, in order of their first use.
fn files(observations: &[Observation]) -> (Vec<String>, Vec<String>) {
    let (mut changed, mut read): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    for file in observations.iter().flat_map(|one| &one.compressed.files_touched) {
        if !changed.contains(file) {
            changed.push(file.clone());
        }
    }
    for file in observations.iter().flat_map(|one| &one.files) {
        if !changed.contains(file) && !read.contains(file) {
            read.push(file.clone());
        }
    }
    (changed, read)
}
