//! Rows of the search index.
//!
//! Owns the documents, the number of documents per term, and the list of items to be indexed. The full-text index of
//! each database selects candidates; both return the same ones, because the terms are computed before they are stored
//! and the selection is by document number. Does not own what a document contains or how candidates are ranked.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use baton_core::recall::{Candidate, Corpus, Document, DocumentText, ItemKind};
use baton_core::{SessionId, Timestamp, Venture};

use super::recall_counts::Changes;
use super::recall_scope::{RecallFilter, conditions, scope_of, touches};
use crate::archive::INDEX_TABLES;
use crate::column::{FromRow, Row};
use crate::error::StoreError;
use crate::record::{Record, columns, record, replacing};
use crate::sql::{QueryBuilder, filled_parts, parts};
use crate::tx::{Lock, Tx};

/// An entry of the list of items to be indexed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PendingItem {
    /// Number of the entry.
    pub id: i64,
    pub kind: ItemKind,
    pub item: String,
}

/// Position in a timeline: time and document number.
pub type TimelinePosition = (Timestamp, i64);

record! {
    "recall_pending", PendingItem { id, kind, item }
}

record! {
    "recall_documents", Document {
        kind, item, external_id, venture, repo, session_id, branch, agent, author, turn, created_at, files,
        changes_files, is_pinned,
    }
    text: DocumentText { title, body, paths }
    .. { is_conversational: false }
}

impl FromRow for Candidate {
    fn from_row(row: &mut Row<'_>) -> Result<Self, StoreError> {
        let (number, place): (i64, Option<i64>) = row.get()?;
        let document = Document { is_conversational: place.is_some(), ..row.get()? };
        Ok(Self { number, place, document })
    }
}

/// Returns a query for candidates. `rest` follows the name of the table.
pub(super) fn select_candidates(rest: &str) -> String {
    format!("SELECT number, place, {} FROM recall_documents {rest}", columns::<Document>())
}

/// Finds the documents of items.
fn stored(tx: &mut dyn Tx, kind: ItemKind, items: &[&str]) -> Result<Vec<Candidate>, StoreError> {
    let mut found = Vec::new();
    for part in filled_parts(items) {
        let mut query = QueryBuilder::new(&select_candidates("WHERE "));
        query.with("kind = $? AND ", kind).among("item", part);
        found.extend(tx.query::<Candidate>(query.sql(), query.params())?);
    }
    Ok(found)
}

/// Places of documents in the order of their session.
type Places = HashMap<(ItemKind, String), i64>;

/// Assigns places to new conversational documents. Returns them by item, and the sessions whose documents were not
/// added in chronological order and must be numbered again.
fn new_places(tx: &mut dyn Tx, documents: &[&Document]) -> Result<(Places, BTreeSet<SessionId>), StoreError> {
    let (mut places, mut out_of_order) = (HashMap::new(), BTreeSet::new());
    let mut last: BTreeMap<SessionId, (i64, i64)> = BTreeMap::new();
    for document in documents.iter().filter(|document| document.is_conversational) {
        let Some(session) = document.session_id else { continue };
        let (place, time) = match last.get(&session) {
            Some(last) => *last,
            None => tx
                .query_one(
                    "SELECT place, (SELECT max(created_at) FROM recall_documents \
                     WHERE session_id = $1 AND place IS NOT NULL) FROM recall_documents \
                     WHERE session_id = $1 AND place IS NOT NULL ORDER BY place DESC LIMIT 1",
                    &[session.into()],
                )?
                .unwrap_or((0, 0)),
        };
        let created_at = document.created_at.as_millis();
        if created_at < time {
            out_of_order.insert(session);
        }
        last.insert(session, (place + 1, time.max(created_at)));
        places.insert((document.kind, document.item.clone()), place + 1);
    }
    Ok((places, out_of_order))
}

/// Numbers the conversational documents of a session in chronological order.
fn renumber(tx: &mut dyn Tx, session: SessionId) -> Result<(), StoreError> {
    let found: Vec<(i64, i64)> = tx.query(
        "SELECT number, place FROM recall_documents WHERE session_id = $1 AND place IS NOT NULL \
         ORDER BY created_at, number",
        &[session.into()],
    )?;
    for ((number, place), expected) in found.into_iter().zip(1..) {
        if place != expected {
            tx.run(
                "UPDATE recall_documents SET place = $1 WHERE number = $2",
                &[expected.into(), number.into()],
            )?;
        }
    }
    Ok(())
}

