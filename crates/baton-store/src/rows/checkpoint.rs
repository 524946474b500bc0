//! Rows of checkpoints: metadata of each checkpoint, and the frame with its context.

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Labels, Place, WorkflowId};
use baton_core::recall::ItemKind;
use baton_core::{Agent, CheckpointId, SessionId, Sha256Hash, Venture};

use crate::error::StoreError;
use crate::frame::Encoding;
use crate::sql::{Columns, QueryBuilder, RowReader, json};
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
    /// In the row.
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
    /// Hash of the context.
    pub context_hash: Sha256Hash,
    /// The frame.
    pub frame: Frame,
}

/// One position of a series, used to decide which rows may be deleted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeriesMember {
    /// The position.
    pub position: u32,
    /// Status of the checkpoint at this position.
    pub status: CheckpointStatus,
    /// Number of stored bytes.
    pub stored_bytes: u64,
    /// Blob that holds the bytes; `None` if they are in the row.
    pub blob: Option<String>,
}

const COLUMNS: &str = "id, venture, workflow_id, series, position, status, name, tags, session_id, agent, \
     created_at, context_bytes, context_hash, restores_size, frame_bytes";
const FRAME_COLUMNS: &str = "id, series, position, context_bytes, context_hash, encoding, key_id, frame_bytes, \
     frame_hash, blob, frame";

fn select(rest: &str) -> String {
    format!("SELECT {COLUMNS} FROM checkpoints {rest}")
}

fn place(row: &RowReader<'_>, series: usize, position: usize) -> Result<Place, StoreError> {
    Ok(Place { series: row.small(series)?, position: row.small(position)? })
}

fn read(columns: &dyn Columns) -> Result<Checkpoint, StoreError> {
    let row = RowReader { table: "checkpoints", columns };
    Ok(Checkpoint {
        id: row.parsed(0)?,
        venture: row.parsed(1)?,
        workflow_id: row.parsed(2)?,
        place: place(&row, 3, 4)?,
        status: status(&row, 5)?,
        labels: Labels { name: row.opt_parsed(6)?, tags: row.json(7)? },
        session_id: row.opt_parsed(8)?,
        agent: row.opt_parsed(9)?,
        created_at: row.time(10)?,
        context_bytes: row.unsigned(11)?,
        context_hash: row.hash(12)?,
        restores_size: row.bool(13)?,
        stored_bytes: row.unsigned(14)?,
    })
}

fn status(row: &RowReader<'_>, column: usize) -> Result<CheckpointStatus, StoreError> {
    let text = row.text(column)?;
    CheckpointStatus::from_wire(&text).ok_or_else(|| row.wrong(column, "unknown status"))
}

/// Reads the frame columns, which begin at `first`.
fn read_frame(columns: &dyn Columns, first: usize) -> Result<StoredFrame, StoreError> {
    let row = RowReader { table: "checkpoints", columns };
    let encoding = Encoding::from_wire(&row.text(first + 5)?);
    let body = match row.opt_text(first + 9)? {
        Some(name) => FrameBody::Blob(name),
        None => FrameBody::Row(row.bytes(first + 10)?),
    };
    Ok(StoredFrame {
        checkpoint_id: row.parsed(first)?,
        place: place(&row, first + 1, first + 2)?,
        context_bytes: row.unsigned(first + 3)?,
        context_hash: row.hash(first + 4)?,
        frame: Frame {
            encoding: encoding.ok_or_else(|| row.wrong(first + 5, "unknown encoding"))?,
            key_id: row.opt_text(first + 6)?,
            size_bytes: row.unsigned(first + 7)?,
            hash: row.hash(first + 8)?,
            body,
        },
    })
}

impl FrameBody {
    fn in_row(&self) -> Option<&[u8]> {
        match self {
            Self::Row(bytes) => Some(bytes),
            Self::Blob(_) => None,
        }
    }

    fn blob(&self) -> Option<&str> {
        match self {
            Self::Row(_) => None,
            Self::Blob(name) => Some(name),
        }
    }
}

