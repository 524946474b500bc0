//! Reading and writing all rows of a PostgreSQL database, for archives.

use std::error::Error;
use std::time::Duration;

use tokio_postgres::types::private::BytesMut;
use tokio_postgres::types::{IsNull, ToSql, Type};
use tokio_postgres::{Row as SqlRow, Statement};

use super::client::Client;
use super::migrate::{begin_migration, check_version, create_version_table, migrate, run_migrations};
use super::open::{Scope, connect, limit_statements, parse};
use crate::archive::{
    ArchiveError, INDEX_TABLES, REBUILD_INDEX, Record, Replace, Row, Schema, Source, Table, Target, Value,
};
use crate::engine::{OlderSchema, PostgresTimeouts};
use crate::error::StoreError;
use crate::migration::LATEST_VERSION;

/// Timeout of one statement while an archive is read or written.
const STATEMENT_TIMEOUT: Duration = Duration::from_secs(3_600);
/// Number of rows fetched at a time.
const FETCHED_ROWS: usize = 500;
/// Number of rows fetched at a time from tables whose rows may have many megabytes.
const FETCHED_CONTENT_ROWS: usize = 8;

/// Opens a connection without an idle timeout, because a transaction may wait for a slow archive.
fn open(url: &str, timeouts: PostgresTimeouts) -> Result<Client, ArchiveError> {
    let mut client = connect(&parse(url, timeouts)?)?;
    client.batch_execute("SET idle_in_transaction_session_timeout = 0")?;
    limit_statements(&mut client, STATEMENT_TIMEOUT, Scope::Session)?;
    Ok(client)
}

/// Runs a query that is used once.
fn query(client: &mut Client, sql: &str, params: &[&(dyn ToSql + Sync)]) -> Result<Vec<SqlRow>, StoreError> {
    let statement = client.prepare(sql)?;
    Ok(client.query(&statement, params)?)
}

/// Returns the single value of a query.
fn value<T: for<'a> tokio_postgres::types::FromSql<'a>>(
    client: &mut Client,
    sql: &str,
    params: &[&(dyn ToSql + Sync)],
) -> Result<T, StoreError> {
    let rows = query(client, sql, params)?;
    let row = rows.first().ok_or_else(|| StoreError::unavailable("a query gave no row"))?;
    Ok(row.try_get(0)?)
}

/// A database that is read in one transaction.
pub(crate) struct PostgresSource {
    client: Client,
}

/// Opens a database for reading every row. Also returns the schema version.
pub(crate) fn open_source(
    url: &str,
    timeouts: PostgresTimeouts,
) -> Result<(PostgresSource, i64), ArchiveError> {
    let mut client = open(url, timeouts)?;
    client.batch_execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")?;
    let version = check_version(&mut client)?;
    if version == 0 {
        return Err(ArchiveError::NoDatabase { place: "the address of BATON_DATABASE_URL".into() });
    }
    Ok((PostgresSource { client }, version))
}

impl Source for PostgresSource {
    fn rows(
        &mut self,
        table: &Table,
        each: &mut dyn FnMut(Row) -> Result<(), ArchiveError>,
    ) -> Result<(), ArchiveError> {
        let (columns, name) = (table.columns(), &table.name);
        let sql = format!("DECLARE archive_rows NO SCROLL CURSOR FOR SELECT {columns} FROM \"{name}\"");
        self.client.batch_execute(&sql)?;
        let portion = if table.content.is_some() { FETCHED_CONTENT_ROWS } else { FETCHED_ROWS };
        let fetch = self.client.prepare(&format!("FETCH {portion} FROM archive_rows"))?;
        loop {
            let rows = self.client.query(&fetch, &[])?;
            for row in &rows {
                each(read_row(table, row)?)?;
            }
            if rows.len() < portion {
                break;
            }
        }
        Ok(self.client.batch_execute("CLOSE archive_rows")?)
    }

    fn sequence(&mut self, table: &Table) -> Result<i64, ArchiveError> {
        let name = sequence_of(&mut self.client, table)?;
        let sql = format!("SELECT CASE WHEN is_called THEN last_value ELSE 0 END FROM {name}");
        Ok(value(&mut self.client, &sql, &[])?)
    }
}