/// Returns the last version of each document, in the order of first appearance, which is the order of conversations.
fn without_repetitions(documents: &[Document]) -> Vec<&Document> {
    let mut indexes: HashMap<(ItemKind, &str), usize> = HashMap::new();
    let mut unique: Vec<&Document> = Vec::new();
    for document in documents {
        let index = *indexes.entry((document.kind, document.item.as_str())).or_insert(unique.len());
        match unique.get_mut(index) {
            Some(earlier) => *earlier = document,
            None => unique.push(document),
        }
    }
    unique
}

fn insert_part(tx: &mut dyn Tx, documents: &[(&Document, Option<i64>)]) -> Result<(), StoreError> {
    let mut rows = Vec::with_capacity(documents.len());
    for (document, place) in documents {
        let mut values = document.values()?;
        values.push(("place", (*place).into()));
        values.push(("length", document.text.length().into()));
        values.push(("scope", scope_of(document).into()));
        rows.push(values);
    }
    let mut query = QueryBuilder::insert("recall_documents", rows);
    query.text(&replacing("kind, item", &[Document::COLUMNS, &["length", "scope"]].concat()));
    tx.run(query.sql(), query.params())
}

/// Items of sessions that are indexed: kind, id, rows and order. Parts of conversations are first, so that they are
/// numbered in order.
const SESSION_ITEMS: [(ItemKind, &str, &str, &str); 6] = [
    (ItemKind::Turn, "'turn_' || id", "chat_turns WHERE true", "id"),
    (ItemKind::Observation, "id", "observations WHERE true", "id"),
    (ItemKind::Handoff, "id", "handoffs WHERE true", "id"),
    (ItemKind::Summary, "session_id", "summaries WHERE made_at IS NOT NULL", "session_id"),
    (ItemKind::Checkpoint, "id", "checkpoints WHERE (name IS NOT NULL OR tags <> '[]')", "id"),
    (ItemKind::Note, "id", "notes WHERE true", "id"),
];
const TASKS: (ItemKind, &str, &str, &str) = (
    ItemKind::Task,
    "venture || '/' || task_id || '@' || host || ':' || checkout",
    "tasks",
    "venture, task_id",
);

/// Returns the first part of a statement that adds items to the list of items to be indexed.
fn enqueue(kind: ItemKind, item: &str) -> String {
    format!("INSERT INTO recall_pending (kind, item) SELECT '{}', {item}", kind.as_str())
}

