//! Selection and deletion of everything that was recorded in a session, a repository or a period.
//!
//! Checkpoints are selected here and deleted with their workflow, by the caller.

use baton_core::recall::ItemKind;
use baton_core::{Repo, SessionId, Timestamp, Venture};

use super::queue::{PurgedItems, purge};
use crate::error::StoreError;
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// Filter for items to delete. Absent conditions match every item.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForgetFilter {
    /// Ventures, any of these.
    pub ventures: Option<Vec<Venture>>,
    pub repo: Option<Repo>,
    pub session_id: Option<SessionId>,
    /// Latest time, exclusive.
    pub before: Option<Timestamp>,
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
fn matching<'a>(query: &mut QueryBuilder<'a>, source: &Source, filter: &'a ForgetFilter) {
    query.text(" FROM ").text(source.tables).text(" WHERE ").text(source.condition);
    query.in_ventures(source.venture, filter.ventures.as_deref());
    if let Some(repo) = &filter.repo {
        query.text(" AND ").text(source.repo).with(" = $?", repo);
    }
    query.with_some(" AND t.session_id = $?", filter.session_id);
    if let Some(before) = filter.before {
        query.text(" AND ").text(source.time).with(" < $?", before);
    }
}

fn count(tx: &mut dyn Tx, source: &Source, filter: &ForgetFilter) -> Result<u64, StoreError> {
    let mut query = QueryBuilder::new("SELECT count(*)");
    matching(&mut query, source, filter);
    tx.number(query.sql(), query.params())
}

impl dyn Tx + '_ {
    /// Lists the ids of items of a kind, oldest first. Tasks are not listed: their files are in the checkout.
    pub fn forgettable(
        &mut self,
        kind: ItemKind,
        filter: &ForgetFilter,
        limit: u32,
    ) -> Result<Vec<String>, StoreError> {
        let Some(source) = source(kind) else { return Ok(Vec::new()) };
        let mut query = QueryBuilder::new("SELECT ");
        query.text(source.id);
        matching(&mut query, &source, filter);
        query.text(" ORDER BY ").text(source.order).with(" LIMIT $?", limit);
        self.query(query.sql(), query.params())
    }

    pub fn count_forgettable(&mut self, kind: ItemKind, filter: &ForgetFilter) -> Result<u64, StoreError> {
        source(kind).map_or(Ok(0), |source| count(self, &source, filter))
    }

    /// Deletes at most `limit` captured tool uses of any status, with their raw output.
    pub fn forget_raw(&mut self, filter: &ForgetFilter, limit: u32) -> Result<PurgedItems, StoreError> {
        let mut query = QueryBuilder::new("DELETE FROM pending_queue WHERE id IN (SELECT t.id");
        matching(&mut query, &RAW, filter);
        query.with(" ORDER BY t.id LIMIT $?) RETURNING blob", limit);
        purge(self, &query)
    }

    /// Counts captured tool uses.
    pub fn count_raw(&mut self, filter: &ForgetFilter) -> Result<u64, StoreError> {
        count(self, &RAW, filter)
    }

    /// Deletes one captured tool use, with its raw output.
    pub fn forget_queue_item(&mut self, id: i64) -> Result<PurgedItems, StoreError> {
        let mut query = QueryBuilder::new("DELETE FROM pending_queue WHERE ");
        query.with("id = $? RETURNING blob", id);
        purge(self, &query)
    }
}
