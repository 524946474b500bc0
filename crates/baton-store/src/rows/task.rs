//! Rows of tasks: an index of the tasks in checkouts.

use baton_core::recall::ItemKind;
use baton_core::task::{TaskId, TaskRecord, TaskStatus};
use baton_core::{Repo, Venture};

use crate::error::StoreError;
use crate::record::{Record, record, replacing, select};
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// Filter for tasks, last updated first.
#[derive(Debug, Clone)]
pub struct TaskFilter {
    pub venture: Venture,
    /// Repository of the task.
    pub repo: Option<Repo>,
    pub status: Option<TaskStatus>,
    /// Leave out tasks that are done or completed.
    pub only_open: bool,
    /// Number of tasks to skip.
    pub offset: u32,
    /// Maximum number of tasks.
    pub limit: u32,
}

record! {
    "tasks", TaskRecord {
        venture, host, checkout, task_id, repo, title, status, holder, open_drifts, updated_at,
    }
}

impl dyn Tx + '_ {
    /// Adds or replaces the record of a task, unless the stored record is newer.
    pub fn put_task(&mut self, task: &TaskRecord) -> Result<(), StoreError> {
        let unless_newer = " WHERE excluded.updated_at >= tasks.updated_at";
        let rest = replacing("venture, host, checkout, task_id", TaskRecord::COLUMNS) + unless_newer;
        self.insert("tasks", task.values()?, &rest)?;
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
            &[venture.into(), host.into(), checkout.into(), id.into()],
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
        self.record(
            "WHERE venture = $1 AND host = $2 AND checkout = $3 AND task_id = $4",
            &[venture.into(), host.into(), checkout.into(), id.into()],
        )
    }

    /// Lists tasks, last updated first.
    pub fn tasks(&mut self, filter: &TaskFilter) -> Result<Vec<TaskRecord>, StoreError> {
        let mut query = QueryBuilder::new(&select::<TaskRecord>("WHERE "));
        query.with("venture = $?", &filter.venture);
        query.with_some(" AND repo = $?", filter.repo.as_ref());
        query.with_some(" AND status = $?", filter.status);
        if filter.only_open {
            query.text(" AND status NOT IN ('done', 'completed')");
        }
        query.text(" ORDER BY updated_at DESC, host DESC, checkout DESC, task_id DESC");
        query.with(" LIMIT $?", filter.limit);
        query.with(" OFFSET $?", filter.offset);
        self.query(query.sql(), query.params())
    }
}
