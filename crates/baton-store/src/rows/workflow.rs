//! Rows of workflows.

use baton_core::checkpoint::{Workflow, WorkflowId};
use baton_core::{Repo, Timestamp, Venture};

use crate::error::StoreError;
use crate::sql::{Columns, Lock, QueryBuilder, RowReader, json};
use crate::tx::Tx;

/// Filter for workflows, last saved first.
#[derive(Debug, Clone)]
pub struct WorkflowFilter {
    /// Venture of the workflow.
    pub venture: Venture,
    /// Repository of the workflow.
    pub repo: Option<Repo>,
    /// Name of the workflow.
    pub name: Option<String>,
    /// Number of workflows to skip.
    pub offset: u32,
    /// Maximum number of workflows.
    pub limit: u32,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT venture, id, name, repo, created_at, last_saved_at, last_accessed_at, checkpoint_count, \
             unnamed_count, stored_bytes, critical_keys FROM workflows ",
            $rest
        )
    };
}

fn read(columns: &dyn Columns) -> Result<Workflow, StoreError> {
    let row = RowReader { table: "workflows", columns };
    Ok(Workflow {
        venture: row.parsed(0)?,
        id: row.parsed(1)?,
        name: row.opt_text(2)?,
        repo: row.opt_parsed(3)?,
        created_at: row.time(4)?,
        last_saved_at: row.time(5)?,
        last_accessed_at: row.time(6)?,
        checkpoint_count: row.unsigned(7)?,
        unnamed_count: row.unsigned(8)?,
        stored_bytes: row.unsigned(9)?,
        critical_keys: row.json(10)?,
    })
}

fn lock_name(venture: &Venture, id: &WorkflowId) -> String {
    format!("{venture} {id}")
}