impl dyn Tx + '_ {
    /// Adds an item to the list of items to be indexed.
    pub fn enqueue_for_index(&mut self, kind: ItemKind, item: &str) -> Result<(), StoreError> {
        self.run("INSERT INTO recall_pending (kind, item) VALUES ($1, $2)", &[kind.into(), item.into()])
    }

    /// Locks the index until the end of the transaction, so that one process indexes at a time.
    pub fn lock_index(&mut self) -> Result<(), StoreError> {
        self.lock(Lock::SearchIndex, "")
    }

    /// Returns true if the index was built for this store. If not, all items must be enqueued.
    pub fn is_index_built(&mut self) -> Result<bool, StoreError> {
        self.exists("SELECT name FROM recall_state WHERE name = 'built'", &[])
    }

    /// Returns true if items must be indexed.
    pub fn has_items_to_index(&mut self) -> Result<bool, StoreError> {
        self.exists(
            "SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM recall_state WHERE name = 'built') \
             OR (SELECT min(id) FROM recall_pending) IS NOT NULL",
            &[],
        )
    }

    /// Enqueues every item of the store and marks the index as built.
    pub fn enqueue_everything(&mut self) -> Result<(), StoreError> {
        self.run("DELETE FROM recall_pending", &[])?;
        for (kind, item, rows, order) in SESSION_ITEMS.into_iter().chain([TASKS]) {
            let sql = format!("{} FROM {rows} ORDER BY {order}", enqueue(kind, item));
            self.run(&sql, &[])?;
        }
        self.run("INSERT INTO recall_state (name) VALUES ('built') ON CONFLICT DO NOTHING", &[])
    }

    /// Enqueues every item of a session.
    pub(super) fn enqueue_session(&mut self, id: SessionId) -> Result<(), StoreError> {
        for (kind, item, rows, order) in SESSION_ITEMS {
            let sql = format!("{} FROM {rows} AND session_id = $1 ORDER BY {order}", enqueue(kind, item));
            self.run(&sql, &[id.into()])?;
        }
        Ok(())
    }

    /// Deletes the whole index, so that it is rebuilt.
    pub fn clear_index(&mut self) -> Result<(), StoreError> {
        if self.is_sqlite() {
            // The triggers below delete from an index that matches its documents only.
            self.run("INSERT INTO recall_index (recall_index) VALUES ('rebuild')", &[])?;
        }
        for table in INDEX_TABLES {
            self.run(&format!("DELETE FROM {table}"), &[])?;
        }
        Ok(())
    }

    /// Lists the oldest items to be indexed.
    pub fn pending_items(&mut self, limit: u32) -> Result<Vec<PendingItem>, StoreError> {
        self.records("ORDER BY id LIMIT $1", &[limit.into()])
    }

    /// Removes entries from the list of items to be indexed.
    pub fn delete_pending(&mut self, entries: &[PendingItem]) -> Result<(), StoreError> {
        let ids: Vec<i64> = entries.iter().map(|entry| entry.id).collect();
        self.delete_among("DELETE FROM recall_pending WHERE id", &ids)
    }

    /// Adds or replaces documents.
    pub fn put_documents(&mut self, documents: &[Document]) -> Result<(), StoreError> {
        let documents = without_repetitions(documents);
        let mut changes = Changes::default();
        let mut known: HashMap<(ItemKind, String), Option<i64>> = HashMap::new();
        let mut rewritten = Vec::new();
        for kind in ItemKind::ALL.iter().copied() {
            let of_kind: BTreeMap<&str, &Document> = documents
                .iter()
                .filter(|document| document.kind == kind)
                .map(|document| (document.item.as_str(), *document))
                .collect();
            let items: Vec<&str> = of_kind.keys().copied().collect();
            for old in stored(self, kind, &items)? {
                changes.count(&old.document.venture, &old.document.text, -1);
                let new = of_kind.get(old.document.item.as_str());
                if new.is_some_and(|new| !new.text.has_same_words(&old.document.text)) {
                    rewritten.push(old.number);
                }
                known.insert((kind, old.document.item), old.place);
            }
        }
        self.delete_vectors(&rewritten)?;
        let new: Vec<&Document> = documents
            .iter()
            .copied()
            .filter(|document| !known.contains_key(&(document.kind, document.item.clone())))
            .collect();
        let (places, out_of_order) = new_places(self, &new)?;
        let placed: Vec<(&Document, Option<i64>)> = documents
            .into_iter()
            .map(|document| {
                let key = (document.kind, document.item.clone());
                (document, places.get(&key).copied().or_else(|| known.get(&key).copied().flatten()))
            })
            .collect();
        for part in parts(&placed) {
            insert_part(self, part)?;
        }
        for (document, _) in &placed {
            changes.count(&document.venture, &document.text, 1);
        }
        for session in out_of_order {
            renumber(self, session)?;
        }
        changes.store(self)
    }

    /// Removes the documents of items.
    pub fn delete_documents(&mut self, kind: ItemKind, items: &[String]) -> Result<(), StoreError> {
        let items: Vec<&str> = items.iter().map(String::as_str).collect();
        let found = stored(self, kind, &items)?;
        if found.is_empty() {
            return Ok(());
        }
        self.lock_index()?;
        let mut changes = Changes::default();
        for old in &found {
            changes.count(&old.document.venture, &old.document.text, -1);
        }
        let numbers: Vec<i64> = found.iter().map(|old| old.number).collect();
        self.delete_among("DELETE FROM recall_documents WHERE number", &numbers)?;
        changes.store(self)
    }

    /// Lists the ventures that have documents.
    pub fn indexed_ventures(&mut self) -> Result<Vec<Venture>, StoreError> {
        self.query("SELECT venture FROM recall_totals ORDER BY venture", &[])
    }

    /// Returns the total number of documents of ventures, and the number of documents that contain each term.
    pub fn corpus(&mut self, ventures: &[Venture], terms: &[&str]) -> Result<Corpus, StoreError> {
        let mut corpus = Corpus::default();
        for venture in ventures {
            let total: Option<(u64, u64)> = self.query_one(
                "SELECT documents, length FROM recall_totals WHERE venture = $1",
                &[venture.into()],
            )?;
            let Some((documents, length)) = total else { continue };
            corpus.documents += documents;
            corpus.length += length;
            for part in filled_parts(terms) {
                let mut query = QueryBuilder::new("SELECT term, documents FROM recall_terms WHERE ");
                query.with("venture = $? AND ", venture).among("term", part);
                for (term, documents) in self.query::<(String, u64)>(query.sql(), query.params())? {
                    *corpus.with_term.entry(term).or_default() += documents;
                }
            }
        }
        Ok(corpus)
    }

    /// Finds conversational documents by session and range of places.
    pub fn documents_at(&mut self, places: &[(SessionId, i64, i64)]) -> Result<Vec<Candidate>, StoreError> {
        let mut found = Vec::new();
        for part in filled_parts(places) {
            let mut query = QueryBuilder::new(&select_candidates("WHERE place IS NOT NULL AND ("));
            for (index, (session, first, last)) in part.into_iter().enumerate() {
                query.with(if index == 0 { "session_id = $?" } else { " OR session_id = $?" }, session);
                query.with(" AND place BETWEEN $?", first).with(" AND $?", last);
            }
            query.text(")");
            found.extend(self.query::<Candidate>(query.sql(), query.params())?);
        }
        Ok(found)
    }

    /// Finds the documents of turns, newest first.
    pub fn documents_of_turns(&mut self, turns: &[&str], limit: u32) -> Result<Vec<Candidate>, StoreError> {
        if turns.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(&select_candidates("WHERE "));
        query.among("turn", turns.iter().copied());
        query.with(" ORDER BY number DESC LIMIT $?", limit);
        self.query(query.sql(), query.params())
    }

    /// Finds the document of an item.
    pub fn document(&mut self, kind: ItemKind, item: &str) -> Result<Option<Candidate>, StoreError> {
        Ok(stored(self, kind, &[item])?.pop())
    }

    /// Lists documents by time from a position: later ones in ascending order, or earlier ones in descending order.
    pub fn timeline(
        &mut self,
        filter: &RecallFilter,
        (time, number): TimelinePosition,
        is_forward: bool,
        limit: u32,
    ) -> Result<Vec<Candidate>, StoreError> {
        if filter.ventures.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::new(&select_candidates("WHERE (created_at, number) "));
        query.text(if is_forward { ">" } else { "<" });
        query.with(" ($?", time).with(", $?)", number);
        conditions(&mut query, filter, "");
        query.text(if is_forward {
            " ORDER BY created_at, number"
        } else {
            " ORDER BY created_at DESC, number DESC"
        });
        query.with(" LIMIT $?", limit);
        let mut found: Vec<Candidate> = self.query(query.sql(), query.params())?;
        found.retain(|candidate| touches(&candidate.document.files, filter.file.as_ref()));
        Ok(found)
    }

    /// Compares the index with the items of the store and with itself, and returns the differences. Needs a transaction
    /// that may write, because SQLite checks its full-text index with an INSERT.
    pub fn index_problems(&mut self) -> Result<Vec<String>, StoreError> {
        let mut problems = Vec::new();
        let missing = self.number(
            "SELECT count(*) FROM observations o WHERE NOT EXISTS (SELECT 1 FROM recall_documents d \
             WHERE d.kind = 'observation' AND d.item = o.id) AND NOT EXISTS (SELECT 1 FROM recall_pending p \
             WHERE p.kind = 'observation' AND p.item = o.id) AND NOT EXISTS (SELECT 1 FROM item_marks m \
             WHERE m.item = o.id AND m.kind <> 'pinned')",
            &[],
        )?;
        if missing > 0 && self.is_index_built()? {
            problems.push(format!("{missing} observations are missing from the search index"));
        }
        let surplus = self.number(
            "SELECT count(*) FROM recall_documents d WHERE d.kind = 'observation' \
             AND NOT EXISTS (SELECT 1 FROM observations o WHERE o.id = d.item)",
            &[],
        )?;
        if surplus > 0 {
            problems.push(format!("{surplus} deleted observations are still in the search index"));
        }
        if self.is_sqlite() {
            let check = "INSERT INTO recall_index (recall_index, rank) VALUES ('integrity-check', 1)";
            if let Err(error) = self.execute(check, &[]) {
                problems.push(format!("the full-text index does not match its documents: {error}"));
            }
        }
        let miscounted = self.number("SELECT count(*) FROM (SELECT d.venture, count(*) AS documents, sum(d.length) AS length \
             FROM recall_documents d GROUP BY d.venture) f LEFT JOIN recall_totals t ON t.venture = f.venture \
             WHERE t.venture IS NULL OR t.documents <> f.documents OR t.length <> f.length",
            &[],
        )?;
        if miscounted > 0 {
            problems.push(format!("the document counts of {miscounted} ventures are wrong"));
        }
        Ok(problems)
    }
}
