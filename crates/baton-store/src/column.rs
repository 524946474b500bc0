//! Values of columns: how each type is bound to a statement and read from a row.

use std::borrow::Cow;
use std::convert::Infallible;

use baton_core::checkpoint::{CheckpointStatus, WorkflowId};
use baton_core::observation::{FunctionChange, QueueStatus, TurnId, TurnStatus};
use baton_core::recall::{ItemKind, MarkKind};
use baton_core::task::{Role, TaskId, TaskStatus};
use baton_core::{
    Access, ActorKeyId, Agent, CheckpointId, ClientSessionId, CorrelationId, EndReason, HandoffAuthor,
    HandoffId, Label, NoteId, NoteKind, ObservationId, Repo, SessionId, SessionStatus, Sha256Hash, Timestamp,
    TokenId, Track, Venture,
};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::error::StoreError;
use crate::frame::Encoding;

/// A value bound to a statement.
#[derive(Debug, Clone)]
pub(crate) enum Param<'a> {
    Null,
    Int(i64),
    Bool(bool),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
}

/// Values of named columns.
pub(crate) type Values<'a> = Vec<(&'static str, Param<'a>)>;

impl<'a> From<&'a str> for Param<'a> {
    fn from(text: &'a str) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<&'a String> for Param<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for Param<'_> {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl<'a> From<&'a [u8]> for Param<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Bytes(bytes.into())
    }
}

impl From<bool> for Param<'_> {
    fn from(flag: bool) -> Self {
        Self::Bool(flag)
    }
}

impl<'a, T: Into<Param<'a>>> From<Option<T>> for Param<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// The columns of one row, by position. A null is `None`.
pub(crate) trait Columns {
    fn int(&self, column: usize) -> Result<Option<i64>, StoreError>;
    fn bool(&self, column: usize) -> Result<Option<bool>, StoreError>;
    fn text(&self, column: usize) -> Result<Option<String>, StoreError>;
    fn bytes(&self, column: usize) -> Result<Option<Vec<u8>>, StoreError>;
}

/// Reads the columns of a row in their order. An invalid value is reported as corruption and never replaced by a default.
pub(crate) struct Row<'a> {
    sql: &'a str,
    columns: &'a dyn Columns,
    next: usize,
}

impl<'a> Row<'a> {
    /// Starts at the first column of a row that `sql` returned.
    pub(crate) fn new(sql: &'a str, columns: &'a dyn Columns) -> Self {
        Self { sql, columns, next: 0 }
    }

    /// Reads a value from the next column, or a record from the next columns.
    pub(crate) fn get<T: FromRow>(&mut self) -> Result<T, StoreError> {
        T::from_row(self)
    }

    fn column<T>(
        &mut self,
        read: fn(&dyn Columns, usize) -> Result<Option<T>, StoreError>,
    ) -> Result<Option<T>, StoreError> {
        self.next += 1;
        read(self.columns, self.next - 1)
    }

    /// Reads the next column as a number and converts it.
    fn int<T, E: ToString>(&mut self, load: fn(i64) -> Result<T, E>) -> Result<Option<T>, StoreError> {
        let number = self.column(|columns, column| columns.int(column))?;
        number.map(load).transpose().map_err(|problem| self.wrong(problem))
    }

    /// Reads the next column as text and converts it.
    pub(crate) fn text<T, E: ToString>(
        &mut self,
        load: impl FnOnce(String) -> Result<T, E>,
    ) -> Result<Option<T>, StoreError> {
        let text = self.column(|columns, column| columns.text(column))?;
        text.map(load).transpose().map_err(|problem| self.wrong(problem))
    }

    /// Returns the error for an invalid value in the column that was read last.
    pub(crate) fn wrong(&self, problem: impl ToString) -> StoreError {
        self.corrupt(format!("column {}: {}", self.next - 1, problem.to_string()))
    }

    fn corrupt(&self, problem: String) -> StoreError {
        // The first table that the statement names.
        let mut words = self.sql.split_ascii_whitespace();
        let _ = words.find(|word| matches!(*word, "FROM" | "INTO" | "UPDATE"));
        StoreError::corrupt(words.next().unwrap_or_default(), problem)
    }
}

/// Anything that is read from the next columns of a row: a value, several values, or a record.
pub(crate) trait FromRow: Sized {
    fn from_row(row: &mut Row<'_>) -> Result<Self, StoreError>;
}

impl<T: Column> FromRow for T {
    fn from_row(row: &mut Row<'_>) -> Result<Self, StoreError> {
        T::read(row)?.ok_or_else(|| row.corrupt(format!("column {} is null", row.next - 1)))
    }
}

/// For queries that only find out whether there is a row.
impl FromRow for () {
    fn from_row(_: &mut Row<'_>) -> Result<Self, StoreError> {
        Ok(())
    }
}

impl<A: FromRow, B: FromRow> FromRow for (A, B) {
    fn from_row(row: &mut Row<'_>) -> Result<Self, StoreError> {
        Ok((row.get()?, row.get()?))
    }
}

impl<A: FromRow, B: FromRow, C: FromRow> FromRow for (A, B, C) {
    fn from_row(row: &mut Row<'_>) -> Result<Self, StoreError> {
        Ok((row.get()?, row.get()?, row.get()?))
    }
}

/// A value that is stored in one column.
pub(crate) trait Column: Sized {
    /// Returns the value to be bound.
    fn param(&self) -> Result<Param<'_>, StoreError>;

