//! `baton hook <event>`: reads the report of an agent's hook, stores it, and prints a response in the agent's protocol.
//!
//! A hook never blocks or fails the agent: the process exits with 0 within its time limit, and errors are written to
//! `logs/hook.log`.

use std::io::{self, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError, mpsc};
use std::time::{Duration, Instant};

use baton_app::observation::{Intake, Report};
use baton_app::{Clock, SystemClock};
use baton_core::{Agent, Label};
use baton_observation::{ClientKind, HookEvent};
use baton_store::{BlobFolder, LockTimeout, ReplayLimits, ReplayResult, SpooledTo, Target};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::backend::Backend;
use crate::config::{Config, Sources};
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::hooks::{
    CaptureFailures, HookLog, LastCaptured, Outcome, ReportId, ReportOutbox, describe_branches,
    describe_files, describe_place, result_of,
};
use crate::logging;
use crate::output::{Failure, warn};
use crate::store::target;
use crate::verbs::pause::CaptureState;
use crate::verbs::relay::HANDOFF_VARIABLE;
use crate::verbs::worker::start_if_absent;

/// Time limit of a hook, counted from the last byte that the agent sent. A report that is not stored by then
/// is saved to the outbox.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// Time limit of `session-end` in Claude Code, which stops the hook after 1.5 s.
const CLAUDE_CODE_END_LIMIT: Duration = Duration::from_millis(1_300);
/// Time limit of `session-end` in Codex, which stops the hook after 1 s.
const CODEX_END_LIMIT: Duration = Duration::from_millis(800);
/// Time limit for replaying the outbox. If another process is replaying it, the hook does not wait and adds
/// its own report to the outbox.
const REPLAY_LIMITS: ReplayLimits =
    ReplayLimits { lock: Duration::from_millis(100), total: Duration::from_secs(2) };

pub(crate) const EXAMPLES: &str = "\
Always exits with 0; errors go to logs/hook.log in the data folder.

Examples:
  $ echo '{\"session_id\":\"chat-7\"}' | baton hook session-start --client claude-code
  $ baton hook post-tool-use --client codex < report.json";

#[derive(Debug, Clone, Args)]
pub(crate) struct HookArgs {
    /// Event: session-start, user-prompt-submit, pre-tool-use, post-tool-use, post-tool-use-failure, pre-compact,
    /// post-compact, stop, stop-failure, interrupt, subagent-stop or session-end
    pub(crate) event: String,
    /// Client program that runs the agent, for example claude-code or codex
    #[arg(long)]
    client: Option<String>,
    /// Agent name [default: session.agent, else derived from the client]
    #[arg(long)]
    agent: Option<String>,
}

/// Arguments of a hook, parsed without clap: building the whole clap command takes a millisecond, a fifth of the time of a
/// hook. Command lines that are not in the simple form are left to clap.
pub(crate) struct QuickArgs {
    pub(crate) hook: HookArgs,
    pub(crate) data_dir: Option<String>,
    pub(crate) server: Option<String>,
    pub(crate) log: Option<String>,
}

impl QuickArgs {
    const fn of(event: String) -> Self {
        Self { hook: HookArgs { event, client: None, agent: None }, data_dir: None, server: None, log: None }
    }

    /// Returns the field of a known flag.
    fn field(&mut self, flag: &str) -> Option<&mut Option<String>> {
        match flag {
            "--client" => Some(&mut self.hook.client),
            "--agent" => Some(&mut self.hook.agent),
            "--data-dir" => Some(&mut self.data_dir),
            "--server" => Some(&mut self.server),
            "--log" => Some(&mut self.log),
            _ => None,
        }
    }

