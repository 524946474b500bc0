//! Selection and deletion of everything that was recorded in a session, a repository or a period.
//!
//! Checkpoints are selected here and deleted with their workflow, by the caller.

use baton_core::observation::TurnId;
use baton_core::recall::ItemKind;
use baton_core::{HandoffId, Repo, SessionId, Timestamp, Venture};

use super::queue::PurgedItems;
use super::recall::RecallRows;
use crate::error::StoreError;
use crate::sql::{Columns, QueryBuilder, RowReader, Sql};

/// Filter for items to delete. Absent conditions match every item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgetFilter {
    /// Ventures, any of these.
    pub ventures: Option<Vec<Venture>>,
    /// Repository.
    pub repo: Option<Repo>,
    /// Session.
    pub session_id: Option<SessionId>,
    /// Latest time, exclusive.
    pub before: Option<Timestamp>,
}

/// Operations of a transaction that delete recorded items.
pub trait ForgetRows {
    /// Lists the ids of items of a kind, oldest first. Tasks are not listed: their files are in the checkout.
    fn forgettable(
        &mut self,
        kind: ItemKind,
        filter: &ForgetFilter,
        limit: u32,
    ) -> Result<Vec<String>, StoreError>;

    /// Counts the items of a kind.
    fn count_forgettable(&mut self, kind: ItemKind, filter: &ForgetFilter) -> Result<u64, StoreError>;

    /// Deletes at most `limit` captured tool uses of any status, with their raw output.
    fn forget_raw(&mut self, filter: &ForgetFilter, limit: u32) -> Result<PurgedItems, StoreError>;

    /// Counts captured tool uses.
    fn count_raw(&mut self, filter: &ForgetFilter) -> Result<u64, StoreError>;

    /// Deletes one captured tool use, with its raw output.
    fn forget_queue_item(&mut self, id: i64) -> Result<PurgedItems, StoreError>;

    /// Deletes a turn.
    fn delete_turn(&mut self, id: TurnId) -> Result<(), StoreError>;

    /// Deletes a handoff.
    fn delete_handoff(&mut self, id: HandoffId) -> Result<(), StoreError>;

    /// Deletes the text of a session's summary. A summary that is being made is not stored, and the next one covers the
    /// whole session again.
    fn delete_summary(&mut self, session: SessionId) -> Result<(), StoreError>;
}

/// Where the items of a kind are: tables, id, columns of the filter, and a condition.
struct Source {
    tables: &'static str,
    id: &'static str,
    venture: &'static str,
    repo: &'static str,
    time: &'static str,
    order: &'static str,
    condition: &'static str,
}

/// Items with their own venture and repository.
const fn plain(tables: &'static str, time: &'static str) -> Source {
    Source {
        tables,
        id: "t.id",
        venture: "t.venture",
        repo: "t.repo",
        time,
        order: "t.id",
        condition: "1 = 1",
    }
}

fn source(kind: ItemKind) -> Option<Source> {
    Some(match kind {
        ItemKind::Turn => Source {
            id: "'turn_' || t.id",
            venture: "s.venture",
            repo: "s.repo",
            ..plain("chat_turns t JOIN sessions s ON s.id = t.session_id", "t.started_at")
        },
        ItemKind::Observation => plain("observations t", "t.captured_at"),
        ItemKind::Handoff => plain("handoffs t", "t.created_at"),
        ItemKind::Note => plain("notes t", "t.created_at"),
        ItemKind::Summary => Source {
            id: "t.session_id",
            venture: "s.venture",
            repo: "s.repo",
            order: "t.session_id",
            condition: "t.made_at IS NOT NULL",
            ..plain("summaries t JOIN sessions s ON s.id = t.session_id", "t.made_at")
        },
        ItemKind::Checkpoint => Source {
            repo: "w.repo",
            condition: "t.status <> 'archived'",
            ..plain(
                "checkpoints t JOIN workflows w ON w.venture = t.venture AND w.id = t.workflow_id",
                "t.created_at",
            )
        },
        ItemKind::Task => return None,
    })
}

const RAW: Source = plain("pending_queue t", "t.created_at");

