//! Records: structs whose fields are the columns of a table, declared once with `record!`.

use crate::column::{FromRow, Param, Values};
use crate::error::StoreError;
use crate::sql::QueryBuilder;
use crate::tx::Tx;

/// A struct that is stored in the columns of a table.
pub(crate) trait Record: FromRow {
    const TABLE: &'static str;
    /// The columns in the order in which they are read.
    const COLUMNS: &'static [&'static str];

    fn values(&self) -> Result<Values<'_>, StoreError>;
}

/// Implements [`Record`]. Each field is stored in the column of its name, or of the name after `as`. The fields of a
/// struct inside the record are listed after the others, and are columns of the same table. Fields after `..` are not
/// stored and have the given value.
macro_rules! record {
    (
        $table:literal, $record:ident { $($field:ident $(as $column:ident)?),+ $(,)? }
        $($group:ident: $inner:ident { $($part:ident),+ $(,)? })*
        $(.. { $unstored:ident: $value:expr })?
    ) => {
        impl $crate::column::FromRow for $record {
            fn from_row(row: &mut $crate::column::Row<'_>) -> Result<Self, $crate::error::StoreError> {
                Ok(Self {
                    $($field: row.get()?,)+
                    $($group: $inner { $($part: row.get()?,)+ },)*
                    $($unstored: $value,)?
                })
            }
        }

        impl $crate::record::Record for $record {
            const TABLE: &'static str = $table;
            const COLUMNS: &'static [&'static str] = &[
                $($crate::record::column_name!($field $($column)?),)+
                $($(stringify!($part),)+)*
            ];

            fn values(&self) -> Result<$crate::column::Values<'_>, $crate::error::StoreError> {
                use $crate::column::Column;
                Ok(vec![
                    $(($crate::record::column_name!($field $($column)?), self.$field.param()?),)+
                    $($((stringify!($part), self.$group.$part.param()?),)+)*
                ])
            }
        }
    };
}

macro_rules! column_name {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $column:ident) => {
        stringify!($column)
    };
}

pub(crate) use {column_name, record};

/// Returns the columns of a record, with commas between them.
pub(crate) fn columns<T: Record>() -> String {
    T::COLUMNS.join(", ")
}

/// Returns `SELECT columns FROM table` and the rest of a query.
pub(crate) fn select<T: Record>(rest: &str) -> String {
    format!("SELECT {} FROM {} {rest}", columns::<T>(), T::TABLE)
}

/// Returns the clause of an insertion that replaces the columns of a row with the same key.
pub(crate) fn replacing(key: &str, columns: &[&str]) -> String {
    let replaced = columns.iter().filter(|column| key.split(", ").all(|part| part != **column));
    let replaced: Vec<String> = replaced.map(|column| format!("{column} = excluded.{column}")).collect();
    format!(" ON CONFLICT ({key}) DO UPDATE SET {}", replaced.join(", "))
}

impl dyn Tx + '_ {
    /// Lists records. `rest` follows the name of the table.
    pub(crate) fn records<T: Record>(
        &mut self,
        rest: &str,
        params: &[Param<'_>],
    ) -> Result<Vec<T>, StoreError> {
        self.query(&select::<T>(rest), params)
    }

    /// Finds at most one record. `rest` follows the name of the table.
    pub(crate) fn record<T: Record>(
        &mut self,
        rest: &str,
        params: &[Param<'_>],
    ) -> Result<Option<T>, StoreError> {
        self.query_one(&select::<T>(rest), params)
    }

    /// Adds a row. `rest` follows the values.
    pub(crate) fn insert(&mut self, table: &str, values: Values<'_>, rest: &str) -> Result<(), StoreError> {
        let mut query = QueryBuilder::insert(table, [values]);
        query.text(rest);
        self.run(query.sql(), query.params())
    }

    /// Updates columns in the row of a record, which is found by the columns of `key`.
    pub(crate) fn update<T: Record>(
        &mut self,
        record: &T,
        columns: &str,
        key: &str,
    ) -> Result<(), StoreError> {
        let values = record.values()?;
        let named = |name: &str| {
            let found = values.iter().find(|(column, _)| *column == name).cloned();
            found.ok_or_else(|| StoreError::corrupt(T::TABLE, format!("there is no column {name}")))
        };
        let mut query = QueryBuilder::new("UPDATE ");
        query.text(T::TABLE).text(" SET ");
        query.equations(columns.split(", ").map(named).collect::<Result<_, _>>()?, ", ").text(" WHERE ");
        query.equations(key.split(", ").map(named).collect::<Result<_, _>>()?, " AND ");
        self.run(query.sql(), query.params())
    }
}