    /// Parses the arguments after the program name.
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        arguments.next().filter(|verb| verb == "hook")?;
        let event = arguments.next().filter(|event| !event.starts_with('-'))?;
        let mut read = Self::of(event);
        while let Some(argument) = arguments.next() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), value.to_owned()),
                None => (argument, arguments.next()?),
            };
            if read.field(&flag)?.replace(value).is_some() {
                return None;
            }
        }
        Some(read)
    }

    /// Parses the valid part of an invalid command line, so that the report is stored nevertheless.
    pub(crate) fn salvage(arguments: impl Iterator<Item = String>) -> Option<Self> {
        let mut read = Self::of(String::new());
        let mut words = Vec::new();
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            if !argument.starts_with('-') {
                words.push(argument);
                continue;
            }
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag, Some(value.to_owned())),
                None => (argument.as_str(), None),
            };
            if let Some(field) = read.field(flag) {
                let value = value.or_else(|| arguments.next_if(|value| !value.starts_with('-')));
                *field = field.take().or(value);
            }
        }
        let mut words = words.into_iter().skip_while(|word| word != "hook").skip(1);
        read.hook.event = words.find(|word| HookEvent::from_name(word).is_some())?;
        Some(read)
    }
}

/// Runs a hook. The report is stored or saved to the outbox even if the configuration or the command line is
/// invalid. `wrong` is the error of the command line.
pub(crate) fn run(args: &HookArgs, sources: &Sources, wrong: Option<String>) {
    match Config::load_for_capture(sources) {
        Ok((config, unread)) => {
            if CaptureState::of(&config) != CaptureState::On {
                return discard_report();
            }
            let mut wrong: Vec<String> = wrong.into_iter().collect();
            wrong.extend(unread.iter().map(ToString::to_string));
            wrong.extend(logging::start(&config).err().map(|failure| failure.message));
            for message in &wrong {
                warn(message);
                HookLog::of(&config.data_dir).record(&args.event, &format!("ignored: {message}"));
            }
            store_report(args, &config);
        }
        Err(error) => match sources.data_dir_without_files() {
            Some(folder) => spool_report(args, &folder, &error.to_string()),
            None => warn(&error.to_string()),
        },
    }
}

/// Reads the report and drops it, so that the agent can write all of it.
fn discard_report() {
    let (sender, receiver) = mpsc::channel();
    let read = move || {
        let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
        let _ = sender.send(());
    };
    if std::thread::Builder::new().spawn(read).is_ok() {
        let _ = receiver.recv_timeout(TIME_LIMIT);
    }
}

/// Saves the report to the outbox without a target, because the configuration that names the store is
/// invalid.
fn spool_report(args: &HookArgs, folder: &Path, reason: &str) {
    warn(reason);
    let intake = Intake::default().replacing_unkept_output();
    let run = Arc::new(HookRun::new(args.clone(), folder, None, intake));
    start_time_limit(run.clone());
    let failure = run.read_report().map_or_else(|failure| failure, |report| run.spool(report, reason));
    run.log.record(&args.event, &failure.message);
}

/// Stores the report and prints the response in the agent's protocol, regardless of `--format`.
fn store_report(args: &HookArgs, config: &Config) {
    let args = HookArgs {
        agent: args.agent.clone().or_else(|| Some(config.agent.as_ref()?.to_string())),
        ..args.clone()
    };
    // Local blobs are used only with the local SQLite database, not with a server or PostgreSQL.
    let is_local = config.server.is_none() && config.database_url.is_none();
    let blobs = is_local.then(|| BlobFolder::at(DataDir::at(&config.data_dir).blobs()));
    let intake = Intake::new(blobs).replacing_unkept_output();
    let run = Arc::new(HookRun::new(args, &config.data_dir, Some(target(config)), intake));
    start_time_limit(run.clone());
    let answer = run.store(config);
    match &answer {
        Err(failure) => run.log.record(&run.args.event, &failure.message),
        Ok(_) => {
            let client =
                run.origin.get().and_then(|origin| origin.client.name()).or(run.args.client.as_deref());
            if let Some(client) = client {
                LastCaptured::of(&config.data_dir).record(client);
            }
        }
    }
    if let Some(answer) = run.with_capture_warning(answer).and_then(|answer| run.in_client_format(&answer)) {
        crate::output::print(&answer.to_string());
    }
    start_if_absent(config);
}

/// Writes an error to `logs/hook.log` before the configuration is loaded.
pub(crate) fn record_error(sources: &Sources, event: &str, message: &str) {
    warn(message);
    if let Some(folder) = sources.data_dir_without_files() {
        HookLog::of(&folder).record(event, message);
    }
}

