//! Archives of arbitrary stores: both databases and both formats preserve every record, and damage is detected.

use std::path::Path;

use baton_core::Timestamp;
use baton_testkit::postgres::TestDatabase;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::arbitrary::{Records, records};
use super::schema::{Field, Kind};
use super::*;
use crate::blobs::BlobFolder;
use crate::engine::{PostgresTimeouts, StoreConfig, Threads};
use crate::export::export;
use crate::import::{Imported, import, replace};
use crate::migration::LATEST_VERSION;

const AT: Timestamp = Timestamp::from_millis(1_768_644_000_000);

/// An archive in memory.
#[derive(Default)]
struct Memory {
    header: Option<Header>,
    tables: Vec<(ArchiveTable, Vec<Record>)>,
    totals: Totals,
    position: (usize, usize),
}

impl Memory {
    fn of(records: &Records) -> Self {
        let schema = Schema::at(LATEST_VERSION).unwrap();
        let tables = records
            .iter()
            .map(|(name, records)| (ArchiveTable(schema.table(name).unwrap()), records.clone()))
            .collect();
        Self { header: Some(Header::new(LATEST_VERSION, "memory", AT)), tables, ..Self::default() }
    }

    fn records(self) -> Records {
        let sorted = |(table, mut records): (ArchiveTable, Vec<Record>)| {
            records.sort();
            (table.name().to_owned(), records)
        };
        self.tables.into_iter().map(sorted).collect()
    }

    fn write_to(&self, writer: &mut dyn ArchiveWriter) {
        writer.begin(self.header.as_ref().unwrap()).unwrap();
        for (table, records) in &self.tables {
            writer.table(table).unwrap();
            records.iter().for_each(|record| writer.record(record).unwrap());
        }
        writer.finish().unwrap();
    }

    fn read_from(reader: &mut dyn ArchiveReader) -> Result<Self, ArchiveError> {
        let mut read = Self { header: Some(reader.header().clone()), ..Self::default() };
        while let Some(part) = reader.next()? {
            match part {
                ArchivePart::Table(table) => read.tables.push((table, Vec::new())),
                ArchivePart::Record(record) => read.tables.last_mut().unwrap().1.push(record),
            }
        }
        Ok(read)
    }
}

impl ArchiveWriter for Memory {
    fn begin(&mut self, header: &Header) -> Result<(), ArchiveError> {
        self.header = Some(header.clone());
        Ok(())
    }

    fn table(&mut self, table: &ArchiveTable) -> Result<(), ArchiveError> {
        self.tables.push((table.clone(), Vec::new()));
        Ok(())
    }

    fn record(&mut self, record: &Record) -> Result<(), ArchiveError> {
        self.tables.last_mut().unwrap().1.push(record.clone());
        Ok(())
    }

    fn finish(&mut self) -> Result<Totals, ArchiveError> {
        Ok(self.totals.clone())
    }
}

impl ArchiveReader for Memory {
    fn header(&self) -> &Header {
        self.header.as_ref().unwrap()
    }

    fn totals(&self) -> &Totals {
        &self.totals
    }

    fn next(&mut self) -> Result<Option<ArchivePart>, ArchiveError> {
        let (table, record) = self.position;
        let Some((name, records)) = self.tables.get(table) else { return Ok(None) };
        if record > records.len() {
            self.position = (table + 1, 0);
            return self.next();
        }
        self.position.1 += 1;
        Ok(Some(match record {
            0 => ArchivePart::Table(name.clone()),
            _ => ArchivePart::Record(records[record - 1].clone()),
        }))
    }
}

/// A store of either kind, with its blobs.
struct ArchivedStore {
    config: StoreConfig,
    blobs: Option<BlobFolder>,
}

impl ArchivedStore {
    fn sqlite(folder: &Path) -> Self {
        let config = StoreConfig::Sqlite { path: folder.join("baton.db"), threads: Threads::Caller };
        Self { config, blobs: Some(BlobFolder::at(folder.join("blobs"))) }
    }

    fn postgres(database: &TestDatabase) -> Self {
        let url = database.url.clone();
        let timeouts = PostgresTimeouts::default();
        let config = StoreConfig::Postgres { url, threads: Threads::Caller, connections: 1, timeouts };
        Self { config, blobs: None }
    }

    fn export(&self) -> Records {
        let mut memory = Memory::default();
        export(&self.config, self.blobs.as_ref(), &mut memory, AT).unwrap();
        memory.records()
    }

