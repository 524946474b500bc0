//! `baton doctor`: checks the installation and prints a fix for each problem.

use std::fs::Metadata;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use baton_app::agent::{AgentConnection, ListAgentsOutput, McpServerState};
use baton_app::maintenance::{Damage, StoreCheck, check_store};
use baton_app::observation::ReadQueueStats;
use baton_app::recall::{check_index, rebuild_index};
use baton_core::counted;
use baton_store::{Health, Inspection, LATEST_VERSION, Store, StoreConfig, Target, Threads};
use clap::Args;
use serde::Serialize;
use serde_json::json;

use crate::backend::{Backend, open_app, store_config, store_failure};
use crate::checkpoints;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::encryption::ConfiguredKeys;
use crate::exit::Exit;
use crate::hooks::{CaptureFailures, Journal, ReportOutbox, Trouble};
use crate::keys::Mode;
use crate::output::{Answer, Failure};
use crate::progress::Progress;
use crate::terminal::{when, wrap};
use crate::verbs::connections::{Probe, connections};
use crate::verbs::key::keys_in_use;
use crate::verbs::worker::{LockState, WorkerLock, has_server_with_worker, health, socket_of};

/// Free space below which `baton doctor` warns.
const LOW_SPACE_BYTES: u64 = 256 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Level {
    Ok,
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

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), fix: None }
    }

    fn bad(check: &'static str, level: Level, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, level, message: message.into(), fix: Some(fix.into()) }
    }
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DoctorArgs {
    /// Read and verify the whole database, every blob and every checkpoint
    #[arg(long)]
    pub(crate) deep: bool,
    /// Rebuild the search index if it does not match the stored items (with --deep)
    #[arg(long, requires = "deep")]
    pub(crate) repair: bool,
}

pub(crate) fn run(args: DoctorArgs, config: &Config) -> Result<Answer, Failure> {
    let inspection = if args.deep { Inspection::Full } else { Inspection::Quick };
    let mut findings = folder(&config.data_dir);
    findings.push(free_space(&config.data_dir));
    findings.push(database(config, inspection));
    findings.push(worker(config));
    findings.push(observations(config));
    findings.push(hooks(config));
    findings.extend(agents(config));
    findings.push(keys(config));
    findings.push(spooled_checkpoints(config));
    if args.deep {
        findings.extend(content(config));
        findings.extend(search_index(config, args.repair));
    }
    let worst = findings.iter().map(|finding| finding.level).max_by_key(|level| *level as u8);
    let text = findings.iter().map(describe).collect::<Vec<_>>().join("\n");
    let exit = if worst == Some(Level::Error) { Exit::Failure } else { Exit::Ok };
    let data = json!({ "healthy": exit == Exit::Ok, "findings": findings });
    Ok(Answer { exit, ..Answer::new(data, text) })
}

fn describe(finding: &Finding) -> String {
    let mark = match finding.level {
        Level::Ok => "ok     ",
        Level::Warning => "warning",
        Level::Error => "ERROR  ",
    };
    let fix = finding.fix.as_ref().map(|fix| format!("\n         fix: {fix}")).unwrap_or_default();
    wrap(&format!("{mark}  {}: {}{fix}", finding.check, finding.message), mark.len() + 2)
}