/// Adds ` FROM tables WHERE conditions`.
fn matching<'a>(
    query: &mut QueryBuilder<'a>,
    source: &Source,
    filter: &'a ForgetFilter,
    session: Option<&'a String>,
) {
    query.text(" FROM ").text(source.tables).text(" WHERE ").text(source.condition);
    query.in_ventures(source.venture, filter.ventures.as_deref());
    if let Some(repo) = &filter.repo {
        query.text(" AND ").text(source.repo).with(" = $?", repo.as_str());
    }
    query.with_some(" AND t.session_id = $?", session);
    if let Some(before) = filter.before {
        query.text(" AND ").text(source.time).with(" < $?", before);
    }
}

fn count<S: Sql>(tx: &mut S, source: &Source, filter: &ForgetFilter) -> Result<u64, StoreError> {
    let session = filter.session_id.map(|id| id.to_string());
    let mut query = QueryBuilder::new("SELECT count(*)");
    matching(&mut query, source, filter, session.as_ref());
    let read = &mut |columns: &dyn Columns| RowReader { table: "items", columns }.unsigned(0);
    Ok(tx.query_one(query.sql(), query.params(), read)?.unwrap_or(0))
}

fn purge<S: Sql>(tx: &mut S, query: &QueryBuilder<'_>) -> Result<PurgedItems, StoreError> {
    let purged = tx.query(query.sql(), query.params(), &mut |columns| {
        RowReader { table: "pending_queue", columns }.opt_text(0)
    })?;
    Ok(PurgedItems { count: purged.len() as u64, blobs: purged.into_iter().flatten().collect() })
}

impl<S: Sql> ForgetRows for S {
    fn forgettable(
        &mut self,
        kind: ItemKind,
        filter: &ForgetFilter,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        let Some(source) = source(kind) else { return Ok(Vec::new()) };
        let session = filter.session_id.map(|id| id.to_string());
        let mut query = QueryBuilder::new("SELECT ");
        query.text(source.id);
        matching(&mut query, &source, filter, session.as_ref());
        query.text(" ORDER BY ").text(source.order).with(" LIMIT $?", limit);
        self.query(query.sql(), query.params(), &mut |columns| RowReader { table: "items", columns }.text(0))
    }

    fn count_forgettable(&mut self, kind: ItemKind, filter: &ForgetFilter) -> Result<u64, StoreError> {
        source(kind).map_or(Ok(0), |source| count(self, &source, filter))
    }

    fn forget_raw(&mut self, filter: &ForgetFilter, limit: u32) -> Result<PurgedItems, StoreError> {
        let session = filter.session_id.map(|id| id.to_string());
        let mut query = QueryBuilder::new("DELETE FROM pending_queue WHERE id IN (SELECT t.id");
        matching(&mut query, &RAW, filter, session.as_ref());
        query.with(" ORDER BY t.id LIMIT $?) RETURNING blob", limit);
        purge(self, &query)
    }

    fn count_raw(&mut self, filter: &ForgetFilter) -> Result<u64, StoreError> {
        count(self, &RAW, filter)
    }

    fn forget_queue_item(&mut self, id: i64) -> Result<PurgedItems, StoreError> {
        let mut query = QueryBuilder::new("DELETE FROM pending_queue WHERE ");
        query.with("id = $? RETURNING blob", id);
        purge(self, &query)
    }

    fn delete_turn(&mut self, id: TurnId) -> Result<(), StoreError> {
        self.execute("DELETE FROM chat_turns WHERE id = $1", &[id.number().into()])?;
        self.delete_documents(ItemKind::Turn, &[id.to_string()])
    }

    fn delete_handoff(&mut self, id: HandoffId) -> Result<(), StoreError> {
        let id = id.to_string();
        self.execute("DELETE FROM handoffs WHERE id = $1", &[(&id).into()])?;
        self.delete_documents(ItemKind::Handoff, &[id])
    }

    fn delete_summary(&mut self, session: SessionId) -> Result<(), StoreError> {
        let session = session.to_string();
        self.execute(
            "UPDATE summaries SET made_at = NULL, summary = NULL, key_files = NULL, key_decisions = NULL, \
             observations = 0, fence = fence + 1 WHERE session_id = $1",
            &[(&session).into()],
        )?;
        let sql = self.pick(
            "UPDATE observations SET summed_up = 0 WHERE session_id = $1 AND summed_up",
            "UPDATE observations SET summed_up = FALSE WHERE session_id = $1 AND summed_up",
        );
        self.execute(sql, &[(&session).into()])?;
        self.delete_documents(ItemKind::Summary, &[session])
    }
}