    fn try_replace(
        &self,
        records: &Records,
        stamp: &str,
        force: bool,
    ) -> Result<Option<String>, ArchiveError> {
        let how = Replace { blobs: self.blobs.as_ref(), force, stamp };
        replace(&self.config, &mut Memory::of(records), &how).map(|(_, kept)| kept)
    }

    fn import(&self, records: &Records, skip_conflicts: bool) -> Imported {
        import(&self.config, self.blobs.as_ref(), &mut Memory::of(records), skip_conflicts).unwrap()
    }
}

/// Returns the columns of a new PostgreSQL store.
fn postgres_columns(database: &TestDatabase) -> Vec<(String, String)> {
    crate::store::Store::open(&ArchivedStore::postgres(database).config).unwrap();
    let mut client = postgres::Client::connect(&database.url, postgres::NoTls).unwrap();
    let sql = "SELECT table_name::text, column_name::text FROM information_schema.columns \
               WHERE table_schema = 'public' AND table_name <> 'baton_schema' \
               AND table_name NOT LIKE 'recall!_%' ESCAPE '!'";
    let rows = client.query(sql, &[]).unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// The schema of archives is read from the SQLite migrations; PostgreSQL must have the same tables and columns.
#[test]
fn both_databases_have_the_same_tables_and_columns() {
    let Some(database) = TestDatabase::create() else { return };
    let mut found = postgres_columns(&database);
    found.sort();
    let schema = Schema::at(LATEST_VERSION).unwrap();
    let mut expected: Vec<(String, String)> = Vec::new();
    for table in &schema.tables {
        expected.extend(table.fields.iter().map(|field| (table.name.clone(), field.name.clone())));
        expected.extend(table.content.iter().map(|_| (table.name.clone(), "blob".to_owned())));
    }
    expected.sort();
    assert_eq!(found, expected);
}

#[test]
fn arbitrary_stores_survive_sqlite_postgres_sqlite_with_every_record_equal() {
    let Some(database) = TestDatabase::create() else { return };
    let seeds = prop::collection::vec(prop::collection::vec(any::<u64>(), 0..6), 1..9);
    let cases = std::cell::Cell::new(0);
    TestRunner::new(Config { cases: 8, ..Config::default() })
        .run(&seeds, |seeds| {
            cases.set(cases.get() + 1);
            let expected = records(&seeds);
            let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let first = ArchivedStore::sqlite(one.path());
            first.try_replace(&expected, "1", false).unwrap();
            prop_assert_eq!(&first.export(), &expected);
            let server = ArchivedStore::postgres(&database);
            server.try_replace(&first.export(), &format!("case{}", cases.get()), true).unwrap();
            let on_server = server.export();
            prop_assert_eq!(&on_server, &expected);
            let last = ArchivedStore::sqlite(two.path());
            last.import(&on_server, false);
            prop_assert_eq!(&last.export(), &expected);
            // Importing the same records again changes nothing.
            for place in [&first, &server, &last] {
                let Imported::Kept(report) = place.import(&expected, false) else { panic!("a conflict") };
                prop_assert_eq!((report.added, report.conflicting), (0, 0));
                prop_assert_eq!(&place.export(), &expected);
            }
            Ok(())
        })
        .unwrap();
}

#[test]
fn streams_and_folders_hold_every_record() {
    let expected = records(&[vec![1, 2, 3, 4, 5, 6, 7, 8], vec![11, 12, 13], vec![]]);
    let memory = Memory::of(&expected);
    let mut plain = Vec::new();
    memory.write_to(&mut StreamWriter::plain(&mut plain));
    let mut packed = Vec::new();
    memory.write_to(&mut StreamWriter::compressed(&mut packed).unwrap());
    for bytes in [&plain, &packed] {
        let read = Memory::read_from(&mut StreamReader::new(bytes.as_slice()).unwrap()).unwrap();
        assert_eq!((read.header.clone(), read.records()), (memory.header.clone(), expected.clone()));
    }
    assert!(std::str::from_utf8(&plain).unwrap().lines().all(|line| line.starts_with("{\"")));
    let folder = tempfile::tempdir().unwrap();
    memory.write_to(&mut FolderWriter::new(folder.path()).unwrap());
    let read = Memory::read_from(&mut FolderReader::new(folder.path()).unwrap()).unwrap();
    assert_eq!(read.records(), expected);
}

/// A small archive with content in a blob.
fn small_archive(compressed: bool) -> (Vec<u8>, Records) {
    let mut small = records(&[vec![1, 7]]);
    let frame =
        Schema::at(LATEST_VERSION).unwrap().table("checkpoints").unwrap().content.as_ref().unwrap().field;
    for record in small.get_mut("checkpoints").unwrap() {
        record[frame] = Value::Bytes(vec![7; 66_000]);
    }
    for record in small.get_mut("pending_queue").unwrap() {
        *record.last_mut().unwrap() = Value::Bytes(vec![8; 9]);
    }
    let mut bytes = Vec::new();
    let memory = Memory::of(&small);
    match compressed {
        true => memory.write_to(&mut StreamWriter::compressed(&mut bytes).unwrap()),
        false => memory.write_to(&mut StreamWriter::plain(&mut bytes)),
    }
    (bytes, memory.records())
}

fn read_all(bytes: &[u8]) -> Result<Records, ArchiveError> {
    Memory::read_from(&mut StreamReader::new(bytes)?).map(Memory::records)
}

#[test]
fn truncated_archives_are_rejected() {
    for compressed in [false, true] {
        let (bytes, _) = small_archive(compressed);
        let step = if compressed { 17 } else { 997 };
        for length in (0..bytes.len()).step_by(step) {
            assert!(read_all(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
        assert!(read_all(&[bytes.as_slice(), b"{}\n"].concat()).is_err(), "data after the end");
    }
}

#[test]
fn changed_archives_are_rejected_or_read_the_same() {
    for compressed in [false, true] {
        let (bytes, expected) = small_archive(compressed);
        let step = if compressed { 13 } else { 887 };
        let mut refused = 0;
        for position in (0..bytes.len()).step_by(step) {
            let mut changed = bytes.clone();
            changed[position] ^= 1 << (position % 8);
            match read_all(&changed) {
                Err(_) => refused += 1,
                // Some bits of a compressed frame only set its window size.
                Ok(read) => assert!(compressed && read == expected, "byte {position}"),
            }
        }
        assert!(refused > bytes.len() / step - 20, "{refused} of {}", bytes.len());
    }
}

#[test]
fn changed_folders_are_rejected() {
    let (_, expected) = small_archive(false);
    let changes: [fn(&Path); 6] = [
        |folder| std::fs::remove_file(folder.join("manifest.json")).unwrap(),
        |folder| std::fs::remove_file(folder.join("sessions.jsonl")).unwrap(),
        |folder| std::fs::remove_dir_all(folder.join("blobs")).unwrap(),
        |folder| {
            let text = std::fs::read_to_string(folder.join("sessions.jsonl")).unwrap();
            let (first, _) = text.split_once('\n').unwrap();
            std::fs::write(folder.join("sessions.jsonl"), format!("{first}\n")).unwrap();
        },
        |folder| {
            let text = std::fs::read_to_string(folder.join("handoffs.jsonl")).unwrap();
            std::fs::write(folder.join("handoffs.jsonl"), text.replacen("plain", "plane", 1) + " ").unwrap();
        },
        |folder| {
            let blob = std::fs::read_dir(folder.join("blobs")).unwrap().next().unwrap().unwrap().path();
            let mut bytes = std::fs::read(&blob).unwrap();
            bytes[4] ^= 1;
            std::fs::write(&blob, bytes).unwrap();
        },
    ];
    for change in changes {
        let folder = tempfile::tempdir().unwrap();
        Memory::of(&expected).write_to(&mut FolderWriter::new(folder.path()).unwrap());
        change(folder.path());
        let read = FolderReader::new(folder.path()).and_then(|mut reader| Memory::read_from(&mut reader));
        assert!(matches!(read, Err(ArchiveError::Damaged { .. })), "{:?}", read.map(Memory::records));
    }
}

#[test]
fn an_unreadable_file_is_named() {
    let (_, expected) = small_archive(false);
    for file in ["manifest.json", "sessions.jsonl"] {
        let folder = tempfile::tempdir().unwrap();
        Memory::of(&expected).write_to(&mut FolderWriter::new(folder.path()).unwrap());
        std::fs::remove_file(folder.path().join(file)).unwrap();
        // A folder can be opened but not read.
        std::fs::create_dir(folder.path().join(file)).unwrap();
        let read = FolderReader::new(folder.path()).and_then(|mut reader| Memory::read_from(&mut reader));
        let text = read.err().unwrap().to_string();
        assert!(text.starts_with(&format!("cannot read the archive: {file}: ")), "{text}");
    }
}

#[test]
fn newer_archives_are_rejected() {
    for (version, schema) in [(2, LATEST_VERSION), (1, LATEST_VERSION + 1)] {
        let header = Header { version, ..Header::new(schema, "sqlite", AT) };
        let mut bytes = Vec::new();
        let mut writer = StreamWriter::plain(&mut bytes);
        writer.begin(&header).unwrap();
        writer.finish().unwrap();
        drop(writer);
        assert!(matches!(StreamReader::new(bytes.as_slice()), Err(ArchiveError::Newer { .. })));
    }
}

/// One record of a table differs from the one in the store; another has the same unique values.
#[test]
fn conflicting_records_are_reported_and_nothing_is_overwritten() {
    let (_, stored) = small_archive(false);
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::create();
    let mut places = vec![ArchivedStore::sqlite(folder.path())];
    places.extend(database.as_ref().map(ArchivedStore::postgres));
    for place in places {
        place.try_replace(&stored, "1", true).unwrap();
        let mut other = stored.clone();
        let schema = Schema::at(LATEST_VERSION).unwrap();
        let column = |table: &str, name: &str| {
            schema.table(table).unwrap().fields.iter().position(|field| field.name == name).unwrap()
        };
        let (title, summary) = (column("tasks", "title"), column("observations", "summary"));
        other.get_mut("tasks").unwrap()[0][title] = Value::Text("another title".into());
        let mut rival = other["observations"][0].clone();
        rival[column("observations", "id")] = Value::Text("obs_rival".into());
        let mut fresh = rival.clone();
        fresh[column("observations", "id")] = Value::Text("obs_fresh".into());
        fresh[column("observations", "queue_id")] = Value::Int(-5);
        fresh[summary] = Value::Text("new".into());
        other.get_mut("observations").unwrap().extend([rival, fresh]);

        let Imported::Refused(report) = place.import(&other, false) else {
            panic!("the import was committed")
        };
        assert_eq!((report.added, report.conflicting), (1, 2), "{report:?}");
        let named: Vec<&str> = report.conflicts.iter().map(|conflict| conflict.table.as_str()).collect();
        assert_eq!(named, ["observations", "tasks"]);
        assert_eq!(report.conflicts[0].key, "obs_rival");
        assert_eq!(place.export(), stored, "the store must not change");

        let Imported::Kept(kept) = place.import(&other, true) else { panic!("the import was refused") };
        assert_eq!(kept, report);
        let mut expected = stored.clone();
        let observations = expected.get_mut("observations").unwrap();
        observations.extend(other["observations"].last().cloned());
        observations.sort();
        assert_eq!(place.export(), expected, "only the new record was added");
    }
}

#[test]
fn replacing_a_store_with_data_requires_force_and_keeps_it() {
    let (_, old) = small_archive(false);
    let new = records(&[vec![3], vec![5, 6]]);
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::create();
    let mut places = vec![ArchivedStore::sqlite(folder.path())];
    places.extend(database.as_ref().map(ArchivedStore::postgres));
    for place in places {
        assert_eq!(place.try_replace(&old, "first", false).unwrap(), None, "an empty store is not kept");
        let refused = place.try_replace(&new, "second", false);
        assert!(matches!(refused, Err(ArchiveError::NotEmpty)), "{refused:?}");
        assert_eq!(place.export(), old);
        let kept = place.try_replace(&old, "third", true).unwrap().unwrap();
        assert!(kept.contains("third"), "{kept}");
        assert_eq!(place.export(), old);
        if let StoreConfig::Sqlite { .. } = place.config {
            let aside = ArchivedStore::sqlite(&folder.path().join("replaced-third"));
            assert_eq!(aside.export(), old, "the kept store can be opened");
        }
    }
    if let Some(database) = &database {
        let mut client = postgres::Client::connect(&database.url, postgres::NoTls).unwrap();
        let count: i64 =
            client.query_one("SELECT count(*) FROM baton_replaced_third.checkpoints", &[]).unwrap().get(0);
        assert_eq!(count, old["checkpoints"].len() as i64);
    }
}

/// An id is not assigned again after a restore, even if its row was deleted.
#[test]
fn automatic_ids_continue_after_a_restore() {
    let (_, records) = small_archive(false);
    let of_queue = |row: &&Vec<Value>| matches!(&row[0], Value::Text(name) if name == "pending_queue");
    let last = match records[SEQUENCES].iter().find(of_queue).map(Vec::as_slice) {
        Some([_, Value::Int(last)]) => *last,
        other => panic!("{other:?}"),
    };
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::create();
    let mut places = vec![ArchivedStore::sqlite(folder.path())];
    places.extend(database.as_ref().map(ArchivedStore::postgres));
    for place in places {
        place.try_replace(&records, "1", true).unwrap();
        let sql = "INSERT INTO pending_queue (session_id, venture, repo, tool_name, files_touched, status, run_at, \
                   created_at, raw_bytes, raw_output) VALUES ('s', 'v', 'r', 't', '[]', 'raw', 1, 1, 1, '') \
                   RETURNING id";
        let id: i64 = match &place.config {
            StoreConfig::Sqlite { path, .. } => {
                let sql = sql.replace("'')", "x'')");
                rusqlite::Connection::open(path).unwrap().query_row(&sql, [], |row| row.get(0)).unwrap()
            }
            StoreConfig::Postgres { url, .. } => {
                postgres::Client::connect(url, postgres::NoTls).unwrap().query_one(sql, &[]).unwrap().get(0)
            }
        };
        assert_eq!(id, last + 1);
    }
}

/// A restore that fails part-way does not change the store.
#[test]
fn a_damaged_archive_changes_nothing() {
    let (_, old) = small_archive(false);
    let (bytes, _) = small_archive(true);
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::create();
    let mut places = vec![ArchivedStore::sqlite(folder.path())];
    places.extend(database.as_ref().map(ArchivedStore::postgres));
    for place in places {
        place.try_replace(&old, "1", true).unwrap();
        let how = Replace { blobs: place.blobs.as_ref(), force: true, stamp: "2" };
        let cut = &bytes[..bytes.len() - 30];
        let replaced = replace(&place.config, &mut StreamReader::new(cut).unwrap(), &how);
        assert!(matches!(replaced, Err(ArchiveError::Damaged { .. })), "{replaced:?}");
        assert_eq!(place.export(), old);
        let imported =
            import(&place.config, place.blobs.as_ref(), &mut StreamReader::new(cut).unwrap(), true);
        assert!(matches!(imported, Err(ArchiveError::Damaged { .. })), "{imported:?}");
        assert_eq!(place.export(), old);
    }
}

#[test]
fn an_archive_of_another_schema_version_is_not_imported() {
    let folder = tempfile::tempdir().unwrap();
    let place = ArchivedStore::sqlite(folder.path());
    let mut older = Memory { header: Some(Header::new(11, "sqlite", AT)), ..Memory::default() };
    let imported = import(&place.config, place.blobs.as_ref(), &mut older, true);
    let message = imported.unwrap_err().to_string();
    assert_eq!(
        message,
        format!(
            "the archive has schema version 11; only version {LATEST_VERSION} can be added to this store"
        )
    );
}

/// An archive of an older store is migrated to the current schema when it is restored.
#[test]
fn archives_of_older_schemas_are_migrated() {
    let older = Schema::at(11).unwrap();
    let summaries = older.table("summaries").unwrap();
    let observations = older.table("observations").unwrap();
    let fill = |table: &Table, given: &[(&str, Value)]| -> Record {
        let value = |field: &Field| {
            let found = given.iter().find(|(name, _)| *name == field.name).map(|(_, value)| value.clone());
            found.unwrap_or(match field.kind {
                Kind::Int => Value::Int(1),
                Kind::Text => Value::Text("text".into()),
                Kind::Bytes => Value::Bytes(Vec::new()),
            })
        };
        table.fields.iter().map(value).collect()
    };
    let session = || ("session_id", Value::Text("s".into()));
    let summary = fill(&summaries, &[session(), ("through", Value::Text("obs_5".into()))]);
    let observed = ["obs_4", "obs_6"].map(|id| {
        let number = i64::from(id.as_bytes()[4]);
        fill(&observations, &[session(), ("id", Value::Text(id.into())), ("queue_id", Value::Int(number))])
    });
    let archive = || Memory {
        header: Some(Header::new(11, "sqlite", AT)),
        tables: vec![
            (ArchiveTable(observations.clone()), observed.to_vec()),
            (ArchiveTable(summaries.clone()), vec![summary.clone()]),
        ],
        ..Memory::default()
    };
    let folder = tempfile::tempdir().unwrap();
    let database = TestDatabase::create();
    let mut places = vec![ArchivedStore::sqlite(folder.path())];
    places.extend(database.as_ref().map(ArchivedStore::postgres));
    for place in places {
        let how = Replace { blobs: place.blobs.as_ref(), force: false, stamp: "1" };
        replace(&place.config, &mut archive(), &how).unwrap();
        let table = Schema::at(LATEST_VERSION).unwrap().table("observations").unwrap();
        let covered = table.fields.iter().position(|field| field.name == "summed_up").unwrap();
        let found: Vec<Value> =
            place.export()["observations"].iter().map(|record| record[covered].clone()).collect();
        assert_eq!(found, [Value::Int(1), Value::Int(0)], "the later migrations ran on the records");
    }
}