    /// Reads the next column; `None` if it is null.
    fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError>;
}

impl<T: Column> Column for Option<T> {
    fn param(&self) -> Result<Param<'_>, StoreError> {
        self.as_ref().map_or(Ok(Param::Null), Column::param)
    }

    fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
        T::read(row).map(Some)
    }
}

impl Column for bool {
    fn param(&self) -> Result<Param<'_>, StoreError> {
        Ok((*self).into())
    }

    fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
        row.column(|columns, column| columns.bool(column))
    }
}

impl Column for String {
    fn param(&self) -> Result<Param<'_>, StoreError> {
        Ok(self.into())
    }

    fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
        row.column(|columns, column| columns.text(column))
    }
}

impl Column for Vec<u8> {
    fn param(&self) -> Result<Param<'_>, StoreError> {
        Ok(self.as_slice().into())
    }

    fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
        row.column(|columns, column| columns.bytes(column))
    }
}

impl<const N: usize> From<[u8; N]> for Param<'_> {
    fn from(bytes: [u8; N]) -> Self {
        Self::Bytes(bytes.to_vec().into())
    }
}

impl<const N: usize> Column for [u8; N] {
    fn param(&self) -> Result<Param<'_>, StoreError> {
        Ok((*self).into())
    }

    fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
        let bytes = Vec::read(row)?.map(Self::try_from).transpose();
        bytes.map_err(|_| row.wrong(format!("is not {N} bytes")))
    }
}

/// Types that are stored as an integer, each with the conversion to the integer and the conversion from it.
macro_rules! integer_columns {
    ($($type:ty: $store:expr, $load:expr;)+) => {$(
        impl From<$type> for Param<'_> {
            fn from(value: $type) -> Self {
                let store: fn($type) -> i64 = $store;
                Self::Int(store(value))
            }
        }

        impl Column for $type {
            fn param(&self) -> Result<Param<'_>, StoreError> {
                Ok((*self).into())
            }

            fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
                row.int($load)
            }
        }
    )+};
}

integer_columns! {
    i64: |number| number, Ok::<i64, Infallible>;
    u16: i64::from, u16::try_from;
    u32: i64::from, u32::try_from;
    // For counts and sizes. Values above `i64::MAX` are stored as `i64::MAX`.
    u64: |number| i64::try_from(number).unwrap_or(i64::MAX), u64::try_from;
    Timestamp: Timestamp::as_millis, Timestamp::try_from_millis;
    Track: Track::number, Track::try_from;
    TurnId: TurnId::number, |number| Ok::<_, Infallible>(TurnId::new(number));
}

/// Names, which are stored as they are.
macro_rules! name_columns {
    ($($type:ty),+ $(,)?) => {$(
        impl<'a> From<&'a $type> for Param<'a> {
            fn from(name: &'a $type) -> Self {
                name.as_str().into()
            }
        }

        impl Column for $type {
            fn param(&self) -> Result<Param<'_>, StoreError> {
                Ok(self.into())
            }

            fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
                row.text(|text| text.parse())
            }
        }
    )+};
}

name_columns! {
    ActorKeyId, Agent, ClientSessionId, CorrelationId, Label, Repo, Role, TaskId, TokenId, Venture, WorkflowId,
}

/// Ids and hashes, which are stored as they are formatted.
macro_rules! id_columns {
    ($($type:ty),+ $(,)?) => {$(
        impl From<$type> for Param<'_> {
            fn from(id: $type) -> Self {
                id.to_string().into()
            }
        }

        impl Column for $type {
            fn param(&self) -> Result<Param<'_>, StoreError> {
                Ok((*self).into())
            }

            fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
                row.text(|text| text.parse())
            }
        }
    )+};
}

id_columns!(CheckpointId, HandoffId, NoteId, ObservationId, SessionId, Sha256Hash);

/// Enums, which are stored by name.
macro_rules! enum_columns {
    ($($type:ty: $problem:literal;)+) => {$(
        impl From<$type> for Param<'_> {
            fn from(value: $type) -> Self {
                value.as_str().into()
            }
        }

        impl Column for $type {
            fn param(&self) -> Result<Param<'_>, StoreError> {
                Ok((*self).into())
            }

            fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
                row.text(|text| <$type>::from_wire(&text).ok_or($problem))
            }
        }
    )+};
}

enum_columns! {
    Access: "unknown access";
    CheckpointStatus: "unknown status";
    Encoding: "unknown encoding";
    EndReason: "unknown end reason";
    HandoffAuthor: "unknown author";
    ItemKind: "unknown kind";
    MarkKind: "unknown kind";
    NoteKind: "unknown kind";
    QueueStatus: "unknown status";
    SessionStatus: "unknown status";
    TaskStatus: "unknown status";
    TurnStatus: "unknown status";
}

/// Encodes the value of a JSON column.
pub(crate) fn json(value: &impl Serialize) -> Result<String, StoreError> {
    let failed = |error: serde_json::Error| StoreError::Encode {
        action: "encode a value as JSON",
        source: error.into(),
    };
    serde_json::to_string(value).map_err(failed)
}

/// Types that are stored as JSON.
macro_rules! json_columns {
    ($($type:ty),+ $(,)?) => {$(
        impl Column for $type {
            fn param(&self) -> Result<Param<'_>, StoreError> {
                Ok(json(self)?.into())
            }

            fn read(row: &mut Row<'_>) -> Result<Option<Self>, StoreError> {
                row.text(|text| serde_json::from_str(&text))
            }
        }
    )+};
}

json_columns!(Map<String, Value>, Vec<FunctionChange>, Vec<Label>, Vec<String>);
