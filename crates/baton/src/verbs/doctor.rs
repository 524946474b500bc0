//! `baton doctor`: checks the installation and prints a fix for each problem.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use baton_app::agent::{AgentConnection, ListAgentsOutput, McpServerState};
use baton_app::maintenance::{Damage, StoreCheck, check_store, recount_workflows};
use baton_app::observation::ReadQueueStats;
use baton_app::recall::{check_index, rebuild_index};
use baton_core::counted;
use baton_store::{Health, Inspection, LATEST_VERSION, Outbox, Store, StoreConfig, StoreError, Threads};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::app::open_app;
use crate::backend::Backend;
use crate::checkpoints;
use crate::config::Config;
use crate::connections::{Probe, connections};
use crate::data_dir::DataDir;
use crate::encryption::ConfiguredKeys;
use crate::exit::Exit;
use crate::hooks::{CaptureFailures, HookError, HookLog, ReportOutbox};
use crate::keys::Mode;
use crate::live_session::live_sessions;
use crate::output::{Answer, Failure};
use crate::progress::{Amount, Progress};
use crate::store::{store_config, store_failure, target};
use crate::terminal::{when, wrap};
use crate::verbs::key::keys_in_use;
use crate::verbs::worker::{LockState, WorkerLock, has_server_with_worker, health, socket_of};

/// Free space below which `baton doctor` warns.
const LOW_SPACE_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
    /// The check did not run, because of a problem that another finding reports.
    Skipped,
    Warning,
    Error,
}

#[derive(Debug, Serialize)]
struct Finding {
    check: &'static str,
    level: Level,
    message: String,
    fix: Option<String>,
}

/// A check with its name.
#[derive(Debug, Clone, Copy)]
struct Check(&'static str);

impl Check {
    fn ok(self, message: impl Into<String>) -> Finding {
        Finding { check: self.0, level: Level::Ok, message: message.into(), fix: None }
    }

    /// Reports that the check did not run; the finding named `because_of` says why.
    fn skipped(self, because_of: Self) -> Finding {
        Finding { level: Level::Skipped, ..self.ok(format!("not checked; see the {} finding", because_of.0)) }
    }

    fn warning(self, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { check: self.0, level: Level::Warning, message: message.into(), fix: Some(fix.into()) }
    }

    fn error(self, message: impl Into<String>, fix: impl Into<String>) -> Finding {
        Finding { level: Level::Error, ..self.warning(message, fix) }
    }

    /// Reports a failure as an error, with its hint or else `fix`.
    fn failed(self, failure: Failure, fix: &str) -> Finding {
        self.error(failure.message, failure.hint.unwrap_or_else(|| fix.to_owned()))
    }

    /// Reports several problems with their fixes as one warning, or `ok` if there are none.
    fn problems(self, problems: Vec<(String, String)>, ok: impl Into<String>) -> Finding {
        if problems.is_empty() {
            return self.ok(ok);
        }
        let (messages, fixes): (Vec<_>, Vec<_>) = problems.into_iter().unzip();
        self.warning(messages.join("; "), fixes.join("; "))
    }
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DoctorArgs {
    /// Read and verify the whole database, every blob and every checkpoint
    #[arg(long)]
    pub(crate) deep: bool,
    /// Rebuild the search index if it does not match the stored items, and correct the sizes that workflows record (with
    /// --deep)
    #[arg(long, requires = "deep")]
    pub(crate) repair: bool,
}

pub(crate) fn run(args: DoctorArgs, config: &Config) -> Result<Answer, Failure> {
    let inspection = if args.deep { Inspection::Full } else { Inspection::Quick };
    let mut findings = folder(&config.data_dir);
    findings.push(free_space(&config.data_dir));
    findings.extend(server(config));
    if is_unreadable(&config.data_dir) {
        let checks = [DATABASE, WORKER, OBSERVATIONS, HOOKS, AGENTS, ENCRYPTION, CHECKPOINTS];
        findings.extend(checks.map(|check| check.skipped(FOLDER)));
    } else {
        findings.push(database(config, inspection));
        findings.push(worker(config));
        findings.push(observations(config));
        findings.push(hooks(config));
        findings.extend(agents(config));
        findings.push(keys(config));
        findings.push(spooled_checkpoints(config));
        if args.deep {
            findings.extend(content(config, args.repair));
            findings.extend(search_index(config, args.repair));
        }
    }
    let worst = findings.iter().map(|finding| finding.level).max_by_key(|level| *level as u8);
    let text = findings.iter().map(describe).collect::<Vec<_>>().join("\n");
    let exit = if worst == Some(Level::Error) { Exit::Failure } else { Exit::Ok };
    let data = json!({ "healthy": exit == Exit::Ok, "findings": findings });
    Ok(Answer { exit, ..Answer::new(&data, text)? })
}

fn describe(finding: &Finding) -> String {
    let mark = match finding.level {
        Level::Ok => "ok     ",
        Level::Skipped => "skipped",
        Level::Warning => "warning",
        Level::Error => "ERROR  ",
    };
    let fix = finding.fix.as_ref().map(|fix| format!("\n         fix: {fix}")).unwrap_or_default();
    wrap(&format!("{mark}  {}: {}{fix}", finding.check, finding.message), mark.len() + 2)
}

const FOLDER: Check = Check("data folder");
const DATABASE: Check = Check("database");
const WORKER: Check = Check("worker");
const OBSERVATIONS: Check = Check("observations");
const HOOKS: Check = Check("hooks");
const AGENTS: Check = Check("agents");
const ENCRYPTION: Check = Check("encryption");
const CHECKPOINTS: Check = Check("checkpoints");

fn is_unreadable(folder: &Path) -> bool {
    std::fs::read_dir(folder).is_err_and(|error| error.kind() == std::io::ErrorKind::PermissionDenied)
}

/// Checks that only the owner can access the data folder and its files.
fn folder(path: &Path) -> Vec<Finding> {
    let name = path.display();
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => metadata,
        Ok(_) => {
            let fix = format!("move {name} away, or point BATON_DATA_DIR at a folder");
            return vec![FOLDER.error(format!("{name} is not a folder"), fix)];
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![FOLDER.ok(format!("{name} will be created on first use"))];
        }
        Err(error) => {
            let fix = "make it readable for you, or point BATON_DATA_DIR at your own folder";
            return vec![FOLDER.error(format!("{name}: {error}"), fix)];
        }
    };
    if let Some(finding) = owned_by_another_user(path, &metadata) {
        return vec![finding];
    }
    let mut findings: Vec<Finding> = access_for_others(path, &metadata, 0o700).into_iter().collect();
    if is_unreadable(path) {
        findings.push(FOLDER.error(format!("{name} cannot be read"), format!("chmod u+rwx {name}")));
    }
    if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
        findings.push(FOLDER.error(format!("{name} cannot be written"), format!("chmod u+w {name}")));
    }
    findings.extend(files_with_access_for_others(path));
    if findings.is_empty() {
        findings.push(FOLDER.ok(format!("{name}, accessible only to you")));
    }
    findings
}

