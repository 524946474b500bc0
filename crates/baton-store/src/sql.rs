//! Statements of row files: queries that return rows of a type, and statements that are built from parts.

use baton_core::Venture;

use crate::column::{FromRow, Param, Row, Values};
use crate::error::StoreError;
use crate::tx::Tx;

impl dyn Tx + '_ {
    /// Runs a statement.
    pub(crate) fn run(&mut self, sql: &str, params: &[Param<'_>]) -> Result<(), StoreError> {
        self.execute(sql, params).map(|_| ())
    }

    /// Runs a query and reads each row.
    pub(crate) fn query<T: FromRow>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        self.each_row(sql, params, &mut |columns| {
            found.push(Row::new(sql, columns).get()?);
            Ok(())
        })?;
        Ok(found)
    }

    /// Reads the rows in which a column has one of the values. `select` ends with the column, `rest` follows the condition.
    pub(crate) fn query_among<'a, T: FromRow>(
        &mut self,
        select: &str,
        values: &[impl Clone + Into<Param<'a>>],
        rest: &str,
    ) -> Result<Vec<T>, StoreError> {
        let mut found = Vec::new();
        for part in filled_parts(values) {
            let mut query = QueryBuilder::new("");
            query.among(select, part).text(rest);
            found.extend(self.query::<T>(query.sql(), query.params())?);
        }
        Ok(found)
    }

    /// Deletes the rows in which a column has one of the values. `delete` ends with the column.
    pub(crate) fn delete_among<'a>(
        &mut self,
        delete: &str,
        values: &[impl Clone + Into<Param<'a>>],
    ) -> Result<(), StoreError> {
        for part in filled_parts(values) {
            let mut query = QueryBuilder::new("");
            query.among(delete, part);
            self.run(query.sql(), query.params())?;
        }
        Ok(())
    }

    /// Runs a query that returns at most one row.
    pub(crate) fn query_one<T: FromRow>(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
    ) -> Result<Option<T>, StoreError> {
        Ok(self.query(sql, params)?.into_iter().next())
    }

    /// Returns true if a query returns a row.
    pub(crate) fn exists(&mut self, sql: &str, params: &[Param<'_>]) -> Result<bool, StoreError> {
        Ok(self.query_one::<()>(sql, params)?.is_some())
    }

    /// Lists the ventures that a table has rows of, with one index lookup for each.
    pub(crate) fn ventures_in(&mut self, table: &str) -> Result<Vec<Venture>, StoreError> {
        let sql = format!(
            "WITH RECURSIVE known (venture) AS (SELECT min(venture) FROM {table} UNION ALL \
             SELECT (SELECT min(venture) FROM {table} WHERE venture > known.venture) FROM known \
             WHERE known.venture IS NOT NULL) SELECT venture FROM known WHERE venture IS NOT NULL"
        );
        self.query(&sql, &[])
    }

    /// Runs a query that returns one number, such as `SELECT count(*)`.
    pub(crate) fn number(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        Ok(self.query_one(sql, params)?.unwrap_or(0))
    }
}

/// Base-2 logarithm of the size of the largest part.
const MAX_PART_LOG2: u32 = 6;

/// Splits a list into parts of 2^n elements, one statement for each. Few different sizes need few prepared statements.
pub(crate) fn parts<T>(mut all: &[T]) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let size = 1 << all.len().checked_ilog2()?.min(MAX_PART_LOG2);
        let (part, rest) = all.split_at(size);
        all = rest;
        Some(part)
    })
}

/// Splits the values of a condition `IN (…)` into parts of 2^n values like [`parts`]. The last part is filled by repeating
/// its last value, so that most lists need one statement.
pub(crate) fn filled_parts<T: Clone>(all: &[T]) -> impl Iterator<Item = Vec<T>> {
    all.chunks(1 << MAX_PART_LOG2).map(|chunk| {
        let repeated = std::iter::repeat_n(chunk.last(), chunk.len().next_power_of_two() - chunk.len());
        chunk.iter().chain(repeated.flatten()).cloned().collect()
    })
}

/// Builds a query from optional conditions.
pub(crate) struct QueryBuilder<'a> {
    sql: String,
    params: Vec<Param<'a>>,
}

impl<'a> QueryBuilder<'a> {
    pub(crate) fn new(select: &str) -> Self {
        Self { sql: select.to_owned(), params: Vec::with_capacity(8) }
    }

    /// Starts with `INSERT INTO table (columns) VALUES ($1, $2), ($3, $4)`. All rows have the same columns.
    pub(crate) fn insert<R: IntoIterator<Item = (&'static str, Param<'a>)>>(
        table: &str,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let mut query = Self::new("");
        for (index, row) in rows.into_iter().enumerate() {
            let (columns, params): (Vec<&str>, Vec<Param<'_>>) = row.into_iter().unzip();
            if index == 0 {
                query.text(&format!("INSERT INTO {table} ({}) VALUES (", columns.join(", ")));
            } else {
                query.text(", (");
            }
            for (column, param) in params.into_iter().enumerate() {
                query.bind(if column == 0 { "" } else { ", " }, param);
            }
            query.text(")");
        }
        query
    }

    /// Adds text and a parameter after it.
    fn bind(&mut self, text: &str, param: Param<'a>) {
        self.params.push(param);
        self.sql.push_str(&format!("{text}${}", self.params.len()));
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
            self.with(&format!(" OR {column} = $?"), venture);
        }
        self.text(")")
    }

    /// Limits the rows to these ventures, if they are limited, with a condition `IN`.
    pub(crate) fn among_ventures(&mut self, column: &str, ventures: Option<&'a [Venture]>) -> &mut Self {
        match ventures {
            None => self,
            Some([]) => self.text(" AND 1 = 0"),
            Some(ventures) => self.text(" AND ").among(column, ventures),
        }
    }

    /// Adds a condition on a path: the whole path, or its last components.
    pub(crate) fn names_file(&mut self, column: &str, file: &'a str) -> &mut Self {
        let ending = format!("/{file}");
        self.with(&format!(" AND ({column} = $?"), file);
        self.with(&format!(" OR substr({column}, length({column}) - length($?) + 1)"), ending.clone());
        self.with(" = $?)", ending)
    }

    /// Adds `expression IN (values)`.
    pub(crate) fn among(
        &mut self,
        expression: &str,
        values: impl IntoIterator<Item: Into<Param<'a>>>,
    ) -> &mut Self {
        self.text(expression).text(" IN (");
        for (index, value) in values.into_iter().enumerate() {
            self.bind(if index == 0 { "" } else { ", " }, value.into());
        }
        self.text(")")
    }

    /// Adds a list of equations such as `a = $1, b = $2`.
    pub(crate) fn equations(&mut self, values: Values<'a>, separator: &str) -> &mut Self {
        for (index, (column, value)) in values.into_iter().enumerate() {
            self.text(if index == 0 { "" } else { separator }).text(column).with(" = $?", value);
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
