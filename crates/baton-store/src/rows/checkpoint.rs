//! Rows of checkpoints: metadata of each checkpoint, and the frame with its context.

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Labels, Place, WorkflowId};
use baton_core::recall::ItemKind;
use baton_core::{CheckpointId, SessionId, Sha256Hash, Venture};

use crate::column::{FromRow, Row, Values};
use crate::error::StoreError;
use crate::frame::Encoding;
use crate::record::{Record, columns, record};
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// The stored form of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// How the context is encoded.
    pub encoding: Encoding,
    /// Id of the key that the bytes are sealed with; `None` if they are not sealed.
    pub key_id: Option<String>,
    /// Hash of the bytes as stored.
    pub hash: Sha256Hash,
    /// Number of stored bytes.
    pub size_bytes: u64,
    /// Location of the bytes.
    pub body: FrameBody,
}

/// Location of the bytes of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FrameBody {
    Row(Vec<u8>),
    /// In the blob of this name.
    Blob(String),
}

/// A frame with the expected size and hash of its context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFrame {
    /// Checkpoint that the frame belongs to.
    pub checkpoint_id: CheckpointId,
    /// Place of the checkpoint in its workflow.
    pub place: Place,
    /// Size of the context in bytes.
    pub context_bytes: u64,
    pub context_hash: Sha256Hash,
    pub frame: Frame,
}

/// One position of a series, used to decide which rows may be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesMember {
    pub position: u32,
    /// Status of the checkpoint at this position.
    pub status: CheckpointStatus,
    pub stored_bytes: u64,
    /// Blob that holds the bytes; `None` if they are in the row.
    pub blob: Option<String>,
}

record! {
    "checkpoints", Checkpoint {
        id, venture, workflow_id, status, session_id, agent, created_at, context_bytes, context_hash, restores_size,
        stored_bytes as frame_bytes,
    }
    place: Place { series, position }
    labels: Labels { name, tags }
}

record! {
    "checkpoints", SeriesMember { position, status, stored_bytes as frame_bytes, blob }
}

const FRAME_COLUMNS: &str = "id, series, position, context_bytes, context_hash, encoding, key_id, frame_hash, \
     frame_bytes, blob, frame";

impl FromRow for StoredFrame {
    fn from_row(row: &mut Row<'_>) -> Result<Self, StoreError> {
        Ok(Self {
            checkpoint_id: row.get()?,
            place: Place { series: row.get()?, position: row.get()? },
            context_bytes: row.get()?,
            context_hash: row.get()?,
            frame: Frame {
                encoding: row.get()?,
                key_id: row.get()?,
                hash: row.get()?,
                size_bytes: row.get()?,
                body: match row.get()? {
                    Some(name) => FrameBody::Blob(name),
                    None => FrameBody::Row(row.get()?),
                },
            },
        })
    }
}

fn frame_values(frame: &Frame) -> Values<'_> {
    let (blob, bytes) = match &frame.body {
        FrameBody::Blob(name) => (Some(name), None),
        FrameBody::Row(bytes) => (None, Some(bytes.as_slice())),
    };
    vec![
        ("encoding", frame.encoding.into()),
        ("key_id", frame.key_id.as_ref().into()),
        ("frame_bytes", frame.size_bytes.into()),
        ("frame_hash", frame.hash.into()),
        ("blob", blob.into()),
        ("frame", bytes.into()),
    ]
}