fn files_with_access_for_others(folder: &Path) -> Vec<Finding> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?)));
    files
        .filter(|(_, metadata)| metadata.is_file() || metadata.is_dir())
        .filter_map(|(path, metadata)| {
            let wanted = if metadata.is_dir() { 0o700 } else { 0o600 };
            owned_by_another_user(&path, &metadata).or_else(|| access_for_others(&path, &metadata, wanted))
        })
        .collect()
}

fn owned_by_another_user(path: &Path, metadata: &Metadata) -> Option<Finding> {
    let name = path.display();
    (metadata.uid() != rustix::process::geteuid().as_raw()).then(|| {
        let fix = format!("sudo chown -R \"$(id -u)\" {name}, or point BATON_DATA_DIR at your own folder");
        FOLDER.error(format!("{name} belongs to another user"), fix)
    })
}

fn access_for_others(path: &Path, metadata: &Metadata, wanted: u32) -> Option<Finding> {
    let (mode, name) = (metadata.permissions().mode() & 0o777, path.display());
    (mode & !wanted != 0).then(|| {
        let message = format!("{name} has mode {mode:04o}; other users can access it");
        FOLDER.warning(message, format!("chmod {wanted:o} {name}"))
    })
}

/// Checks the connections of agents that were set up.
fn agents(config: &Config) -> Vec<Finding> {
    let ListAgentsOutput { connections, mcp_server, .. } = match connections(config, Probe::Programs) {
        Ok(found) => found,
        Err(failure) => return vec![AGENTS.warning(failure.message, "set HOME, then try again")],
    };
    if connections.is_empty() {
        return vec![AGENTS.ok("none is set up; run baton setup to connect one")];
    }
    let finding = |message: String, problem: Option<String>, fix: Option<String>| match problem {
        None => AGENTS.ok(message),
        Some(problem) => AGENTS.warning(format!("{message}: {problem}"), fix.unwrap_or_default()),
    };
    let agent = |AgentConnection { name, scope, last_event_at, problem, fix, .. }| {
        let last =
            last_event_at.map_or_else(|| "no event yet".into(), |at| format!("last event {}", when(at)));
        finding(format!("{name} ({scope}), {last}"), problem, fix)
    };
    let server = |McpServerState { binary, tools, problem }| {
        let responds = tools.map_or_else(String::new, |count| format!(" responds with {count} tools"));
        let fix = format!("run {binary} mcp and read its errors");
        finding(format!("MCP server {binary}{responds}"), problem, Some(fix))
    };
    connections.into_iter().map(agent).chain(mcp_server.map(server)).collect()
}