/// Returns the sequence of a table's automatic ids, quoted for a statement.
fn sequence_of(client: &mut Client, table: &Table) -> Result<String, StoreError> {
    let key = table.key().next().map(|index| table.fields[index].name.clone()).unwrap_or_default();
    let sql = "SELECT pg_get_serial_sequence(quote_ident($1), $2)";
    let name: Option<String> = value(client, sql, &[&table.name, &key])?;
    name.ok_or_else(|| StoreError::unavailable(format!("{} has no sequence", table.name)))
}

fn read_row(table: &Table, row: &SqlRow) -> Result<Row, StoreError> {
    let value = |column: usize| {
        let kind = row.columns()[column].type_();
        let value = match *kind {
            Type::BOOL => {
                row.try_get::<_, Option<bool>>(column).map(|flag| flag.map(i64::from).map(Value::Int))
            }
            Type::INT8 => row.try_get::<_, Option<i64>>(column).map(|number| number.map(Value::Int)),
            Type::INT4 => {
                row.try_get::<_, Option<i32>>(column).map(|number| number.map(i64::from).map(Value::Int))
            }
            Type::TEXT | Type::VARCHAR => {
                row.try_get::<_, Option<String>>(column).map(|text| text.map(Value::Text))
            }
            Type::BYTEA => row.try_get::<_, Option<Vec<u8>>>(column).map(|bytes| bytes.map(Value::Bytes)),
            _ => {
                return Err(StoreError::unavailable(format!("{} has a value of type {kind}", table.name)));
            }
        };
        Ok(value?.unwrap_or(Value::Null))
    };
    let fields = (0..table.fields.len()).map(value).collect::<Result<Record, StoreError>>()?;
    let blob = match table.content {
        Some(_) => row.try_get(table.fields.len())?,
        None => None,
    };
    Ok(Row { fields, blob })
}

/// A database that is written in one transaction.
pub(crate) struct PostgresTarget {
    client: Client,
    version: i64,
    /// Prepared statement that inserts a number of rows: table, number of rows, statement.
    insertion: Option<(String, usize, Statement)>,
}

impl PostgresTarget {
    const fn new(client: Client, version: i64) -> Self {
        Self { client, version, insertion: None }
    }
}

/// Opens a database for adding records. Creates and migrates the schema if necessary.
pub(crate) fn open_target(url: &str, timeouts: PostgresTimeouts) -> Result<PostgresTarget, ArchiveError> {
    let mut client = open(url, timeouts)?;
    migrate(&mut client, OlderSchema::Migrate)?;
    client.batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED")?;
    Ok(PostgresTarget::new(client, LATEST_VERSION))
}

/// Prepares a database for replacement: moves its tables to a separate schema, or drops them if they are empty, and
/// creates an empty schema of `version`. Everything happens in one transaction.
pub(crate) fn open_replacement(
    url: &str,
    timeouts: PostgresTimeouts,
    version: i64,
    how: &Replace<'_>,
) -> Result<(PostgresTarget, Option<String>), ArchiveError> {
    let mut client = open(url, timeouts)?;
    refuse_others(&mut client)?;
    begin_migration(&mut client)?;
    let schema = Schema::at(check_version(&mut client)?)?;
    let (mut has_rows, mut has_data) = (false, false);
    for table in &schema.tables {
        let sql = format!("SELECT EXISTS (SELECT 1 FROM \"{}\")", table.name);
        let found: bool = value(&mut client, &sql, &[])?;
        has_rows |= found;
        has_data |= found && table.is_data();
    }
    if has_data && !how.force {
        return Err(ArchiveError::NotEmpty);
    }
    let names = schema.tables.iter().map(|table| table.name.as_str());
    let names = names.chain(INDEX_TABLES).chain(["baton_schema"]);
    let kept = has_rows.then(|| format!("baton_replaced_{}", how.stamp.to_lowercase()));
    if let Some(kept) = &kept {
        client.batch_execute(&format!("CREATE SCHEMA \"{kept}\""))?;
    }
    for name in names {
        let sql = match &kept {
            Some(kept) => format!("ALTER TABLE IF EXISTS \"{name}\" SET SCHEMA \"{kept}\""),
            None => format!("DROP TABLE IF EXISTS \"{name}\""),
        };
        client.batch_execute(&sql)?;
    }
    create_version_table(&mut client)?;
    run_migrations(&mut client, 0, version)?;
    Ok((PostgresTarget::new(client, version), kept.map(|name| format!("schema {name}"))))
}

