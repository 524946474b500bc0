//! `baton hook <event>`: reads what an agent's hook sends, stores it, and answers in the agent's protocol.
//!
//! Whatever happens, the agent is not held up and not failed: the process ends with 0 within its time, and what went wrong
//! is in the journal.

use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use baton_app::observation::{Intake, Report};
use baton_app::{Clock, SystemClock};
use baton_core::observation::HookEvent;
use baton_core::{Agent, Label};
use baton_store::{BlobFolder, LockTimeout, Target, Threads};
use clap::Args;
use serde_json::{Map, Value, json};

use crate::backend::{Backend, store_config};
use crate::config::{Config, Sources};
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::hooks::{
    CaptureFailures, HookSpill, Journal, Kept, Outcome, ReplayLimits, ReportId, Taken, describe_place,
};
use crate::logging;
use crate::output::{Failure, warn};
use crate::verbs::worker::start_if_absent;

/// How long a hook may take: what is not stored by then is kept as a file. As long as the agent is still sending, it is not
/// the hook that takes long.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// How long a hook may replay spooled reports. It does not wait for another process that replays them: its own report is then
/// spooled behind them.
const REPLAY_LIMITS: ReplayLimits =
    ReplayLimits { lock: Duration::from_millis(100), total: Duration::from_secs(2) };

pub(crate) const EXAMPLES: &str = "\
Always exits with 0; errors go to logs/hook.log in the data folder.

Examples:
  $ echo '{\"session_id\":\"chat-7\"}' | baton hook session-start --client claude-code
  $ baton hook post-tool-use --client codex < report.json";

#[derive(Debug, Clone, Args)]
pub(crate) struct HookArgs {
    /// Event: session-start, user-prompt-submit, post-tool-use, pre-compact, stop or session-end
    pub(crate) event: String,
    /// Client program that runs the agent, for example claude-code or codex
    #[arg(long)]
    client: Option<String>,
    /// Agent name [default: session.agent, else derived from the client]
    #[arg(long)]
    agent: Option<String>,
}

/// What can be said of a hook on the command line, read by hand: putting together everything that can be said to baton
/// takes a millisecond, a fifth of a hook. None when it is not as simple as that.
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

    /// Where the value of a flag goes that is known here.
    fn place(&mut self, flag: &str) -> Option<&mut Option<String>> {
        match flag {
            "--client" => Some(&mut self.hook.client),
            "--agent" => Some(&mut self.hook.agent),
            "--data-dir" => Some(&mut self.data_dir),
            "--server" => Some(&mut self.server),
            "--log" => Some(&mut self.log),
            _ => None,
        }
    }

    /// Reads the arguments after the name of the program.
    pub(crate) fn read(mut arguments: impl Iterator<Item = String>) -> Option<Self> {
        arguments.next().filter(|verb| verb == "hook")?;
        let event = arguments.next().filter(|event| !event.starts_with('-'))?;
        let mut read = Self::of(event);
        while let Some(argument) = arguments.next() {
            let (flag, value) = match argument.split_once('=') {
                Some((flag, value)) => (flag.to_owned(), value.to_owned()),
                None => (argument, arguments.next()?),
            };
            if read.place(&flag)?.replace(value).is_some() {
                return None;
            }
        }
        Some(read)
    }

    /// Reads what can be read of arguments that are wrong: a report must not be lost for a flag.
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
            if let Some(place) = read.place(flag) {
                let value = value.or_else(|| arguments.next_if(|value| !value.starts_with('-')));
                *place = place.take().or(value);
            }
        }
        let mut words = words.into_iter().skip_while(|word| word != "hook").skip(1);
        read.hook.event = words.find(|word| HookEvent::from_name(word).is_some())?;
        Some(read)
    }
}

/// Runs a hook. An agent must not be failed by its hook, and no report is lost, whatever is wrong with the configuration or,
/// as `wrong` says, with the command line.
pub(crate) fn run(args: &HookArgs, sources: &Sources, wrong: Option<String>) {
    match Config::load_for_capture(sources) {
        Ok((config, unread)) => {
            let mut wrong: Vec<String> = wrong.into_iter().collect();
            wrong.extend(unread.iter().map(ToString::to_string));
            wrong.extend(logging::start(&config).err().map(|failure| failure.message));
            for message in &wrong {
                warn(message);
                Journal::of(&config.data_dir).record(&args.event, &format!("left out: {message}"));
            }
            attend(args, &config);
        }
        Err(error) => match sources.data_dir_without_files() {
            Some(folder) => hold(args, &folder, &error.to_string()),
            None => warn(&error.to_string()),
        },
    }
}

/// Keeps what a hook is told as a file, for as long as nobody knows where it goes.
fn hold(args: &HookArgs, folder: &Path, trouble: &str) {
    warn(trouble);
    let intake = Intake::default().replacing_unkept_output();
    let desk = Arc::new(Desk::of(args.clone(), folder, None, intake));
    watch_the_clock(desk.clone());
    let failure = desk.hear().map_or_else(|failure| failure, |report| desk.keep(report, trouble));
    desk.journal.record(&args.event, &failure.message);
}