fn free_space(data_dir: &Path) -> Finding {
    const CHECK: Check = Check("free space");
    // The data folder may not exist yet.
    let existing = data_dir.ancestors().find(|path| path.exists()).map(PathBuf::from).unwrap_or_default();
    match rustix::fs::statvfs(&existing) {
        Ok(stats) => {
            let free = stats.f_bavail.saturating_mul(stats.f_frsize);
            let text = format!("{} MiB at {}", free / (1024 * 1024), existing.display());
            if free < LOW_SPACE_BYTES {
                CHECK.warning(format!("only {text}"), "free some space, or run baton cleanup")
            } else {
                CHECK.ok(text)
            }
        }
        Err(error) => CHECK.warning(error.to_string(), "check that the disk is mounted"),
    }
}

/// Checks that the configured server responds and accepts the credential.
fn server(config: &Config) -> Option<Finding> {
    const CHECK: Check = Check("server");
    let url = config.server.as_ref()?;
    let answered =
        Backend::open_briefly(config).and_then(|server| live_sessions(None, None, config, &server));
    Some(match answered {
        Ok(_) => CHECK.ok(format!("{url} responds and accepts the credential")),
        Err(failure) => {
            CHECK.failed(failure, "check client.server and the credential with baton config show")
        }
    })
}

/// Checks the database without creating one.
fn database(config: &Config, inspection: Inspection) -> Finding {
    if !has_database(config) {
        return DATABASE.ok("none yet; created on first use");
    }
    match Store::inspect(&store_config(config, Threads::Caller), inspection) {
        Ok(health) if health.problems.is_empty() => {
            let migration =
                if health.schema_version < LATEST_VERSION { ", migrated on next use" } else { "" };
            let Health { engine, engine_version, schema_version, .. } = health;
            DATABASE.ok(format!("{engine} {engine_version}, schema version {schema_version}{migration}"))
        }
        Ok(health) => DATABASE.error(
            health.problems.join("; "),
            "stop baton, then restore a backup: baton restore FILE --force keeps the damaged file",
        ),
        Err(error) => {
            let mut failure = store_failure(&error);
            if matches!(error, StoreError::Unavailable { .. }) {
                // The hint of the failure is to run baton doctor.
                failure.hint = Some(fix_of_database(config));
            }
            DATABASE.failed(failure, "check the configuration with baton config show")
        }
    }
}

/// Returns what to do about a database that cannot be opened.
fn fix_of_database(config: &Config) -> String {
    let path = DataDir::at(&config.data_dir).database();
    if config.database_url.is_some() {
        "check that PostgreSQL runs and that BATON_DATABASE_URL is right".into()
    } else if rustix::fs::access(&path, rustix::fs::Access::READ_OK | rustix::fs::Access::WRITE_OK).is_err() {
        format!("chmod u+rw {}", path.display())
    } else {
        format!("restore a backup (baton restore FILE --force), or move {} away", path.display())
    }
}

/// Returns false if the database is a file that does not exist yet.
fn has_database(config: &Config) -> bool {
    match store_config(config, Threads::Caller) {
        StoreConfig::Sqlite { path, .. } => path.exists(),
        StoreConfig::Postgres { .. } => true,
    }
}

/// Returns true if the database has the schema of this version, so that a check does not migrate it.
fn is_current(config: &Config) -> bool {
    Store::inspect(&store_config(config, Threads::Caller), Inspection::Quick)
        .is_ok_and(|health| health.schema_version == LATEST_VERSION)
}

const RESTORE: &str = "restore a backup with baton restore";

