//! Databases for the contract: empty databases of each kind, stores on them, and helpers to run work.

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

/// Number of connections of a store on PostgreSQL; SQLite always has one writer.
pub(super) const CONNECTIONS: usize = 4;

/// Folder of a SQLite file, which the store has to create.
const DATA_FOLDER: &str = "data";

/// Database and thread mode of a contract run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Database {
    /// A SQLite file, with background threads.
    Sqlite,
    /// A SQLite file, on the caller's thread.
    SqliteOnCaller,
    /// A PostgreSQL server, with background threads.
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

/// Runs one check on its own empty database, or skips it with a message if there is no server.
pub fn run(database: Database, check: fn(&TestStore)) {
    if let Some(place) = TestPlace::with_schema(database) {
        check(&TestStore::open(place));
    }
}

/// A database that was not opened yet, removed on drop.
#[derive(Debug)]
pub struct TestPlace {
    database: Database,
    config: StoreConfig,
    kept: Storage,
}

#[derive(Debug)]
enum Storage {
    Folder(TempDir),
    Server(TestDatabase),
}

impl TestPlace {
    /// Creates an empty database; `None` if it needs a server and there is none.
    pub fn create(database: Database) -> Option<Self> {
        Self::create_by(database, TestDatabase::create)
    }

    /// Creates a database for a store that does not test migrations; on a server it has the current schema.
    pub fn with_schema(database: Database) -> Option<Self> {
        Self::create_by(database, TestDatabase::with_schema)
    }

    fn create_by(database: Database, on_server: fn() -> Option<TestDatabase>) -> Option<Self> {
        match database {
            Database::Sqlite | Database::SqliteOnCaller => Some(Self::in_a_folder(database)),
            Database::Postgres | Database::PostgresOnCaller => {
                on_server().map(|server| Self::on_a_server(database, server))
            }
        }
    }

    fn in_a_folder(database: Database) -> Self {
        let folder = TempDir::new().unwrap();
        let path = folder.path().join(DATA_FOLDER).join("baton.db");
        let config = StoreConfig::Sqlite { path, threads: database.threads() };
        Self { database, config, kept: Storage::Folder(folder) }
    }

    /// Uses a database that was created on a server.
    pub fn on_a_server(database: Database, server: TestDatabase) -> Self {
        let url = server.url.clone();
        let config = StoreConfig::Postgres {
            url,
            threads: database.threads(),
            connections: CONNECTIONS,
            timeouts: PostgresTimeouts::default(),
        };
        Self { database, config, kept: Storage::Server(server) }
    }

    /// Opens a store. May be called several times.
    pub fn open(&self) -> Result<Store, StoreError> {
        Store::open(&self.config)
    }

    /// Returns the configuration of the store.
    pub const fn config(&self) -> &StoreConfig {
        &self.config
    }

    /// Inspects the database without opening a store.
    pub fn inspect(&self) -> Result<Health, StoreError> {
        Store::inspect(&self.config, Inspection::Full)
    }

    /// Runs SQL without the store, given for each database.
    pub fn execute(&self, sqlite: &str, postgres: &str) {
        match &self.kept {
            Storage::Folder(_) => {
                let path = self.file();
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                rusqlite::Connection::open(path).unwrap().execute_batch(sqlite).unwrap();
            }
            Storage::Server(server) => {
                on_server(server, |client| client.batch_execute(postgres));
            }
        }
    }

    /// Returns the stored content: every file, or the columns of every table and all schema versions.
    pub fn contents(&self) -> BTreeMap<String, Vec<u8>> {
        match &self.kept {
            Storage::Folder(folder) => {
                let entries = fs::read_dir(folder.path().join(DATA_FOLDER)).unwrap().map(Result::unwrap);
                entries
                    .map(|entry| {
                        (entry.file_name().to_string_lossy().into_owned(), fs::read(entry.path()).unwrap())
                    })
                    .collect()
            }
            Storage::Server(server) => {
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

    /// Returns the file of a SQLite database.
    ///
    /// # Panics
    ///
    /// Panics for a PostgreSQL database.
    pub fn file(&self) -> PathBuf {
        match &self.config {
            StoreConfig::Sqlite { path, .. } => path.clone(),
            StoreConfig::Postgres { .. } => panic!("a server is no file"),
        }
    }
}

/// Runs on a separate thread, because the client blocks on a runtime.
fn on_server<T: Send>(
    server: &TestDatabase,
    work: impl FnOnce(&mut Client) -> Result<T, postgres::Error> + Send,
) -> T {
    let run = || work(&mut Client::connect(&server.url, NoTls).unwrap()).unwrap();
    thread::scope(|scope| scope.spawn(run).join().unwrap())
}

/// An open store with its own database.
#[derive(Debug)]
pub struct TestStore {
    // Declared before the database, which it must not outlive.
    store: Store,
    place: TestPlace,
}

impl TestStore {
    /// Opens the first store of a database.
    pub fn open(place: TestPlace) -> Self {
        Self { store: place.open().unwrap(), place }
    }

    /// Opens another store on the same database, like another process.
    pub fn another(&self) -> Store {
        self.place.open().unwrap()
    }

    /// Returns the database of the store.
    pub const fn place(&self) -> &TestPlace {
        &self.place
    }

    /// Creates an empty database of the same kind.
    pub fn fresh_place(&self) -> TestPlace {
        TestPlace::create(self.place.database).unwrap()
    }

    /// Returns true if submitted work runs in the background.
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

/// Writes and expects success.
pub fn write<T: Send + 'static>(
    store: &Store,
    work: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> T {
    try_write(store, work).unwrap()
}

/// Writes and returns the result.
pub fn try_write<T: Send + 'static>(
    store: &Store,
    work: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    store.write_blocking(Durability::Full, work)
}

/// Reads and expects success.
pub fn read<T: Send + 'static>(
    store: &Store,
    work: impl FnMut(&mut dyn Tx) -> Result<T, StoreError> + Send + 'static,
) -> T {
    store.read::<_, StoreError, _>(work).wait().unwrap()
}
