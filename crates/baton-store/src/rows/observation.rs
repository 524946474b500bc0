//! Rows of observations.

use std::cmp::Reverse;
use std::collections::HashSet;

use baton_core::observation::{CompressedObservation, Observation, Provenance};
use baton_core::recall::ItemKind;
use baton_core::{ObservationId, Repo, SessionId, Timestamp, Ulid, Venture};

use crate::error::StoreError;
use crate::page::Page;
use crate::record::{Record, record, select};
use crate::rows::mark::and_visible;
use crate::sql::{QueryBuilder, parts};
use crate::tx::Tx;

/// Filter for observations. Absent conditions match every observation.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservationFilter {
    /// Ventures of the observation, any of these.
    pub ventures: Option<Vec<Venture>>,
    /// Repository of the observation.
    pub repo: Option<Repo>,
    pub session_id: Option<SessionId>,
    pub tool_name: Option<String>,
    /// File that the observation mentions: its whole path, or the last components of the path.
    pub file: Option<String>,
}

/// The files of an observation, without its texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservationFiles {
    pub id: ObservationId,
    pub session_id: SessionId,
    pub title: String,
    /// Files that the observation mentions.
    pub files: Vec<String>,
    /// Files that the tool changed.
    pub files_touched: Vec<String>,
    /// Time of capture.
    pub captured_at: Timestamp,
}

record! {
    "observations", ObservationFiles { id, session_id, title, files, files_touched, captured_at }
}

record! {
    "observations", Observation {
        id, queue_id, session_id, venture, repo, tool_name, tool_use_id, files, raw_bytes, captured_at, compressed_at,
    }
    compressed: CompressedObservation { title, summary, detail, files_touched, functions_changed }
    provenance: Provenance { compressor, model, prompt_version, tokens_in, tokens_out }
}

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
        let column = |uses_index: bool, name, excluded| if uses_index { name } else { pick(excluded, name) };
        Self {
            venture: column(by_venture, "venture", "+venture"),
            repo: column(by_venture, "repo", "+repo"),
            session: column(by_session, "session_id", "+session_id"),
            tool: column(by_venture, "tool_name", "+tool_name"),
        }
    }
}

/// Adds observations with one statement, and their files with a few more.
fn insert_part(tx: &mut dyn Tx, observations: &[Observation]) -> Result<usize, StoreError> {
    let rows = observations.iter().map(Record::values).collect::<Result<Vec<_>, _>>()?;
    let mut query = QueryBuilder::insert("observations", rows);
    query.text(" ON CONFLICT (queue_id) DO NOTHING RETURNING id");
    let added: HashSet<ObservationId> = tx.query(query.sql(), query.params())?.into_iter().collect();
    let new: Vec<&Observation> = observations.iter().filter(|one| added.contains(&one.id)).collect();
    let files: Vec<(&Observation, &String)> =
        new.iter().flat_map(|one| one.files.iter().map(|path| (*one, path))).collect();
    for part in parts(&files) {
        let rows = part.iter().map(|(one, path)| {
            [
                ("venture", (&one.venture).into()),
                ("name", name_of(path).into()),
                ("path", (*path).into()),
                ("observation_id", one.id.into()),
            ]
        });
        let mut query = QueryBuilder::insert("observation_files", rows);
        query.text(" ON CONFLICT DO NOTHING");
        tx.run(query.sql(), query.params())?;
    }
    for part in parts(&new) {
        let rows = part.iter().map(|one| [("kind", ItemKind::Observation.into()), ("item", one.id.into())]);
        let query = QueryBuilder::insert("recall_pending", rows);
        tx.run(query.sql(), query.params())?;
    }
    Ok(added.len())
}