/// Hears an agent and answers. The answer is printed as the agent expects it, whatever `--format` says.
fn attend(args: &HookArgs, config: &Config) {
    let target = match &config.server {
        Some(url) => Target::server(url),
        None => store_config(config, Threads::Caller).target(),
    };
    let args = HookArgs {
        agent: args.agent.clone().or_else(|| Some(config.agent.as_ref()?.to_string())),
        ..args.clone()
    };
    // What goes to a server, or into a database that others use too, is not kept in the blobs of this machine.
    let is_local = config.server.is_none() && config.database_url.is_none();
    let blobs = is_local.then(|| BlobFolder::at(DataDir::at(&config.data_dir).blobs()));
    let intake = Intake::new(blobs).replacing_unkept_output();
    let desk = Arc::new(Desk::of(args, &config.data_dir, Some(target), intake));
    watch_the_clock(desk.clone());
    let answer = desk.take(config);
    if let Err(failure) = &answer {
        desk.journal.record(&desk.args.event, &failure.message);
    }
    if let Some(answer) = desk.with_capture_warning(answer) {
        crate::output::print(&answer.to_string());
    }
    start_if_absent(config);
}

/// Leaves word of what went wrong before there was a configuration to go by.
pub(crate) fn leave_word(sources: &Sources, event: &str, message: &str) {
    warn(message);
    if let Some(folder) = sources.data_dir_without_files() {
        Journal::of(&folder).record(event, message);
    }
}

/// Ends the process when its time is up, with what it was told in a file.
fn watch_the_clock(desk: Arc<Desk>) {
    let watch = move || {
        let mut received = 0;
        loop {
            std::thread::sleep(TIME_LIMIT);
            let before = std::mem::replace(&mut received, desk.received.load(Ordering::Relaxed));
            if desk.report.get().is_some() || received == before {
                break;
            }
        }
        let message = match desk.report.get() {
            Some(report) => desk.keep(report, "it took too long").message,
            None => "the agent did not send its report to the end; nothing of it was kept".to_owned(),
        };
        desk.journal.record(&desk.args.event, &message);
        std::process::exit(Exit::Ok as i32);
    };
    // Without a watch a hook may take longer; that is no reason to do nothing.
    let _ = std::thread::Builder::new().name("baton-clock".into()).spawn(watch);
}

/// What a hook was told, and where it goes.
struct Desk {
    args: HookArgs,
    journal: Journal,
    spill: HookSpill,
    failures: CaptureFailures,
    report_id: ReportId,
    /// Where reports go; none when that is not known.
    target: Option<Target>,
    /// How many bytes the agent has sent so far.
    received: AtomicUsize,
    intake: Intake,
    /// What the agent sent, once it is there.
    report: OnceLock<Report>,
    /// What became of the report when it was spooled. The time may be over while it is being spooled already.
    spooled: Mutex<Option<String>>,
}

impl Desk {
    fn of(args: HookArgs, data_dir: &Path, target: Option<Target>, intake: Intake) -> Self {
        Self {
            args,
            journal: Journal::of(data_dir),
            spill: HookSpill::of(data_dir),
            failures: CaptureFailures::of(data_dir),
            report_id: ReportId::new(),
            target,
            received: AtomicUsize::new(0),
            intake,
            report: OnceLock::new(),
            spooled: Mutex::new(None),
        }
    }

    /// Reads what the agent sends, and puts together what is to be stored.
    fn hear(&self) -> Result<&Report, Failure> {
        let stdin = Counted { reader: std::io::stdin().lock(), count: &self.received };
        let report = self.intake.read(stdin, |report| self.complete(report))?;
        let event = &self.args.event;
        if HookEvent::from_name(event).is_none() {
            let message = format!("`{event}` is no event that is known here");
            return Err(Failure::new(Exit::Validation, "invalid_request", message));
        }
        Ok(self.report.get_or_init(|| report))
    }

    /// Stores a report, after those that wait from before; gives what the agent is told, if anything.
    fn take(&self, config: &Config) -> Result<Option<Value>, Failure> {
        let report = self.hear()?;
        self.check_names();
        let has_spooled = !self.spill.is_empty();
        // An earlier hook has waited already: this one only looks whether the store is available again.
        let lock_timeout = if has_spooled { LockTimeout::Minimal } else { LockTimeout::Short };
        let backend = match Backend::open_for_hook(config, lock_timeout) {
            Ok(backend) => backend,
            Err(failure) => return Err(self.keep(report, &failure.message)),
        };
        if has_spooled && self.is_behind_others(&backend) {
            return Err(self.keep(report, "earlier reports wait to be stored"));
        }
        match backend.report(report, self.key(config).as_deref(), &self.intake) {
            Ok(answer) => {
                Ok(Some(answer).filter(|answer| answer.as_object().is_some_and(|fields| !fields.is_empty())))
            }
            Err(failure) if may_pass(&failure) => Err(self.keep(report, &failure.message)),
            Err(failure) => Err(failure),
        }
    }

