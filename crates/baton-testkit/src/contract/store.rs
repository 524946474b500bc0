//! Databases for the contract: empty places of each kind, stores on them, and short ways to run work.

use std::collections::BTreeMap;
use std::fs;
use std::ops::Deref;
use std::path::PathBuf;
use std::thread;

use baton_store::{
    Durability, Health, Inspection, PostgresTimeouts, Store, StoreConfig, StoreError, Threads, Tx,
};
use postgres::{Client, NoTls};
use tempfile::TempDir;

use crate::postgres::TestDatabase;

/// How many connections a store on PostgreSQL opens; SQLite has one writer however many it is asked for.
pub(super) const CONNECTIONS: usize = 4;

/// The folder of a SQLite file, which the store has to make.
const DATA: &str = "data";

/// What the contract is run on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file, with the store's own threads.
    Sqlite,
    /// A SQLite file, on the caller's thread.
    SqliteOnCaller,
    /// A PostgreSQL server, with the store's own threads.
    Postgres,
    /// A PostgreSQL server, on the caller's thread.
    PostgresOnCaller,
}

impl Database {
    const fn threads(self) -> Threads {
        match self {
            Self::Sqlite | Self::Postgres => Threads::Background,
            Self::SqliteOnCaller | Self::PostgresOnCaller => Threads::Caller,
        }
    }
}

/// Runs one check on an empty database of its own, or leaves it out in plain sight when there is no server.
pub fn run(database: Database, check: fn(&TestStore)) {
    if let Some(place) = TestPlace::create(database) {
        check(&TestStore::open(place));
    }
}

/// A database that nobody has opened yet; it goes away with this value.
#[derive(Debug)]
pub struct TestPlace {
    database: Database,
    config: StoreConfig,
    kept: Kept,
}

/// What holds the database up.
#[derive(Debug)]
enum Kept {
    Folder(TempDir),
    Server(TestDatabase),
}

impl TestPlace {
    /// Makes a place, or none when it needs a server and there is none.
    pub fn create(database: Database) -> Option<Self> {
        match database {
            Database::Sqlite | Database::SqliteOnCaller => Some(Self::in_a_folder(database)),
            Database::Postgres | Database::PostgresOnCaller => {
                TestDatabase::create().map(|server| Self::on_a_server(database, server))
            }
        }
    }

    fn in_a_folder(database: Database) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(DATA).join("baton.db");
        let config = StoreConfig::Sqlite { path, threads: database.threads() };
        Self { database, config, kept: Kept::Folder(folder) }
    }

    /// Takes a database that was made on a server.
    pub fn on_a_server(database: Database, server: TestDatabase) -> Self {
        let url = server.url.clone();
        let config = StoreConfig::Postgres {
            url,
            threads: database.threads(),
            connections: CONNECTIONS,
            timeouts: PostgresTimeouts::default(),
        };
        Self { database, config, kept: Kept::Server(server) }
    }

    /// Opens a store here, as often as wanted.
    pub fn open(&self) -> Result<Store, StoreError> {
        Store::open(&self.config)
    }

    /// Where it is, for whoever opens it otherwise.
    pub const fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// Looks the database over, without opening a store.
    pub fn inspect(&self) -> Result<Health, StoreError> {
        Store::inspect(&self.config, Inspection::Full)
    }

    /// Runs SQL past the store, spelt for each database.
    pub fn execute(&self, sqlite: &str, postgres: &str) {
        match &self.kept {
            Kept::Folder(_) => {
                let path = self.file();
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                rusqlite::Connection::open(path).unwrap().execute_batch(sqlite).unwrap();
            }
            Kept::Server(server) => {
                on_server(server, |client| client.batch_execute(postgres));
            }
        }
    }

    /// Takes down what is stored: every file to the byte, or every table's columns and all schema versions.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        match &self.kept {
            Kept::Folder(folder) => {
                let entries = fs::read_dir(folder.path().join(DATA)).unwrap().map(Result::unwrap);
                entries
                    .map(|entry| {
                        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap())
                    })
                    .collect()
            }
            Kept::Server(server) => {
                let rows = on_server(server, |client| {
                    client.query(
                        "SELECT table_name || '.' || column_name, data_type FROM information_schema.columns \
                         WHERE table_schema = 'public' \
                         UNION ALL SELECT 'version ' || version, name FROM baton_schema",
                        &[],
                    )
                });
                rows.iter().map(|row| (row.get(0), row.get::<_, String>(1).into_bytes())).collect()
            }
        }
    }

    /// Names the file of a SQLite database.
    ///
    /// # Panics
    ///
    /// On a server.
    pub fn file(&self) -> PathBuf {
        match &self.config {
            StoreConfig::Sqlite { path, .. } => path.clone(),
            StoreConfig::Postgres { .. } => panic!("a server is no file"),
        }
    }
}

/// Runs on a thread of its own, as the client blocks on a runtime.
fn on_server<T: Send>(
    server: &TestDatabase,
    work: impl FnOnce(&mut Client) -> Result<T, postgres::Error> + Send,
) -> T {
    let run = || work(&mut Client::connect(&server.url, NoTls).unwrap()).unwrap();
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// An open store on a place of its own.
#[derive(Debug)]
pub struct TestStore {
    // Before the place, which it must not outlive.
    store: Store,
    place: TestPlace,
}

impl TestStore {
    /// Opens the first store of a place.
    pub fn open(place: TestPlace) -> Self {
        Self { store: place.open().unwrap(), place }
    }

    /// Opens one more store on the same database, as another process would.
    pub fn another(&self) -> Store {
        self.place.open().unwrap()
    }

    /// Where the store is.
    pub const fn place(&self) -> &TestPlace {
        &self.place
    }

    /// Makes an empty place of the same kind.
    pub fn fresh_place(&self) -> TestPlace {
        TestPlace::create(self.place.database).unwrap()
    }

    /// Tells whether submitting work returns before it is run.
    pub fn runs_in_background(&self) -> bool {
        self.place.database.threads() == Threads::Background
    }
}

impl Deref for TestStore {
    type Target = Store;
    fn deref(&self) -> &Store {
        &self.store
    }
}

/// Writes, and expects it to succeed.
pub fn write<T: Send + 'static>(
    store: &Store,
    work: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> T {
    try_write(store, work).unwrap()
}

/// Writes, and gives what came of it.
pub fn try_write<T: Send + 'static>(
    store: &Store,
    work: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    store.write_blocking(Durability::Full, work)
}

/// Reads, and expects it to succeed.
pub fn read<T: Send + 'static>(
    store: &Store,
    work: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> T {
    store.read::<_, StoreError, _>(work).wait().unwrap()
}
