//! `recall.get`: full items by id.

use baton_core::recall::{ItemKind, Mark, MarkKind};
use baton_core::task::TaskRecord;
use baton_core::{
    CheckpointId, ErrorCode, HandoffId, NoteId, ObservationId, Repo, SessionId, Sha256Hash, Timestamp,
    Venture, estimate_tokens,
};

use super::history::{
    CommandHistory, FileHistory, HistoryScope, command_history, file_history, files_changed_since,
};
use super::indexing::index_before_reading;
use super::item::Loader;
use super::scope::{checked_limit, ventures};
use crate::prelude::*;

/// Maximum number of items per call.
const MAX_IDS: usize = 50;

/// What to read: items, or what is recorded about a file or a command.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetItems {
    /// Item ids from search or timeline, separated by commas, at most 50. Example: `obs_01J…,turn_42`.
    pub ids: Option<String>,
    /// File instead of `ids`, for example `src/auth.rs`: who worked on it and what was decided.
    pub file: Option<String>,
    /// Command instead of `ids`, for example `cargo test`: earlier runs and their results.
    pub command: Option<String>,
    /// Repository of the file or command, as owner/name.
    pub repo: Option<Repo>,
    /// Venture of the file or command. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
    /// SHA-256 hash of the current content of the file, to detect changes since it was recorded.
    #[schemars(with = "Option<String>")]
    pub content_hash: Option<Sha256Hash>,
    /// Maximum number of sessions or runs, 1 to 100. Defaults to 10.
    #[schemars(range(min = 1, max = 100))]
    pub limit: Option<i64>,
}

/// Checked parameters.
#[derive(Debug)]
pub enum GetItemsInput {
    /// Items with these ids.
    Items(Vec<String>),
    /// A file or a command.
    History(Box<GetItems>, usize),
}

/// Full items.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct GetItemsOutput {
    /// Items in the order of the ids.
    pub items: Vec<ItemView>,
    /// Ids that do not exist.
    pub missing: Vec<String>,
    /// What is recorded about the file, if a file was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<FileHistory>,
    /// Earlier runs of the command, if a command was given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<CommandHistory>,
}

/// A full item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ItemView {
    /// Id of the item, for example `obs_01J…` or `note_01J…`.
    pub id: String,
    /// Kind of the item, for example `observation`, `handoff` or `note`.
    pub kind: ItemKind,
    /// Id of the item in the system that it was imported from, or null.
    pub external_id: Option<String>,
    /// Repository as owner/name, for example acme/webshop, or null.
    pub repo: Option<Repo>,
    /// Git branch, for example `feature/login`, or null.
    pub branch: Option<String>,
    /// Session that the item belongs to, or null.
    pub session_id: Option<SessionId>,
    /// Turn that the item belongs to, or null.
    pub turn_id: Option<String>,
    /// Agent that did the work, or null.
    pub agent: Option<String>,
    /// Files that the item touches.
    pub files: Vec<String>,
    /// Files whose content changed since the item was recorded, as far as it is known.
    pub changed_files: Vec<String>,
    /// Time of the item.
    pub created_at: Timestamp,
    /// Title of the item, for example "Run cargo test: 14 passed".
    pub title: String,
    /// Full text.
    pub text: String,
    /// Estimated number of tokens of the text.
    pub tokens: u64,
    /// Mark of the item, or null: a rejected or superseded item is wrong or outdated.
    pub mark: Option<MarkView>,
}

/// Mark of an item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkView {
    /// `rejected`, `superseded` or `pinned`.
    pub kind: MarkKind,
    /// Id of the item that replaces a superseded one, or null.
    pub replaced_by: Option<String>,
    /// Time of the mark.
    pub created_at: Timestamp,
}

impl From<Mark> for MarkView {
    fn from(mark: Mark) -> Self {
        Self { kind: mark.kind, replaced_by: mark.replaced_by, created_at: mark.created_at }
    }
}

