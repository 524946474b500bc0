//! Recorded hook reports: one report per line, with the time in `reported_at` or `timestamp`.

use serde_json::Value;

use super::{Line, TranscriptParser};
use crate::HookEvent;

impl TranscriptParser {
    pub(super) fn hook_report(&mut self, line: &Value) -> Line {
        let Some(event) = line["hook_event_name"].as_str().and_then(HookEvent::from_name) else {
            return Line::Known;
        };
        let time = line.get("reported_at").or_else(|| line.get("timestamp"));
        self.record_time_and_folder(time, line.get("cwd"));
        let id = line["session_id"].as_str();
        self.facts.session_id = self.facts.session_id.take().or_else(|| id.map(str::to_owned));
        let branch = line["branch"].as_str();
        self.facts.branch = self.facts.branch.take().or_else(|| branch.map(str::to_owned));
        let is_captured =
            matches!(event, HookEvent::UserPromptSubmit | HookEvent::PostToolUse | HookEvent::Stop);
        if is_captured {
            self.add_report(event.as_str(), line.clone());
        }
        if event == HookEvent::UserPromptSubmit { Line::StartsTurn } else { Line::Known }
    }
}
