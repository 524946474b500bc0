//! Hook reports in the outbox: without secrets, in the data folder or, if that cannot be written, in the fallback folder.

use std::io::{self, Read};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use baton_app::observation::{Hook, Intake, Report};
use baton_app::{Clock, Operation, SystemClock, replay_result};
use baton_core::ErrorCode;
use baton_store::{
    FallbackFolder, Outbox, OutboxEntry, Replay, ReplayLimits, ReplayResult, SpooledTo, SpooledWrite, Target,
};
use serde_json::Value;

use super::HookLog;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::output::Failure;

/// Event of log entries about replayed reports.
const EVENT: &str = "replay";

/// Identifies one report, so that it is stored once even if it is sent directly and also saved to the outbox.
#[derive(Debug, Clone)]
pub(crate) struct ReportId(String);

impl ReportId {
    pub(crate) fn new() -> Self {
        let since_epoch = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self(format!("{}-{}", since_epoch.as_nanos(), std::process::id()))
    }

    /// Returns the idempotency key of the report.
    pub(crate) fn key(&self) -> String {
        format!("hook-{}", self.0)
    }
}

/// The outbox of hook reports.
#[derive(Debug)]
pub(crate) struct ReportOutbox {
    outbox: Outbox,
    log: HookLog,
}

impl ReportOutbox {
    /// Uses the outbox of a data folder. `target` is the store that reports are for, if it is known.
    pub(crate) fn of(data_dir: &Path, target: Option<Target>) -> Self {
        let folder = DataDir::at(data_dir).spill().join("hooks");
        let outbox = Outbox::at(folder, target).with_fallback(FallbackFolder::of(data_dir));
        Self { outbox, log: HookLog::of(data_dir) }
    }

    pub(crate) const fn files(&self) -> &Outbox {
        &self.outbox
    }

    /// Saves a report to the outbox.
    pub(crate) fn put(&self, id: &ReportId, report: &Report, intake: &Intake) -> io::Result<SpooledTo> {
        let reported_at = report.fields.get("reported_at").and_then(Value::as_str);
        let write = SpooledWrite {
            operation: Hook::NAME.to_owned(),
            key: Some(id.key()),
            request_hash: None,
            actor: None,
            at: reported_at.and_then(|at| at.parse().ok()).unwrap_or_else(|| SystemClock.now()),
            target: self.outbox.target().cloned(),
            params: Value::Null,
        };
        let document = || intake.document(report).map_err(|fault| io::Error::other(fault.to_string()));
        self.outbox.put(&id.0, &write, document)
    }

    /// Replays the reports through `store`, which receives an idempotency key with each.
    pub(crate) fn replay(
        &self,
        limits: ReplayLimits,
        intake: &Intake,
        mut store: impl FnMut(&Report, Option<&str>) -> Result<(), Failure>,
    ) -> Replay {
        let replay = self.outbox.replay(limits, |entry, mut body| match read(entry, &mut body, intake) {
            Ok(report) => match store(&report, entry.write.key.as_deref()) {
                Ok(()) => ReplayResult::Stored,
                Err(failure) => result_of(&failure),
            },
            Err(result) => result,
        });
        for problem in &replay.problems {
            self.log.record(EVENT, problem);
        }
        replay
    }
}

fn read(entry: &OutboxEntry, body: &mut dyn Read, intake: &Intake) -> Result<Report, ReplayResult> {
    if entry.write.operation != Hook::NAME {
        return Err(ReplayResult::Rejected(format!("it is for the operation {}", entry.write.operation)));
    }
    let report = intake.clone().named(&entry.name).read(body, &mut |fields| {
        fields.entry("reported_at").or_insert_with(|| entry.write.at.to_string().into());
    });
    report.map_err(|fault| replay_result(fault.code, format!("it is not a report: {}", fault.message)))
}

/// Returns whether a report that could not be stored is retried or set aside.
pub(crate) fn result_of(failure: &Failure) -> ReplayResult {
    match failure.exit {
        Exit::StoreUnavailable => ReplayResult::Unavailable,
        _ => replay_result(failure.code.parse().unwrap_or(ErrorCode::Internal), failure.message.clone()),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use baton_core::Timestamp;
    use serde_json::json;

    use super::*;

    const LIMITS: ReplayLimits =
        ReplayLimits { lock: Duration::from_secs(60), total: Duration::from_secs(60) };

    fn outbox(data_dir: &Path) -> ReportOutbox {
        ReportOutbox::of(data_dir, Some(Target::server("http://here")))
    }

    fn put(outbox: &ReportOutbox) -> ReportId {
        let report = json!({ "event": "stop", "prompt": "a <private>b</private>" });
        let report = Report { fields: report.as_object().unwrap().clone(), output: None };
        let id = ReportId::new();
        assert_eq!(outbox.put(&id, &report, &Intake::default()).unwrap(), SpooledTo::Folder);
        id
    }

    #[test]
    fn replays_reports_with_key_and_time_and_without_private_text() {
        let home = tempfile::tempdir().unwrap();
        let outbox = outbox(home.path());
        let id = put(&outbox);
        let replay = outbox.replay(LIMITS, &Intake::default(), |report, key| {
            assert_eq!(key, Some(id.key().as_str()));
            assert_eq!(report.fields["prompt"], "a [private]");
            assert!(report.fields["reported_at"].as_str().unwrap().parse::<Timestamp>().is_ok());
            Ok(())
        });
        assert_eq!((replay.stored, outbox.files().count()), (1, 0));
    }

    #[test]
    fn sets_rejected_reports_aside_and_logs_the_reason() {
        let home = tempfile::tempdir().unwrap();
        let outbox = outbox(home.path());
        put(&outbox);
        let wrong = |_: &Report, _: Option<&str>| {
            Err(Failure::new(Exit::Validation, "invalid_request", "it is wrong"))
        };
        let replay = outbox.replay(LIMITS, &Intake::default(), wrong);
        assert_eq!((replay.stored, outbox.files().count(), outbox.files().rejected()), (0, 0, 1));
        let message = HookLog::of(home.path()).latest(1).pop().unwrap().message;
        assert!(message.contains("it is wrong") && message.contains(".refused"), "{message}");
    }
}
