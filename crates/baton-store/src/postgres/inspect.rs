//! Looking a database over without changing it.

use crate::error::StoreError;
use crate::postgres::migrate::gate;
use crate::postgres::open::{connect, parse};
use crate::postgres::sql::store_error;
use crate::store::Health;

/// Asks the server for its version and the schema's.
pub(crate) fn inspect(url: &str) -> Result<Health, StoreError> {
    let mut client = connect(&parse(url)?)?;
    let row = client.query_one("SHOW server_version", &[]).map_err(store_error)?;
    Ok(Health {
        engine: "postgres",
        engine_version: row.try_get(0).map_err(store_error)?,
        schema_version: gate(&mut client)?,
        problems: Vec::new(),
    })
}