    /// The idempotency key of a report whose storing may end without a known outcome: a server may store it although
    /// its answer never arrives. The spooled file carries the same key, so the report is stored once. A local file needs
    /// none, and is spared the cost.
    fn key(&self, config: &Config) -> Option<String> {
        let may_be_unknown = config.server.is_some() || config.database_url.is_some();
        may_be_unknown.then(|| self.report_id.key())
    }

    /// Gives what the agent is told. A session start warns of reports that could not be kept, and clears their record once
    /// the store works again.
    fn with_capture_warning(&self, answer: Result<Option<Value>, Failure>) -> Option<Value> {
        let is_stored = answer.is_ok();
        let answer = answer.ok().flatten();
        if HookEvent::from_name(&self.args.event) != Some(HookEvent::SessionStart) {
            return answer;
        }
        let Some(failure) = self.failures.read() else { return answer };
        if is_stored {
            self.journal.record(&self.args.event, &failure.describe());
            self.failures.clear();
        }
        let mut context =
            format!("Baton warning: {}. Run `baton doctor` for the cause and the fix.", failure.describe());
        if let Some(given) =
            answer.as_ref().and_then(|answer| answer["hookSpecificOutput"]["additionalContext"].as_str())
        {
            context = format!("{context}\n\n{given}");
        }
        let event = HookEvent::SessionStart.wire_name();
        Some(json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": context } }))
    }

    /// Tells of names on the command line that are none; the report does not go by them.
    fn check_names(&self) {
        let HookArgs { event, client, agent } = &self.args;
        let client = client.as_ref().and_then(|client| client.parse::<Label>().err());
        let agent = agent.as_ref().and_then(|agent| agent.parse::<Agent>().err());
        for (flag, problem) in [("--client", client), ("--agent", agent)] {
            if let Some(problem) = problem {
                self.journal.record(event, &format!("left out: {flag} {problem}"));
            }
        }
    }

    /// Stores what waits from before; tells whether some of it still waits. What happened later must not be stored first: it
    /// may be the end of what happened before, or a new beginning after its end.
    fn is_behind_others(&self, backend: &Backend) -> bool {
        let Some(target) = &self.target else { return false };
        let store = |report: &Report, key: &str| {
            backend
                .report(report, Some(key), &self.intake)
                .map_or_else(|failure| Taken::from(&failure), |_| Taken::Stored)
        };
        self.spill.take_in(target, REPLAY_LIMITS, &self.intake, store).blocked
    }

    /// Adds to a report what is known beside it.
    fn complete(&self, report: &mut Map<String, Value>) {
        let HookArgs { event, client, agent } = &self.args;
        // What is null is as good as left out, and may then be told by the place.
        report.retain(|_, value| !value.is_null());
        if let Some(event) = HookEvent::from_name(event) {
            report.insert("event".into(), event.as_str().into());
        }
        let client = client.as_deref().filter(|client| client.parse::<Label>().is_ok());
        let agent = agent.as_deref().filter(|agent| agent.parse::<Agent>().is_ok());
        for (field, given) in [("client", client), ("agent", agent)] {
            if let Some(given) = given {
                report.insert(field.into(), given.into());
            }
        }
        // Part of the report, so that it is the same request when it is sent again from a file.
        report.entry("reported_at").or_insert_with(|| SystemClock.now().to_string().into());
        describe_place(report);
    }

    /// Spools a report; says so, or that even this failed.
    fn keep(&self, report: &Report, trouble: &str) -> Failure {
        let event = &self.args.event;
        let mut spooled = self.spooled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(message) = spooled.as_ref() {
            return Failure::new(Exit::StoreUnavailable, "store_unavailable", message);
        }
        let message = match self.spill.put(&self.report_id, self.target.as_ref(), report, &self.intake) {
            Ok(Kept::InDataFolder) => format!("{trouble}; kept as a file until it can be stored"),
            Ok(Kept::InFallbackFolder(folder, error)) => {
                let message = format!("{trouble}; kept as a file in {}: {error}", folder.display());
                self.failures.record(event, Outcome::KeptElsewhere, &message);
                message
            }
            Err(error) => {
                let message = format!("{trouble}; it could not be kept as a file either: {error}");
                self.failures.record(event, Outcome::Lost, &message);
                message
            }
        };
        *spooled = Some(message.clone());
        Failure::new(Exit::StoreUnavailable, "store_unavailable", message)
    }
}

/// Whether storing may work later: it is the store or the server that failed, not the report.
fn may_pass(failure: &Failure) -> bool {
    !matches!(Taken::from(failure), Taken::Refused(_))
}

/// Counts what is read.
struct Counted<'a, R> {
    reader: R,
    count: &'a AtomicUsize,
}

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(buffer)?;
        self.count.fetch_add(read, Ordering::Relaxed);
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
    fn of_what_is_wrong_the_rest_is_read() {
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
    fn the_simple_is_read_by_hand_and_the_rest_is_left_to_the_parser() {
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
