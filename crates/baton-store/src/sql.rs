//! The interface through which row files use either database: statements, columns and locks.
//!
//! Statements use `$1`, `$2`, … in the order of their first appearance, which both databases bind by position. Where
//! the dialects differ, a row file provides both statements with [`Sql::pick`].

use std::str::FromStr;

use baton_core::{Sha256Hash, Timestamp, Track, Venture};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::StoreError;
use crate::tx::Tx;

/// A value bound to a statement.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Param<'a> {
    Null,
    Int(i64),
    Bool(bool),
    Text(&'a str),
    Bytes(&'a [u8]),
}

impl<'a> From<&'a str> for Param<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(text: &'a String) -> Self {
        Self::Text(text)
    }
}

impl<'a> From<&'a Vec<u8>> for Param<'a> {
    fn from(bytes: &'a Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<i64> for Param<'_> {
    fn from(number: i64) -> Self {
        Self::Int(number)
    }
}

impl From<u32> for Param<'_> {
    fn from(number: u32) -> Self {
        Self::Int(i64::from(number))
    }
}

impl From<u64> for Param<'_> {
    /// For counts and sizes. Values above `i64::MAX` are stored as `i64::MAX`.
    fn from(number: u64) -> Self {
        Self::Int(i64::try_from(number).unwrap_or(i64::MAX))
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes)
    }
}

impl From<bool> for Param<'_> {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl From<Timestamp> for Param<'_> {
    fn from(time: Timestamp) -> Self {
        Self::Int(time.as_millis())
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The columns of one row, by position.
pub(crate) trait Columns {
    fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError>;
    fn opt_text(&self, column: usize) -> Result<Option<String>, StoreError>;
    fn bool(&self, column: usize) -> Result<bool, StoreError>;
    fn opt_bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Reads typed values from a row. An invalid value is reported as corruption and never replaced by a default.
pub(crate) struct RowReader<'a> {
    pub(crate) table: &'static str,
    pub(crate) columns: &'a dyn Columns,
}

impl RowReader<'_> {
    fn missing(&self, column: usize) -> StoreError {
        StoreError::corrupt(self.table, format!("column {column} is null"))
    }

    pub(crate) fn opt_int(&self, column: usize) -> Result<Option<i64>, StoreError> {
        self.columns.opt_int(column)
    }

    pub(crate) fn int(&self, column: usize) -> Result<i64, StoreError> {
        self.columns.opt_int(column)?.ok_or_else(|| self.missing(column))
    }

    pub(crate) fn unsigned(&self, column: usize) -> Result<u64, StoreError> {
        u64::try_from(self.int(column)?).map_err(|problem| self.wrong(column, problem))
    }

    pub(crate) fn small(&self, column: usize) -> Result<u32, StoreError> {
        u32::try_from(self.int(column)?).map_err(|problem| self.wrong(column, problem))
    }

    pub(crate) fn json<T: DeserializeOwned>(&self, column: usize) -> Result<T, StoreError> {
        serde_json::from_str(&self.text(column)?).map_err(|problem| self.wrong(column, problem))
    }

    pub(crate) fn bool(&self, column: usize) -> Result<bool, StoreError> {
        self.columns.bool(column)
    }

    pub(crate) fn opt_bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError> {
        self.columns.opt_bytes(column)
    }

    pub(crate) fn bytes(&self, column: usize) -> Result<Vec<u8>, StoreError> {
        self.columns.opt_bytes(column)?.ok_or_else(|| self.missing(column))
    }

    pub(crate) fn opt_text(&self, column: usize) -> Result<Option<String>, StoreError> {
        self.columns.opt_text(column)
    }

    pub(crate) fn text(&self, column: usize) -> Result<String, StoreError> {
        self.columns.opt_text(column)?.ok_or_else(|| self.missing(column))
    }

    pub(crate) fn time(&self, column: usize) -> Result<Timestamp, StoreError> {
        self.int(column).map(Timestamp::from_millis)
    }

    pub(crate) fn opt_time(&self, column: usize) -> Result<Option<Timestamp>, StoreError> {
        Ok(self.opt_int(column)?.map(Timestamp::from_millis))
    }

    pub(crate) fn parsed<T: FromStr<Err: ToString>>(&self, column: usize) -> Result<T, StoreError> {
        self.text(column)?.parse().map_err(|problem: T::Err| self.wrong(column, problem))
    }

    pub(crate) fn opt_parsed<T: FromStr<Err: ToString>>(
        &self,
        column: usize,
    ) -> Result<Option<T>, StoreError> {
        let parse = |text: String| text.parse().map_err(|problem: T::Err| self.wrong(column, problem));
        self.opt_text(column)?.map(parse).transpose()
    }

    pub(crate) fn opt_track(&self, column: usize) -> Result<Option<Track>, StoreError> {
        let track = |number| Track::try_from(number).map_err(|problem| self.wrong(column, problem));
        self.opt_int(column)?.map(track).transpose()
    }

    pub(crate) fn hash(&self, column: usize) -> Result<Sha256Hash, StoreError> {
        self.parsed(column)
    }

    pub(crate) fn wrong(&self, column: usize, problem: impl ToString) -> StoreError {
        StoreError::corrupt(self.table, format!("column {column}: {}", problem.to_string()))
    }
}

/// Kind of an advisory lock that is held until the end of the transaction.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lock {
    SessionTuple,
    IdempotencyKey,
    Workflow,
    WorkflowName,
    SearchIndex,
}

/// A database inside a transaction, as seen by row files.
pub(crate) trait Sql {
    /// Chooses the statement for the current database.
    fn pick(&self, sqlite: &'static str, postgres: &'static str) -> &'static str;

