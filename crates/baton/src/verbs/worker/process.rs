//! The worker process: starting, stopping, status, and the main loop, which exits when the worker is idle.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

use baton_app::App;
use baton_core::counted;
use baton_server::LocalServer;
use baton_store::{QueueWatch, Threads};
use baton_worker::{Worker, WorkerConfig, WorkerHandle};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, setsid};
use serde_json::{Value, json};

use super::client::health;
use super::server_lock::has_server_with_worker;
use super::worker_lock::{LockState, WorkerLock, socket_of};
use crate::VERSION;
use crate::app::open_app;
use crate::config::Config;
use crate::data_dir::{DataDir, open_log};
use crate::exit::Exit;
use crate::hooks::{replay_periodically, replay_reports};
use crate::maintenance::clean_up_every_minute;
use crate::open_files::raise_open_file_limit;
use crate::output::{Answer, Failure, print_message};
use crate::stop_signal::StopSignal;
use crate::store::store_config;
use crate::terminal::wrap;

/// Timeout for a started worker to answer, and for a stopped worker to exit.
const STATE_CHANGE_TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum interval between checks whether the worker is idle.
const MAX_IDLE_CHECK_INTERVAL: Duration = Duration::from_secs(5);
/// Size above which the next start rotates the log.
const MAX_LOG_BYTES: u64 = 8 * 1024 * 1024;
/// Default log filter of a background worker.
const WORKER_LOG: &str = "warn,baton_worker=info,baton::verbs::worker=info";

fn failed(message: impl Into<String>) -> Failure {
    Failure::new(Exit::Failure, "worker_failed", message)
}

/// Starts a worker in the background and waits until it answers.
pub(super) fn start(config: &Config) -> Result<Answer, Failure> {
    let folder = DataDir::open(&config.data_dir)?;
    socket_of(&folder)?;
    if let Some((answer, _)) =
        wait_for_answer(config, Instant::now() + STATE_CHANGE_TIMEOUT, "worker already runs")?
    {
        return Ok(answer);
    }
    let Started { mut child, log, log_offset } = spawn_detached(config, &folder)?;
    let deadline = Instant::now() + STATE_CHANGE_TIMEOUT;
    while Instant::now() < deadline {
        if health(&folder.worker_socket()).is_ok()
            && let Some((answer, _)) = wait_for_answer(config, deadline, "worker started")?
        {
            return Ok(answer);
        }
        if let Ok(Some(status)) = child.try_wait()
            // A worker that finds the lock held exits normally, because another start was first.
            && WorkerLock::state(&config.data_dir) == LockState::Free
        {
            let why = exit_message(&log, log_offset);
            return Err(failed(format!("cannot start the worker: it exited ({status}): {why}"))
                .hint(format!("see {}", log.display())));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    Err(failed("cannot start the worker: it does not respond").hint(format!("see {}", log.display())))
}

/// A worker process that was just started.
pub(super) struct Started {
    child: Child,
    log: PathBuf,
    /// Size of the log before the process wrote to it.
    log_offset: u64,
}

/// Starts a detached worker process with its own log file and does not wait for it.
pub(super) fn spawn_detached(config: &Config, folder: &DataDir) -> Result<Started, Failure> {
    let log = folder.logs().join("worker.log");
    let unwritable = |error: std::io::Error| failed(format!("cannot open {}: {error}", log.display()));
    if std::fs::metadata(&log).is_ok_and(|log| log.len() > MAX_LOG_BYTES) {
        std::fs::rename(&log, log.with_extension("log.1")).map_err(unwritable)?;
    }
    let output = open_log(&log).map_err(unwritable)?;
    let errors = output.try_clone().map_err(unwritable)?;
    let log_offset = output.metadata().map_err(unwritable)?.len();
    let program = std::env::current_exe()
        .map_err(|error| failed(format!("cannot find the path of this program: {error}")))?;
    let child = Command::new(program)
        .args(["worker", "run", "--detached", "--data-dir"])
        .arg(&config.data_dir)
        // The worker has its own log file, so it logs more by default.
        .args(if config.is_set("log.level") { &[][..] } else { &["--log", WORKER_LOG] })
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors)
        .spawn()
        .map_err(|error| failed(format!("cannot start the worker: {error}")))?;
    Ok(Started { child, log, log_offset })
}

/// Returns the reason that an ended process wrote to its log: its error, or otherwise its last line.
fn exit_message(log: &Path, from: u64) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(text.get(usize::try_from(from).unwrap_or(0)..).unwrap_or_default());
    let lines = || text.lines().rev().filter(|line| !line.trim().is_empty());
    let error = lines().find_map(|line| line.strip_prefix("error: "));
    error.or_else(|| lines().next()).unwrap_or("no message").to_owned()
}