/// Checks every checkpoint, blob and raw output, and reports damaged ones with their id. With `repair`, the recorded sizes
/// of workflows are corrected first.
fn content(config: &Config, repair: bool) -> Vec<Finding> {
    const CHECK: Check = Check("content");
    // The check must not migrate or create a database.
    if !has_database(config) {
        return vec![CHECK.ok("nothing is stored yet")];
    }
    if !is_current(config) {
        return vec![CHECK.skipped(DATABASE)];
    }
    let checked = open_app(config, Threads::Caller).and_then(|app| {
        let recounted = if repair { recount_workflows(app.store())? } else { 0 };
        Ok((recounted, check_store(app.store(), &app.settings().checkpoints.storage)?))
    });
    let (recounted, checked) = match checked {
        Ok(checked) => checked,
        Err(failure) => return vec![CHECK.failed(failure, RESTORE)],
    };
    let StoreCheck { checkpoints, raw_outputs, without_key, damaged, damage } = checked;
    let mut findings: Vec<Finding> = damage
        .into_iter()
        .map(|Damage { kind, id, problem, next }| {
            CHECK.error(format!("{kind} {id} is damaged: {problem}"), next)
        })
        .collect();
    let unnamed = damaged.saturating_sub(findings.len() as u64);
    if unnamed > 0 {
        findings.push(CHECK.error(format!("{unnamed} more items are damaged"), RESTORE));
    }
    findings.extend(without_key.into_iter().map(|(key, count)| {
        let message = format!(
            "{} {} encrypted with key {key}, which is not available: the stored bytes are intact, the contexts were \
             not checked",
            counted(count, "checkpoint"),
            if count == 1 { "is" } else { "are" }
        );
        CHECK.warning(message, "put the key in place, then run baton doctor --deep again")
    }));
    if recounted > 0 {
        let corrected = counted(recounted as u64, "workflow");
        findings.push(CHECK.ok(format!("corrected the size that was recorded for {corrected}")));
    }
    let (checkpoints, raw_outputs) =
        (counted(checkpoints, "checkpoint"), counted(raw_outputs, "captured tool use"));
    findings.push(CHECK.ok(format!("intact: {checkpoints} and {raw_outputs}")));
    findings
}

/// Compares the search index with the stored items, and rebuilds it if requested.
fn search_index(config: &Config, repair: bool) -> Option<Finding> {
    const CHECK: Check = Check("search index");
    const REPAIR: &str = "run baton doctor --deep --repair";
    if !is_current(config) {
        return None;
    }
    let checked = open_app(config, Threads::Caller).and_then(|app| {
        let problems = check_index(app.store()).map_err(Failure::from)?;
        if problems.is_empty() || !repair {
            return Ok((problems, None));
        }
        let progress = Progress::new("rebuilding the search index", Amount::Items("items"));
        // Shown before the first batch, because the old index is cleared first.
        progress.add(0);
        let indexed =
            rebuild_index(app.store(), |batch| progress.add(batch as u64)).map_err(Failure::from)?;
        Ok((problems, Some(indexed)))
    });
    Some(match checked {
        Ok((problems, _)) if problems.is_empty() => CHECK.ok("matches the stored items"),
        Ok((problems, Some(indexed))) => {
            CHECK.ok(format!("rebuilt with {indexed} items, because {}", problems.join("; ")))
        }
        Ok((problems, None)) => CHECK.error(problems.join("; "), REPAIR),
        Err(failure) => CHECK.failed(failure, REPAIR),
    })
}

/// Reports which process does the work of the worker, if any.
fn worker(config: &Config) -> Finding {
    let data_dir = &config.data_dir;
    match WorkerLock::state(data_dir) {
        LockState::Held(Some(pid)) => WORKER.ok(format!("running as process {}", pid.as_raw_pid())),
        LockState::Held(None) => WORKER.ok("running in another container"),
        LockState::Free if has_server_with_worker(&DataDir::at(data_dir)) => {
            WORKER.ok("not needed; baton serve processes the capture queue")
        }
        LockState::Free => {
            if let Err(failure) = socket_of(&DataDir::at(data_dir)) {
                let fix = failure.hint.unwrap_or_else(|| "choose a data folder with a shorter path".into());
                return WORKER.warning(format!("cannot start a worker: {}", failure.message), fix);
            }
            let path = DataDir::at(data_dir).worker_pid();
            if path.exists() {
                // The next worker removes the stale file.
                return WORKER.ok("not running; the last worker did not exit cleanly");
            }
            if config.worker_autostart && config.server.is_none() {
                return WORKER.ok("not running; the next hook starts it");
            }
            WORKER.ok("not running; run baton worker start to process the capture queue")
        }
    }
}