impl Operation<OnStore> for GetItems {
    const NAME: &'static str = "recall.get";
    const SUMMARY: &'static str = "Read full items by id, as returned by search or timeline; or what is recorded about a \
        file or a command.";
    const EFFECT: Effect = Effect::Read;
    // Waits for the store while it indexes new items.
    const REQUEST: RequestFormat = RequestFormat { is_slow: true, ..RequestFormat::STRICT };
    type Input = GetItemsInput;
    type Output = GetItemsOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        if params.ids.is_none() && (params.file.is_some() || params.command.is_some()) {
            return prepare_history(context, params);
        }
        let ids = params.ids.unwrap_or_default();
        let ids: Vec<String> = ids.split(',').flat_map(split_ids).map(str::to_owned).collect();
        if ids.is_empty() || ids.len() > MAX_IDS {
            let message = format!("cannot get items: 1 to {MAX_IDS} ids are required, not {}", ids.len());
            return Err(Fault::new(ErrorCode::InvalidRequest, message)
                .hint("give ids from search (GET /api/search, baton search), or a file or a command"));
        }
        Ok(GetItemsInput::Items(ids))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let ids = match input {
            GetItemsInput::Items(ids) => ids,
            GetItemsInput::History(params, limit) => return history(context, tx, params, *limit),
        };
        let mut loader = Loader::default();
        let mut output = GetItemsOutput::default();
        for id in ids {
            let mut item = loader.load(tx, kind_of(id), id)?;
            if item.is_none() {
                item = loader.session_without_summary(tx, id)?;
            }
            let Some(item) = item.filter(|item| context.actor.may_access(&item.venture)) else {
                output.missing.push(id.clone());
                continue;
            };
            let changed_files = files_changed_since(tx, &item, context.now)?;
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
                changed_files,
                created_at: item.created_at,
                title: item.title,
                tokens: estimate_tokens(&item.text) as u64,
                text: item.text,
                mark: None,
            });
        }
        if output.items.is_empty() {
            return Err(no_item(&output.missing.join(", ")));
        }
        let found: Vec<&str> = output.items.iter().map(|item| item.id.as_str()).collect();
        for mark in tx.marks_of(&found)? {
            for item in output.items.iter_mut().filter(|item| item.id == mark.item) {
                item.mark = Some(mark.clone().into());
            }
        }
        Ok(output)
    }
}

/// Splits ids at spaces. The id of a task may contain spaces, in the path of its checkout.
fn split_ids(ids: &str) -> Vec<&str> {
    match TaskRecord::parse_item_id(ids.trim()) {
        Some(_) => vec![ids.trim()],
        None => ids.split_whitespace().collect(),
    }
}

/// Checks a question about a file or a command.
fn prepare_history(context: &Context<'_>, params: GetItems) -> Result<GetItemsInput, Fault> {
    if params.file.is_some() && params.command.is_some() {
        return Err(Fault::invalid("command", "cannot be given together with file"));
    }
    for (name, value) in [("file", &params.file), ("command", &params.command)] {
        if value.as_ref().is_some_and(|value| value.trim().is_empty()) {
            return Err(Fault::invalid(name, "must not be empty"));
        }
    }
    let limit = checked_limit(params.limit)?;
    if params.command.is_some() {
        index_before_reading(context);
    }
    Ok(GetItemsInput::History(Box::new(params), limit))
}

fn history(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    params: &GetItems,
    limit: usize,
) -> Result<GetItemsOutput, Fault> {
    let ventures = ventures(context, tx, params.venture.as_ref())?;
    let scope = HistoryScope { ventures, repo: params.repo.clone(), limit };
    let mut output = GetItemsOutput::default();
    if let Some(path) = &params.file {
        output.file = Some(file_history(tx, path.trim(), &scope, params.content_hash, context.now)?);
    }
    if let Some(command) = &params.command {
        output.command = Some(command_history(tx, command.trim(), &scope, context.now)?);
    }
    Ok(output)
}

/// Fault for an item that does not exist or that the caller may not read.
pub(crate) fn no_item(id: &str) -> Fault {
    Fault::new(ErrorCode::NotFound, format!("there is no item {id}"))
        .hint("give ids from search (GET /api/search, baton search), or a file or a command")
}

/// Returns the kind of item that an id names. The id of a session names its summary, if it has one.
pub(crate) fn kind_of(id: &str) -> ItemKind {
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
