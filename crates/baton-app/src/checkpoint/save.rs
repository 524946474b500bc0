//! `checkpoint.save`: keep the context of a workflow.

use std::sync::Arc;
use std::time::Duration;

use baton_core::checkpoint::{Labels, SavedContext, WorkflowId};
use baton_core::{Agent, CheckpointId, ErrorCode, Fault, Repo, SessionId, SessionStatus, Venture};
use baton_store::{MAX_FRAME_BYTES, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::find::venture_of;
use super::keep::{Kept, NewCheckpoint, Unchanged, keep};
use super::waiting::Waiting;
use crate::call::Attachment;
use crate::operation::{Context, Effect, Operation, store_fault};

/// How long a workflow that is not named by its id is gone on with after its last checkpoint.
const CONTINUED_WITHIN: Duration = Duration::from_secs(24 * 3600);
/// What a request has beside the context.
const ENVELOPE_BYTES: usize = 1024 * 1024;

/// Saves a checkpoint.
#[derive(Debug)]
pub struct SaveCheckpoint;

/// The context to save and its workflow.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["context"]))]
pub struct SaveCheckpointParams {
    /// Workflow to save to, as an id you choose, for example `auth-migration`. If omitted, a workflow saved within
    /// the last day is found by the context's `workflowId` or the name in `metadata`; otherwise a new one is created.
    #[serde(default)]
    pub session_id: Option<WorkflowId>,
    /// The complete current context as a JSON object: goals, decisions, plan, progress, findings.
    #[serde(default, deserialize_with = "read_context")]
    #[schemars(with = "SavedContext")]
    pub context: Option<Arc<SavedContext>>,
    /// Name and tags. Named checkpoints are never deleted automatically.
    #[serde(default)]
    pub metadata: Option<Labels>,
    /// Save even if nothing changed since the latest checkpoint. Defaults to false.
    #[serde(default)]
    pub force: Option<bool>,
    /// Venture. Defaults to the configured venture.
    #[serde(default)]
    pub venture: Option<Venture>,
    /// Repository as owner/name, for example acme/webshop.
    #[serde(default)]
    pub repo: Option<Repo>,
    /// Id of your session (`sess_…`). It is stored with the checkpoint, and saving counts as a heartbeat.
    #[serde(default)]
    pub agent_session_id: Option<SessionId>,
    /// Id of the new checkpoint, chosen before the transaction: when the outcome of a commit is unknown and the context
    /// is also written to the spill folder, replaying that file finds the stored checkpoint instead of adding another.
    #[serde(skip)]
    #[schemars(skip)]
    pub(crate) checkpoint_id: Option<CheckpointId>,
}

/// Reads a context that was passed as a tree.
fn read_context<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<SavedContext>>, D::Error> {
    SavedContext::deserialize(deserializer).map(|context| Some(Arc::new(context)))
}

impl SaveCheckpointParams {
    fn new_id(&self, context: &Context<'_>) -> Result<CheckpointId, Fault> {
        self.checkpoint_id.map_or_else(|| context.checkpoint_id(), Ok)
    }

    fn context(&self) -> Result<&SavedContext, Fault> {
        self.context.as_deref().ok_or_else(|| Fault::invalid("context", "is missing"))
    }
}

/// Result of a save.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub enum SaveStatus {
    /// The context was saved.
    #[serde(rename = "SAVED")]
    Saved,
    /// The latest checkpoint already has the same context, name and tags.
    #[serde(rename = "SKIPPED_UNCHANGED")]
    SkippedUnchanged,
}

/// The checkpoint that holds the context.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SaveCheckpointOutput {
    /// Id of the checkpoint that holds the context.
    pub checkpoint_id: CheckpointId,
    /// Workflow id. Pass it to the next save or load.
    pub session_id: WorkflowId,
    /// `SAVED` or `SKIPPED_UNCHANGED`.
    pub status: SaveStatus,
    /// Size of the context as canonical JSON, in bytes.
    pub size_bytes: u64,
    /// Size as stored, in bytes.
    pub stored_bytes: u64,
    /// True if the database was unavailable and the checkpoint was spooled; it is replayed later.
    pub degraded: bool,
    /// What is wrong with how the context is stored, for example that it is unencrypted although encryption is preferred;
    /// null when nothing is.
    #[serde(default)]
    pub warning: Option<String>,
}