/// Lists observations with one statement. Conditions on a repository or a tool use an index only together with a single
/// venture, a session or a file.
fn list<T: Record>(tx: &mut dyn Tx, filter: &ObservationFilter, page: Page) -> Result<Vec<T>, StoreError> {
    let columns = ConditionColumns::of(filter, |sqlite, postgres| tx.pick(sqlite, postgres));
    let mut query = QueryBuilder::new(&select::<T>("WHERE "));
    query.with("id < $?", page.below(ObservationId::PREFIX));
    query.among_ventures(columns.venture, filter.ventures.as_deref());
    if let Some(repo) = &filter.repo {
        query.text(" AND ").text(columns.repo).with(" = $?", repo);
    }
    if let Some(session) = filter.session_id {
        query.text(" AND ").text(columns.session).with(" = $?", session);
    }
    if let Some(tool) = &filter.tool_name {
        query.text(" AND ").text(columns.tool).with(" = $?", tool);
    }
    if let Some(file) = &filter.file {
        query.with(" AND id IN (SELECT observation_id FROM observation_files WHERE name = $?", name_of(file));
        query.names_file("path", file).among_ventures("venture", filter.ventures.as_deref()).text(")");
    }
    query.text(and_visible!("observations.id")).with(" ORDER BY id DESC LIMIT $?", page.limit);
    tx.query(query.sql(), query.params())
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
        newest.extend(list(tx, &of_one, page)?);
        newest.sort_unstable_by_key(|observation: &Observation| Reverse(observation.id));
        newest.dedup_by_key(|observation| observation.id);
        newest.truncate(limit);
    }
    Ok(newest)
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
        self.record("WHERE id = $1", &[id.into()])
    }

    /// Finds observations by id, in any order.
    pub fn observations_with_ids(&mut self, ids: &[ObservationId]) -> Result<Vec<Observation>, StoreError> {
        self.query_among(&select::<Observation>("WHERE id"), ids, "")
    }

    /// Lists observations that are not rejected or superseded, newest first.
    pub fn observations(
        &mut self,
        filter: &ObservationFilter,
        page: Page,
    ) -> Result<Vec<Observation>, StoreError> {
        let has_index = filter.file.is_some() || filter.session_id.is_some();
        let needs_single_venture = filter.repo.is_some() || filter.tool_name.is_some();
        match &filter.ventures {
            _ if has_index => list(self, filter, page),
            None if needs_single_venture => {
                let ventures = self.ventures_in("observations")?;
                select_by_venture(self, filter, &ventures, page)
            }
            Some(ventures) if ventures.len() > 1 => select_by_venture(self, filter, ventures, page),
            _ => list(self, filter, page),
        }
    }

    /// Lists the files of observations of one session or venture that are not rejected or superseded, newest first.
    pub fn files_of_observations(
        &mut self,
        filter: &ObservationFilter,
        page: Page,
    ) -> Result<Vec<ObservationFiles>, StoreError> {
        list(self, filter, page)
    }

    /// Lists the observations of a session that were captured in a period, oldest first. Without `until` it has no end.
    pub fn observations_between(
        &mut self,
        session: SessionId,
        from: Timestamp,
        until: Option<Timestamp>,
        limit: u32,
    ) -> Result<Vec<Observation>, StoreError> {
        let last = until.map_or_else(|| ObservationId::new(Ulid::from(u128::MAX)), first_id);
        self.records(
            "WHERE session_id = $1 AND id >= $2 AND id < $3 ORDER BY id LIMIT $4",
            &[session.into(), first_id(from).into(), last.into(), limit.into()],
        )
    }

    /// Deletes observations. Their raw output stays in the queue.
    pub fn delete_observations(&mut self, ids: &[ObservationId]) -> Result<(), StoreError> {
        for observation in self.observations_with_ids(ids)? {
            let id = observation.id.to_string();
            for path in &observation.files {
                self.run(
                    "DELETE FROM observation_files WHERE name = $1 AND venture = $2 AND observation_id = $3",
                    &[name_of(path).into(), (&observation.venture).into(), (&id).into()],
                )?;
            }
            self.run("DELETE FROM observations WHERE id = $1", &[(&id).into()])?;
        }
        let items: Vec<String> = ids.iter().map(ToString::to_string).collect();
        self.delete_documents(ItemKind::Observation, &items)
    }

    /// Lists the ids of the observations of a session that its summary does not cover, oldest first.
    pub fn observations_without_summary(
        &mut self,
        session: SessionId,
        limit: u32,
    ) -> Result<Vec<ObservationId>, StoreError> {
        self.query(
            "SELECT id FROM observations WHERE session_id = $1 AND NOT summed_up ORDER BY id LIMIT $2",
            &[session.into(), limit.into()],
        )
    }

    /// Counts observations captured at or after a time.
    pub fn count_observations_since(&mut self, since: Timestamp) -> Result<u64, StoreError> {
        self.number("SELECT count(*) FROM observations WHERE id >= $1", &[first_id(since).into()])
    }

    /// Counts observations captured at or after a time by hour. Hours are counted from 1970; those without observations
    /// are missing.
    pub fn observations_by_hour(&mut self, since: Timestamp) -> Result<Vec<(i64, u64)>, StoreError> {
        self.query(
            "SELECT captured_at / 3600000, count(*) FROM observations WHERE id >= $1 GROUP BY 1 ORDER BY 1",
            &[first_id(since).into()],
        )
    }
}

/// Returns the smallest id of an observation that was captured at a time. Ids begin with the time of capture.
fn first_id(at: Timestamp) -> ObservationId {
    ObservationId::new(Ulid::from_parts(u64::try_from(at.as_millis()).unwrap_or(0), 0))
}
