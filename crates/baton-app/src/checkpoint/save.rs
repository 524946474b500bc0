//! `checkpoint.save`: saves the context of a workflow.

use std::sync::Arc;
use std::time::Duration;

use baton_checkpoint::SavedContext;
use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Labels, Place, WorkflowId};
use baton_core::{Agent, CheckpointId, ErrorCode, Repo, SessionId, SessionStatus, Timestamp, Venture};
use baton_store::{MAX_FRAME_BYTES, OutboxEntry};
use serde::Deserializer;
use serde_json::{Value, json};

use super::new_checkpoint::{NewCheckpoint, SavedCheckpoint, Unchanged, store_checkpoint};
use super::spooled::{SAVE, Spooled, recent_spooled_workflow, spool_checkpoint, unreadable};
use crate::call::Attachment;
use crate::prelude::*;

/// Time after its last checkpoint within which a save without a workflow id continues the workflow.
const CONTINUED_WITHIN: Duration = Duration::from_secs(24 * 3600);
/// Maximum size of a request without the context.
const ENVELOPE_BYTES: usize = 1024 * 1024;

/// The context to save and its workflow.
#[derive(Debug, Clone, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("required" = ["context"]))]
#[schemars(rename = "SaveCheckpointParams")]
pub struct SaveCheckpoint {
    /// Workflow id that you choose, for example `auth-migration` (also accepted as `workflowId`); not a chat or agent
    /// session. If omitted, a workflow saved within the last day is found by the context's `workflowId` or the name in
    /// `metadata`; otherwise a new one is created.
    #[serde(default, alias = "workflowId")]
    pub session_id: Option<WorkflowId>,
    /// The complete current context as a JSON object: goals, decisions, plan, progress, findings.
    #[serde(default, deserialize_with = "read_context")]
    #[schemars(with = "SavedContext")]
    pub context: Option<Arc<SavedContext>>,
    /// Name and tags. Named checkpoints are never deleted automatically.
    pub metadata: Option<Labels>,
    /// Save even if nothing changed since the latest checkpoint. Defaults to false.
    pub force: Option<bool>,
    /// Replace secrets with `[redacted:…]` instead of rejecting the request. Defaults to false.
    pub redact_secrets: Option<bool>,
    /// Venture. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Option<Repo>,
    /// Id of your session (`sess_…`). It is stored with the checkpoint, and saving counts as a heartbeat.
    pub agent_session_id: Option<SessionId>,
}

/// Reads a context that was passed as a JSON value.
fn read_context<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Arc<SavedContext>>, D::Error> {
    SavedContext::deserialize(deserializer).map(|context| Some(Arc::new(context)))
}

/// Validated parameters of a save.
#[derive(Debug)]
pub struct Save {
    params: SaveCheckpoint,
    venture: Venture,
    context: Arc<SavedContext>,
    /// Id of the new checkpoint, chosen before the transaction: if the outcome of a commit is unknown and the save is also
    /// written to the outbox, its replay finds the stored checkpoint instead of adding another.
    checkpoint_id: CheckpointId,
    saved_at: Timestamp,
}

impl Save {
    /// Returns the name of the workflow: the one in the context, otherwise the name of the checkpoint.
    fn workflow_name(&self) -> Option<&str> {
        let label = self.params.metadata.as_ref().and_then(|labels| labels.name.as_ref());
        self.context.workflow_name().or_else(|| label.map(|name| name.as_str()))
    }

    /// Returns the id of the workflow: the given id, otherwise the id of a workflow with the same name that
    /// was saved within a day, otherwise a new id derived from name and context.
    fn workflow_id(
        &self,
        recent: impl FnOnce(&str, Timestamp) -> Result<Option<WorkflowId>, Fault>,
    ) -> Result<WorkflowId, Fault> {
        if let Some(id) = &self.params.session_id {
            return Ok(id.clone());
        }
        let name = self.workflow_name();
        let since = self.saved_at.minus(CONTINUED_WITHIN);
        let recent = name.map(|name| recent(name, since)).transpose()?.flatten();
        Ok(recent.unwrap_or_else(|| WorkflowId::derive(name.unwrap_or_default(), self.context.hash())))
    }

    fn checkpoint(&self, workflow_id: WorkflowId, agent: Option<Agent>) -> NewCheckpoint<'_> {
        NewCheckpoint {
            checkpoint: Checkpoint {
                id: self.checkpoint_id,
                venture: self.venture.clone(),
                workflow_id,
                place: Place::FIRST,
                status: CheckpointStatus::Active,
                labels: self.params.metadata.clone().unwrap_or_default(),
                session_id: self.params.agent_session_id,
                agent,
                created_at: self.saved_at,
                context_bytes: self.context.text().len() as u64,
                context_hash: self.context.hash(),
                restores_size: self.context.had_size(),
                stored_bytes: 0,
            },
            workflow_name: self.workflow_name().map(str::to_owned),
            repo: self.params.repo.clone(),
            context: self.context.text().as_bytes(),
        }
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
    /// True if the database was unavailable and the checkpoint was saved to the outbox. It is stored in the
    /// database later.
    pub degraded: bool,
    /// Problem with the stored context, for example that it is unencrypted although encryption is preferred,
    /// or null.
    #[serde(default)]
    pub warning: Option<String>,
}

