//! Rows of observations.

use std::cmp::Reverse;
use std::collections::HashSet;

use baton_core::observation::{CompressedObservation, Observation, Provenance};
use baton_core::recall::ItemKind;
use baton_core::{ObservationId, Repo, SessionId, Timestamp, Ulid, Venture};

use crate::error::StoreError;
use crate::page::Page;
use crate::rows::mark::and_visible;
use crate::sql::{Columns, Param, QueryBuilder, RowReader, json, parts};
use crate::tx::Tx;

/// Filter for observations. Absent conditions match every observation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservationFilter {
    /// Ventures of the observation, any of these.
    pub ventures: Option<Vec<Venture>>,
    /// Repository of the observation.
    pub repo: Option<Repo>,
    /// Session of the observation.
    pub session_id: Option<SessionId>,
    /// Tool of the observation.
    pub tool_name: Option<String>,
    /// File that the observation mentions: its whole path, or the last components of the path.
    pub file: Option<String>,
}

/// The files of an observation, without its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservationFiles {
    /// The observation.
    pub id: ObservationId,
    /// Session of the observation.
    pub session_id: SessionId,
    /// Title of the observation.
    pub title: String,
    /// Files that the observation mentions.
    pub files: Vec<String>,
    /// Files that the tool changed.
    pub files_touched: Vec<String>,
    /// Time of capture.
    pub captured_at: Timestamp,
}

fn read_files(columns: &dyn Columns) -> Result<ObservationFiles, StoreError> {
    let row = RowReader { table: "observations", columns };
    Ok(ObservationFiles {
        id: row.parsed(0)?,
        session_id: row.parsed(1)?,
        title: row.text(2)?,
        files: row.json(3)?,
        files_touched: row.json(4)?,
        captured_at: row.time(5)?,
    })
}

const COLUMNS: &str = "id, queue_id, session_id, venture, repo, tool_name, tool_use_id, title, summary, detail, \
     files, files_touched, functions_changed, compressor, model, prompt_version, tokens_in, tokens_out, \
     raw_bytes, captured_at, compressed_at";

fn read(columns: &dyn Columns) -> Result<Observation, StoreError> {
    let row = RowReader { table: "observations", columns };
    Ok(Observation {
        id: row.parsed(0)?,
        queue_id: row.int(1)?,
        session_id: row.parsed(2)?,
        venture: row.parsed(3)?,
        repo: row.parsed(4)?,
        tool_name: row.text(5)?,
        tool_use_id: row.opt_text(6)?,
        compressed: CompressedObservation {
            title: row.text(7)?,
            summary: row.text(8)?,
            detail: row.opt_text(9)?,
            files_touched: row.json(11)?,
            functions_changed: row.json(12)?,
        },
        files: row.json(10)?,
        provenance: Provenance {
            compressor: row.text(13)?,
            model: row.opt_text(14)?,
            prompt_version: row.text(15)?,
            tokens_in: row.unsigned(16)?,
            tokens_out: row.unsigned(17)?,
        },
        raw_bytes: row.unsigned(18)?,
        captured_at: row.time(19)?,
        compressed_at: row.time(20)?,
    })
}

/// Columns of a list and how a row of them is read.
struct Rows<T> {
    columns: &'static str,
    read: fn(&dyn Columns) -> Result<T, StoreError>,
}

const WHOLE: Rows<Observation> = Rows { columns: COLUMNS, read };
const FILES: Rows<ObservationFiles> =
    Rows { columns: "id, session_id, title, files, files_touched, captured_at", read: read_files };