/// Starts a thread that saves the report to the outbox and exits when the time limit is reached.
fn start_time_limit(run: Arc<HookRun>) {
    let watch = move || {
        while let Some(left) = run.time_left() {
            std::thread::sleep(left);
        }
        let message = match run.report.get() {
            Some(report) => run.spool(report, "the time limit was reached").message,
            None => "the agent did not send a complete report, so nothing was stored".to_owned(),
        };
        run.log.record(&run.args.event, &message);
        std::process::exit(Exit::Ok as i32);
    };
    // If the thread cannot be started, the hook runs without a time limit.
    let _ = std::thread::Builder::new().name("baton-clock".into()).spawn(watch);
}

/// Origin of a report.
#[derive(Debug, Clone, Copy)]
struct Origin {
    client: ClientKind,
    /// The event; `None` if it is not known.
    event: Option<HookEvent>,
}

/// State of one hook: its report, and where the report is stored.
struct HookRun {
    args: HookArgs,
    log: HookLog,
    outbox: ReportOutbox,
    failures: CaptureFailures,
    report_id: ReportId,
    started_at: Instant,
    /// Time of the last read from the agent, in milliseconds since the start.
    last_read_ms: AtomicU64,
    intake: Intake,
    /// Client and event, once the report was parsed.
    origin: OnceLock<Origin>,
    /// The report, once it was read completely.
    report: OnceLock<Report>,
    /// Message about saving the report to the outbox, if that happened. The time limit may be reached
    /// meanwhile.
    spooled: Mutex<Option<String>>,
}

impl HookRun {
    fn new(args: HookArgs, data_dir: &Path, target: Option<Target>, intake: Intake) -> Self {
        Self {
            args,
            log: HookLog::of(data_dir),
            outbox: ReportOutbox::of(data_dir, target),
            failures: CaptureFailures::of(data_dir),
            report_id: ReportId::new(),
            started_at: Instant::now(),
            last_read_ms: AtomicU64::new(0),
            intake,
            origin: OnceLock::new(),
            report: OnceLock::new(),
            spooled: Mutex::new(None),
        }
    }

    /// Returns the time until the limit is reached, which starts with the last read from the agent; `None` afterwards.
    fn time_left(&self) -> Option<Duration> {
        let last_read = Duration::from_millis(self.last_read_ms.load(Ordering::Relaxed));
        let limit = match self.origin.get() {
            Some(Origin { event: Some(HookEvent::SessionEnd), client: ClientKind::ClaudeCode }) => {
                CLAUDE_CODE_END_LIMIT
            }
            Some(Origin { event: Some(HookEvent::SessionEnd), client: ClientKind::Codex }) => CODEX_END_LIMIT,
            _ => TIME_LIMIT,
        };
        (last_read + limit).checked_sub(self.started_at.elapsed()).filter(|left| !left.is_zero())
    }

    /// Reads and completes the report.
    fn read_report(&self) -> Result<&Report, Failure> {
        let mut stdin = Timed { reader: std::io::stdin().lock(), run: self };
        let report = self.intake.read(&mut stdin, &mut |report| self.complete(report))?;
        let event = &self.args.event;
        if self.origin.get().is_none_or(|origin| origin.event.is_none()) {
            let message = format!("unknown event `{event}`");
            return Err(Failure::new(Exit::Validation, "invalid_request", message));
        }
        Ok(self.report.get_or_init(|| report))
    }

    /// Replays the outbox, then stores this report. Returns the response for the agent, if there is one.
    fn store(&self, config: &Config) -> Result<Option<Value>, Failure> {
        let report = self.read_report()?;
        self.check_names();
        let has_spooled = !self.outbox.files().is_empty();
        // An earlier hook has waited for the store already, so this one uses a minimal lock timeout.
        let lock_timeout = if has_spooled { LockTimeout::Minimal } else { LockTimeout::Short };
        let backend = match Backend::open_for_hook(config, lock_timeout) {
            Ok(backend) => backend,
            Err(failure) => return Err(self.spool(report, &failure.message)),
        };
        if has_spooled && self.replay_outbox(&backend) {
            return Err(self.spool(report, "earlier reports are in the outbox"));
        }
        match backend.report(report, self.key(config).as_deref(), &self.intake) {
            Ok(answer) => {
                Ok(Some(answer).filter(|answer| answer.as_object().is_some_and(|fields| !fields.is_empty())))
            }
            Err(failure) if is_temporary(&failure) => Err(self.spool(report, &failure.message)),
            Err(failure) => Err(failure),
        }
    }

