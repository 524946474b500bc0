//! `handoff.list` and `handoff.latest`: lists handoffs and returns the latest one.

use baton_core::{Agent, Handoff, IssueNumber, Repo, TrackFilter, Venture};
use baton_store::{HandoffFilter, Page};
use serde_json::{Value, json};

use crate::handoff::HandoffView;
use crate::page::{Pagination, RequestedPage};
use crate::prelude::*;

/// Filters and page.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListHandoffs {
    /// Venture to list, for example `acme`.
    pub venture: Venture,
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Number of a track, or `none` for handoffs without a track.
    pub track: Option<TrackFilter>,
    /// Filter by issue number, for example 185.
    pub issue_number: Option<IssueNumber>,
    /// Filter by the agent that wrote the handoff, for example `claude-1`.
    pub from_agent: Option<Agent>,
    /// Filter by the agent that the handoff is addressed to, for example `codex-2`.
    pub to_agent: Option<Agent>,
    /// Maximum number of handoffs, 1 to 200. Defaults to 50.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// One page of handoffs, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListHandoffsOutput {
    /// Handoffs that match, newest first.
    pub handoffs: Vec<HandoffView>,
    /// Cursor of the next page.
    pub pagination: Pagination,
}

/// Filters.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LatestHandoff {
    /// Venture to search, for example `acme`.
    pub venture: Venture,
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Number of a track, or `none` for handoffs without a track.
    pub track: Option<TrackFilter>,
    /// Filter by issue number, for example 185.
    pub issue_number: Option<IssueNumber>,
    /// Filter by the agent that wrote the handoff, for example `claude-1`.
    pub from_agent: Option<Agent>,
    /// Filter by the agent that the handoff is addressed to, for example `codex-2`.
    pub to_agent: Option<Agent>,
}

/// The latest handoff.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct LatestHandoffOutput {
    /// The latest handoff that matches the filters, or null.
    pub handoff: Option<HandoffView>,
}

impl Operation<OnStore> for ListHandoffs {
    const NAME: &'static str = "handoff.list";
    const SUMMARY: &'static str = "List the handoffs of a venture, newest first.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListHandoffsOutput;
    params_and!(RequestedPage, |params| {
        RequestedPage::of("handoffs", 50, params.limit, params.cursor.as_deref())
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, requested) = input;
        context.actor.require_venture(&params.venture)?;
        let filter = HandoffFilter {
            venture: params.venture.clone(),
            repo: params.repo.clone(),
            track: params.track.map(TrackFilter::track),
            issue_number: params.issue_number.map(Into::into),
            from_agent: params.from_agent.clone(),
            to_agent: params.to_agent.clone(),
            written_by: None,
        };
        let mut found = tx.handoffs(&filter, requested.rows())?;
        let size = |handoff: &Handoff| {
            handoff.payload_json.len() + handoff.automatic_json.as_ref().map_or(0, String::len)
        };
        let pagination = requested.cut_by_size(&mut found, size, |handoff| handoff.id.ulid());
        let handoffs = found.into_iter().map(TryInto::try_into).collect::<Result<_, _>>()?;
        Ok(ListHandoffsOutput { handoffs, pagination })
    }
}

impl Operation<OnStore> for LatestHandoff {
    const NAME: &'static str = "handoff.latest";
    const SUMMARY: &'static str = "Read the latest handoff of a venture, with optional filters. Call it to \
        see what the previous agent left.";
    const EFFECT: Effect = Effect::Read;
    type Output = LatestHandoffOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        context.actor.require_venture(&params.venture)?;
        let filter = HandoffFilter {
            venture: params.venture.clone(),
            repo: params.repo.clone(),
            track: params.track.map(TrackFilter::track),
            issue_number: params.issue_number.map(Into::into),
            from_agent: params.from_agent.clone(),
            to_agent: params.to_agent.clone(),
            written_by: None,
        };
        let found = tx.handoffs(&filter, Page::first(1))?;
        Ok(LatestHandoffOutput { handoff: found.into_iter().next().map(TryInto::try_into).transpose()? })
    }

    fn compact(output: &Self::Output) -> Value {
        json!({ "handoff_id": output.handoff.as_ref().map(|handoff| handoff.id) })
    }
}
