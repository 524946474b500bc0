//! Tables and columns of a schema version, read from the migrations.
//!
//! The SQLite migrations are run on an in-memory database, which is then inspected. PostgreSQL has the same
//! tables and columns, which a test checks. The tables of the search index, `recall_*`, are not archived:
//! their content is derived from the other tables, and a store without it rebuilds it.

use std::sync::Arc;

use rusqlite::Connection;

use crate::error::StoreError;
use crate::migration::Migration;

/// Name of the pseudo table that holds the state of the id sequences in an archive.
pub(crate) const SEQUENCES: &str = "sequences";

/// Tables with rows that are not user data. A store that has rows only in these tables counts as empty.
const BOOKKEEPING: [&str; 3] = ["request_log", "requests", "turns"];

/// Tables of the search index, which are not archived. Older schemas do not have them.
pub(crate) const INDEX_TABLES: [&str; 6] =
    ["recall_vectors", "recall_documents", "recall_terms", "recall_totals", "recall_pending", "recall_state"];

/// Name of the column that refers to a file in the blob folder.
const BLOB_COLUMN: &str = "blob";
/// Tables with that column, each with the column that holds the same bytes when they are in the row. An archive contains
/// the bytes; each store decides where to put them.
const CONTENTS: [(&str, &str); 2] = [("checkpoints", "frame"), ("pending_queue", "raw_output")];

/// The tables of a schema version.
#[derive(Debug, Clone)]
pub(crate) struct Schema {
    pub(crate) tables: Vec<Arc<Table>>,
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Table {
    pub(crate) name: String,
    /// Columns that are part of a record.
    pub(crate) fields: Vec<Field>,
    /// The field that may be stored in a blob instead of the row.
    pub(crate) content: Option<Content>,
    /// Whether ids are assigned automatically and never reused.
    pub(crate) has_sequence: bool,
}

/// A column that is part of a record.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    /// Whether the column is part of the primary key.
    pub(crate) is_key: bool,
}

/// Type of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Integers; booleans are 1 and 0.
    Int,
    Text,
    Bytes,
}

/// A field that may be stored in a blob.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Content {
    /// Index of the field.
    pub(crate) field: usize,
    /// Whether the column is NOT NULL, so that it needs a value even if the bytes are in a blob.
    pub(crate) is_required: bool,
}

impl Schema {
    /// Returns the tables after the first `version` migrations.
    pub(crate) fn at(version: i64) -> Result<Self, StoreError> {
        let database = Connection::open_in_memory()?;
        for migration in Migration::between(0, version) {
            database.execute_batch(migration.sqlite)?;
        }
        let mut statement = database.prepare(
            "SELECT name, sql LIKE '%AUTOINCREMENT%' FROM sqlite_schema \
                 WHERE type = 'table' AND name NOT LIKE 'sqlite!_%' ESCAPE '!' \
                 AND name NOT LIKE 'recall!_%' ESCAPE '!' ORDER BY name",
        )?;
        let names = statement
            .query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, bool>(1)?)))
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)?;
        let tables = names.into_iter().map(|(name, has_sequence)| table(&database, name, has_sequence));
        Ok(Self { tables: tables.map(|table| table.map(Arc::new)).collect::<Result<_, _>>()? })
    }

    /// Finds a table or the pseudo table of sequences.
    pub(crate) fn table(&self, name: &str) -> Option<Arc<Table>> {
        if name == SEQUENCES {
            return Some(Arc::new(sequences()));
        }
        self.tables.iter().find(|table| table.name == name).cloned()
    }
}

impl Table {
    /// Returns true if the rows are user data.
    pub(crate) fn is_data(&self) -> bool {
        !BOOKKEEPING.contains(&self.name.as_str())
    }

    /// Returns the columns of a record for a statement; the blob column is last if there is one.
    pub(crate) fn columns(&self) -> String {
        let mut names: Vec<String> = self.fields.iter().map(|field| quoted(&field.name)).collect();
        names.extend(self.content.as_ref().map(|_| quoted(BLOB_COLUMN)));
        names.join(", ")
    }

    /// Returns the number of these columns.
    pub(crate) fn width(&self) -> usize {
        self.fields.len() + usize::from(self.content.is_some())
    }

    /// Returns the indexes of the primary key fields.
    pub(crate) fn key(&self) -> impl Iterator<Item = usize> {
        self.fields.iter().enumerate().filter(|(_, field)| field.is_key).map(|(index, _)| index)
    }

    /// Returns a condition on the primary key with parameters in the order of [`Table::key`].
    pub(crate) fn key_condition(&self) -> String {
        let equal = |(number, index): (usize, usize)| {
            format!("{} = ${}", quoted(&self.fields[index].name), number + 1)
        };
        self.key().enumerate().map(equal).collect::<Vec<_>>().join(" AND ")
    }
}

/// Quotes a name for a statement.
pub(crate) fn quoted(name: &str) -> String {
    format!("\"{name}\"")
}

fn sequences() -> Table {
    let field = |name: &str, kind, is_key| Field { name: name.to_owned(), kind, is_key };
    Table {
        name: SEQUENCES.to_owned(),
        fields: vec![field("name", Kind::Text, true), field("value", Kind::Int, false)],
        content: None,
        has_sequence: false,
    }
}

fn table(database: &Connection, name: String, has_sequence: bool) -> Result<Table, StoreError> {
    let mut statement =
        database.prepare("SELECT name, type, pk > 0, \"notnull\" FROM pragma_table_info(?1) ORDER BY cid")?;
    let mut rows = statement.query([&name])?;
    let content_name = CONTENTS.iter().find(|(table, _)| *table == name).map(|(_, column)| *column);
    let (mut fields, mut content, mut has_blob) = (Vec::new(), None, false);
    while let Some(row) = rows.next()? {
        let column: String = row.get(0)?;
        let kind: String = row.get(1)?;
        if column == BLOB_COLUMN && content_name.is_some() {
            has_blob = true;
            continue;
        }
        let kind = match kind.as_str() {
            "INTEGER" => Kind::Int,
            "TEXT" => Kind::Text,
            "BLOB" => Kind::Bytes,
            other => {
                return Err(StoreError::unavailable(format!(
                    "archives cannot hold {name}.{column}: type {other}"
                )));
            }
        };
        if content_name == Some(column.as_str()) {
            content = Some(Content { field: fields.len(), is_required: row.get(3)? });
        }
        fields.push(Field { name: column, kind, is_key: row.get(2)? });
    }
    // In schemas without the blob column, the content is an ordinary column.
    Ok(Table { name, fields, content: content.filter(|_| has_blob), has_sequence })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::migration::LATEST_VERSION;

    #[test]
    fn every_version_can_be_archived() {
        for version in 0..=LATEST_VERSION {
            let schema = Schema::at(version).unwrap();
            for table in &schema.tables {
                assert!(table.key().next().is_some(), "{} has no primary key", table.name);
            }
        }
        assert!(Schema::at(LATEST_VERSION).unwrap().tables.len() >= 15);
    }

    /// A column that names blobs must be listed, or archives would hold the names without the bytes.
    #[test]
    fn tables_that_name_blobs_are_archived_with_their_bytes() {
        let schema = Schema::at(LATEST_VERSION).unwrap();
        for table in &schema.tables {
            let names_blobs = table.fields.iter().any(|field| field.name.contains("blob"));
            assert!(!names_blobs, "{} has a column that names blobs: list it in CONTENTS", table.name);
        }
        for (name, _) in CONTENTS {
            assert!(schema.table(name).unwrap().content.is_some(), "{name}");
        }
    }
}
