//! Checks the query plans of all lists and lookups: each must use an index, on both databases.

use baton_core::checkpoint::{CheckpointStatus, Place, WorkflowId};
use baton_core::observation::{QueueStatus, Turn, TurnId, TurnStatus};
use baton_core::task::TaskStatus;
use baton_core::{
    ActorKeyId, CheckpointId, HandoffId, NoteId, ObservationId, SessionId, SessionTuple, Sha256Hash,
    Timestamp, TrackFilter, Ulid, Venture,
};

use crate::column::{Columns, Param};
use crate::error::StoreError;
use crate::frame::Encoding;
use crate::page::Page;
use crate::rows::{
    Acknowledgement, Frame, FrameBody, HandoffFilter, NoteFilter, ObservationFilter, QueueClaim,
    QueueRelease, RequestFilter, SessionFilter, SummaryClaim, TaskFilter, WorkflowFilter,
};
use crate::tx::{Lock, Outcome, Sql, Tx};

/// Statements and the lines of their query plans.
type Plans = Vec<(String, Vec<String>)>;

/// Executes nothing and records the query plan of each statement.
pub(crate) struct Planner<F> {
    pub(crate) postgres: bool,
    /// Returns the lines of the query plan of a statement.
    pub(crate) explain: F,
    pub(crate) plans: Plans,
}

