//! `recall.get`: full items by id.

use baton_core::recall::ItemKind;
use baton_core::{
    CheckpointId, ErrorCode, Fault, HandoffId, NoteId, ObservationId, Repo, SessionId, Timestamp,
    estimate_tokens,
};
use baton_store::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::item::Loader;
use crate::context::Context;
use crate::operation::{Effect, Operation};

/// Maximum number of items per call.
const MAX_IDS: usize = 50;

/// Reads full items.
#[derive(Debug)]
pub struct GetItems;

/// The items to read.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetItemsParams {
    /// Item ids from search or timeline, separated by commas, at most 50. Example: `obs_01J…,turn_42`.
    pub ids: String,
}

/// Full items.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetItemsOutput {
    /// Items in the order of the ids.
    pub items: Vec<ItemView>,
    /// Ids that do not exist.
    pub missing: Vec<String>,
}

/// A full item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemView {
    /// Item id.
    pub id: String,
    /// Kind of the item.
    pub kind: ItemKind,
    /// Id of the item in the system that it comes from, or null.
    pub external_id: Option<String>,
    /// Repository, or null.
    pub repo: Option<Repo>,
    /// Branch, or null.
    pub branch: Option<String>,
    /// Session that the item belongs to, or null.
    pub session_id: Option<SessionId>,
    /// Turn that the item belongs to, or null.
    pub turn_id: Option<String>,
    /// Agent that did the work, or null.
    pub agent: Option<String>,
    /// Files that the item touches.
    pub files: Vec<String>,
    /// Time of the item.
    pub created_at: Timestamp,
    /// Title.
    pub title: String,
    /// Full text.
    pub text: String,
    /// Estimated number of tokens of the text.
    pub tokens: u64,
}

impl Operation for GetItems {
    const NAME: &'static str = "recall.get";
    const SUMMARY: &'static str = "Read full items by id, as returned by search or timeline.";
    const EFFECT: Effect = Effect::Read;
    type Params = GetItemsParams;
    type Input = Vec<String>;
    type Output = GetItemsOutput;

    fn prepare(_: &Context<'_>, params: Self::Params) -> Result<Self::Input, Fault> {
        let ids: Vec<String> =
            params.ids.split([',', ' ']).filter(|id| !id.is_empty()).map(str::to_owned).collect();
        if ids.is_empty() || ids.len() > MAX_IDS {
            let message = format!("ids must name 1 to {MAX_IDS} items, not {}", ids.len());
            return Err(Fault::new(ErrorCode::InvalidRequest, message)
                .hint("search for items with recall.search (GET /api/search, baton search)"));
        }
        Ok(ids)
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, ids: &Self::Input) -> Result<Self::Output, Fault> {
        let mut loader = Loader::default();
        let mut output = GetItemsOutput::default();
        for id in ids {
            let item = loader.load(tx, kind_of(id), id)?;
            let Some(item) = item.filter(|item| context.actor.reaches(&item.venture)) else {
                output.missing.push(id.clone());
                continue;
            };
            output.items.push(ItemView {
                id: item.id,
                kind: item.kind,
                external_id: item.external_id,
                repo: item.repo,
                branch: item.branch,
                session_id: item.session_id,
                turn_id: item.turn.map(|turn| turn.to_string()),
                agent: item.agent,
                files: item.files,
                created_at: item.created_at,
                title: item.title,
                tokens: estimate_tokens(&item.text) as u64,
                text: item.text,
            });
        }
        if output.items.is_empty() {
            return Err(Fault::new(
                ErrorCode::NotFound,
                format!("there is no item {}", output.missing.join(", ")),
            )
            .hint("search for items with recall.search (GET /api/search, baton search)"));
        }
        Ok(output)
    }
}

/// Returns the kind of item that an id names. The id of a session names its summary.
pub(super) fn kind_of(id: &str) -> ItemKind {
    for (prefix, kind) in [
        (ObservationId::PREFIX, ItemKind::Observation),
        (HandoffId::PREFIX, ItemKind::Handoff),
        (SessionId::PREFIX, ItemKind::Summary),
        (CheckpointId::PREFIX, ItemKind::Checkpoint),
        (NoteId::PREFIX, ItemKind::Note),
        ("turn_", ItemKind::Turn),
    ] {
        if id.starts_with(prefix) {
            return kind;
        }
    }
    ItemKind::Task
}