/// Checks that only the owner can access the data folder and its files.
fn folder(path: &Path) -> Vec<Finding> {
    const CHECK: &str = "data folder";
    let metadata = match std::fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => metadata,
        Ok(_) => {
            let fix = format!("move {} away, or point BATON_DATA_DIR at a folder", path.display());
            return vec![Finding::bad(
                CHECK,
                Level::Error,
                format!("{} is not a folder", path.display()),
                fix,
            )];
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Finding::ok(CHECK, format!("{} will be created on first use", path.display()))];
        }
        Err(error) => {
            let fix = "make it readable for you, or point BATON_DATA_DIR at a folder that is";
            return vec![Finding::bad(CHECK, Level::Error, format!("{}: {error}", path.display()), fix)];
        }
    };
    let mut findings: Vec<Finding> = access_for_others(path, &metadata, 0o700).into_iter().collect();
    if rustix::fs::access(path, rustix::fs::Access::WRITE_OK).is_err() {
        let fix = format!("chmod u+w {}", path.display());
        findings.push(Finding::bad(
            CHECK,
            Level::Error,
            format!("{} cannot be written", path.display()),
            fix,
        ));
    }
    findings.extend(files_with_access_for_others(path));
    if findings.is_empty() {
        findings.push(Finding::ok(CHECK, format!("{}, accessible only to you", path.display())));
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
            access_for_others(&path, &metadata, wanted)
        })
        .collect()
}

fn access_for_others(path: &Path, metadata: &Metadata, wanted: u32) -> Option<Finding> {
    const CHECK: &str = "data folder";
    let mode = metadata.permissions().mode() & 0o777;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let fix = format!("chown -R \"$(id -u)\" {}", path.display());
        return Some(Finding::bad(
            CHECK,
            Level::Error,
            format!("{} belongs to another user", path.display()),
            fix,
        ));
    }
    (mode & !wanted != 0).then(|| {
        let message = format!("{} has mode {mode:04o}; other users can access it", path.display());
        Finding::bad(CHECK, Level::Warning, message, format!("chmod {wanted:o} {}", path.display()))
    })
}