/// Waits until the worker of the data folder answers and returns its state and its health; `None` if no worker
/// is running.
fn wait_for_answer(
    config: &Config,
    deadline: Instant,
    text: &str,
) -> Result<Option<(Answer, Value)>, Failure> {
    let folder = DataDir::at(&config.data_dir);
    loop {
        let state = WorkerLock::state(&config.data_dir);
        if state == LockState::Free {
            return Ok(None);
        }
        if let (Ok(health), LockState::Held(pid)) = (health(&folder.worker_socket()), state) {
            let pid = pid.map(Pid::as_raw_pid);
            let data = json!({
                "running": true, "pid": pid, "socket": folder.worker_socket(), "health": health,
            });
            let shown = pid.map_or_else(|| "of another container".to_owned(), |pid| pid.to_string());
            return Ok(Some((Answer::new(&data, format!("{text} (PID: {shown})"))?, health)));
        }
        if Instant::now() > deadline {
            return Err(failed("a worker is running but does not respond")
                .hint("stop it with baton worker stop, then start it again"));
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Stops the worker and waits until it has exited. Its process id comes from the lock and never from the pid file.
pub(super) fn stop(config: &Config) -> Result<Answer, Failure> {
    let deadline = Instant::now() + STATE_CHANGE_TIMEOUT;
    let mut signalled_pid = None;
    loop {
        match WorkerLock::state(&config.data_dir) {
            LockState::Free if signalled_pid.is_some() => {
                return Answer::new(
                    &json!({ "stopped": true, "pid": signalled_pid }),
                    "worker stopped".into(),
                );
            }
            LockState::Free => {
                return Answer::new(&json!({ "stopped": false }), "worker not running".into());
            }
            LockState::Held(Some(pid)) if signalled_pid.is_none() => {
                let number = pid.as_raw_pid();
                match kill_process(pid, Signal::TERM) {
                    // ESRCH: the worker exited between the check and the signal.
                    Ok(()) | Err(Errno::SRCH) => signalled_pid = Some(number),
                    Err(error) => {
                        return Err(failed(format!(
                            "cannot stop the worker: cannot signal process {number}: {error}"
                        )));
                    }
                }
            }
            LockState::Held(None) => {
                return Err(failed("cannot stop the worker: it runs in another container")
                    .hint("stop it in the container that it was started in"));
            }
            LockState::Held(Some(_)) => {}
        }
        if Instant::now() > deadline {
            let failure = failed("cannot stop the worker: it did not exit after SIGTERM");
            return Err(match signalled_pid {
                Some(pid) => failure.hint(format!("run kill -9 {pid}; no data is lost")),
                None => failure,
            });
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

pub(super) fn status(config: &Config) -> Result<Answer, Failure> {
    match wait_for_answer(config, Instant::now() + STATE_CHANGE_TIMEOUT, "worker runs")? {
        None => {
            let mut text = "worker not running".to_owned();
            if has_server_with_worker(&DataDir::at(&config.data_dir)) {
                text += "; baton serve processes the capture queue";
            }
            Ok(Answer { exit: Exit::NotFound, ..Answer::new(&json!({ "running": false }), text)? })
        }
        Some((answer, health)) => {
            let mut text = format!(
                "{}, up {} s, {} waiting, {} today, {} failed, compressor {}",
                answer.text,
                health["uptime_s"],
                health["queue_depth"],
                counted(health["observations_today"].as_u64().unwrap_or_default(), "observation"),
                health["errors"],
                health["compressor"].as_str().unwrap_or_default(),
            );
            if health["budget_used_up"] == true {
                text += " (daily token budget used up: offline until tomorrow, UTC)";
            }
            for (list, name) in [("cost_by_day", "day"), ("cost_by_session", "session_id")] {
                for row in health[list].as_array().into_iter().flatten() {
                    let (tokens, cost) = (&row["tokens"], row["cost_usd"].as_f64().unwrap_or_default());
                    let day_or_session = row[name].as_str().unwrap_or_default();
                    text += &format!("\ncost  {day_or_session}: ${cost:.4}, {tokens} tokens");
                }
            }
            let trouble = &health["model_trouble"];
            if let (Some(since), Some(error)) = (trouble["since"].as_str(), trouble["error"].as_str()) {
                text += &format!("\nthe model has been unavailable since {since}: {error}");
            }
            Ok(Answer { text: wrap(&text, 4), ..answer })
        }
    }
}

/// Processes due items once, on this thread.
pub(crate) fn run_once(config: &Config) -> Result<Answer, Failure> {
    let app = open_app(config, Threads::Background)?;
    app.replay_outbox();
    replay_reports(&app, config);
    let drained = worker_on(&app, config).run_once()?;
    let mut text = format!(
        "{}, {} {}, {} to retry, {} failed",
        counted(drained.done, "observation"),
        drained.summaries,
        if drained.summaries == 1 { "summary" } else { "summaries" },
        drained.released + drained.summaries_released,
        drained.failed
    );
    if drained.embedded > 0 {
        text += &format!(", {}", counted(drained.embedded, "vector"));
    }
    let settings = &app.settings().observations;
    let trouble = settings.troubles.current().or_else(|| settings.embedding_troubles.current());
    if let Some(trouble) = &trouble {
        text += &format!("\nthe model is unavailable: {}", trouble.error);
    }
    let data = json!({
        "observations": drained.done, "summaries": drained.summaries, "returned": drained.released,
        "summaries_returned": drained.summaries_released, "given_up": drained.failed, "embedded": drained.embedded,
        "model_trouble": trouble,
    });
    Answer::new(&data, text)
}

fn worker_on(app: &App, config: &Config) -> Worker {
    Worker::new(app.clone(), WorkerConfig { concurrency: config.worker_concurrency })
}

/// Runs the worker until it is stopped or was idle for `worker.idle_minutes`.
pub(super) fn run(config: &Config, detached: bool) -> Result<Answer, Failure> {
    if detached {
        // A new session detaches the process from the terminal. An error means that it is a session leader already.
        let _ = setsid();
    }
    let no_runtime = |error: std::io::Error| failed(format!("cannot start the async runtime: {error}"));
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .map_err(no_runtime)?;
    // The handler is installed before the process id becomes visible.
    let stop = StopSignal::listen(&runtime).map_err(no_runtime)?;
    let Some(worker_lock) = WorkerLock::try_acquire(&config.data_dir)? else {
        if detached {
            return Ok(Answer::silent());
        }
        return Err(failed("another worker is already running for this data folder")
            .hint("run baton worker status to see it, or baton worker stop to stop it"));
    };
    raise_open_file_limit();
    let app = open_app(config, Threads::Background)?;
    let worker = spawn_in_process(&app, config)?;
    let handle = worker.handle.clone();
    let clock = app.clone();
    let on_request = move || handle.touch(clock.now());
    let served = runtime.block_on(async {
        let server = LocalServer::bind(app.clone(), worker_lock.socket(), VERSION, on_request)
            .map_err(|error| failed(error.to_string()))?;
        if !detached {
            print_message(&format!(
                "worker runs (PID: {}), socket {}",
                std::process::id(),
                worker_lock.socket().display()
            ));
        }
        let cleaner = tokio::spawn(clean_up_every_minute(app.clone(), Duration::ZERO));
        let replayer = tokio::spawn(replay_periodically(app.clone(), config.clone()));
        let (handle, idle) = (worker.handle.clone(), Duration::from_secs(config.worker_idle_minutes * 60));
        let watching = app.clone();
        let leave = async move {
            tokio::select! {
                () = stop.wait() => tracing::info!("worker exits: received a stop signal"),
                () = until_idle(&watching, &handle, idle) => {
                    tracing::info!(idle_minutes = idle.as_secs() / 60, "worker exits: idle");
                }
            }
        };
        server.run(Box::pin(leave)).await;
        cleaner.abort();
        replayer.abort();
        Ok::<(), Failure>(())
    });
    worker.stop();
    runtime.shutdown_background();
    app.close_request_log();
    served?;
    drop(worker_lock);
    if detached { Ok(Answer::silent()) } else { Answer::new(&json!({ "stopped": true }), "stopped".into()) }
}

/// A worker on its own threads, with the watch that wakes it.
pub(crate) struct BackgroundWorker {
    pub(crate) handle: WorkerHandle,
    thread: JoinHandle<()>,
    watch: QueueWatch,
}

impl BackgroundWorker {
    /// Stops the worker, which returns its claimed items to the queue.
    pub(crate) fn stop(self) {
        self.handle.stop();
        if self.thread.join().is_err() {
            tracing::error!("the worker thread panicked");
        }
        drop(self.watch);
    }
}

/// Starts a worker on its own threads in this process.
pub(crate) fn spawn_in_process(app: &App, config: &Config) -> Result<BackgroundWorker, Failure> {
    let worker = worker_on(app, config);
    let handle = worker.handle();
    let wake = handle.clone();
    let watch = QueueWatch::start(&store_config(config, Threads::Background), move || wake.wake())
        .map_err(|error| failed(error.to_string()))?;
    let run = move || {
        if let Err(error) = worker.run() {
            tracing::error!(%error, "the worker failed");
        }
    };
    let thread = Builder::new()
        .name("baton-dispatch".into())
        .spawn(run)
        .map_err(|error| failed(format!("cannot start a thread of the worker: {error}")))?;
    Ok(BackgroundWorker { handle, thread, watch })
}

/// Completes when the worker had no requests and no work for the given time.
async fn until_idle(app: &App, handle: &WorkerHandle, idle: Duration) {
    let interval = MAX_IDLE_CHECK_INTERVAL.min(idle / 4).max(Duration::from_millis(50));
    loop {
        tokio::time::sleep(interval).await;
        if handle.is_idle(app.now(), idle) {
            return;
        }
    }
}