    /// Runs a statement and returns the number of changed rows.
    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError>;

    /// Runs a query and passes each row to `read`.
    fn each_row(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: &mut dyn FnMut(&dyn Columns) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Blocks other transactions that take the same lock until this transaction ends.
    fn lock(&mut self, lock: Lock, name: &str) -> Result<(), StoreError>;

    /// Notifies other processes after the commit that the queue has new items. SQLite writes to a file that they watch.
    fn announce_queue(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl dyn Tx + '_ {
    /// Runs a statement.
    pub(crate) fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError> {
        self.execute(sql, params).map(|_| ())
    }

    /// Runs a query and reads each row.
    pub(crate) fn query<T>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: &mut dyn FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.each_row(sql, params, &mut |columns| {
            found.push(read(columns)?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads the rows in which a column has one of the values. `select` ends with the column, `rest` follows the condition.
    pub(crate) fn query_among<T>(
        &mut self,
        select: &str,
        values: &[impl ToString],
        rest: &str,
        read: &mut dyn FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Vec<T>, StoreError> {
        let values: Vec<String> = values.iter().map(ToString::to_string).collect();
        let mut found = Vec::new();
        for part in filled_parts(&values) {
            let mut query = QueryBuilder::new("");
            query.among(select, &part).text(rest);
            found.extend(self.query(query.sql(), query.params(), read)?);
        }
        Ok(found)
    }

    /// Runs a query that returns at most one row.
    pub(crate) fn query_one<T>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        read: &mut dyn FnMut(&dyn Columns) -> Result<T, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        Ok(self.query(sql, params, read)?.into_iter().next())
    }

    /// Runs a query that returns one number, such as `SELECT count(*)`.
    pub(crate) fn number(
        &mut self,
        table: &'static str,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<u64, StoreError> {
        let read = &mut |columns: &dyn Columns| RowReader { table, columns }.unsigned(0);
        Ok(self.query_one(sql, params, read)?.unwrap_or(0))
    }
}

/// Encodes the value of a JSON column.
pub(crate) fn json(table: &'static str, value: &impl Serialize) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|problem| StoreError::corrupt(table, problem))
}

/// Splits a list into parts of 2^n elements, one statement for each. Few different sizes need few prepared statements.
pub(crate) fn parts<T>(mut all: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = 1 << all.len().checked_ilog2()?.min(LARGEST_PART);
        let (part, rest) = all.split_at(size);
        all = rest;
        Some(part)
    })
}

/// Splits the values of a condition `IN (…)` into parts of 2^n values like [`parts`]. The last part is filled by repeating
/// its last value, so that most lists need one statement.
pub(crate) fn filled_parts<T: Clone>(all: &[T]) -> impl Iterator<Item = Vec<T>> {
    all.chunks(1 << LARGEST_PART).map(|chunk| {
        let repeated = std::iter::repeat_n(chunk.last(), chunk.len().next_power_of_two() - chunk.len());
        chunk.iter().chain(repeated.flatten()).cloned().collect()
    })
}

/// Base-2 logarithm of the size of the largest part.
const LARGEST_PART: u32 = 6;

/// Builds a query from optional conditions.
pub(crate) struct QueryBuilder<'a> {
    sql: String,
    params: Vec<Param<'a>>,
}

impl<'a> QueryBuilder<'a> {
    pub(crate) fn new(select: &str) -> Self {
        Self { sql: select.to_owned(), params: Vec::with_capacity(8) }
    }

    /// Adds text with one parameter in it, written as `$?`.
    pub(crate) fn with(&mut self, text: &str, param: impl Into<Param<'a>>) -> &mut Self {
        self.params.push(param.into());
        self.sql.push_str(&text.replace("$?", &format!("${}", self.params.len())));
        self
    }

    /// Adds text with one parameter in it, if there is a value.
    pub(crate) fn with_some(&mut self, text: &str, param: Option<impl Into<Param<'a>>>) -> &mut Self {
        match param {
            Some(param) => self.with(text, param),
            None => self,
        }
    }

    /// Limits the rows to these ventures, if they are limited.
    pub(crate) fn in_ventures(&mut self, column: &str, ventures: Option<&'a [Venture]>) -> &mut Self {
        let Some(ventures) = ventures else { return self };
        self.text(" AND (1 = 0");
        for venture in ventures {
            self.with(&format!(" OR {column} = $?"), venture.as_str());
        }
        self.text(")")
    }

    /// Adds `expression IN (values)`.
    pub(crate) fn among(
        &mut self,
        expression: &str,
        values: impl IntoIterator<Item: Into<Param<'a>>>,
    ) -> &mut Self {
        self.text(expression).text(" IN (");
        for (index, value) in values.into_iter().enumerate() {
            self.with(if index == 0 { "$?" } else { ", $?" }, value);
        }
        self.text(")")
    }

    /// Adds rows of values: `($1, $2), ($3, $4)`.
    pub(crate) fn rows<const N: usize>(
        &mut self,
        rows: impl IntoIterator<Item = [Param<'a>; N]>,
    ) -> &mut Self {
        for (index, row) in rows.into_iter().enumerate() {
            self.text(if index == 0 { "(" } else { ", (" });
            for (column, value) in row.into_iter().enumerate() {
                self.with(if column == 0 { "$?" } else { ", $?" }, value);
            }
            self.text(")");
        }
        self
    }

    /// Adds plain text.
    pub(crate) fn text(&mut self, text: &str) -> &mut Self {
        self.sql.push_str(text);
        self
    }

    pub(crate) fn sql(&self) -> &str {
        &self.sql
    }

    pub(crate) fn params(&self) -> &[Param<'a>] {
        &self.params
    }
}