/// Fails if other Baton processes are connected.
fn refuse_others(client: &mut Client) -> Result<(), ArchiveError> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() \
               AND application_name = 'baton' AND pid <> pg_backend_pid()";
    let others: i64 = value(client, sql, &[])?;
    if others == 0 {
        return Ok(());
    }
    Err(ArchiveError::InUse { who: format!("{others} other connections of Baton are open") })
}

impl ToSql for Value {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Box<dyn Error + Sync + Send>> {
        match self {
            Self::Null | Self::Missing(_) => Ok(IsNull::Yes),
            Self::Int(number) if *ty == Type::BOOL => (*number != 0).to_sql(ty, out),
            Self::Int(number) if *ty == Type::INT4 => i32::try_from(*number)?.to_sql(ty, out),
            Self::Int(number) => number.to_sql(ty, out),
            Self::Text(text) => text.to_sql(ty, out),
            Self::Bytes(bytes) => bytes.to_sql(ty, out),
        }
    }

    fn accepts(ty: &Type) -> bool {
        [Type::BOOL, Type::INT4, Type::INT8, Type::TEXT, Type::VARCHAR, Type::BYTEA].contains(ty)
    }

    tokio_postgres::types::to_sql_checked!();
}

impl Target for PostgresTarget {
    fn insert(&mut self, table: &Table, rows: &[Row]) -> Result<u64, StoreError> {
        let statement = match &self.insertion {
            Some((name, count, statement)) if *name == table.name && *count == rows.len() => {
                statement.clone()
            }
            _ => {
                let statement = self.client.prepare(&insertion(table, rows.len()))?;
                self.insertion = Some((table.name.clone(), rows.len(), statement.clone()));
                statement
            }
        };
        let blobs: Vec<Option<&str>> = rows.iter().map(|row| row.blob.as_deref()).collect();
        let mut values: Vec<&(dyn ToSql + Sync)> = Vec::with_capacity(rows.len() * table.width());
        for (row, blob) in rows.iter().zip(&blobs) {
            values.extend(row.fields.iter().map(|value| value as &(dyn ToSql + Sync)));
            if table.content.is_some() {
                values.push(blob);
            }
        }
        Ok(self.client.execute(&statement, &values)?)
    }

    fn find(&mut self, table: &Table, record: &Record) -> Result<Option<Row>, StoreError> {
        let sql =
            format!("SELECT {} FROM \"{}\" WHERE {}", table.columns(), table.name, table.key_condition());
        let key: Vec<&(dyn ToSql + Sync)> =
            table.key().map(|index| &record[index] as &(dyn ToSql + Sync)).collect();
        let rows = query(&mut self.client, &sql, &key)?;
        rows.first().map(|row| read_row(table, row)).transpose()
    }

    fn advance_sequence(&mut self, table: &Table, last: i64) -> Result<(), StoreError> {
        let name = sequence_of(&mut self.client, table)?;
        // Other connections may have taken higher numbers.
        let sql = format!(
            "SELECT setval('{name}', greatest($1, last_value)) FROM {name} \
             WHERE $1 >= last_value AND $1 > 0"
        );
        query(&mut self.client, &sql, &[&last]).map(|_| ())
    }

    fn commit(mut self: Box<Self>) -> Result<(), StoreError> {
        run_migrations(&mut self.client, self.version, LATEST_VERSION)?;
        self.client.batch_execute(REBUILD_INDEX)?;
        Ok(self.client.batch_execute("COMMIT")?)
    }
}

/// Returns the statement that inserts a number of rows.
fn insertion(table: &Table, rows: usize) -> String {
    let width = table.width();
    let row = |index: usize| {
        let places: Vec<String> = (1..=width).map(|column| format!("${}", index * width + column)).collect();
        format!("({})", places.join(", "))
    };
    format!(
        "INSERT INTO \"{}\" ({}) OVERRIDING SYSTEM VALUE VALUES {} ON CONFLICT DO NOTHING",
        table.name,
        table.columns(),
        (0..rows).map(row).collect::<Vec<_>>().join(", ")
    )
}