/// Checks the capture queue and the compressor.
fn observations(config: &Config) -> Finding {
    if !has_database(config) {
        return OBSERVATIONS.ok("no tool uses captured yet");
    }
    // The check must not migrate the database.
    let app = is_current(config).then(|| open_app(config, Threads::Caller).ok()).flatten();
    let backend = app.map(|app| Backend::Local(Box::new(app)));
    let stats = backend.and_then(|backend| backend.call::<ReadQueueStats>(&ReadQueueStats {}, None).ok());
    let Some(stats) = stats else {
        return OBSERVATIONS.skipped(DATABASE);
    };
    let mut problems = Vec::new();
    if stats.error > 0 {
        let fix = "run baton queue list --errors to see why, and baton queue retry to retry them";
        problems.push((format!("{} captured tool uses failed", stats.error), fix.to_owned()));
    }
    let health = match WorkerLock::state(&config.data_dir) {
        LockState::Held(_) => health(&DataDir::at(&config.data_dir).worker_socket()).unwrap_or_default(),
        LockState::Free => serde_json::Value::Null,
    };
    let trouble = &health["model_trouble"];
    if let (Some(since), Some(error)) = (trouble["since"].as_str(), trouble["error"].as_str()) {
        let fix = "check the key, the model and the address of the endpoint (baton config show)";
        problems.push((format!("the model has been unavailable since {since}: {error}"), fix.to_owned()));
    }
    if health["budget_used_up"] == true {
        let message = "the daily token budget is used up; observations are created offline";
        let fix = "wait until tomorrow (UTC), or raise worker.daily_token_budget";
        problems.push((message.to_owned(), fix.to_owned()));
    }
    OBSERVATIONS.problems(problems, format!("{} pending, none failed", stats.raw + stats.processing))
}

/// Checks for hook reports that are in the outbox, rejected or lost.
fn hooks(config: &Config) -> Finding {
    let reports = ReportOutbox::of(&config.data_dir, Some(target(config)));
    let log = HookLog::of(&config.data_dir);
    let mut problems = Vec::new();
    if let Some(failure) = CaptureFailures::of(&config.data_dir).read() {
        let fix = "free some space, or make the data folder writable; the next session start reports this to the agent \
                   and clears it";
        problems.push((failure.describe(), fix.to_owned()));
    }
    let fix = "repair the database or the configuration, or start the server that they are for; the next hook or the \
               worker stores them";
    problems.extend(outbox_problems(reports.files(), "hook report", fix));
    if let Some(HookError { at, event, message }) = log.latest(1).pop() {
        problems.push((
            format!("the last error was at {at} in {event}: {message}"),
            format!("read {}, then remove it", log.path().display()),
        ));
    }
    HOOKS.problems(problems, "no problems")
}

/// Checks that the encryption keys are available.
fn keys(config: &Config) -> Finding {
    let keys = ConfiguredKeys::of(config);
    if keys.mode() == Mode::Off {
        return ENCRYPTION.ok("off");
    }
    match keys.source().read() {
        Ok((ring, None)) => ENCRYPTION.ok(format!("on, with key {}", ring.current_id())),
        Ok((_, Some(warning))) => {
            ENCRYPTION.warning(warning.to_string(), "make the key file readable for you alone")
        }
        Err(error) if error.is_missing() && !is_anything_sealed(config) => {
            ENCRYPTION.ok("on; the first key is created with the first checkpoint")
        }
        Err(error) if keys.mode() == Mode::Required => ENCRYPTION.error(error.to_string(), error.hint()),
        Err(error) => ENCRYPTION.warning(error.to_string(), error.hint()),
    }
}

/// Returns true if a checkpoint is encrypted. A database that cannot be read has its own finding.
fn is_anything_sealed(config: &Config) -> bool {
    has_database(config) && keys_in_use(config).is_ok_and(|used| !used.is_empty())
}

/// Checks for checkpoints and notes that are in the outbox or rejected.
fn spooled_checkpoints(config: &Config) -> Finding {
    let fix = "repair the database; the worker or the next checkpoint or note command stores them";
    let problems = outbox_problems(&checkpoints::outbox(config), "write", fix);
    CHECKPOINTS.problems(problems, "the outbox is empty")
}

/// Describes the writes of an outbox with a fix for each kind: for another store, not stored yet, rejected.
fn outbox_problems(outbox: &Outbox, noun: &str, fix: &str) -> Vec<(String, String)> {
    let mut problems = Vec::new();
    let mut waiting = outbox.count();
    for (other, count) in outbox.for_other_targets() {
        waiting -= count.min(waiting);
        problems.push((
            format!(
                "{} in the outbox for {other}, which is not the configured store",
                counted(count as u64, noun)
            ),
            format!("configure {other} again to store them, or remove them"),
        ));
    }
    if waiting > 0 {
        problems.push((format!("in the outbox: {}", counted(waiting as u64, noun)), fix.to_owned()));
    }
    let rejected = outbox.rejected();
    if rejected > 0 {
        problems.push((
            format!("rejected and not stored: {}", counted(rejected as u64, noun)),
            format!("inspect {}/*.refused, then remove them", outbox.folder().display()),
        ));
    }
    problems
}
