//! `recall.search`: ranked search over everything that was recorded.

use std::time::Instant;

use baton_core::recall::{CallerContext, Embedding, ItemKind};
use baton_core::{Repo, SessionId, Since, Timestamp, Venture};
use baton_store::RecallFilter;

use super::embedding::embed_query;
use super::find::{Find, Found, find};
use super::indexing::index_before_reading;
use super::scope::{checked_limit, ventures};
use crate::prelude::*;

/// The query and its filters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// What to look for, in plain words, for example "why did the queue lease expire". Identifiers, file names, quoted
    /// phrases, names of agents and times such as "last week" are understood.
    #[serde(rename = "q", alias = "query")]
    pub q: String,
    /// Maximum number of results, 1 to 100. Defaults to 10.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<i64>,
    /// Filter by venture. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Filter by branch, for example `main`.
    pub branch: Option<String>,
    /// Branch you work on, for example `feature/login`. Items of this branch rank higher; items of other
    /// unmerged branches rank lower.
    pub current_branch: Option<String>,
    /// Filter by session id.
    #[serde(default, alias = "session_id")]
    pub session: Option<SessionId>,
    /// Filter by agent, for example `claude-1`.
    pub agent: Option<String>,
    /// Filter by kind.
    pub kind: Option<ItemKind>,
    /// Filter by file: a path or the end of a path, for example `store.rs` or `src/store.rs`.
    pub file: Option<String>,
    /// Earliest time: a timestamp, or a duration before now such as `7d`.
    pub since: Option<Since>,
    /// Latest time: a timestamp, or a duration before now such as `1d`.
    pub until: Option<Since>,
}

/// Results, best first.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SearchOutput {
    /// Results, best first.
    pub results: Vec<SearchResult>,
    /// Duration of the search in milliseconds.
    pub took_ms: f64,
    /// Present if the search was incomplete: what was not searched, and why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warning: Option<String>,
}

/// One result. Read the full item with `get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SearchResult {
    /// Item id. Pass it to `get` or `timeline`.
    pub id: String,
    /// Kind of the item, for example `observation`, `handoff` or `note`.
    pub kind: ItemKind,
    /// Id of the item in the system that it was imported from, for example the id of the tool use, or null.
    pub external_id: Option<String>,
    /// Title of the item, for example "Run cargo test: 14 passed".
    pub title: String,
    /// Part of the text that matches best.
    pub snippet: String,
    /// Files that the item touches.
    pub files: Vec<String>,
    /// Time of the item.
    pub created_at: Timestamp,
    /// Estimated number of tokens of the full item.
    pub tokens: u64,
    /// Score; higher is better. Scores are comparable only within one search.
    pub score: f64,
    /// Why the item was found.
    pub why: String,
}

impl From<Found> for SearchResult {
    fn from(found: Found) -> Self {
        let Found { item, snippet, tokens, score, why } = found;
        Self {
            id: item.id,
            kind: item.kind,
            external_id: item.external_id,
            title: item.title,
            snippet,
            files: item.files,
            created_at: item.created_at,
            tokens,
            score: (score * 1_000.0).round() / 1_000.0,
            why,
        }
    }
}

/// Checked parameters.
#[derive(Debug)]
pub struct SearchInput {
    params: Search,
    limit: usize,
    started: Instant,
    similar_to: Result<Option<Embedding>, &'static str>,
}

impl Operation<OnStore> for Search {
    const NAME: &'static str = "recall.search";
    const SUMMARY: &'static str = "Search everything recorded in earlier sessions: requests, work done, decisions, \
        handoffs, notes, summaries, checkpoints and tasks. Call it before you explore code or repeat an investigation. Returns \
        titles, ids and the token cost of each full item; read items with get.";
    const EFFECT: Effect = Effect::Read;
    // Waits for the store while it indexes new items.
    const REQUEST: RequestFormat = RequestFormat { is_slow: true, ..RequestFormat::STRICT };
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::IfPossible(|_| true);
    type Input = SearchInput;
    type Output = SearchOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        let started = Instant::now();
        let limit = checked_limit(params.limit)?;
        index_before_reading(context);
        let similar_to = embed_query(context, &params.q);
        Ok(SearchInput { params, limit, started, similar_to })
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let params = &input.params;
        let asked = Find {
            text: params.q.clone(),
            filter: RecallFilter {
                ventures: ventures(context, tx, params.venture.as_ref())?,
                repo: params.repo.clone(),
                branch: params.branch.clone(),
                session_id: params.session,
                agent: params.agent.clone(),
                kind: params.kind,
                file: params.file.clone(),
                since: params.since.map(|since| since.resolve(context.now)),
                until: params.until.map(|until| until.resolve(context.now)),
            },
            similar_to: input.similar_to.clone().unwrap_or_default(),
            caller: CallerContext { branch: params.current_branch.clone(), ..CallerContext::default() },
            limit: input.limit,
        };
        let results = find(tx, &asked, context.now)?.into_iter().map(SearchResult::from).collect();
        let took = input.started.elapsed().as_secs_f64() * 1_000.0;
        let warning = input.similar_to.as_ref().err().map(ToString::to_string);
        Ok(SearchOutput { results, took_ms: (took * 100.0).round() / 100.0, warning })
    }
}