/// Returns the last component of a path.
fn name_of(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Column names for the conditions, written so that the narrowest condition selects the index.
struct ConditionColumns {
    venture: &'static str,
    repo: &'static str,
    session: &'static str,
    tool: &'static str,
}

impl ConditionColumns {
    /// SQLite has no value statistics here, so a unary plus excludes a column from index selection: a file takes
    /// precedence over a session, and a session over a single venture. PostgreSQL decides by its statistics.
    fn of(filter: &ObservationFilter, pick: impl Fn(&'static str, &'static str) -> &'static str) -> Self {
        let single = filter.ventures.as_ref().is_some_and(|ventures| ventures.len() == 1);
        let by_session = filter.file.is_none();
        let by_venture = by_session && filter.session_id.is_none() && single;
        let spelt = |leads: bool, checked, plain| if leads { plain } else { pick(checked, plain) };
        Self {
            venture: spelt(by_venture, "+venture", "venture"),
            repo: spelt(by_venture, "+repo", "repo"),
            session: spelt(by_session, "+session_id", "session_id"),
            tool: spelt(by_venture, "+tool_name", "tool_name"),
        }
    }
}

/// Adds observations with one statement, and their files with a few more.
fn insert_part(tx: &mut dyn Tx, observations: &[Observation]) -> Result<usize, StoreError> {
    let mut texts = Vec::with_capacity(observations.len());
    for one in observations {
        texts.push([
            one.id.to_string(),
            one.session_id.to_string(),
            json("observations", &one.files)?,
            json("observations", &one.compressed.files_touched)?,
            json("observations", &one.compressed.functions_changed)?,
        ]);
    }
    let mut query = QueryBuilder::new("INSERT INTO observations (");
    query.text(COLUMNS).text(") VALUES ").rows(observations.iter().zip(&texts).map(|(one, texts)| {
        let Observation { compressed, provenance, .. } = one;
        let [id, session, files, touched, functions] = texts;
        [
            id.into(),
            one.queue_id.into(),
            session.into(),
            one.venture.as_str().into(),
            one.repo.as_str().into(),
            (&one.tool_name).into(),
            one.tool_use_id.as_ref().into(),
            (&compressed.title).into(),
            (&compressed.summary).into(),
            compressed.detail.as_ref().into(),
            files.into(),
            touched.into(),
            functions.into(),
            (&provenance.compressor).into(),
            provenance.model.as_ref().into(),
            (&provenance.prompt_version).into(),
            provenance.tokens_in.into(),
            provenance.tokens_out.into(),
            one.raw_bytes.into(),
            one.captured_at.into(),
            one.compressed_at.into(),
        ]
    }));
    query.text(" ON CONFLICT (queue_id) DO NOTHING RETURNING id");
    let added = tx.query(query.sql(), query.params(), &mut |columns| {
        RowReader { table: "observations", columns }.text(0)
    })?;
    let added: HashSet<String> = added.into_iter().collect();
    let files: Vec<[Param<'_>; 4]> = observations
        .iter()
        .zip(&texts)
        .filter(|(_, [id, ..])| added.contains(id))
        .flat_map(|(one, [id, ..])| {
            let venture = one.venture.as_str();
            one.files.iter().map(move |path| [venture.into(), name_of(path).into(), path.into(), id.into()])
        })
        .collect();
    for part in parts(&files) {
        let mut query =
            QueryBuilder::new("INSERT INTO observation_files (venture, name, path, observation_id) VALUES ");
        query.rows(part.iter().copied()).text(" ON CONFLICT DO NOTHING");
        tx.run(query.sql(), query.params())?;
    }
    let new: Vec<[Param<'_>; 2]> = texts
        .iter()
        .filter(|[id, ..]| added.contains(id))
        .map(|[id, ..]| [ItemKind::Observation.as_str().into(), id.into()])
        .collect();
    for part in parts(&new) {
        let mut query = QueryBuilder::new("INSERT INTO recall_pending (kind, item) VALUES ");
        query.rows(part.iter().copied());
        tx.run(query.sql(), query.params())?;
    }
    Ok(added.len())
}

/// Lists observations with one statement. Conditions on a repository or a tool use an index only together with a single
/// venture, a session or a file.
fn select<T>(
    tx: &mut dyn Tx,
    filter: &ObservationFilter,
    page: Page,
    rows: Rows<T>,
) -> Result<Vec<T>, StoreError> {
    let below = page.below(ObservationId::PREFIX);
    let session = filter.session_id.map(|id| id.to_string());
    let ending = filter.file.as_ref().map(|file| format!("/{file}"));
    let columns = ConditionColumns::of(filter, |sqlite, postgres| tx.pick(sqlite, postgres));
    let mut query = QueryBuilder::new("SELECT ");
    query.text(rows.columns).with(" FROM observations WHERE id < $?", &below);
    if let Some(ventures) = &filter.ventures {
        of_ventures(&mut query, columns.venture, ventures);
    }
    if let Some(repo) = &filter.repo {
        query.text(" AND ").text(columns.repo).with(" = $?", repo.as_str());
    }
    if let Some(session) = &session {
        query.text(" AND ").text(columns.session).with(" = $?", session);
    }
    if let Some(tool) = &filter.tool_name {
        query.text(" AND ").text(columns.tool).with(" = $?", tool);
    }
    if let (Some(file), Some(ending)) = (&filter.file, &ending) {
        query
            .with(" AND id IN (SELECT observation_id FROM observation_files WHERE name = $?", name_of(file))
            .with(" AND (path = $?", file)
            .with(" OR substr(path, length(path) - length($?) + 1)", ending)
            .with(" = $?)", ending);
        if let Some(ventures) = &filter.ventures {
            of_ventures(&mut query, "venture", ventures);
        }
        query.text(")");
    }
    query.text(and_visible!("observations.id")).with(" ORDER BY id DESC LIMIT $?", page.limit);
    tx.query(query.sql(), query.params(), &mut |columns| (rows.read)(columns))
}

/// Lists the observations of each venture separately and merges the lists. Every index on a repository or a tool begins
/// with the venture, so one statement over several ventures would scan the table until enough rows match.
fn select_by_venture(
    tx: &mut dyn Tx,
    filter: &ObservationFilter,
    ventures: &[Venture],
    page: Page,
) -> Result<Vec<Observation>, StoreError> {
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let mut newest = Vec::new();
    for venture in ventures {
        let of_one = ObservationFilter { ventures: Some(vec![venture.clone()]), ..filter.clone() };
        newest.extend(select(tx, &of_one, page, WHOLE)?);
        newest.sort_unstable_by_key(|observation: &Observation| Reverse(observation.id));
        newest.dedup_by_key(|observation| observation.id);
        newest.truncate(limit);
    }
    Ok(newest)
}

/// Lists the ventures that have observations, with one index lookup for each.
fn known_ventures(tx: &mut dyn Tx) -> Result<Vec<Venture>, StoreError> {
    tx.query(
        "WITH RECURSIVE known (venture) AS (SELECT min(venture) FROM observations UNION ALL \
         SELECT (SELECT min(venture) FROM observations WHERE venture > known.venture) FROM known \
         WHERE known.venture IS NOT NULL) SELECT venture FROM known WHERE venture IS NOT NULL",
        &[],
        &mut |columns| RowReader { table: "observations", columns }.parsed(0),
    )
}

impl dyn Tx + '_ {
    /// Adds observations and returns their number. Skips queue items that already have an observation.
    pub fn insert_observations(&mut self, observations: &[Observation]) -> Result<usize, StoreError> {
        let mut added = 0;
        for part in parts(observations) {
            added += insert_part(self, part)?;
        }
        Ok(added)
    }

    /// Finds an observation.
    pub fn observation(&mut self, id: ObservationId) -> Result<Option<Observation>, StoreError> {
        let sql = format!("SELECT {COLUMNS} FROM observations WHERE id = $1");
        self.query_one(&sql, &[(&id.to_string()).into()], &mut read)
    }

    /// Finds observations by id, in any order.
    pub fn observations_with_ids(&mut self, ids: &[ObservationId]) -> Result<Vec<Observation>, StoreError> {
        self.query_among(&format!("SELECT {COLUMNS} FROM observations WHERE id"), ids, "", &mut read)
    }

    /// Lists observations that are not rejected or superseded, newest first.
    pub fn observations(
        &mut self,
        filter: &ObservationFilter,
        page: Page,
    ) -> Result<Vec<Observation>, StoreError> {
        let narrowed = filter.file.is_some() || filter.session_id.is_some();
        let of_part = filter.repo.is_some() || filter.tool_name.is_some();
        match &filter.ventures {
            _ if narrowed => select(self, filter, page, WHOLE),
            None if of_part => {
                let ventures = known_ventures(self)?;
                select_by_venture(self, filter, &ventures, page)
            }
            Some(ventures) if ventures.len() > 1 => select_by_venture(self, filter, ventures, page),
            _ => select(self, filter, page, WHOLE),
        }
    }

    /// Lists the files of observations of one session or venture that are not rejected or superseded, newest first.
    pub fn files_of_observations(
        &mut self,
        filter: &ObservationFilter,
        page: Page,
    ) -> Result<Vec<ObservationFiles>, StoreError> {
        select(self, filter, page, FILES)
    }

    /// Lists the observations of a session that were captured in a period, oldest first. Without `until` it has no end.
    pub fn observations_between(
        &mut self,
        session: SessionId,
        from: Timestamp,
        until: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<Observation>, StoreError> {
        let sql = format!(
            "SELECT {COLUMNS} FROM observations WHERE session_id = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4"
        );
        let last = until.map_or_else(|| ObservationId::new(Ulid::from(u128::MAX)), first_id);
        self.query(
            &sql,
            &[
                (&session.to_string()).into(),
                (&first_id(from).to_string()).into(),
                (&last.to_string()).into(),
                limit.into(),
            ],
            &mut read,
        )
    }

    /// Deletes observations. Their raw output stays in the queue.
    pub fn delete_observations(&mut self, ids: &[ObservationId]) -> Result<(), StoreError> {
        for observation in self.observations_with_ids(ids)? {
            let id = observation.id.to_string();
            for path in &observation.files {
                self.run(
                    "DELETE FROM observation_files WHERE name = $1 AND venture = $2 AND observation_id = $3",
                    &[name_of(path).into(), observation.venture.as_str().into(), (&id).into()],
                )?;
            }
            self.run("DELETE FROM observations WHERE id = $1", &[(&id).into()])?;
        }
        let items: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.delete_documents(ItemKind::Observation, &items)
    }

    /// Lists the ids of the observations of a session that its summary does not cover, oldest first.
    pub fn observations_to_sum_up(
        &mut self,
        session: SessionId,
        limit: u32,
    ) -> Result<Vec<ObservationId>, StoreError> {
        self.query(
            "SELECT id FROM observations WHERE session_id = $1 AND NOT summed_up ORDER BY id LIMIT $2",
            &[(&session.to_string()).into(), limit.into()],
            &mut |columns| RowReader { table: "observations", columns }.parsed(0),
        )
    }

    /// Counts observations captured at or after a time.
    pub fn count_observations_since(&mut self, since: Timestamp) -> Result<u64, StoreError> {
        let first = first_id(since).to_string();
        self.number("observations", "SELECT count(*) FROM observations WHERE id >= $1", &[(&first).into()])
    }

    /// Counts observations captured at or after a time by the hour in which they were created. Hours are counted from
    /// 1970; those without observations are missing.
    pub fn observations_by_hour(&mut self, since: Timestamp) -> Result<Vec<(i64, u64)>, StoreError> {
        self.query(
            "SELECT compressed_at / 3600000, count(*) FROM observations WHERE id >= $1 GROUP BY 1 ORDER BY 1",
            &[(&first_id(since).to_string()).into()],
            &mut |columns| {
                let row = RowReader { table: "observations", columns };
                Ok((row.int(0)?, row.unsigned(1)?))
            },
        )
    }
}

/// Returns the smallest id of an observation that was captured at a time. Ids begin with the time of capture.
fn first_id(at: Timestamp) -> ObservationId {
    ObservationId::new(Ulid::from_parts(u64::try_from(at.as_millis()).unwrap_or(0), 0))
}

/// Adds a condition on the venture. An empty list matches nothing.
fn of_ventures<'a>(query: &mut QueryBuilder<'a>, column: &str, ventures: &'a [Venture]) {
    if ventures.is_empty() {
        query.text(" AND 1 = 0");
    } else {
        query.text(" AND ").among(column, ventures.iter().map(Venture::as_str));
    }
}