    /// Returns the idempotency key of a report for a server or PostgreSQL, where the outcome of a write can
    /// be unknown. The file in the outbox has the same key, so the report is stored once. A local SQLite
    /// write needs none.
    fn key(&self, config: &Config) -> Option<String> {
        let may_be_unknown = config.server.is_some() || config.database_url.is_some();
        may_be_unknown.then(|| self.report_id.key())
    }

    /// Returns the response for the agent. At a session start it includes a warning about reports that could not be kept;
    /// the record of them is cleared once the store works again.
    fn with_capture_warning(&self, answer: Result<Option<Value>, Failure>) -> Option<Value> {
        let is_stored = answer.is_ok();
        let answer = answer.ok().flatten();
        if HookEvent::from_name(&self.args.event) != Some(HookEvent::SessionStart) {
            return answer;
        }
        let Some(failure) = self.failures.read() else { return answer };
        if is_stored {
            self.log.record(&self.args.event, &failure.describe());
            self.failures.clear();
        }
        let mut context =
            format!("Baton warning: {}. Run baton doctor for the cause and the fix.", failure.describe());
        if let Some(given) =
            answer.as_ref().and_then(|answer| answer["hookSpecificOutput"]["additionalContext"].as_str())
        {
            context = format!("{context}\n\n{given}");
        }
        let event = HookEvent::SessionStart.wire_name();
        Some(json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": context } }))
    }

    /// Converts the response to the format of the client; `None` if the client accepts no context.
    fn in_client_format(&self, answer: &Value) -> Option<Value> {
        let output = &answer["hookSpecificOutput"];
        let context = output["additionalContext"].as_str()?;
        self.origin.get()?.client.response(output["hookEventName"].as_str()?, context)
    }

    /// Writes invalid names of the command line to `logs/hook.log`. They are not added to the report.
    fn check_names(&self) {
        let HookArgs { event, client, agent } = &self.args;
        let client = client.as_ref().and_then(|client| client.parse::<Label>().err());
        let agent = agent.as_ref().and_then(|agent| agent.parse::<Agent>().err());
        for (flag, problem) in [("--client", client), ("--agent", agent)] {
            if let Some(problem) = problem {
                self.log.record(event, &format!("ignored: {flag} {problem}"));
            }
        }
    }

    /// Replays the outbox and returns true if reports remain in it. Reports must be stored in order, because a later one
    /// may end or restart the session of an earlier one.
    fn replay_outbox(&self, backend: &Backend) -> bool {
        let store = |report: &Report, key: Option<&str>| backend.report(report, key, &self.intake).map(drop);
        self.outbox.replay(REPLAY_LIMITS, &self.intake, store).is_blocked
    }

    /// Adds the event, names, time and place to a report.
    fn complete(&self, report: &mut Map<String, Value>) {
        let HookArgs { event, client, agent } = &self.args;
        // A null field counts as absent, so that `describe_place` can fill it in.
        report.retain(|_, value| !value.is_null());
        let kind = ClientKind::of(report, client.as_deref(), |name| std::env::var_os(name).is_some());
        kind.normalize(report);
        let known = HookEvent::from_name(event);
        let _ = self.origin.set(Origin { client: kind, event: known });
        if let Some(known) = known {
            report.insert("event".into(), known.as_str().into());
            let protocol_name = match event.as_str() {
                "stop-failure" => "StopFailure",
                "interrupt" => "Interrupt",
                name => name,
            };
            report.entry("hook_event_name").or_insert_with(|| protocol_name.into());
        }
        let client = kind.name().or(client.as_deref()).filter(|client| client.parse::<Label>().is_ok());
        let agent = agent.as_deref().filter(|agent| agent.parse::<Agent>().is_ok());
        for (field, given) in [("client", client), ("agent", agent)] {
            if let Some(given) = given {
                report.insert(field.into(), given.into());
            }
        }
        if known == Some(HookEvent::SessionStart)
            && let Ok(handoff) = std::env::var(HANDOFF_VARIABLE)
        {
            report.insert("handoff_id".into(), handoff.into());
        }
        // Part of the report, so that a replayed report is the same request.
        report.entry("reported_at").or_insert_with(|| SystemClock.now().to_string().into());
        describe_place(report);
        match known {
            Some(HookEvent::PreToolUse | HookEvent::PostToolUse) => describe_files(report),
            Some(HookEvent::SessionEnd) => describe_branches(report),
            _ => {}
        }
    }

    /// Saves a report to the outbox and returns the failure to record, which states whether the report was
    /// saved.
    fn spool(&self, report: &Report, reason: &str) -> Failure {
        let event = &self.args.event;
        let mut spooled = self.spooled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message) = spooled.as_ref() {
            return Failure::new(Exit::StoreUnavailable, "store_unavailable", message);
        }
        let message = match self.outbox.put(&self.report_id, report, &self.intake) {
            Ok(SpooledTo::Folder) => format!("{reason}; the report was saved to the outbox"),
            Ok(SpooledTo::Fallback(folder, error)) => {
                let folder = folder.display();
                let message =
                    format!("the data folder cannot be written ({error}); the report was saved to {folder}");
                self.failures.record(event, Outcome::KeptElsewhere, &message);
                message
            }
            Err(error) => {
                let message = format!("{reason}; cannot save the report to the outbox: {error}");
                self.failures.record(event, Outcome::Lost, &message);
                message
            }
        };
        *spooled = Some(message.clone());
        Failure::new(Exit::StoreUnavailable, "store_unavailable", message)
    }
}

