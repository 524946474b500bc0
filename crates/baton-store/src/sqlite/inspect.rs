//! Inspection of a file without changing it.

use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use crate::engine::{Health, Inspection};
use crate::error::StoreError;
use crate::sqlite::open::{check_version, is_read_only, open_read_only};

/// Reads the schema version and, for a full inspection, checks every page.
pub(crate) fn inspect(path: &Path, inspection: Inspection) -> Result<Health, StoreError> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    let (connection, schema_version) = match check_version(&connection) {
        Ok(version) => (connection, version),
        Err(error) if is_read_only(path) || matches!(error, StoreError::Full) => {
            let connection = open_read_only(path)?;
            let version = check_version(&connection)?;
            (connection, version)
        }
        Err(error) => return Err(error),
    };
    let problems = match inspection {
        Inspection::Quick => Vec::new(),
        Inspection::Full => integrity_problems(&connection)?,
    };
    Ok(Health { engine: "sqlite", engine_version: rusqlite::version().to_owned(), schema_version, problems })
}

/// Returns the problems that SQLite finds, except those of the search index, which has its own check and can be rebuilt
/// from the other tables.
fn integrity_problems(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let mut statement = connection.prepare("PRAGMA integrity_check(10)")?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
    let lines = rows.collect::<Result<Vec<_>, _>>()?;
    let is_problem = |line: &String| line != "ok" && !line.contains("recall_index");
    Ok(lines.into_iter().filter(is_problem).collect())
}
