//! Checkpoints in the outbox: saved while the database could not be written, and not yet replayed.

use std::fmt::Display;

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Labels, Place, WorkflowId};
use baton_core::{CheckpointId, ErrorCode, Fault, Repo, SessionId, Sha256Hash, Timestamp, Venture};
use baton_store::{Encoding, Frame, FrameBody, Outbox, OutboxEntry, StoredFrame};
use serde::{Deserialize, Serialize};

use super::find::{Wanted, corrupt_without_store, sealed_fault};
use super::new_checkpoint::{NewCheckpoint, SavedCheckpoint, create_frame_fault};
use crate::context::Context;
use crate::context_storage::{ContentHash, ContextStorage, NewFrame, Owner, ReadContextError};
use crate::settings::{CheckpointSettings, Settings};
use crate::spool::{NewWrite, spool, spooled_earlier};

/// Wire name of `SaveCheckpoint`, which writes these files.
pub(super) const SAVE: &str = "checkpoint.save";

/// Metadata of a checkpoint in the outbox. The body of its file is the packed context.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Metadata {
    checkpoint_id: CheckpointId,
    venture: Venture,
    workflow_id: WorkflowId,
    workflow_name: Option<String>,
    repo: Option<Repo>,
    labels: Labels,
    session_id: Option<SessionId>,
    context_bytes: u64,
    context_hash: Sha256Hash,
    restores_size: bool,
    encoding: String,
    key_id: Option<String>,
    frame_hash: Sha256Hash,
}

/// A checkpoint in the outbox.
pub(super) struct Spooled {
    entry: OutboxEntry,
    metadata: Metadata,
}

/// Describes why a checkpoint in the outbox cannot be read.
pub(super) fn unreadable(error: impl Display) -> Fault {
    Fault::new(ErrorCode::CheckpointCorrupt, format!("cannot read a checkpoint in the outbox: {error}"))
}

impl Spooled {
    pub(super) fn read(entry: OutboxEntry) -> Result<Self, Fault> {
        let metadata = serde_json::from_value(entry.write.params.clone()).map_err(unreadable)?;
        Ok(Self { entry, metadata })
    }

    /// Returns the checkpoint. Its place in the workflow is assigned when it is replayed.
    pub(super) fn checkpoint(&self) -> Checkpoint {
        let metadata = &self.metadata;
        Checkpoint {
            id: metadata.checkpoint_id,
            venture: metadata.venture.clone(),
            workflow_id: metadata.workflow_id.clone(),
            place: Place::FIRST,
            status: CheckpointStatus::Active,
            labels: metadata.labels.clone(),
            session_id: metadata.session_id,
            agent: None,
            created_at: self.entry.write.at,
            context_bytes: metadata.context_bytes,
            context_hash: metadata.context_hash,
            restores_size: metadata.restores_size,
            stored_bytes: self.entry.body_bytes(),
        }
    }

    /// Returns the repository of the workflow.
    pub(super) fn repo(&self) -> Option<&Repo> {
        self.metadata.repo.as_ref()
    }

    /// Reads the context.
    pub(super) fn context(&self, storage: &ContextStorage) -> Result<Vec<u8>, Fault> {
        let checkpoint = self.checkpoint();
        let damaged = |problem: &str| corrupt_without_store(&checkpoint, problem);
        let body = self.entry.read_body().map_err(|error| damaged(&error.to_string()))?;
        if Sha256Hash::of(&body) != self.metadata.frame_hash {
            return Err(damaged("its frame does not have the recorded hash"));
        }
        let encoding = Encoding::from_wire(&self.metadata.encoding);
        let frame = StoredFrame {
            checkpoint_id: checkpoint.id,
            place: checkpoint.place,
            context_bytes: checkpoint.context_bytes,
            context_hash: checkpoint.context_hash,
            frame: Frame {
                encoding: encoding.ok_or_else(|| damaged("its encoding is unknown"))?,
                key_id: self.metadata.key_id.clone(),
                hash: self.metadata.frame_hash,
                size_bytes: body.len() as u64,
                body: FrameBody::Row(body),
            },
        };
        storage.unpack(Owner::of(&checkpoint), &frame, None, ContentHash::Compared).map_err(|error| {
            match error {
                ReadContextError::Store(error) => error.into(),
                ReadContextError::Sealed { key_id } => sealed_fault(&key_id),
                error => damaged(&error.to_string()),
            }
        })
    }
}