/// Checks the connections of agents that were set up.
fn agents(config: &Config) -> Vec<Finding> {
    const CHECK: &str = "agents";
    let ListAgentsOutput { connections, mcp_server, .. } = match connections(config, Probe::Programs) {
        Ok(found) => found,
        Err(failure) => {
            return vec![Finding::bad(CHECK, Level::Warning, failure.message, "set HOME, then try again")];
        }
    };
    if connections.is_empty() {
        return vec![Finding::ok(CHECK, "none is set up; run `baton setup` to connect one")];
    }
    let finding = |message: String, problem: Option<String>, fix: Option<String>| match problem {
        None => Finding::ok(CHECK, message),
        Some(problem) => {
            Finding::bad(CHECK, Level::Warning, format!("{message}: {problem}"), fix.unwrap_or_default())
        }
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
    const CHECK: &str = "free space";
    let there = data_dir.ancestors().find(|path| path.exists()).map(PathBuf::from).unwrap_or_default();
    match rustix::fs::statvfs(&there) {
        Ok(stats) => {
            let free = stats.f_bavail.saturating_mul(stats.f_frsize);
            let text = format!("{} MiB at {}", free / (1024 * 1024), there.display());
            if free < LOW_SPACE_BYTES {
                Finding::bad(
                    CHECK,
                    Level::Warning,
                    format!("only {text}"),
                    "free some space, or run baton cleanup",
                )
            } else {
                Finding::ok(CHECK, text)
            }
        }
        Err(error) => {
            Finding::bad(CHECK, Level::Warning, error.to_string(), "check that the disk is mounted")
        }
    }
}

/// Checks the database without creating one.
fn database(config: &Config, inspection: Inspection) -> Finding {
    const CHECK: &str = "database";
    let place = store_config(config, Threads::Caller);
    if let StoreConfig::Sqlite { path, .. } = &place
        && !path.exists()
    {
        return Finding::ok(CHECK, "none yet; created on first use");
    }
    let health = Store::inspect(&place, inspection).map_err(|error| store_failure(&error));
    match health {
        Ok(health) if health.problems.is_empty() => {
            let age = if health.schema_version < LATEST_VERSION { ", migrated on next use" } else { "" };
            let Health { engine, engine_version, schema_version, .. } = health;
            Finding::ok(CHECK, format!("{engine} {engine_version}, schema version {schema_version}{age}"))
        }
        Ok(health) => Finding::bad(
            CHECK,
            Level::Error,
            health.problems.join("; "),
            "stop baton, then restore a backup: baton restore FILE --force keeps the damaged file",
        ),
        Err(failure) => Finding::bad(
            CHECK,
            Level::Error,
            failure.message,
            failure.hint.unwrap_or_else(|| "check the configuration with baton config show".into()),
        ),
    }
}

/// Checks every checkpoint, blob and raw output, and reports damaged ones with their id.
fn content(config: &Config) -> Vec<Finding> {
    const CHECK: &str = "content";
    let place = store_config(config, Threads::Caller);
    // The check must not migrate or create a database.
    match &place {
        StoreConfig::Sqlite { path, .. } if !path.exists() => {
            return vec![Finding::ok(CHECK, "nothing is stored yet")];
        }
        _ if Store::inspect(&place, Inspection::Quick)
            .is_ok_and(|health| health.schema_version == LATEST_VERSION) => {}
        _ => return vec![Finding::ok(CHECK, "not checked; see the database finding")],
    }
    let checked = open_app(config, Threads::Caller).and_then(|app| check_store(&app).map_err(Failure::from));
    let checked = match checked {
        Ok(checked) => checked,
        Err(failure) => {
            let fix = failure.hint.unwrap_or_else(|| "restore a backup with baton restore".into());
            return vec![Finding::bad(CHECK, Level::Error, failure.message, fix)];
        }
    };
    let StoreCheck { checkpoints, raw_outputs, without_key, damaged, damage } = checked;
    let mut findings: Vec<Finding> = damage
        .into_iter()
        .map(|Damage { kind, id, problem, next }| {
            Finding::bad(CHECK, Level::Error, format!("{kind} {id} is damaged: {problem}"), next)
        })
        .collect();
    let unnamed = damaged.saturating_sub(findings.len() as u64);
    if unnamed > 0 {
        let fix = "restore a backup with baton restore";
        findings.push(Finding::bad(CHECK, Level::Error, format!("{unnamed} more items are damaged"), fix));
    }
    findings.extend(without_key.into_iter().map(|(key, count)| {
        let message = format!(
            "{count} checkpoints are encrypted with key {key}, which is not available: their stored bytes are \
             intact, their contexts were not checked"
        );
        Finding::bad(CHECK, Level::Warning, message, "put the key in place, then run baton doctor --deep again")
    }));
    let sound = format!("{checkpoints} checkpoints and {raw_outputs} captured tool uses are intact");
    findings.push(Finding::ok(CHECK, sound));
    findings
}

/// Compares the search index with the stored items, and rebuilds it if requested.
fn search_index(config: &Config, repair: bool) -> Option<Finding> {
    const CHECK: &str = "search index";
    let place = store_config(config, Threads::Caller);
    let is_current =
        Store::inspect(&place, Inspection::Quick).is_ok_and(|health| health.schema_version == LATEST_VERSION);
    if !is_current {
        return None;
    }
    let checked = open_app(config, Threads::Caller).and_then(|app| {
        let problems = check_index(app.store()).map_err(Failure::from)?;
        if problems.is_empty() || !repair {
            return Ok((problems, None));
        }
        let progress = Progress::in_items("rebuilding the search index", "items");
        // Shown before the first batch, because the old index is cleared first.
        progress.add(0);
        let indexed =
            rebuild_index(app.store(), |batch| progress.add(batch as u64)).map_err(Failure::from)?;
        Ok((problems, Some(indexed)))
    });
    Some(match checked {
        Ok((problems, _)) if problems.is_empty() => Finding::ok(CHECK, "matches the stored items"),
        Ok((problems, Some(indexed))) => {
            Finding::ok(CHECK, format!("rebuilt with {indexed} items, because {}", problems.join("; ")))
        }
        Ok((problems, None)) => {
            Finding::bad(CHECK, Level::Error, problems.join("; "), "run baton doctor --deep --repair")
        }
        Err(failure) => {
            let fix = failure.hint.unwrap_or_else(|| "run baton doctor --deep --repair".into());
            Finding::bad(CHECK, Level::Error, failure.message, fix)
        }
    })
}

/// Reports which process does the work of the worker, if any.
fn worker(config: &Config) -> Finding {
    const CHECK: &str = "worker";
    let data_dir = &config.data_dir;
    match WorkerLock::state(data_dir) {
        LockState::Held(Some(pid)) => Finding::ok(CHECK, format!("running as process {}", pid.as_raw_pid())),
        LockState::Held(None) => Finding::ok(CHECK, "running in another container"),
        LockState::Free if has_server_with_worker(&DataDir::at(data_dir)) => {
            Finding::ok(CHECK, "not needed; baton serve processes the capture queue")
        }
        LockState::Free => {
            if let Err(failure) = socket_of(&DataDir::at(data_dir)) {
                let fix = failure.hint.unwrap_or_else(|| "choose a data folder with a shorter path".into());
                return Finding::bad(
                    CHECK,
                    Level::Warning,
                    format!("cannot start a worker: {}", failure.message),
                    fix,
                );
            }
            let path = DataDir::at(data_dir).worker_pid();
            if path.exists() {
                // The next worker removes the stale file.
                return Finding::ok(CHECK, "not running; the last worker did not exit cleanly");
            }
            if config.worker_autostart && config.server.is_none() {
                return Finding::ok(CHECK, "not running; the next hook starts it");
            }
            Finding::ok(CHECK, "not running; run baton worker start to process the capture queue")
        }
    }
}

/// Checks the capture queue and the compressor.
fn observations(config: &Config) -> Finding {
    const CHECK: &str = "observations";
    let place = store_config(config, Threads::Caller);
    if let StoreConfig::Sqlite { path, .. } = &place
        && !path.exists()
    {
        return Finding::ok(CHECK, "no tool uses captured yet");
    }
    // The check must not migrate the database.
    let is_current =
        Store::inspect(&place, Inspection::Quick).is_ok_and(|health| health.schema_version == LATEST_VERSION);
    let stats = if is_current {
        Backend::local(config, "looking after the queue")
            .and_then(|backend| backend.call::<ReadQueueStats>(&json!({}), None))
            .ok()
    } else {
        None
    };
    let Some((stats, _)) = stats else {
        return Finding::ok(CHECK, "not checked; see the database finding");
    };
    let mut told = Vec::new();
    let mut next = Vec::new();
    if stats.error > 0 {
        told.push(format!("{} captured tool uses failed", stats.error));
        next.push("run baton queue list --errors to see why, and baton queue retry to retry them".to_owned());
    }
    let health = match WorkerLock::state(&config.data_dir) {
        LockState::Held(_) => health(&DataDir::at(&config.data_dir).worker_socket()).unwrap_or_default(),
        LockState::Free => serde_json::Value::Null,
    };
    let trouble = &health["model_trouble"];
    if let (Some(since), Some(error)) = (trouble["since"].as_str(), trouble["error"].as_str()) {
        told.push(format!("the model has been unavailable since {since}: {error}"));
        next.push("check the key, the model and the address of the endpoint (baton config show)".to_owned());
    }
    if health["budget_used_up"] == true {
        told.push("the daily token budget is used up; observations are created offline".to_owned());
        next.push("wait until tomorrow (UTC), or raise worker.daily_token_budget".to_owned());
    }
    if told.is_empty() {
        return Finding::ok(CHECK, format!("{} pending, none failed", stats.raw + stats.processing));
    }
    Finding::bad(CHECK, Level::Warning, told.join("; "), next.join("; "))
}

/// Checks for hook reports that are in the outbox, rejected or lost.
fn hooks(config: &Config) -> Finding {
    const CHECK: &str = "hooks";
    let target = match &config.server {
        Some(url) => Target::server(url),
        None => store_config(config, Threads::Caller).target(),
    };
    let reports = ReportOutbox::of(&config.data_dir, Some(target));
    let journal = Journal::of(&config.data_dir);
    let (spooled, rejected) = (reports.files().count(), reports.files().rejected());
    let mut told = Vec::new();
    let mut next = Vec::new();
    if let Some(failure) = CaptureFailures::of(&config.data_dir).read() {
        told.push(failure.describe());
        next.push(
            "free some space, or make the data folder writable; the next session start reports this to the agent and clears it"
                .to_owned(),
        );
    }
    for (other, count) in reports.files().for_other_targets() {
        told.push(format!(
            "{count} hook reports in the outbox are for {other}, which is not the configured store"
        ));
        next.push(format!("configure {other} again to store them, or remove them"));
    }
    if spooled > 0 {
        told.push(format!("in the outbox: {}", counted(spooled as u64, "hook report")));
        next.push(
            "repair the database or the configuration, or start the server that they are for; the next hook or the \
             worker stores them"
                .to_owned(),
        );
    }
    if rejected > 0 {
        told.push(format!("rejected and not stored: {}", counted(rejected as u64, "hook report")));
        next.push(format!("inspect {}/*.refused, then remove them", reports.files().folder().display()));
    }
    if let Some(Trouble { at, event, message }) = journal.latest(1).pop() {
        told.push(format!("the last error was at {at} in {event}: {message}"));
        next.push(format!("read {}, then remove it", journal.path().display()));
    }
    if told.is_empty() {
        return Finding::ok(CHECK, "no problems");
    }
    Finding::bad(CHECK, Level::Warning, told.join("; "), next.join("; "))
}

/// Checks that the encryption keys are available.
fn keys(config: &Config) -> Finding {
    const CHECK: &str = "encryption";
    let keys = ConfiguredKeys::of(config);
    if keys.mode() == Mode::Off {
        return Finding::ok(CHECK, "off");
    }
    match keys.source().read() {
        Ok((ring, None)) => Finding::ok(CHECK, format!("on, with key {}", ring.current_id())),
        Ok((_, Some(warning))) => Finding::bad(
            CHECK,
            Level::Warning,
            warning.to_string(),
            "make the key file readable for you alone",
        ),
        Err(error) if error.is_missing() && !is_anything_sealed(config) => {
            Finding::ok(CHECK, "on; the first key is created with the first checkpoint")
        }
        Err(error) => {
            let level = if keys.mode() == Mode::Required { Level::Error } else { Level::Warning };
            Finding::bad(CHECK, level, error.to_string(), error.hint())
        }
    }
}

/// Returns true if a checkpoint is encrypted. A database that cannot be read has its own finding.
fn is_anything_sealed(config: &Config) -> bool {
    let is_there = match store_config(config, Threads::Caller) {
        StoreConfig::Sqlite { path, .. } => path.exists(),
        StoreConfig::Postgres { .. } => true,
    };
    is_there && keys_in_use(config).is_ok_and(|used| !used.is_empty())
}

/// Checks for checkpoints and notes in the outbox.
fn spooled_checkpoints(config: &Config) -> Finding {
    const CHECK: &str = "checkpoints";
    let outbox = checkpoints::outbox(config);
    let for_others: usize = outbox.for_other_targets().iter().map(|(_, count)| count).sum();
    if for_others > 0 {
        return Finding::bad(
            CHECK,
            Level::Warning,
            format!("{for_others} checkpoints or notes in the outbox (spill/) are for another database"),
            "configure that database again (BATON_DATABASE_URL) to store them; the first line of each file names it",
        );
    }
    if outbox.is_empty() {
        return Finding::ok(CHECK, "the outbox is empty");
    }
    Finding::bad(
        CHECK,
        Level::Warning,
        "the outbox (spill/) contains checkpoints or notes that are not in the database yet",
        "repair the database; the worker or the next checkpoint or note command replays them",
    )
}
