//! `recall.timeline`: what happened around an item, or between two items.

use baton_core::recall::{Candidate, ItemKind};
use baton_core::{ErrorCode, SessionId, Timestamp, Venture, estimate_tokens};
use baton_store::{RecallFilter, TimelinePosition};

use super::get::{kind_of, no_item};
use super::indexing::index_before_reading;
use super::item::Loader;
use super::scope::ventures;
use crate::page::limit_of;
use crate::prelude::*;

const DEFAULT_LIMIT: u32 = 10;

/// The item to start from, and filters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct Timeline {
    /// Item id, for example `turn_42`. Lists the items before and after it in its session.
    pub id: String,
    /// Id of a later item. If given, lists the items from `id` to this one instead.
    pub to: Option<String>,
    /// Maximum number of items on each side of the item, or in total with `to`, 1 to 200. Defaults to 10.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// Filter by kind.
    pub kind: Option<ItemKind>,
    /// If true, lists the items of all sessions of the repository instead of the session of the item only.
    /// Defaults to false.
    #[serde(default)]
    pub all_sessions: bool,
}

/// Items, oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct TimelineOutput {
    /// Items, oldest first.
    pub items: Vec<TimelineEntry>,
}

/// One item of a timeline. Read the full item with `get`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TimelineEntry {
    /// Id of the item, for example `obs_01J…` or `note_01J…`.
    pub id: String,
    /// Kind of the item, for example `observation`, `handoff` or `note`.
    pub kind: ItemKind,
    /// Title of the item, for example "Run cargo test: 14 passed".
    pub title: String,
    /// Files that the item touches.
    pub files: Vec<String>,
    /// Session that the item belongs to, or null.
    pub session_id: Option<SessionId>,
    /// Agent that did the work, or null.
    pub agent: Option<String>,
    /// Time of the item.
    pub created_at: Timestamp,
    /// Estimated number of tokens of the full item.
    pub tokens: u64,
}

impl Operation<OnStore> for Timeline {
    const NAME: &'static str = "recall.timeline";
    const SUMMARY: &'static str = "List what happened before and after an item that search returned, or between two \
        items, in chronological order. Returns titles, ids and the token cost of each full item.";
    const EFFECT: Effect = Effect::Read;
    // Waits for the store while it indexes new items.
    const REQUEST: RequestFormat = RequestFormat { is_slow: true, ..RequestFormat::STRICT };
    type Input = (Self, u32);
    type Output = TimelineOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        index_before_reading(context);
        let limit = limit_of(params.limit, DEFAULT_LIMIT)?;
        Ok((params, limit))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, limit) = input;
        let allowed = ventures(context, tx, None)?;
        let center = indexed(tx, &params.id, &allowed)?;
        let filter = RecallFilter {
            ventures: vec![center.document.venture.clone()],
            repo: center.document.repo.clone().filter(|_| params.all_sessions),
            session_id: center.document.session_id.filter(|_| !params.all_sessions),
            kind: params.kind,
            ..RecallFilter::default()
        };
        let found = match &params.to {
            Some(to) => {
                let end = indexed(tx, to, &allowed)?;
                let (first, last) =
                    (position(&center).min(position(&end)), position(&center).max(position(&end)));
                let mut found = tx.timeline(&filter, (first.0, first.1 - 1), true, *limit)?;
                found.retain(|candidate| position(candidate) <= last);
                found
            }
            None => {
                let mut found = tx.timeline(&filter, position(&center), false, *limit)?;
                found.reverse();
                let after = tx.timeline(&filter, position(&center), true, *limit)?;
                found.push(center);
                found.extend(after);
                found
            }
        };
        let mut loader = Loader::default();
        let mut items = Vec::new();
        for candidate in found {
            let Some(item) = loader.load_intact(tx, candidate.document.kind, &candidate.document.item)?
            else {
                continue;
            };
            items.push(TimelineEntry {
                id: item.id,
                kind: item.kind,
                title: item.title,
                files: item.files,
                session_id: item.session_id,
                agent: item.agent,
                created_at: item.created_at,
                tokens: estimate_tokens(&item.text) as u64,
            });
        }
        Ok(TimelineOutput { items })
    }
}

fn position(candidate: &Candidate) -> TimelinePosition {
    (candidate.document.created_at, candidate.number)
}

/// Finds an indexed item of one of the ventures.
fn indexed(tx: &mut dyn Tx, id: &str, allowed: &[Venture]) -> Result<Candidate, Fault> {
    let found = tx.document(kind_of(id), id)?;
    if let Some(found) = found.filter(|found| allowed.contains(&found.document.venture)) {
        return Ok(found);
    }
    let mark = tx.marks_of(&[id])?.pop().filter(|mark| allowed.contains(&mark.venture));
    Err(match mark {
        Some(mark) => Fault::new(ErrorCode::NotFound, format!("item {id} is {}", mark.kind.as_str()))
            .hint("read it with get (GET /api/items, baton get)"),
        None => no_item(id),
    })
}
