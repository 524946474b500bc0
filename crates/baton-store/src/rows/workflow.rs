//! Rows of workflows.

use baton_core::checkpoint::{Workflow, WorkflowId};
use baton_core::{Repo, Timestamp, Venture, counted};

use crate::error::StoreError;
use crate::record::{Record, record, select};
use crate::sql::QueryBuilder;
use crate::tx::{Lock, Tx};

/// Filter for workflows, last saved first.
#[derive(Debug, Clone)]
pub struct WorkflowFilter {
    pub venture: Venture,
    /// Repository of the workflow.
    pub repo: Option<Repo>,
    pub name: Option<String>,
    /// Number of workflows to skip.
    pub offset: u32,
    /// Maximum number of workflows.
    pub limit: u32,
}

record! {
    "workflows", Workflow {
        venture, id, name, repo, created_at, last_saved_at, last_accessed_at, checkpoint_count, unnamed_count,
        stored_bytes, critical_keys,
    }
}

/// Numbers of checkpoints, of unnamed ones and of bytes.
type Counts = (i64, i64, i64);

fn lock_name(venture: &Venture, id: &WorkflowId) -> String {
    format!("{venture} {id}")
}

impl dyn Tx + '_ {
    /// Finds a workflow.
    pub fn workflow(&mut self, venture: &Venture, id: &WorkflowId) -> Result<Option<Workflow>, StoreError> {
        self.record("WHERE venture = $1 AND id = $2", &[venture.into(), id.into()])
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
        self.record(
            "WHERE venture = $1 AND name = $2 AND coalesce(repo, '') = $3 AND last_saved_at >= $4 \
                 ORDER BY last_saved_at DESC, id DESC LIMIT 1",
            &[venture.into(), name.into(), place.into(), since.into()],
        )
    }

    /// Lists workflows, last saved first.
    pub fn workflows(&mut self, filter: &WorkflowFilter) -> Result<Vec<Workflow>, StoreError> {
        let mut query = QueryBuilder::new(&select::<Workflow>("WHERE "));
        query.with("venture = $?", &filter.venture);
        query.with_some(" AND repo = $?", filter.repo.as_ref());
        query.with_some(" AND name = $?", filter.name.as_ref());
        query.text(" ORDER BY last_saved_at DESC, id DESC");
        query.with(" LIMIT $?", filter.limit);
        query.with(" OFFSET $?", filter.offset);
        self.query(query.sql(), query.params())
    }

    /// Adds a workflow.
    pub fn insert_workflow(&mut self, workflow: &Workflow) -> Result<(), StoreError> {
        self.insert("workflows", workflow.values()?, "")
    }

    /// Updates the columns of a workflow that may change.
    pub fn update_workflow(&mut self, workflow: &Workflow) -> Result<(), StoreError> {
        let changing = "name, last_saved_at, last_accessed_at, checkpoint_count, unnamed_count, stored_bytes, \
             critical_keys";
        self.update(workflow, changing, "venture, id")
    }

    /// Deletes a workflow without checkpoints.
    pub fn delete_workflow(&mut self, venture: &Venture, id: &WorkflowId) -> Result<(), StoreError> {
        self.run("DELETE FROM workflows WHERE venture = $1 AND id = $2", &[venture.into(), id.into()])
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
            &[at.into(), venture.into(), id.into()],
        )
    }

    /// Returns the bytes stored for all checkpoints of all workflows.
    pub fn stored_bytes(&mut self) -> Result<u64, StoreError> {
        let sql = self.pick(
            "SELECT coalesce(sum(stored_bytes), 0) FROM workflows",
            "SELECT coalesce(sum(stored_bytes), 0)::bigint FROM workflows",
        );
        self.number(sql, &[])
    }

    /// Lists workflows whose counts differ from their checkpoints, and checkpoints without a workflow: venture,
    /// workflow id and problem.
    pub fn miscounted_workflows(&mut self, limit: u32) -> Result<Vec<(String, String, String)>, StoreError> {
        let different: Vec<((String, String), Counts, Counts)> = self.query(
            "SELECT w.venture, w.id, w.checkpoint_count, w.unnamed_count, w.stored_bytes, \
             coalesce(c.listed, 0), coalesce(c.unnamed, 0), coalesce(c.bytes, 0) FROM workflows w LEFT JOIN ( \
             SELECT venture, workflow_id, sum(CASE WHEN status <> 'archived' THEN 1 ELSE 0 END) AS listed, \
             sum(CASE WHEN status <> 'archived' AND name IS NULL THEN 1 ELSE 0 END) AS unnamed, \
             CAST(sum(frame_bytes) AS BIGINT) AS bytes FROM checkpoints GROUP BY venture, workflow_id \
             ) c ON c.venture = w.venture AND c.workflow_id = w.id \
             WHERE w.checkpoint_count <> coalesce(c.listed, 0) OR w.unnamed_count <> coalesce(c.unnamed, 0) \
             OR w.stored_bytes <> coalesce(c.bytes, 0) LIMIT $1",
            &[limit.into()],
        )?;
        let lost: Vec<(String, String)> = self.query(
            "SELECT DISTINCT c.venture, c.workflow_id FROM checkpoints c WHERE NOT EXISTS \
             (SELECT 1 FROM workflows w WHERE w.venture = c.venture AND w.id = c.workflow_id) LIMIT $1",
            &[limit.into()],
        )?;
        let miscounted = different.into_iter().map(|((venture, id), recorded, found)| {
            let (count, unnamed, bytes) = recorded;
            let (listed, nameless, stored) = found;
            let problem = format!(
                "it records {} ({unnamed} unnamed, {bytes} bytes) and has {listed} ({nameless} unnamed, \
                 {stored} bytes)",
                counted(count.unsigned_abs(), "checkpoint")
            );
            (venture, id, problem)
        });
        let without_workflow = "it does not exist, but its checkpoints do";
        let lost = lost.into_iter().map(|(venture, id)| (venture, id, without_workflow.to_owned()));
        Ok(miscounted.chain(lost).collect())
    }

    /// Sets the stored bytes of a workflow, which the caller has locked, to the sum of its checkpoints.
    pub fn recount_stored_bytes(&mut self, venture: &Venture, id: &WorkflowId) -> Result<(), StoreError> {
        self.run(
            "UPDATE workflows SET stored_bytes = (SELECT CAST(coalesce(sum(frame_bytes), 0) AS BIGINT) \
             FROM checkpoints WHERE venture = $1 AND workflow_id = $2) WHERE venture = $1 AND id = $2",
            &[venture.into(), id.into()],
        )
    }

    /// Lists workflows of all ventures that have several unnamed checkpoints and were last used before `since`, longest
    /// unused first.
    pub fn unused_workflows(&mut self, since: Timestamp, limit: u32) -> Result<Vec<Workflow>, StoreError> {
        self.records("WHERE unnamed_count > 1 AND last_accessed_at < $1 ORDER BY last_accessed_at, venture, id LIMIT $2",
            &[since.into(), limit.into()],
        )
    }
}
