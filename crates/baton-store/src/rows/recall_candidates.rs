//! Selection of the documents that may answer a query.

use baton_core::recall::Candidate;

use super::recall::select_candidates;
use super::recall_match::{MatchPlan, fts5_expression, tsquery};
use super::recall_scope::{RecallFilter, conditions, required_terms, touches};
use crate::error::StoreError;
use crate::sql::QueryBuilder;
use crate::tx::Tx;

impl dyn Tx + '_ {
    /// Selects candidates: the newest documents that match, at most `limit`.
    pub fn candidates(
        &mut self,
        filter: &RecallFilter,
        plan: &MatchPlan,
        limit: u32,
    ) -> Result<Vec<Candidate>, StoreError> {
        let is_empty = plan.single.is_empty() && plan.pairs.is_empty();
        if filter.ventures.is_empty() || is_empty {
            return Ok(Vec::new());
        }
        let mut found = match plan.newest {
            Some(newest) if !self.is_sqlite() && !filter.has_period() => {
                newest_candidates(self, filter, plan, newest, limit)?
            }
            _ => Vec::new(),
        };
        if found.len() < limit as usize {
            found = indexed_candidates(self, filter, plan, limit)?;
        }
        found.retain(|candidate| touches(&candidate.document.files, filter.file.as_ref()));
        Ok(found)
    }
}

/// Selects candidates with the full-text index.
fn indexed_candidates(
    tx: &mut dyn Tx,
    filter: &RecallFilter,
    plan: &MatchPlan,
    limit: u32,
) -> Result<Vec<Candidate>, StoreError> {
    /// Maximum number of matches that are searched for documents of a period.
    const SCANNED_FOR_PERIOD: u32 = 20_000;
    let required = required_terms(filter);
    let expression = if tx.is_sqlite() { fts5_expression(&required, plan) } else { tsquery(&required, plan) };
    let scanned = if filter.has_period() { SCANNED_FOR_PERIOD.max(limit) } else { limit };
    // PostgreSQL does not know how many documents match. An order by the key itself makes it read the table backwards, an
    // order by an expression makes it use the full-text index. With a filter besides the venture, few of many matches may
    // remain, so the index is used.
    let is_common = plan.newest.is_some() && required.len() == 1;
    let newest_first = tx.pick(" ORDER BY number DESC", " ORDER BY number + 0 DESC");
    let newest_matching_first =
        if is_common && filter.has_period() { " ORDER BY number DESC" } else { newest_first };
    let mut query = QueryBuilder::new(&select_candidates("WHERE number IN ("));
    let matching = tx.pick(
        "SELECT rowid AS number FROM recall_index WHERE recall_index MATCH $?",
        "SELECT number FROM recall_documents WHERE terms @@ CAST($? AS TEXT)::TSQUERY",
    );
    query.with(matching, &expression).text(newest_matching_first).with(" LIMIT $?)", scanned);
    conditions(&mut query, filter, tx.pick("+", ""));
    query.text(newest_first).with(" LIMIT $?", limit);
    tx.query(query.sql(), query.params())
}

/// Selects candidates of the newest documents on PostgreSQL, without its full-text index: it finds all of many matches
/// before the newest are known.
fn newest_candidates(
    tx: &mut dyn Tx,
    filter: &RecallFilter,
    plan: &MatchPlan,
    newest: u64,
    limit: u32,
) -> Result<Vec<Candidate>, StoreError> {
    let expression = tsquery(&required_terms(filter), plan);
    let mut query = QueryBuilder::new(&select_candidates("WHERE number IN (SELECT number FROM ("));
    query.with("SELECT number, terms FROM recall_documents ORDER BY number DESC LIMIT $?", newest);
    // A subquery is parsed once instead of once for each document.
    query.with(") AS newest WHERE terms @@ (SELECT CAST($? AS TEXT)::TSQUERY)", &expression);
    query.with(" ORDER BY number DESC LIMIT $?)", limit);
    conditions(&mut query, filter, "");
    query.text(" ORDER BY number + 0 DESC");
    tx.query(query.sql(), query.params())
}
