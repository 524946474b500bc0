//! Arbitrary records of every table, for tests.

use std::collections::BTreeMap;

use super::schema::{Field, Kind};
use super::*;
use crate::migration::{LATEST_VERSION, MIGRATIONS};

/// The records of an archive by table, in order.
pub(super) type Records = BTreeMap<String, Vec<Record>>;

/// Values that a column may hold.
#[derive(Debug, Clone)]
enum Domain {
    Among(Vec<String>),
    Flag,
    Id,
    Any(Kind),
}

/// Derives the domain of a column from the migrations: one of a list of words, a boolean, an automatic id, or any
/// value.
fn domain(table: &Table, field: &Field) -> Domain {
    let create = format!("CREATE TABLE {} (", table.name);
    let definition = |text: &'static str| {
        let (body, _) = text.split_once(&create)?.1.split_once(';')?;
        let line = body.lines().find(|line| line.split_whitespace().next() == Some(&field.name));
        line.map(str::to_owned)
    };
    let added = format!("ALTER TABLE {} ADD COLUMN {} BOOLEAN", table.name, field.name);
    let is_flag = MIGRATIONS.iter().rev().find_map(|migration| definition(migration.postgres)).map_or_else(
        || MIGRATIONS.iter().any(|migration| migration.postgres.contains(&added)),
        |line| line.contains(" BOOLEAN"),
    );
    let line = MIGRATIONS.iter().rev().find_map(|migration| definition(migration.sqlite)).unwrap_or_default();
    if let Some((_, words)) = line.split_once(&format!("CHECK ({} IN (", field.name)) {
        let words = words.split(')').next().unwrap_or_default().split(',');
        return Domain::Among(words.map(|word| word.trim().trim_matches('\'').to_owned()).collect());
    }
    match (is_flag, field.is_key && table.has_sequence) {
        (true, _) => Domain::Flag,
        (_, true) => Domain::Id,
        _ => Domain::Any(field.kind),
    }
}

/// Creates a value from a seed that proptest shrinks. Texts and numbers never repeat, as unique keys require.
fn value(domain: &Domain, is_content: bool, seed: u64, unique: &mut i64) -> Value {
    *unique += 1;
    match domain {
        Domain::Among(words) => Value::Text(words[seed as usize % words.len()].clone()),
        Domain::Flag => Value::Int((seed % 2) as i64),
        Domain::Id => Value::Int(*unique),
        Domain::Any(Kind::Int) => match seed % 4 {
            0 => Value::Int(i64::MIN + *unique),
            1 => Value::Int(i64::MAX - *unique),
            _ => Value::Int(*unique),
        },
        Domain::Any(Kind::Text) => {
            let texts = ["", "plain", "\u{feff}\"\\\n\r\t", "наречие 日本語 🦀", "{\"a\":1}", "\u{1}\u{7f}'"];
            Value::Text(format!("{}{unique}", texts[seed as usize % texts.len()]))
        }
        Domain::Any(Kind::Bytes) => {
            let sizes: &[usize] = if is_content { &[0, 1, 65_537, 262_145] } else { &[0, 1, 1_000] };
            let size = sizes[seed as usize % sizes.len()];
            Value::Bytes((0..size as u64).map(|index| (index.wrapping_mul(seed | 1) >> 3) as u8).collect())
        }
    }
}

/// Creates records for every table from seeds.
pub(super) fn records(seeds: &[Vec<u64>]) -> Records {
    let schema = Schema::at(LATEST_VERSION).unwrap();
    let required = required_columns();
    let mut unique = 0;
    let mut all = Records::new();
    for (table, seeds) in schema.tables.iter().zip(seeds.iter().cycle()) {
        let domains: Vec<Domain> = table.fields.iter().map(|field| domain(table, field)).collect();
        let record = |seed: &u64| {
            let fields = table.fields.iter().zip(&domains).enumerate();
            fields
                .map(|(index, (field, domain))| {
                    let seed = seed.rotate_left(index as u32 * 7);
                    let is_content = table.content.as_ref().is_some_and(|content| content.field == index);
                    let may_be_null = !required.contains(&(table.name.clone(), field.name.clone()));
                    match may_be_null && !is_content && seed.is_multiple_of(3) {
                        true => Value::Null,
                        false => value(domain, is_content, seed, &mut unique),
                    }
                })
                .collect()
        };
        let mut records: Vec<Record> = seeds.iter().map(record).collect();
        records.sort();
        all.insert(table.name.clone(), records);
    }
    let sequences = schema.tables.iter().filter(|table| table.has_sequence);
    let sequences = sequences.map(|table| vec![Value::Text(table.name.clone()), Value::Int(unique + 1_000)]);
    all.insert(SEQUENCES.into(), sequences.collect());
    all
}

fn required_columns() -> Vec<(String, String)> {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    MIGRATIONS.iter().for_each(|migration| database.execute_batch(migration.sqlite).unwrap());
    let sql = "SELECT t.name, c.name FROM sqlite_schema t, pragma_table_info(t.name) c \
               WHERE t.type = 'table' AND (c.\"notnull\" OR c.pk)";
    let mut statement = database.prepare(sql).unwrap();
    statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect()
}