impl Operation<OnStore> for SaveCheckpoint {
    const NAME: &'static str = SAVE;
    const SUMMARY: &'static str = "Save the current workflow state and context to persistent storage. \
        Returns a unique checkpoint ID for future resumption. Atomic; skipped if the context is identical to \
        the most recent checkpoint. Call it after important steps and before your context is compacted.";
    const EFFECT: Effect = Effect::Write;
    const REQUEST: RequestFormat = RequestFormat {
        max_bytes: MAX_FRAME_BYTES + ENVELOPE_BYTES,
        context_param: Some("context"),
        redact_param: Some("redactSecrets"),
        ..RequestFormat::STRICT
    };
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    const FREES_SPACE: bool = true;
    type Input = Save;
    type Output = SaveCheckpointOutput;
    erased!(erase_spooling);

    fn prepare(context: &Context<'_>, mut params: Self) -> Result<Self::Input, Fault> {
        params.metadata.as_ref().map_or(Ok(()), Labels::require_tag_limit)?;
        let sent = context.attachment.and_then(Attachment::context).cloned().or(params.context.take());
        let mut saved = sent.ok_or_else(|| Fault::invalid("context", "is missing"))?;
        if params.redact_secrets == Some(true) {
            saved = Arc::new(saved.redacted().map_err(|error| {
                Fault::new(ErrorCode::Internal, "cannot redact the context that was sent").caused_by(error)
            })?);
        }
        let bytes = saved.text().len();
        if bytes > MAX_FRAME_BYTES {
            return Err(Fault::new(
                ErrorCode::PayloadTooLarge,
                format!("the context has {bytes} bytes; a checkpoint may have {MAX_FRAME_BYTES}"),
            )
            .hint("omit data that can be recreated, such as logs and file contents, and save its location instead")
            .details(json!({ "actual_bytes": bytes, "allowed_bytes": MAX_FRAME_BYTES })));
        }
        let venture = context.venture(params.venture.as_ref())?;
        let (checkpoint_id, saved_at) = (context.checkpoint_id()?, context.now);
        Ok(Save { params, venture, context: saved, checkpoint_id, saved_at })
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, save: &Self::Input) -> Result<Self::Output, Fault> {
        // A process killed between the commit of a replay and the removal of its file leaves both.
        if context.is_replay()
            && let Some(stored) = tx.checkpoint(save.checkpoint_id)?
        {
            return Ok(output(SavedCheckpoint { checkpoint: stored, is_new: true, warning: None }));
        }
        let agent = beat_session(context, tx, save)?;
        let workflow_id = save.workflow_id(|name, since| {
            let recent = tx.recent_workflow(&save.venture, name, save.params.repo.as_ref(), since)?;
            Ok(recent.map(|workflow| workflow.id))
        })?;
        let unchanged = if save.params.force == Some(true) { Unchanged::Save } else { Unchanged::Skip };
        store_checkpoint(context, tx, save.checkpoint(workflow_id, agent), unchanged).map(output)
    }

    fn without_store(context: &Context<'_>, save: &Self::Input) -> Option<Result<Self::Output, Fault>> {
        let place = (&save.venture, save.params.repo.as_ref());
        let recent = |name: &str, since| Ok(recent_spooled_workflow(context.settings, place, name, since));
        let spooled =
            save.workflow_id(recent).and_then(|id| spool_checkpoint(context, save.checkpoint(id, None)));
        Some(spooled.map(|saved| SaveCheckpointOutput { degraded: true, ..output(saved) }))
    }

    fn compact(output: &Self::Output) -> Value {
        json!({ "checkpointId": output.checkpoint_id, "status": output.status })
    }
}

impl Spooling for SaveCheckpoint {
    fn read_spooled(context: &Context<'_>, entry: &OutboxEntry) -> Result<Save, Fault> {
        let spooled = Spooled::read(entry.clone())?;
        let text =
            String::from_utf8(spooled.context(&context.settings.checkpoints.storage)?).map_err(unreadable)?;
        let checkpoint = spooled.checkpoint();
        let params = Self {
            session_id: Some(checkpoint.workflow_id),
            metadata: Some(checkpoint.labels),
            force: Some(true),
            repo: spooled.repo().cloned(),
            agent_session_id: checkpoint.session_id,
            ..Self::default()
        };
        Ok(Save {
            params,
            venture: checkpoint.venture,
            context: Arc::new(SavedContext::of_stored(text, checkpoint.restores_size)),
            checkpoint_id: checkpoint.id,
            saved_at: checkpoint.created_at,
        })
    }
}

fn output(saved: SavedCheckpoint) -> SaveCheckpointOutput {
    let SavedCheckpoint { checkpoint, is_new, warning } = saved;
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

/// Records a heartbeat of the saving session and returns its agent. A session that has ended may still save.
/// A replayed save is stored even if its session does not exist, because its caller received a success
/// response.
fn beat_session(context: &Context<'_>, tx: &mut dyn Tx, save: &Save) -> Result<Option<Agent>, Fault> {
    let Some(id) = save.params.agent_session_id else { return Ok(None) };
    if context.is_replay() {
        return Ok(tx.session(id)?.map(|session| session.tuple.agent));
    }
    let session = context.lock_session(tx, id)?;
    if session.status == SessionStatus::Active {
        tx.beat_session(id, context.now)?;
    }
    Ok(Some(session.tuple.agent))
}
