//! Lower bound for comparisons: a minimal process that opens SQLite like Baton, inserts one row durably and exits.
#![expect(clippy::expect_used, reason = "a bench fails loudly")]

use rusqlite::Connection;

fn main() {
    let path = std::env::args().nth(1).expect("a database file");
    let connection = Connection::open(path).expect("the database opens");
    connection
        .execute_batch(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; CREATE TABLE IF NOT EXISTS t (v TEXT)",
        )
        .expect("it is set up");
    connection.execute("INSERT INTO t VALUES (?1)", ["x".repeat(200)]).expect("a row");
}