/// Returns true if the store or server failed and the report can be stored later; false if the report was rejected.
fn is_temporary(failure: &Failure) -> bool {
    !matches!(result_of(failure), ReplayResult::Rejected(_))
}

/// Reader that records the time of each read.
struct Timed<'a, R> {
    reader: R,
    run: &'a HookRun,
}

impl<R: Read> Read for Timed<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let elapsed = self.run.started_at.elapsed().as_millis();
        self.run.last_read_ms.store(u64::try_from(elapsed).unwrap_or(u64::MAX), Ordering::Relaxed);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Option<QuickArgs> {
        QuickArgs::read(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn salvages_the_valid_part_of_an_invalid_command_line() {
        let salvaged = |line: &str| QuickArgs::salvage(line.split_whitespace().map(str::to_owned));
        let found = salvaged("--log warn hook --bogus 7 post-tool-use --client codex --server --data-dir=/d")
            .unwrap();
        assert_eq!(
            (found.hook.event.as_str(), found.hook.client.as_deref()),
            ("post-tool-use", Some("codex"))
        );
        assert_eq!((found.data_dir.as_deref(), found.log.as_deref()), (Some("/d"), Some("warn")));
        assert_eq!(found.server, None);
        assert_eq!(salvaged("hook stop stop --agent a --agent b").unwrap().hook.agent.as_deref(), Some("a"));
        for nothing in ["hook", "hook --bogus", "hook bogus", "stop hook"] {
            assert!(salvaged(nothing).is_none(), "{nothing}");
        }
    }

    #[test]
    fn parses_simple_command_lines_and_leaves_the_rest_to_clap() {
        let found =
            read("hook post-tool-use --client codex --data-dir=/d --log warn --server http://h").unwrap();
        assert_eq!(
            (found.hook.event.as_str(), found.hook.client.as_deref()),
            ("post-tool-use", Some("codex"))
        );
        assert_eq!((found.data_dir.as_deref(), found.log.as_deref()), (Some("/d"), Some("warn")));
        assert_eq!((found.server.as_deref(), found.hook.agent), (Some("http://h"), None));
        for other in [
            "hook",
            "hook --help",
            "hook stop --format json",
            "hook stop --agent",
            "hook stop x",
            "task list",
            "hook stop --agent a --agent b",
        ] {
            assert!(read(other).is_none(), "{other}");
        }
    }
}