impl dyn Tx + '_ {
    /// Finds a workflow.
    pub fn workflow(&mut self, venture: &Venture, id: &WorkflowId) -> Result<Option<Workflow>, StoreError> {
        self.query_one(
            select!("WHERE venture = $1 AND id = $2"),
            &[venture.as_str().into(), id.as_str().into()],
            &mut read,
        )
    }

    /// Finds a workflow and locks it against other saves until the end of the transaction. A workflow that does not
    /// exist yet is locked too.
    pub fn lock_workflow(
        &mut self,
        venture: &Venture,
        id: &WorkflowId,
    ) -> Result<Option<Workflow>, StoreError> {
        self.lock(Lock::Workflow, &lock_name(venture, id))?;
        self.workflow(venture, id)
    }

    /// Finds the last saved workflow with this name in a repository (or in none) if it was saved at or after `since`.
    /// Other transactions that look for the same name wait until this one ends, so that only one of them creates the
    /// workflow.
    pub fn recent_workflow(
        &mut self,
        venture: &Venture,
        name: &str,
        repo: Option<&Repo>,
        since: Timestamp,
    ) -> Result<Option<Workflow>, StoreError> {
        let place = repo.map_or("", Repo::as_str);
        self.lock(Lock::WorkflowName, &format!("{venture} {place} {name}"))?;
        self.query_one(
            select!(
                "WHERE venture = $1 AND name = $2 AND coalesce(repo, '') = $3 AND last_saved_at >= $4 \
                 ORDER BY last_saved_at DESC, id DESC LIMIT 1"
            ),
            &[venture.as_str().into(), name.into(), place.into(), since.into()],
            &mut read,
        )
    }

    /// Lists workflows, last saved first.
    pub fn workflows(&mut self, filter: &WorkflowFilter) -> Result<Vec<Workflow>, StoreError> {
        let mut query = QueryBuilder::new(select!("WHERE "));
        query.with("venture = $?", filter.venture.as_str());
        query.with_some(" AND repo = $?", filter.repo.as_ref().map(|repo| repo.as_str()));
        query.with_some(" AND name = $?", filter.name.as_ref());
        query.text(" ORDER BY last_saved_at DESC, id DESC");
        query.with(" LIMIT $?", filter.limit);
        query.with(" OFFSET $?", filter.offset);
        self.query(query.sql(), query.params(), &mut read)
    }

    /// Adds a workflow.
    pub fn insert_workflow(&mut self, workflow: &Workflow) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO workflows (venture, id, name, repo, created_at, last_saved_at, last_accessed_at, \
             checkpoint_count, unnamed_count, stored_bytes, critical_keys) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            &[
                workflow.venture.as_str().into(),
                workflow.id.as_str().into(),
                workflow.name.as_ref().into(),
                workflow.repo.as_ref().map(Repo::as_str).into(),
                workflow.created_at.into(),
                workflow.last_saved_at.into(),
                workflow.last_accessed_at.into(),
                workflow.checkpoint_count.into(),
                workflow.unnamed_count.into(),
                workflow.stored_bytes.into(),
                (&json("workflows", &workflow.critical_keys)?).into(),
            ],
        )
    }

    /// Updates the columns of a workflow that may change.
    pub fn update_workflow(&mut self, workflow: &Workflow) -> Result<(), StoreError> {
        self.run(
            "UPDATE workflows SET name = $1, last_saved_at = $2, last_accessed_at = $3, checkpoint_count = $4, \
             unnamed_count = $5, stored_bytes = $6, critical_keys = $7 WHERE venture = $8 AND id = $9",
            &[
                workflow.name.as_ref().into(),
                workflow.last_saved_at.into(),
                workflow.last_accessed_at.into(),
                workflow.checkpoint_count.into(),
                workflow.unnamed_count.into(),
                workflow.stored_bytes.into(),
                (&json("workflows", &workflow.critical_keys)?).into(),
                workflow.venture.as_str().into(),
                workflow.id.as_str().into(),
            ],
        )
    }

    /// Deletes a workflow without checkpoints.
    pub fn delete_workflow(&mut self, venture: &Venture, id: &WorkflowId) -> Result<(), StoreError> {
        self.run(
            "DELETE FROM workflows WHERE venture = $1 AND id = $2",
            &[venture.as_str().into(), id.as_str().into()],
        )
    }

    /// Updates the time of last access, and only to a later time.
    pub fn touch_workflow(
        &mut self,
        venture: &Venture,
        id: &WorkflowId,
        at: Timestamp,
    ) -> Result<(), StoreError> {
        self.run(
            "UPDATE workflows SET last_accessed_at = $1 WHERE venture = $2 AND id = $3 AND last_accessed_at < $1",
            &[at.into(), venture.as_str().into(), id.as_str().into()],
        )
    }

    /// Returns the bytes stored for all checkpoints of all workflows.
    pub fn stored_bytes(&mut self) -> Result<u64, StoreError> {
        let sql = self.pick(
            "SELECT coalesce(sum(stored_bytes), 0) FROM workflows",
            "SELECT coalesce(sum(stored_bytes), 0)::bigint FROM workflows",
        );
        self.number("workflows", sql, &[])
    }

    /// Lists workflows whose counts differ from their checkpoints, and checkpoints without a workflow: venture,
    /// workflow id and problem.
    pub fn miscounted_workflows(&mut self, limit: u32) -> Result<Vec<(String, String, String)>, StoreError> {
        let mut found = self.query(
            "SELECT w.venture, w.id, w.checkpoint_count, w.unnamed_count, w.stored_bytes, \
             coalesce(c.listed, 0), coalesce(c.unnamed, 0), coalesce(c.bytes, 0) FROM workflows w LEFT JOIN ( \
             SELECT venture, workflow_id, sum(CASE WHEN status <> 'archived' THEN 1 ELSE 0 END) AS listed, \
             sum(CASE WHEN status <> 'archived' AND name IS NULL THEN 1 ELSE 0 END) AS unnamed, \
             CAST(sum(frame_bytes) AS BIGINT) AS bytes FROM checkpoints GROUP BY venture, workflow_id \
             ) c ON c.venture = w.venture AND c.workflow_id = w.id \
             WHERE w.checkpoint_count <> coalesce(c.listed, 0) OR w.unnamed_count <> coalesce(c.unnamed, 0) \
             OR w.stored_bytes <> coalesce(c.bytes, 0) LIMIT $1",
            &[limit.into()],
            &mut |columns| {
                let row = RowReader { table: "workflows", columns };
                let numbers = (2..8).map(|column| row.int(column)).collect::<Result<Vec<_>, _>>()?;
                let problem = match numbers.as_slice() {
                    [count, unnamed, bytes, listed, nameless, stored] => format!(
                        "it records {count} checkpoints ({unnamed} unnamed, {bytes} bytes) and has {listed} \
                         ({nameless} unnamed, {stored} bytes)"
                    ),
                    _ => String::new(),
                };
                Ok((row.text(0)?, row.text(1)?, problem))
            },
        )?;
        found.extend(self.query(
            "SELECT DISTINCT c.venture, c.workflow_id FROM checkpoints c WHERE NOT EXISTS \
             (SELECT 1 FROM workflows w WHERE w.venture = c.venture AND w.id = c.workflow_id) LIMIT $1",
            &[limit.into()],
            &mut |columns| {
                let row = RowReader { table: "checkpoints", columns };
                Ok((row.text(0)?, row.text(1)?, "its checkpoints are there, the workflow is not".to_owned()))
            },
        )?);
        Ok(found)
    }

    /// Lists workflows of all ventures that have several unnamed checkpoints and were last used before `since`, longest
    /// unused first.
    pub fn unused_workflows(&mut self, since: Timestamp, limit: u32) -> Result<Vec<Workflow>, StoreError> {
        self.query(
            select!(
                "WHERE unnamed_count > 1 AND last_accessed_at < $1 ORDER BY last_accessed_at, venture, id LIMIT $2"
            ),
            &[since.into(), limit.into()],
            &mut read,
        )
    }
}
