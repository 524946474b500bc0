//! Checkpoints that wait beside the database, because it could not be written: kept, found, and taken in.

use baton_core::checkpoint::{Checkpoint, WorkflowId};
use baton_core::{CheckpointId, ErrorCode, Fault, Repo, Timestamp, Venture};
use baton_store::{SpillFolder, Spilled, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::find::{Wanted, corrupt_without_store, sealed_fault};
use super::keep::{Kept, NewCheckpoint, Unchanged, keep, unkept_fault};
use super::vault::{Owner, Stowed, Unreadable, Vault};
use crate::operation::{Context, Effect, Operation, store_fault};

/// What waits, oldest first.
pub(super) struct Waiting<'a> {
    folder: &'a SpillFolder,
    entries: Vec<Spilled>,
}

impl<'a> Waiting<'a> {
    /// Reads what waits.
    pub(super) fn read(context: &Context<'a>) -> Result<Self, Fault> {
        let folder = context.settings.checkpoints.vault.spill().ok_or_else(|| {
            Fault::new(ErrorCode::StoreUnavailable, "the database is unavailable; nothing was stored")
                .hint("baton doctor says what is wrong with it")
        })?;
        let entries = folder.entries().map_err(store_fault)?;
        Ok(Self { folder, entries })
    }

    /// Adds a context, and gives what is known of it.
    pub(super) fn add(&self, context: &Context<'_>, new: NewCheckpoint<'_>) -> Result<Kept, Fault> {
        let vault = &context.settings.checkpoints.vault;
        let mut checkpoint = new.checkpoint();
        let packed = vault.pack_whole(new.context).map_err(|error| {
            Fault::new(ErrorCode::Internal, "the context could not be packed").caused_by(error)
        })?;
        let Stowed { frame, warning } =
            vault.seal_alone(Owner::of(&checkpoint), packed).map_err(unkept_fault)?;
        checkpoint.stored_bytes = frame.size_bytes;
        let spilled = Spilled {
            checkpoint: checkpoint.clone(),
            workflow_name: new.workflow_name,
            repo: new.repo,
            frame,
        };
        self.folder.put(&spilled).map_err(store_fault)?;
        tracing::warn!(
            checkpoint = %checkpoint.id, workflow = %checkpoint.workflow_id,
            "the database could not be written; a checkpoint was kept beside it"
        );
        Ok(Kept { checkpoint, is_new: true, warning })
    }

    /// The workflow of a name that was saved to last, if that was since then.
    pub(super) fn recent_workflow(
        &self,
        venture: &Venture,
        name: &str,
        repo: Option<&Repo>,
        since: Timestamp,
    ) -> Option<WorkflowId> {
        let is_same = |entry: &&Spilled| {
            entry.checkpoint.venture == *venture
                && entry.workflow_name.as_deref() == Some(name)
                && entry.repo.as_ref() == repo
                && entry.checkpoint.created_at >= since
        };
        self.entries.iter().rev().find(is_same).map(|entry| entry.checkpoint.workflow_id.clone())
    }

    /// The checkpoint that is meant, if it waits here and the caller reaches it.
    pub(super) fn find(
        &self,
        context: &Context<'_>,
        venture: &Venture,
        wanted: Wanted<'_>,
    ) -> Option<&Spilled> {
        let is_wanted = |entry: &&Spilled| match wanted {
            Wanted::Checkpoint(name) => {
                name.id() == Some(entry.checkpoint.id) && context.actor.reaches(&entry.checkpoint.venture)
            }
            Wanted::Latest(workflow) => {
                entry.checkpoint.venture == *venture && entry.checkpoint.workflow_id == *workflow
            }
        };
        self.entries.iter().rev().find(is_wanted)
    }

    /// The checkpoints of a workflow, latest first.
    pub(super) fn of_workflow(&self, venture: &Venture, workflow: &WorkflowId) -> Vec<Checkpoint> {
        let is_its = |entry: &&Spilled| {
            entry.checkpoint.venture == *venture && entry.checkpoint.workflow_id == *workflow
        };
        self.entries.iter().rev().filter(is_its).map(|entry| entry.checkpoint.clone()).collect()
    }
}

/// Reads the context of a checkpoint that waits.
pub(super) fn read_waiting(vault: &Vault, entry: &Spilled) -> Result<Vec<u8>, Fault> {
    vault.unpack(Owner::of(&entry.checkpoint), &entry.stored_frame(), None).map_err(|error| match error {
        Unreadable::Store(error) => store_fault(error),
        Unreadable::Sealed { key_id } => sealed_fault(&key_id),
        error @ Unreadable::Missing { .. } => corrupt_without_store(&entry.checkpoint, &error.to_string()),
        Unreadable::Damaged(problem) => corrupt_without_store(&entry.checkpoint, &problem),
    })
}

/// Takes what waits into the database.
#[derive(Debug)]
pub(crate) struct TakeIn;

/// Nothing is needed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TakeInParams {}

/// What is in the database now.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub(crate) struct TakeInOutput {
    /// Every checkpoint that need not wait any more.
    pub(crate) taken: Vec<CheckpointId>,
}

impl Operation for TakeIn {
    const NAME: &'static str = "checkpoint.take_in";
    const SUMMARY: &'static str = "Take checkpoints that wait beside the database into it, in their order.";
    const EFFECT: Effect = Effect::Write;
    type Params = TakeInParams;
    type Output = TakeInOutput;

    fn run(context: &Context<'_>, tx: &mut dyn Tx, _: &Self::Params) -> Result<Self::Output, Fault> {
        let waiting = Waiting::read(context)?;
        let vault = &context.settings.checkpoints.vault;
        let mut taken = Vec::with_capacity(waiting.entries.len());
        for entry in &waiting.entries {
            let known = &entry.checkpoint;
            // A process that was killed between the commit and removing the file leaves both.
            if tx.checkpoint(known.id).map_err(store_fault)?.is_none() {
                let text = match read_waiting(vault, entry) {
                    Ok(text) => text,
                    // It stays where it is, for a person to look at.
                    Err(fault) if fault.code == ErrorCode::CheckpointCorrupt => continue,
                    Err(fault) => return Err(fault),
                };
                let new = NewCheckpoint {
                    id: known.id,
                    venture: known.venture.clone(),
                    workflow_id: known.workflow_id.clone(),
                    workflow_name: entry.workflow_name.clone(),
                    repo: entry.repo.clone(),
                    labels: known.labels.clone(),
                    session_id: known.session_id,
                    agent: known.agent.clone(),
                    created_at: known.created_at,
                    context: &text,
                    context_hash: known.context_hash,
                    restores_size: known.restores_size,
                };
                keep(context, tx, &new, Unchanged::Save)?;
            }
            taken.push(known.id);
        }
        Ok(TakeInOutput { taken })
    }
}
