//! Rows of tasks: an index of the tasks in checkouts.

use baton_core::recall::ItemKind;
use baton_core::task::{TaskId, TaskRecord, TaskStatus};
use baton_core::{Repo, Venture};

use crate::error::StoreError;
use crate::sql::{Columns, QueryBuilder, RowReader};
use crate::tx::Tx;

/// Filter for tasks, last updated first.
#[derive(Debug, Clone)]
pub struct TaskFilter {
    /// Venture of the task.
    pub venture: Venture,
    /// Repository of the task.
    pub repo: Option<Repo>,
    /// Status of the task.
    pub status: Option<TaskStatus>,
    /// Number of tasks to skip.
    pub offset: u32,
    /// Maximum number of tasks.
    pub limit: u32,
}

fn read(columns: &dyn Columns) -> Result<TaskRecord, StoreError> {
    let row = RowReader { table: "tasks", columns };
    Ok(TaskRecord {
        venture: row.parsed(0)?,
        host: row.text(1)?,
        checkout: row.text(2)?,
        task_id: row.parsed(3)?,
        repo: row.opt_parsed(4)?,
        title: row.text(5)?,
        status: TaskStatus::from_wire(&row.text(6)?).ok_or_else(|| row.wrong(6, "unknown status"))?,
        holder: row.opt_parsed(7)?,
        open_drifts: row.unsigned(8)?,
        updated_at: row.time(9)?,
    })
}

impl dyn Tx + '_ {
    /// Adds or replaces the record of a task, unless the stored record is newer.
    pub fn put_task(&mut self, task: &TaskRecord) -> Result<(), StoreError> {
        self.run(
            "INSERT INTO tasks \
             (venture, host, checkout, task_id, repo, title, status, holder, open_drifts, updated_at) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) \
             ON CONFLICT (venture, host, checkout, task_id) DO UPDATE SET repo = excluded.repo, \
             title = excluded.title, status = excluded.status, holder = excluded.holder, \
             open_drifts = excluded.open_drifts, updated_at = excluded.updated_at \
             WHERE excluded.updated_at >= tasks.updated_at",
            &[
                task.venture.as_str().into(),
                (&task.host).into(),
                (&task.checkout).into(),
                task.task_id.as_str().into(),
                task.repo.as_ref().map(Repo::as_str).into(),
                (&task.title).into(),
                task.status.as_str().into(),
                task.holder.as_ref().map(|role| role.as_str()).into(),
                task.open_drifts.into(),
                task.updated_at.into(),
            ],
        )?;
        self.enqueue_for_index(ItemKind::Task, &task.item_id())
    }

    /// Deletes the record of a task. Returns false if it does not exist.
    pub fn delete_task(
        &mut self,
        venture: &Venture,
        host: &str,
        checkout: &str,
        id: &TaskId,
    ) -> Result<bool, StoreError> {
        let changed = self.execute(
            "DELETE FROM tasks WHERE venture = $1 AND host = $2 AND checkout = $3 AND task_id = $4",
            &[venture.as_str().into(), host.into(), checkout.into(), id.as_str().into()],
        )?;
        self.delete_documents(ItemKind::Task, &[TaskRecord::item_id_of(venture, host, checkout, id)])?;
        Ok(changed == 1)
    }

    /// Finds the record of a task.
    pub fn task(
        &mut self,
        venture: &Venture,
        host: &str,
        checkout: &str,
        id: &TaskId,
    ) -> Result<Option<TaskRecord>, StoreError> {
        self.query_one(
            "SELECT venture, host, checkout, task_id, repo, title, status, holder, open_drifts, updated_at \
             FROM tasks WHERE venture = $1 AND host = $2 AND checkout = $3 AND task_id = $4",
            &[venture.as_str().into(), host.into(), checkout.into(), id.as_str().into()],
            &mut read,
        )
    }

    /// Lists tasks, last updated first.
    pub fn tasks(&mut self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        let mut query = QueryBuilder::new(
            "SELECT venture, host, checkout, task_id, repo, title, status, holder, open_drifts, updated_at \
             FROM tasks WHERE ",
        );
        query.with("venture = $?", filter.venture.as_str());
        query.with_some(" AND repo = $?", filter.repo.as_ref().map(|repo| repo.as_str()));
        query.with_some(" AND status = $?", filter.status.map(|status| status.as_str()));
        query.text(" ORDER BY updated_at DESC, host DESC, checkout DESC, task_id DESC");
        query.with(" LIMIT $?", filter.limit);
        query.with(" OFFSET $?", filter.offset);
        self.query(query.sql(), query.params(), &mut read)
    }
}