impl dyn Tx + '_ {
    /// Adds a checkpoint with its frame.
    pub fn insert_checkpoint(&mut self, checkpoint: &Checkpoint, frame: &Frame) -> Result<(), StoreError> {
        let tags = json("checkpoints", &checkpoint.labels.tags)?;
        self.run(
            "INSERT INTO checkpoints (id, venture, workflow_id, series, position, status, name, tags, session_id, \
             agent, created_at, context_bytes, context_hash, restores_size, encoding, key_id, frame_bytes, \
             frame_hash, blob, frame) VALUES \
             ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
            &[
                (&checkpoint.id.to_string()).into(),
                checkpoint.venture.as_str().into(),
                checkpoint.workflow_id.as_str().into(),
                checkpoint.place.series.into(),
                checkpoint.place.position.into(),
                checkpoint.status.as_str().into(),
                checkpoint.labels.name.as_ref().map(|name| name.as_str()).into(),
                (&tags).into(),
                checkpoint.session_id.map(|id| id.to_string()).as_ref().into(),
                checkpoint.agent.as_ref().map(Agent::as_str).into(),
                checkpoint.created_at.into(),
                checkpoint.context_bytes.into(),
                (&checkpoint.context_hash.to_string()).into(),
                checkpoint.restores_size.into(),
                frame.encoding.as_str().into(),
                frame.key_id.as_ref().into(),
                frame.size_bytes.into(),
                (&frame.hash.to_string()).into(),
                frame.body.blob().into(),
                frame.body.in_row().into(),
            ],
        )?;
        if checkpoint.labels.name.is_none() && checkpoint.labels.tags.is_empty() {
            return Ok(());
        }
        self.enqueue_for_index(ItemKind::Checkpoint, &checkpoint.id.to_string())
    }

    /// Finds a checkpoint, archived ones included.
    pub fn checkpoint(&mut self, id: CheckpointId) -> Result<Option<Checkpoint>, StoreError> {
        self.query_one(&select("WHERE id = $1"), &[(&id.to_string()).into()], &mut read)
    }

    /// Lists the checkpoints of a workflow that are not archived, latest first.
    pub fn checkpoints(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        offset: u32,
        limit: u32,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        self.query(
            &select(
                "WHERE venture = $1 AND workflow_id = $2 AND status <> 'archived' \
                 ORDER BY series DESC, position DESC LIMIT $3 OFFSET $4",
            ),
            &[venture.as_str().into(), workflow.as_str().into(), limit.into(), offset.into()],
            &mut read,
        )
    }

    /// Finds the latest active checkpoint of a workflow.
    pub fn latest_checkpoint(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
    ) -> Result<Option<Checkpoint>, StoreError> {
        self.query_one(
            &select(
                "WHERE venture = $1 AND workflow_id = $2 AND status = 'active' \
                 ORDER BY series DESC, position DESC LIMIT 1",
            ),
            &[venture.as_str().into(), workflow.as_str().into()],
            &mut read,
        )
    }

    /// Finds the latest active checkpoint that a session saved.
    pub fn latest_checkpoint_of(&mut self, session: SessionId) -> Result<Option<Checkpoint>, StoreError> {
        self.query_one(
            &select("WHERE session_id = $1 AND status = 'active' ORDER BY id DESC LIMIT 1"),
            &[(&session.to_string()).into()],
            &mut read,
        )
    }

    /// Returns the last place assigned in a workflow, for a checkpoint of any status.
    pub fn last_place(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
    ) -> Result<Option<Place>, StoreError> {
        self.query_one(
            "SELECT series, position FROM checkpoints WHERE venture = $1 AND workflow_id = $2 \
             ORDER BY series DESC, position DESC LIMIT 1",
            &[venture.as_str().into(), workflow.as_str().into()],
            &mut |columns| place(&RowReader { table: "checkpoints", columns }, 0, 1),
        )
    }

    /// Returns the frames of a delta chain in order. Missing frames are omitted.
    pub fn chain(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        place: Place,
    ) -> Result<Vec<StoredFrame>, StoreError> {
        let mut query = QueryBuilder::new(&format!("SELECT {FRAME_COLUMNS} FROM checkpoints WHERE "));
        query.with("venture = $?", venture.as_str());
        query.with(" AND workflow_id = $?", workflow.as_str());
        query.with(" AND series = $?", place.series);
        query.among(" AND position", place.chain());
        query.text(" ORDER BY position");
        self.query(query.sql(), query.params(), &mut |columns| read_frame(columns, 0))
    }

    /// Changes the status of a checkpoint. An archived checkpoint stays archived.
    pub fn set_checkpoint_status(
        &mut self,
        id: CheckpointId,
        status: CheckpointStatus,
    ) -> Result<(), StoreError> {
        self.run(
            "UPDATE checkpoints SET status = $1 WHERE id = $2 AND status <> 'archived'",
            &[status.as_str().into(), (&id.to_string()).into()],
        )?;
        if status == CheckpointStatus::Archived {
            self.delete_documents(ItemKind::Checkpoint, &[id.to_string()])?;
        }
        Ok(())
    }

    /// Lists the oldest checkpoints of a workflow that may be archived: unnamed ones except the latest.
    pub fn droppable_checkpoints(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        limit: u32,
    ) -> Result<Vec<Checkpoint>, StoreError> {
        // If no checkpoint is active, the newest corrupt one is kept as the latest.
        self.query(
            &select(
                "WHERE venture = $1 AND workflow_id = $2 AND status <> 'archived' AND name IS NULL AND id <> coalesce(\
                 (SELECT id FROM checkpoints WHERE venture = $1 AND workflow_id = $2 AND status = 'active' \
                 ORDER BY series DESC, position DESC LIMIT 1), \
                 (SELECT id FROM checkpoints WHERE venture = $1 AND workflow_id = $2 AND status = 'corrupt' \
                 ORDER BY series DESC, position DESC LIMIT 1), '') ORDER BY series, position LIMIT $3",
            ),
            &[venture.as_str().into(), workflow.as_str().into(), limit.into()],
            &mut read,
        )
    }

    /// Lists all positions of a series that have a row.
    pub fn series(
        &mut self,
        venture: &Venture,
        workflow: &WorkflowId,
        series: u32,
    ) -> Result<Vec<SeriesMember>, StoreError> {
        self.query(
            "SELECT position, status, frame_bytes, blob FROM checkpoints WHERE venture = $1 AND workflow_id = $2 \
             AND series = $3 ORDER BY position",
            &[venture.as_str().into(), workflow.as_str().into(), series.into()],
            &mut |columns| {
                let row = RowReader { table: "checkpoints", columns };
                let (position, status) = (row.small(0)?, status(&row, 1)?);
                Ok(SeriesMember { position, status, stored_bytes: row.unsigned(2)?, blob: row.opt_text(3)? })
            },
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
        query.with("venture = $?", venture.as_str());
        query.with(" AND workflow_id = $?", workflow.as_str());
        query.with(" AND series = $?", series);
        query.among(" AND position", positions.iter().copied());
        query.text(" RETURNING id");
        let deleted = self.query(query.sql(), query.params(), &mut |columns| {
            RowReader { table: "checkpoints", columns }.text(0)
        })?;
        self.delete_documents(ItemKind::Checkpoint, &deleted)
    }

    /// Lists ids of checkpoints after `after` in id order, archived ones included, as stored.
    pub fn checkpoint_ids(&mut self, after: &str, limit: u32) -> Result<Vec<String>, StoreError> {
        self.query(
            "SELECT id FROM checkpoints WHERE id > $1 ORDER BY id LIMIT $2",
            &[after.into(), limit.into()],
            &mut |columns| RowReader { table: "checkpoints", columns }.text(0),
        )
    }

    /// Returns the given blobs that no row refers to.
    pub fn orphans_among(&mut self, blobs: &[String]) -> Result<Vec<String>, StoreError> {
        let mut orphans = Vec::new();
        for blob in blobs {
            let sql = "SELECT 1 FROM checkpoints WHERE blob = $1 \
                 UNION ALL SELECT 1 FROM pending_queue WHERE blob = $1";
            if self.query_one(sql, &[blob.into()], &mut |_| Ok(()))?.is_none() {
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
            &mut |columns| {
                let row = RowReader { table: "checkpoints", columns };
                Ok((row.text(0)?, row.unsigned(1)?))
            },
        )
    }

    /// Lists frames that are not sealed with this key, by id, after `after`.
    pub fn frames_of_other_keys(
        &mut self,
        key_id: &str,
        after: Option<CheckpointId>,
        limit: u32,
    ) -> Result<Vec<(Checkpoint, StoredFrame)>, StoreError> {
        self.query(
            &format!(
                "SELECT {COLUMNS}, {FRAME_COLUMNS} FROM checkpoints WHERE (key_id IS NULL OR key_id <> $1) \
                 AND id > $2 ORDER BY id LIMIT $3"
            ),
            &[key_id.into(), (&after.map_or_else(String::new, |id| id.to_string())).into(), limit.into()],
            &mut |columns| Ok((read(columns)?, read_frame(columns, 15)?)),
        )
    }

    /// Replaces the frame of a checkpoint.
    pub fn replace_frame(&mut self, id: CheckpointId, frame: &Frame) -> Result<(), StoreError> {
        self.run(
            "UPDATE checkpoints SET encoding = $1, key_id = $2, frame_bytes = $3, frame_hash = $4, blob = $5, \
             frame = $6 WHERE id = $7",
            &[
                frame.encoding.as_str().into(),
                frame.key_id.as_ref().into(),
                frame.size_bytes.into(),
                (&frame.hash.to_string()).into(),
                frame.body.blob().into(),
                frame.body.in_row().into(),
                (&id.to_string()).into(),
            ],
        )
    }
}
