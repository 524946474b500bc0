//! Inspection of a database without changing it.

use crate::engine::{Health, PostgresTimeouts};
use crate::error::StoreError;
use crate::postgres::migrate::check_version;
use crate::postgres::open::{connect, parse};

/// Returns the versions of the server and of the schema.
pub(crate) fn inspect(url: &str, timeouts: PostgresTimeouts) -> Result<Health, StoreError> {
    let mut client = connect(&parse(url, timeouts)?)?;
    let show = client.prepare("SHOW server_version")?;
    let rows = client.query(&show, &[])?;
    let version = rows.first().map(|row| row.try_get(0)).transpose()?;
    Ok(Health {
        engine: "postgres",
        engine_version: version.unwrap_or_default(),
        schema_version: check_version(&mut client)?,
        problems: Vec::new(),
    })
}