/// Reads the checkpoints in the outbox, oldest first. Unreadable ones are logged and skipped.
pub(super) fn spooled_checkpoints(settings: &Settings) -> Vec<Spooled> {
    let mut entries = settings.outbox.as_ref().map(Outbox::entries).unwrap_or_default();
    entries.retain(|entry| entry.write.operation == SAVE);
    let read = |entry: OutboxEntry| {
        let name = entry.name.clone();
        Spooled::read(entry).inspect_err(|fault| tracing::error!(name, %fault, "skipped a checkpoint")).ok()
    };
    entries.into_iter().filter_map(read).collect()
}

/// Finds a checkpoint in the outbox. It is newer than every checkpoint in the database.
pub(super) fn find_spooled(
    context: &Context<'_>,
    venture: Option<&Venture>,
    wanted: &Wanted,
) -> Option<Spooled> {
    let is_wanted = |Spooled { metadata, .. }: &Spooled| match wanted {
        Wanted::Checkpoint(name) => {
            name.id() == Some(metadata.checkpoint_id) && context.actor.may_access(&metadata.venture)
        }
        Wanted::Latest(workflow) => Some(&metadata.venture) == venture && metadata.workflow_id == *workflow,
    };
    spooled_checkpoints(context.settings).into_iter().rev().find(is_wanted)
}

/// Lists the checkpoints of a workflow in the outbox, newest first.
pub(super) fn spooled_of_workflow(
    settings: &Settings,
    venture: &Venture,
    workflow: &WorkflowId,
) -> Vec<Checkpoint> {
    let spooled = spooled_checkpoints(settings).into_iter().rev().map(|spooled| spooled.checkpoint());
    spooled.filter(|found| found.venture == *venture && found.workflow_id == *workflow).collect()
}

/// Returns the workflow with this name that was last saved to the outbox, if that was not before `since`.
pub(super) fn recent_spooled_workflow(
    settings: &Settings,
    (venture, repo): (&Venture, Option<&Repo>),
    name: &str,
    since: Timestamp,
) -> Option<WorkflowId> {
    let is_same = |Spooled { entry, metadata }: &Spooled| {
        metadata.venture == *venture
            && metadata.workflow_name.as_deref() == Some(name)
            && metadata.repo.as_ref() == repo
            && entry.write.at >= since
    };
    let found = spooled_checkpoints(settings).into_iter().rev().find(is_same)?;
    Some(found.metadata.workflow_id)
}

/// Saves a context to the outbox, unless an earlier request with the same key has saved it.
pub(super) fn spool_checkpoint(
    context: &Context<'_>,
    new: NewCheckpoint<'_>,
) -> Result<SavedCheckpoint, Fault> {
    let Settings { checkpoints: CheckpointSettings { storage, .. }, outbox, .. } = context.settings;
    let outbox = outbox.as_ref().ok_or_else(|| {
        Fault::new(ErrorCode::StoreUnavailable, "the database is unavailable; nothing was stored")
            .hint("run baton doctor to see the reason")
    })?;
    if let Some(earlier) = spooled_earlier(context, outbox)? {
        let checkpoint = Spooled::read(earlier)?.checkpoint();
        return Ok(SavedCheckpoint { checkpoint, is_new: true, warning: None });
    }
    let mut checkpoint = new.checkpoint;
    let packed = storage
        .pack_whole(new.context)
        .map_err(|error| Fault::new(ErrorCode::Internal, "cannot compress the context").caused_by(error))?;
    let NewFrame { frame, warning } =
        storage.create_frame_offline(Owner::of(&checkpoint), packed).map_err(create_frame_fault)?;
    let FrameBody::Row(body) = &frame.body else {
        return Err(Fault::new(
            ErrorCode::Internal,
            "the frame of a checkpoint in the outbox is not in memory",
        ));
    };
    checkpoint.stored_bytes = frame.size_bytes;
    let params = Metadata {
        checkpoint_id: checkpoint.id,
        venture: checkpoint.venture.clone(),
        workflow_id: checkpoint.workflow_id.clone(),
        workflow_name: new.workflow_name,
        repo: new.repo,
        labels: checkpoint.labels.clone(),
        session_id: checkpoint.session_id,
        context_bytes: checkpoint.context_bytes,
        context_hash: checkpoint.context_hash,
        restores_size: checkpoint.restores_size,
        encoding: frame.encoding.as_str().to_owned(),
        key_id: frame.key_id.clone(),
        frame_hash: frame.hash,
    };
    spool(context, outbox, NewWrite { operation: SAVE, id: checkpoint.id.to_string(), params, body })?;
    Ok(SavedCheckpoint { checkpoint, is_new: true, warning })
}
