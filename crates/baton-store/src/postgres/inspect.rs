//! Inspection of a database without changing it.

use crate::engine::{Health, PostgresTimeouts};
use crate::error::StoreError;
use crate::postgres::migrate::check_version;
use crate::postgres::open::{connect, parse};
use crate::postgres::sql::store_error;

/// Returns the versions of the server and of the schema.
pub(crate) fn inspect(url: &str, timeouts: PostgresTimeouts) -> Result<Health, StoreError> {
    let mut client = connect(&parse(url, timeouts)?)?;
    let show = client.prepare("SHOW server_version").map_err(store_error)?;
    let rows = client.query(&show, &[]).map_err(store_error)?;
    let version =
        rows.first().map(|row| row.try_get(0)).transpose().map_err(|error| store_error(error.into()))?;
    Ok(Health {
        engine: "postgres",
        engine_version: version.unwrap_or_default(),
        schema_version: check_version(&mut client)?,
        problems: Vec::new(),
    })
}