impl Operation for SaveCheckpoint {
    const NAME: &'static str = "checkpoint.save";
    const SUMMARY: &'static str = "Save the current workflow state and context to persistent storage. \
        Returns a unique checkpoint ID for future resumption. Atomic; skipped if the context is identical to \
        the most recent checkpoint. Call it after important steps and before your context is compacted.";
    const EFFECT: Effect = Effect::Write;
    const MAX_REQUEST_BYTES: usize = MAX_FRAME_BYTES + ENVELOPE_BYTES;
    const MEETS_WAITING: bool = true;
    const FREES_SPACE: bool = true;
    const CONTEXT_PARAM: Option<&'static str> = Some("context");
    type Params = SaveCheckpointParams;
    type Output = SaveCheckpointOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        params.metadata.as_ref().map_or(Ok(()), Labels::require_few)
    }

    fn ready(context: &Context<'_>, params: &mut Self::Params) -> Result<(), Fault> {
        if let Some(Attachment::Context(attached)) = context.attachment {
            params.context = Some(attached.clone());
        }
        let bytes = params.context()?.text().len();
        if bytes > MAX_FRAME_BYTES {
            return Err(Fault::new(
                ErrorCode::PayloadTooLarge,
                format!("the context has {bytes} bytes; a checkpoint may have {MAX_FRAME_BYTES}"),
            )
            .hint("leave out what can be made again (logs, file contents) and keep where to find it")
            .details(json!({ "actual_bytes": bytes, "allowed_bytes": MAX_FRAME_BYTES })));
        }
        params.checkpoint_id = Some(context.checkpoint_id()?);
        Ok(())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let venture = venture_of(context, params.venture.as_ref())?;
        let saved = params.context()?;
        let agent = sign_of_life(context, tx, params.agent_session_id)?;
        let workflow_id = workflow_id(context, tx, &venture, params)?;
        let new = NewCheckpoint {
            id: params.new_id(context)?,
            venture,
            workflow_id,
            workflow_name: workflow_name(saved, params).map(str::to_owned),
            repo: params.repo.clone(),
            labels: params.metadata.clone().unwrap_or_default(),
            session_id: params.agent_session_id,
            agent,
            created_at: context.now,
            context: saved.text().as_bytes(),
            context_hash: saved.hash(),
            restores_size: saved.had_size(),
        };
        let kept = keep(
            context,
            tx,
            &new,
            if params.force == Some(true) { Unchanged::Save } else { Unchanged::Skip },
        )?;
        Ok(output(kept))
    }

    fn rescue(context: &Context<'_>, params: &Self::Params) -> Option<Result<Self::Output, Fault>> {
        Some(spill(context, params).map(|kept| SaveCheckpointOutput { degraded: true, ..output(kept) }))
    }

    fn compact(output: &Self::Output) -> Value {
        json!({ "checkpointId": output.checkpoint_id, "status": output.status })
    }
}

fn output(kept: Kept) -> SaveCheckpointOutput {
    let Kept { checkpoint, is_new, warning } = kept;
    SaveCheckpointOutput {
        checkpoint_id: checkpoint.id,
        session_id: checkpoint.workflow_id,
        status: if is_new { SaveStatus::Saved } else { SaveStatus::SkippedUnchanged },
        size_bytes: checkpoint.context_bytes,
        stored_bytes: checkpoint.stored_bytes,
        degraded: false,
        warning,
    }
}

/// Saving is a sign of life for the session that saves. One that is over may still save: nothing is thrown away.
fn sign_of_life(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    id: Option<SessionId>,
) -> Result<Option<Agent>, Fault> {
    let Some(id) = id else { return Ok(None) };
    let session = context.lock_session(tx, id)?;
    if session.status == SessionStatus::Active {
        tx.beat_session(id, context.now).map_err(store_fault)?;
    }
    Ok(Some(session.tuple.agent))
}

/// The workflow that is meant: the named one, else the one of the same name that was saved to within a day, else a new
/// one whose id says where it began.
fn workflow_id(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    venture: &Venture,
    params: &SaveCheckpointParams,
) -> Result<WorkflowId, Fault> {
    if let Some(id) = &params.session_id {
        return Ok(id.clone());
    }
    let saved = params.context()?;
    let name = workflow_name(saved, params);
    if let Some(name) = name {
        let since = context.now.minus(CONTINUED_WITHIN);
        let recent = tx.recent_workflow(venture, name, params.repo.as_ref(), since).map_err(store_fault)?;
        if let Some(recent) = recent {
            return Ok(recent.id);
        }
    }
    Ok(WorkflowId::derive(name.unwrap_or_default(), saved.hash()))
}

fn workflow_name<'a>(saved: &'a SavedContext, params: &'a SaveCheckpointParams) -> Option<&'a str> {
    let label = params.metadata.as_ref().and_then(|labels| labels.name.as_ref());
    saved.workflow_name().or_else(|| label.map(|name| name.as_str()))
}

/// Keeps a context beside the database, which cannot be written.
fn spill(context: &Context<'_>, params: &SaveCheckpointParams) -> Result<Kept, Fault> {
    let venture = venture_of(context, params.venture.as_ref())?;
    let saved = params.context()?;
    let name = workflow_name(saved, params);
    let waiting = Waiting::read(context)?;
    let continued = || {
        let since = context.now.minus(CONTINUED_WITHIN);
        waiting.recent_workflow(&venture, name?, params.repo.as_ref(), since)
    };
    let derived = || WorkflowId::derive(name.unwrap_or_default(), saved.hash());
    let workflow_id = params.session_id.clone().or_else(continued).unwrap_or_else(derived);
    waiting.add(
        context,
        NewCheckpoint {
            id: params.new_id(context)?,
            venture,
            workflow_id,
            workflow_name: name.map(str::to_owned),
            repo: params.repo.clone(),
            labels: params.metadata.clone().unwrap_or_default(),
            session_id: params.agent_session_id,
            agent: None,
            created_at: context.now,
            context: saved.text().as_bytes(),
            context_hash: saved.hash(),
            restores_size: saved.had_size(),
        },
    )
}