impl<F: FnMut(&str, &[Param<'_>]) -> Vec<String>> Planner<F> {
    fn plan(&mut self, sql: &str, params: &[Param<'_>]) {
        let plan = (self.explain)(sql, params);
        self.plans.push((sql.to_owned(), plan));
    }
}

impl<F: FnMut(&str, &[Param<'_>]) -> Vec<String>> Sql for Planner<F> {
    fn pick(&self, sqlite: &'static str, postgres: &'static str) -> &'static str {
        if self.postgres { postgres } else { sqlite }
    }

    fn execute(&mut self, sql: &str, params: &[Param<'_>]) -> Result<u64, StoreError> {
        self.plan(sql, params);
        Ok(0)
    }

    fn each_row(
        &mut self,
        sql: &str,
        params: &[Param<'_>],
        _read: &mut dyn FnMut(&dyn Columns) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.plan(sql, params);
        Ok(())
    }

    fn lock(&mut self, _lock: Lock, _name: &str) -> Result<(), StoreError> {
        Ok(())
    }
}

impl<F: FnMut(&str, &[Param<'_>]) -> Vec<String>> Tx for Planner<F> {
    fn nested(&mut self, part: &mut dyn FnMut(&mut dyn Tx) -> Outcome) -> Result<(), StoreError> {
        part(self);
        Ok(())
    }
}

/// Runs the statements of sessions, handoffs, idempotency keys and the retention of the request log.
pub(crate) fn ask_for_sessions(rows: &mut dyn Tx) {
    let now = Timestamp::from_millis(1_760_000_000_000);
    let tuple = SessionTuple {
        agent: "a".parse().unwrap(),
        venture: "v".parse().unwrap(),
        repo: "o/r".parse().unwrap(),
        track: None,
        client_session_id: None,
    };
    rows.lock_active_sessions(&tuple).unwrap();
    rows.newest_session_id().unwrap();
    rows.newest_handoff_id().unwrap();
    rows.session(SessionId::new(Ulid(1))).unwrap();
    rows.lock_session(SessionId::new(Ulid(1))).unwrap();
    rows.beat_session(SessionId::new(Ulid(1)), now).unwrap();
    rows.claim_context_start(SessionId::new(Ulid(1)), now, now).unwrap();
    rows.lock_stale_sessions(now, 10).unwrap();
    rows.handoff(HandoffId::new(Ulid(1))).unwrap();
    rows.ending_handoff(SessionId::new(Ulid(1))).unwrap();
    let by = Acknowledgement { agent: "a".parse().unwrap(), session_id: None, at: now };
    rows.acknowledge_handoff(HandoffId::new(Ulid(1)), &by).unwrap();
    rows.delete_expired_keys(now, 10).unwrap();
    rows.delete_requests(now, 10).unwrap();
    rows.trim_requests(1_000, 10).unwrap();
    rows.count_sessions().unwrap();
    rows.count_keys().unwrap();
}

/// Runs every statement for saving, loading and listing checkpoints. Omits the sum of all bytes and the search for
/// unused workflows, which read all workflows; there are few.
pub(crate) fn ask_for_checkpoints(rows: &mut dyn Tx) {
    let now = Timestamp::from_millis(1_760_000_000_000);
    let (venture, workflow): (Venture, WorkflowId) = ("v".parse().unwrap(), "w".parse().unwrap());
    let (id, place) = (CheckpointId::new(Ulid(1)), Place { series: 1, position: 7 });
    rows.workflow(&venture, &workflow).unwrap();
    rows.lock_workflow(&venture, &workflow).unwrap();
    rows.touch_workflow(&venture, &workflow, now).unwrap();
    rows.recount_stored_bytes(&venture, &workflow).unwrap();
    rows.recent_workflow(&venture, "n", None, now).unwrap();
    rows.recent_workflow(&venture, "n", Some(&"o/r".parse().unwrap()), now).unwrap();
    rows.checkpoint(id).unwrap();
    rows.checkpoints(&venture, &workflow, 2, 10).unwrap();
    rows.latest_checkpoint(&venture, &workflow).unwrap();
    rows.last_place(&venture, &workflow).unwrap();
    rows.chain(&venture, &workflow, place).unwrap();
    rows.set_checkpoint_status(id, CheckpointStatus::Corrupt).unwrap();
    rows.deletable_checkpoints(&venture, &workflow, 10).unwrap();
    rows.series(&venture, &workflow, 1).unwrap();
    rows.delete_positions(&venture, &workflow, 1, &[1, 2, 3]).unwrap();
    rows.orphans_among(&["blob".to_owned()]).unwrap();
    rows.keys_in_use().unwrap();
    rows.frames_of_other_keys("k", None, 10).unwrap();
    let hash = Sha256Hash::of(b"");
    let (encoding, body) = (Encoding::Plain, FrameBody::Row(Vec::new()));
    rows.replace_frame(id, &Frame { encoding, key_id: None, hash, size_bytes: 0, body }).unwrap();
}

/// Runs every statement of hooks, workers and queue management. Omits token usage, which has one row per day and is
/// read completely.
pub(crate) fn ask_for_observations(rows: &mut dyn Tx) {
    let now = Timestamp::from_millis(1_760_000_000_000);
    let session = SessionId::new(Ulid(1));
    rows.claim_queue(QueueClaim { now, lease_until: now, limit: 10 }).unwrap();
    rows.queue_item(1).unwrap();
    rows.queue_raw(1).unwrap();
    rows.finish_queue_items(&[(1, 1)], now).unwrap();
    rows.finish_queue_items(&[(1, 1), (2, 1)], now).unwrap();
    let release = QueueRelease { run_at: now, counts: true, failed_at: None, error: None };
    rows.release_queue_item(1, 1, &release).unwrap();
    rows.fail_queue_item(1, 1, "e", now).unwrap();
    rows.queue_stats().unwrap();
    rows.next_queue_due_at().unwrap();
    for status in QueueStatus::ALL {
        rows.queue_items(status, None, 10).unwrap();
        rows.queue_items(status, Some(7), 10).unwrap();
    }
    rows.open_queue_items(session, 10).unwrap();
    rows.retry_queue(Some(1), now).unwrap();
    rows.retry_queue(None, now).unwrap();
    rows.purge_queue(QueueStatus::Done, now, 10).unwrap();
    rows.purge_queue(QueueStatus::Error, now, 10).unwrap();

    rows.observation(ObservationId::new(Ulid(1))).unwrap();
    rows.observations(&ObservationFilter::default(), Page::first(50)).unwrap();
    rows.observations_without_summary(session, 10).unwrap();
    rows.count_observations_since(now).unwrap();
    rows.observations_by_hour(now).unwrap();

    rows.turns(session, None, 10).unwrap();
    rows.turn_starts_of(&[session]).unwrap();
    rows.sessions_with_turns(&[session]).unwrap();
    rows.branches_of_sessions(&[session]).unwrap();
    rows.summary_texts(&[session]).unwrap();
    rows.observations_between(session, now, Some(now), 10).unwrap();
    rows.abandon_turn(session, now).unwrap();
    let turn = Turn {
        id: TurnId::new(1),
        session_id: session,
        prompt: String::new(),
        closing: None,
        compact_summary: None,
        status: TurnStatus::Open,
        failure: None,
        started_at: now,
        ended_at: None,
    };
    rows.next_turn(&turn).unwrap();
    rows.turn(turn.id).unwrap();
    rows.turn_at(session, now).unwrap();
    rows.note(NoteId::new(Ulid(1))).unwrap();
    rows.notes(&NoteFilter { session_id: Some(session), ..NoteFilter::default() }, Page::first(50)).unwrap();
    rows.notes(&NoteFilter::default(), Page::first(50)).unwrap();
    rows.latest_handoff_of(session).unwrap();
    rows.latest_checkpoint_of(session).unwrap();
    rows.has_captures(session).unwrap();
    rows.summary(session).unwrap();
    rows.claim_summaries(now, now, 10).unwrap();
    let claim = SummaryClaim { session_id: session, fence: 1, attempts: 1 };
    rows.postpone_summary(&claim, Some(now), "e").unwrap();
    rows.next_summary_due_at().unwrap();
    rows.renew_summaries(None, now).unwrap();
    rows.renew_summaries(Some(1), now).unwrap();
    rows.spent_on("2026-01-17").unwrap();
}

/// Returns every combination of present and absent conditions.
fn combinations<const N: usize>() -> impl Iterator<Item = [bool; N]> {
    (0..1_u32 << N).map(|bits| std::array::from_fn(|index| bits >> index & 1 == 1))
}

/// Runs every list with every combination of filters. The list of all observations has no condition and is tested
/// elsewhere.
pub(crate) fn ask_for_lists(rows: &mut dyn Tx) {
    let now = Timestamp::from_millis(1_760_000_000_000);
    let page = Page::first(50);
    let venture: Venture = "v".parse().unwrap();
    let ventures = vec![venture.clone(), "w".parse().unwrap()];
    let repo = || "o/r".parse().unwrap();
    let agent = || "a".parse().unwrap();
    for [of_venture, scoped, of_repo, of_track, untracked, of_agent, alive] in combinations() {
        let track =
            if untracked { TrackFilter::Untracked } else { TrackFilter::Track(1.try_into().unwrap()) };
        let filter = SessionFilter {
            venture: of_venture.then(|| venture.clone()),
            ventures: scoped.then(|| ventures.clone()),
            repo: of_repo.then(repo),
            track: of_track.then_some(track),
            agent: of_agent.then(agent),
            alive_since: alive.then_some(now),
        };
        // Calls must set at least one of these three.
        if of_venture || of_repo || of_agent {
            rows.active_sessions(&filter, page).unwrap();
        }
    }
    for [of_repo, of_track, with_track, of_issue, from, to] in combinations() {
        let filter = HandoffFilter {
            repo: of_repo.then(repo),
            track: of_track.then(|| with_track.then(|| 1.try_into().unwrap())),
            issue_number: of_issue.then_some(1),
            from_agent: from.then(agent),
            to_agent: to.then(agent),
            ..HandoffFilter::of(venture.clone())
        };
        rows.handoffs(&filter, page).unwrap();
    }
    for [of_repo, named] in combinations() {
        let (repo, name) = (of_repo.then(repo), named.then(|| "n".to_owned()));
        rows.workflows(&WorkflowFilter { venture: venture.clone(), repo, name, offset: 2, limit: 10 })
            .unwrap();
    }
    for [scoped, of_one, of_repo, of_session, of_tool, of_file] in combinations() {
        let filter = ObservationFilter {
            ventures: scoped.then(|| if of_one { vec![venture.clone()] } else { ventures.clone() }),
            repo: of_repo.then(repo),
            session_id: of_session.then(|| SessionId::new(Ulid(1))),
            tool_name: of_tool.then(|| "t".to_owned()),
            file: of_file.then(|| "a/f".to_owned()),
        };
        if filter != ObservationFilter::default() {
            rows.observations(&filter, page).unwrap();
        }
    }
    let statuses = ["500", "4xx", "error"].map(|status| status.parse().unwrap());
    for [of_session, of_status, of_actor, of_endpoint, scoped, since, bounded] in combinations() {
        let filter = RequestFilter {
            status: None,
            actor_key_id: of_actor.then(|| ActorKeyId::of("a")),
            session_id: of_session.then(|| SessionId::new(Ulid(1))),
            endpoint: of_endpoint.then(|| "/sod".to_owned()),
            ventures: scoped.then(|| ventures.clone()),
            since: since.then_some(now),
            after: bounded.then_some(7),
            before: bounded.then_some(900),
        };
        match of_status {
            false => drop(rows.find_requests(&filter, 50).unwrap()),
            true => statuses.into_iter().for_each(|status| {
                drop(
                    rows.find_requests(&RequestFilter { status: Some(status), ..filter.clone() }, 50)
                        .unwrap(),
                );
            }),
        }
    }
    for [of_repo, of_status] in combinations() {
        let (repo, status) = (of_repo.then(repo), of_status.then_some(TaskStatus::Completed));
        let (venture, only_open) = (venture.clone(), status.is_none());
        rows.tasks(&TaskFilter { venture, repo, status, only_open, offset: 2, limit: 10 }).unwrap();
    }
}

/// Sorting is allowed for lists with few rows: the active sessions of one agent in all ventures, stale sessions, queue
/// items that are not done, and the observations of a day by hour. An index would have to be written with every start
/// and heartbeat.
fn may_sort(sql: &str) -> bool {
    let of_agent = sql.contains("AND agent = $");
    let of_few_sessions = of_agent || sql.contains("ORDER BY last_heartbeat_at");
    let of_open_items = sql.contains("FROM pending_queue") && sql.contains("ORDER BY id + 0");
    let by_hour = sql.starts_with("SELECT captured_at / 3600000");
    sql.contains("FROM sessions") && of_few_sessions || of_open_items || by_hour
}

/// Runs every statement of the task index.
pub(crate) fn ask_for_tasks(rows: &mut dyn Tx) {
    let venture: Venture = "v".parse().unwrap();
    rows.delete_task(&venture, "h", "/c", &"TASK-1".parse().unwrap()).unwrap();
}

mod sqlite {
    use rusqlite::Connection;

    use super::*;
    use crate::migration::MIGRATIONS;

    /// Runs statements and returns their query plans.
    fn plans(ask: impl FnOnce(&mut dyn Tx)) -> Plans {
        let connection = Connection::open_in_memory().unwrap();
        for migration in MIGRATIONS {
            connection.execute_batch(migration.sqlite).unwrap();
        }
        let explain = |sql: &str, params: &[Param<'_>]| {
            let mut statement = connection.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let rows = statement.query_map(rusqlite::params_from_iter(params), |row| row.get(3)).unwrap();
            rows.collect::<Result<_, _>>().unwrap()
        };
        let mut planner = Planner { postgres: false, explain, plans: Vec::new() };
        ask(&mut planner);
        planner.plans
    }

    #[test]
    fn every_statement_uses_an_index() {
        let asked = plans(|planner| {
            ask_for_sessions(planner);
            ask_for_checkpoints(planner);
            ask_for_observations(planner);
            ask_for_tasks(planner);
        });
        for (sql, plan) in asked {
            // A statement that only compares subqueries reads no table itself.
            let is_scan = |line: &str| line.starts_with("SCAN") && line != "SCAN CONSTANT ROW";
            let scans = plan.iter().any(|line| is_scan(line) && !line.contains("USING"));
            assert!(!plan.is_empty() && !scans, "{sql}\n{plan:#?}");
            let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE"));
            assert!(!sorts || may_sort(&sql), "{sql}\n{plan:#?}");
        }
    }

    /// Scanning by id until enough rows match reads the whole table if no row matches.
    #[test]
    fn every_list_finds_its_rows_by_a_condition() {
        for (sql, plan) in plans(|planner| ask_for_lists(planner)) {
            // The recursive list of ventures scans its own result.
            let scans = plan.iter().any(|line| line.starts_with("SCAN") && line != "SCAN known");
            let goes_down = plan.iter().any(|line| line.starts_with("SEARCH") && line.ends_with("(id<?)"));
            assert!(!plan.is_empty() && !scans && !goes_down, "{sql}\n{plan:#?}");
            let sorts = plan.iter().any(|line| line.contains("TEMP B-TREE"));
            assert!(!sorts || may_sort(&sql), "{sql}\n{plan:#?}");
        }
    }

    #[test]
    fn workflows_of_a_repository_use_its_index() {
        let (venture, repo) = ("v".parse().unwrap(), Some("o/r".parse().unwrap()));
        let filter = WorkflowFilter { venture, repo, name: None, offset: 0, limit: 10 };
        let asked = plans(|planner| drop(planner.workflows(&filter).unwrap()));
        let expected = "SEARCH workflows USING INDEX workflows_by_repo (venture=? AND repo=?)";
        assert_eq!(asked[0].1, [expected]);
    }

    #[test]
    fn requests_of_a_session_and_failed_requests_are_found_by_an_index() {
        let of_session =
            RequestFilter { session_id: Some(SessionId::new(Ulid(1))), ..RequestFilter::default() };
        let failed = RequestFilter { status: Some("5xx".parse().unwrap()), ..RequestFilter::default() };
        let both = RequestFilter { status: failed.status, ..of_session.clone() };
        let by_session = "requests_by_session (session_id=? AND rowid>? AND rowid<?)";
        for (filter, expected) in
            [(of_session, by_session), (both, by_session), (failed, "requests_failed (id>? AND id<?)")]
        {
            let asked = plans(|planner| drop(planner.find_requests(&filter, 50).unwrap()));
            assert_eq!(asked[2].1, [format!("SEARCH requests USING INDEX {expected}")], "{filter:?}");
        }
    }

    /// An index that contains most rows does not help.
    #[test]
    fn observations_are_found_by_the_narrowest_condition() {
        let venture: Venture = "v".parse().unwrap();
        let every = ObservationFilter {
            ventures: Some(vec![venture.clone()]),
            repo: Some("o/r".parse().unwrap()),
            session_id: Some(SessionId::new(Ulid(1))),
            tool_name: None,
            file: Some("f".into()),
        };
        let of_session = ObservationFilter { file: None, ..every.clone() };
        let of_repo = ObservationFilter { session_id: None, ..of_session.clone() };
        let of_tool = ObservationFilter { repo: None, tool_name: Some("t".into()), ..of_repo.clone() };
        let of_repo_and_tool = ObservationFilter { repo: of_repo.repo.clone(), ..of_tool.clone() };
        let of_two = ObservationFilter { ventures: Some(vec![venture.clone(), venture]), ..of_tool.clone() };
        for (filter, expected) in [
            (every, "sqlite_autoindex_observations_1 (id=?)"),
            (of_session, "observations_by_session (session_id=? AND id<?)"),
            (of_repo, "observations_by_repo (venture=? AND repo=? AND id<?)"),
            (of_tool, "observations_by_tool (venture=? AND tool_name=? AND id<?)"),
            (
                of_repo_and_tool,
                "observations_by_repo_and_tool (venture=? AND repo=? AND tool_name=? AND id<?)",
            ),
            (of_two, "observations_by_tool (venture=? AND tool_name=? AND id<?)"),
        ] {
            let asked = plans(|planner| drop(planner.observations(&filter, Page::first(50)).unwrap()));
            let plan = &asked[0].1;
            let expected = format!("SEARCH observations USING INDEX {expected}");
            assert_eq!(plan.first(), Some(&expected), "{filter:?}\n{plan:#?}");
        }
    }
}

mod postgres {
    use baton_testkit::postgres::TestDatabase;

    use super::*;
    use crate::migration::MIGRATIONS;

    /// PostgreSQL prefers to scan small tables. With scans disabled, the plan shows whether an index is usable.
    #[test]
    fn every_statement_can_use_an_index() {
        let Some(database) = TestDatabase::create() else { return };
        let mut client = ::postgres::Client::connect(&database.url, ::postgres::NoTls).unwrap();
        for migration in MIGRATIONS {
            client.batch_execute(migration.postgres).unwrap();
        }
        client.batch_execute("SET enable_seqscan = off; SET enable_bitmapscan = off").unwrap();
        let explain = |sql: &str, params: &[Param<'_>]| {
            let params: Vec<&(dyn ::postgres::types::ToSql + Sync)> =
                params.iter().map(|param| param as &(dyn ::postgres::types::ToSql + Sync)).collect();
            let rows = client.query(&format!("EXPLAIN {sql}"), &params).unwrap();
            rows.iter().map(|row| row.get(0)).collect()
        };
        let mut planner = Planner { postgres: true, explain, plans: Vec::new() };
        ask_for_sessions(&mut planner);
        ask_for_checkpoints(&mut planner);
        ask_for_observations(&mut planner);
        ask_for_tasks(&mut planner);
        ask_for_lists(&mut planner);
        for (sql, plan) in planner.plans {
            assert!(!plan.iter().any(|line| line.contains("Seq Scan")), "{sql}\n{plan:#?}");
        }
    }
}
