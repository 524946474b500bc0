//! `handoff.list` and `handoff.latest`: what was handed over.

use baton_core::{Agent, Fault, HandoffId, IssueNumber, Repo, Track, Venture};
use baton_store::{HandoffFilter, Page, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::handoff::HandoffView;
use crate::operation::{Context, Effect, Operation, store_fault};
use crate::page::{Pagination, cursor_of, fitting, limit_of, paginate};

const LIST: &str = "handoffs";
const DEFAULT_LIMIT: u32 = 50;

/// Lists handoffs.
#[derive(Debug)]
pub struct ListHandoffs;

/// Finds the latest handoff.
#[derive(Debug)]
pub struct LatestHandoff;

/// Which handoffs.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListHandoffsParams {
    /// Of this undertaking.
    pub venture: Venture,
    /// In this repository.
    #[serde(default)]
    pub repo: Option<Repo>,
    /// In this lane.
    #[serde(default)]
    pub track: Option<Track>,
    /// On this issue.
    #[serde(default)]
    pub issue_number: Option<IssueNumber>,
    /// By this agent.
    #[serde(default)]
    pub from_agent: Option<Agent>,
    /// For this agent.
    #[serde(default)]
    pub to_agent: Option<Agent>,
    /// How many at the most: 1 to 200, 50 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// A page of handoffs, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListHandoffsOutput {
    /// The handoffs.
    pub handoffs: Vec<HandoffView>,
    /// Where the list goes on.
    pub pagination: Pagination,
}

/// Which handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LatestHandoffParams {
    /// Of this undertaking.
    pub venture: Venture,
    /// In this repository.
    #[serde(default)]
    pub repo: Option<Repo>,
    /// In this lane.
    #[serde(default)]
    pub track: Option<Track>,
    /// On this issue.
    #[serde(default)]
    pub issue_number: Option<IssueNumber>,
    /// By this agent.
    #[serde(default)]
    pub from_agent: Option<Agent>,
    /// For this agent.
    #[serde(default)]
    pub to_agent: Option<Agent>,
}

/// The latest handoff, if there is one.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LatestHandoffOutput {
    /// The handoff.
    pub handoff: Option<HandoffView>,
}

impl Operation for ListHandoffs {
    const NAME: &'static str = "handoff.list";
    const SUMMARY: &'static str = "List what was handed over in a venture, newest first.";
    const EFFECT: Effect = Effect::Read;
    type Params = ListHandoffsParams;
    type Output = ListHandoffsOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        limit_of(params.limit, DEFAULT_LIMIT)?;
        cursor_of(params.cursor.as_deref(), LIST)?;
        Ok(())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        context.actor.require_venture(&params.venture)?;
        let filter = HandoffFilter {
            venture: params.venture.clone(),
            repo: params.repo.clone(),
            track: params.track.map(Some),
            issue_number: params.issue_number.map(Into::into),
            from_agent: params.from_agent.clone(),
            to_agent: params.to_agent.clone(),
        };
        let limit = limit_of(params.limit, DEFAULT_LIMIT)?;
        let page = Page { before: cursor_of(params.cursor.as_deref(), LIST)?, limit: limit + 1 };
        let mut found = tx.handoffs(&filter, page).map_err(store_fault)?;
        let limit = fitting(&found, limit, |handoff| handoff.payload_json.len());
        let pagination = paginate(&mut found, limit, LIST, |handoff| HandoffId::ulid(handoff.id));
        let handoffs = found.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?;
        Ok(ListHandoffsOutput { handoffs, pagination })
    }
}

impl Operation for LatestHandoff {
    const NAME: &'static str = "handoff.latest";
    const SUMMARY: &'static str = "Read the latest handoff: what the agent before you left.";
    const EFFECT: Effect = Effect::Read;
    type Params = LatestHandoffParams;
    type Output = LatestHandoffOutput;

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        context.actor.require_venture(&params.venture)?;
        let filter = HandoffFilter {
            venture: params.venture.clone(),
            repo: params.repo.clone(),
            track: params.track.map(Some),
            issue_number: params.issue_number.map(Into::into),
            from_agent: params.from_agent.clone(),
            to_agent: params.to_agent.clone(),
        };
        let found = tx.handoffs(&filter, Page::first(1)).map_err(store_fault)?;
        Ok(LatestHandoffOutput { handoff: found.into_iter().next().map(TryInto::try_into).transpose()? })
    }

    fn compact(output: &Self::Output) -> Value {
        json!({ "handoff_id": output.handoff.as_ref().map(|handoff| handoff.id) })
    }
}