impl dyn Tx + '_ {
    /// Adds a checkpoint with its frame.
    pub fn insert_checkpoint(&mut self, checkpoint: &Checkpoint, frame: &Frame) -> Result<(), StoreError> {
        let mut values = checkpoint.values()?;
        // The frame has its size.
        values.retain(|(column, _)| *column != "frame_bytes");
        values.extend(frame_values(frame));
        self.insert("checkpoints", values, "")?;
        if checkpoint.labels.name.is_none() && checkpoint.labels.tags.is_empty() {
            return Ok(());
        }
        self.enqueue_for_index(ItemKind::Checkpoint, &checkpoint.id.to_string())
    }

    /// Finds a checkpoint, archived ones included.
    pub fn checkpoint(&mut self, id: CheckpointId) -> Result<Option<Checkpoint>, StoreError> {
        self.record("WHERE id = $1", &[id.into()])
    }

    /// Lists the checkpoints of a workflow that are not archived, latest first.
    pub fn checkpoints(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        offset: u32,
        limit: u32,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        self.records(
            "WHERE venture = $1 AND workflow_id = $2 AND status <> 'archived' \
                 ORDER BY series DESC, position DESC LIMIT $3 OFFSET $4",
            &[venture.into(), workflow.into(), limit.into(), offset.into()],
        )
    }

    /// Finds the latest active checkpoint of a workflow.
    pub fn latest_checkpoint(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
    ) -> Result<Option<Checkpoint>, StoreError> {
        self.record(
            "WHERE venture = $1 AND workflow_id = $2 AND status = 'active' \
                 ORDER BY series DESC, position DESC LIMIT 1",
            &[venture.into(), workflow.into()],
        )
    }

    /// Finds the latest active checkpoint that a session saved.
    pub fn latest_checkpoint_of(&mut self, session: SessionId) -> Result<Option<Checkpoint>, StoreError> {
        self.record("WHERE session_id = $1 AND status = 'active' ORDER BY id DESC LIMIT 1", &[session.into()])
    }

    /// Returns the last place assigned in a workflow, for a checkpoint of any status.
    pub fn last_place(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
    ) -> Result<Option<Place>, StoreError> {
        let last = self.query_one(
            "SELECT series, position FROM checkpoints WHERE venture = $1 AND workflow_id = $2 \
             ORDER BY series DESC, position DESC LIMIT 1",
            &[venture.into(), workflow.into()],
        )?;
        Ok(last.map(|(series, position)| Place { series, position }))
    }

    /// Returns the frames of a delta chain in order. Missing frames are omitted.
    pub fn chain(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        place: Place,
    ) -> Result<Vec<StoredFrame>, StoreError> {
        let mut query = QueryBuilder::new(&format!("SELECT {FRAME_COLUMNS} FROM checkpoints WHERE "));
        query.with("venture = $?", venture);
        query.with(" AND workflow_id = $?", workflow);
        query.with(" AND series = $?", place.series);
        query.among(" AND position", place.chain());
        query.text(" ORDER BY position");
        self.query(query.sql(), query.params())
    }

    /// Changes the status of a checkpoint. An archived checkpoint stays archived.
    pub fn set_checkpoint_status(
        &mut self,
        id: CheckpointId,
        status: CheckpointStatus,
    ) -> Result<(), StoreError> {
        self.run(
            "UPDATE checkpoints SET status = $1 WHERE id = $2 AND status <> 'archived'",
            &[status.into(), id.into()],
        )?;
        if status == CheckpointStatus::Archived {
            self.delete_documents(ItemKind::Checkpoint, &[id.to_string()])?;
        }
        Ok(())
    }

    /// Lists the oldest checkpoints of a workflow that may be archived: unnamed ones except the latest.
    pub fn deletable_checkpoints(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        limit: u32,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        // If no checkpoint is active, the newest corrupt one is kept as the latest.
        self.records("WHERE venture = $1 AND workflow_id = $2 AND status <> 'archived' AND name IS NULL AND id <> coalesce(\
                 (SELECT id FROM checkpoints WHERE venture = $1 AND workflow_id = $2 AND status = 'active' \
                 ORDER BY series DESC, position DESC LIMIT 1), \
                 (SELECT id FROM checkpoints WHERE venture = $1 AND workflow_id = $2 AND status = 'corrupt' \
                 ORDER BY series DESC, position DESC LIMIT 1), '') ORDER BY series, position LIMIT $3",
            &[venture.into(), workflow.into(), limit.into()],
        )
    }

    /// Lists all positions of a series that have a row.
    pub fn series(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        series: u32,
    ) -> Result<Vec<SeriesMember>, StoreError> {
        self.records(
            "WHERE venture = $1 AND workflow_id = $2 AND series = $3 ORDER BY position",
            &[venture.into(), workflow.into(), series.into()],
        )
    }

    /// Deletes the rows of positions of a series.
    pub fn delete_positions(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        series: u32,
        positions: &[u32],
    ) -> Result<(), StoreError> {
        if positions.is_empty() {
            return Ok(());
        }
        let mut query = QueryBuilder::new("DELETE FROM checkpoints WHERE ");
        query.with("venture = $?", venture);
        query.with(" AND workflow_id = $?", workflow);
        query.with(" AND series = $?", series);
        query.among(" AND position", positions.iter().copied());
        query.text(" RETURNING id");
        let deleted: Vec<String> = self.query(query.sql(), query.params())?;
        self.delete_documents(ItemKind::Checkpoint, &deleted)
    }

    /// Lists ids of checkpoints after `after` in id order, archived ones included, as stored.
    pub fn checkpoint_ids(&mut self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        self.query(
            "SELECT id FROM checkpoints WHERE id > $1 ORDER BY id LIMIT $2",
            &[after.into(), limit.into()],
        )
    }

    /// Returns the given blobs that no row refers to.
    pub fn orphans_among(&mut self, blobs: &[String]) -> Result<Vec<String>, StoreError> {
        let mut orphans = Vec::new();
        for blob in blobs {
            let sql = "SELECT 1 FROM checkpoints WHERE blob = $1 \
                 UNION ALL SELECT 1 FROM pending_queue WHERE blob = $1";
            if !self.exists(sql, &[blob.into()])? {
                orphans.push(blob.clone());
            }
        }
        Ok(orphans)
    }

    /// Returns the ids of all keys that checkpoints are sealed with, and the number of checkpoints for each.
    pub fn keys_in_use(&mut self) -> Result<Vec<(String, u64)>, StoreError> {
        self.query(
            "SELECT key_id, count(*) FROM checkpoints WHERE key_id IS NOT NULL GROUP BY key_id ORDER BY key_id",
            &[],
        )
    }

    /// Lists frames that are not sealed with this key, by id, after `after`.
    pub fn frames_of_other_keys(
        &mut self,
        key_id: &str,
        after: Option<CheckpointId>,
        limit: u32,
    ) -> Result<Vec<(Checkpoint, StoredFrame)>, StoreError> {
        let sql = format!(
            "SELECT {}, {FRAME_COLUMNS} FROM checkpoints WHERE (key_id IS NULL OR key_id <> $1) \
             AND id > $2 ORDER BY id LIMIT $3",
            columns::<Checkpoint>()
        );
        let after = after.map_or_else(String::new, |id| id.to_string());
        self.query(&sql, &[key_id.into(), after.into(), limit.into()])
    }

    /// Replaces the frame of a checkpoint and updates the stored bytes of its workflow, which the caller has locked.
    pub fn replace_frame(&mut self, id: CheckpointId, frame: &Frame) -> Result<(), StoreError> {
        self.run(
            "UPDATE workflows SET stored_bytes = stored_bytes + $1 - \
             (SELECT frame_bytes FROM checkpoints WHERE id = $2) \
             WHERE (venture, id) = (SELECT venture, workflow_id FROM checkpoints WHERE id = $2)",
            &[frame.size_bytes.into(), id.into()],
        )?;
        let mut query = QueryBuilder::new("UPDATE checkpoints SET ");
        query.equations(frame_values(frame), ", ").with(" WHERE id = $?", id);
        self.run(query.sql(), query.params())
    }
}
