//! Test helpers: report hook events, run the steps of a worker and read the results.

use std::sync::Arc;

use baton_app::observation::WorkQueue;
use baton_app::{Reply, Settings};
use baton_core::observation::{CompressedObservation, SessionMaterial, SessionSummary};
use baton_core::{Access, Actor, ActorKeyId, Session, SessionId, VentureScope};
use baton_llm::{CompressError, Compression, Compressor, Summarization, TokenUsage};
use baton_observation::ToolUse;
use baton_store::{Page, QueueRelease, SessionFilter};
use baton_testkit::contract::read;
use serde_json::{Value, json};

use crate::stage::{Stage, ok, operation};

/// Default chat id of reports.
pub(crate) const CHAT: &str = "chat-1";

/// A model with fixed responses.
pub(crate) struct FakeModel;

impl Compressor for FakeModel {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn model(&self) -> Option<&str> {
        Some("fake-1")
    }

    fn compress(&self, tool_use: &ToolUse) -> Result<Compression, CompressError> {
        let observation = CompressedObservation {
            title: format!("Use {}", tool_use.tool_name),
            summary: "It was used.".into(),
            files_touched: vec!["src/lib.rs".into()],
            ..CompressedObservation::default()
        };
        let usage = TokenUsage { tokens_in: 100, tokens_out: 10 };
        Ok(Compression { observation, usage, prompt_version: "compress-v1" })
    }

    fn summarize(&self, material: &SessionMaterial) -> Result<Summarization, CompressError> {
        let summary = SessionSummary {
            summary: format!("{} things were done.", material.digests.len()),
            key_files: vec!["src/lib.rs".into()],
            key_decisions: vec!["Use cookies".into()],
        };
        let usage = TokenUsage { tokens_in: 1_000, tokens_out: 100 };
        Ok(Summarization { summary, usage, prompt_version: "summarize-v1" })
    }
}

/// Configures the fake model as compressor.
pub(crate) fn with_model(settings: &mut Settings) {
    settings.observations.compressor = Arc::new(FakeModel);
}

/// Returns a report from venture `v` and repository `o/r`, with fields added or replaced.
pub(crate) fn report(event: &str, mut more: Value) -> Value {
    let mut report = json!({
        "event": event, "session_id": CHAT, "cwd": "/home/dev/shop", "venture": "v", "repo": "o/r",
        "transcript_path": "/home/dev/.claude/projects/shop/chat-1.jsonl", "permission_mode": "default",
    });
    report.as_object_mut().unwrap().append(more.as_object_mut().unwrap());
    report
}

/// Returns the report fields of a file edit.
pub(crate) fn edit(file: &str) -> Value {
    json!({
        "tool_name": "Edit",
        "tool_input": { "file_path": format!("/home/dev/shop/{file}"), "old_string": "one", "new_string": "two" },
        "tool_response": { "filePath": format!("/home/dev/shop/{file}"), "oldString": "one", "newString": "two" },
    })
}

/// Returns the report fields of a shell command.
pub(crate) fn bash(command: &str, stdout: &str) -> Value {
    json!({
        "tool_name": "Bash", "tool_input": { "command": command },
        "tool_response": { "stdout": stdout, "stderr": "", "interrupted": false },
    })
}

/// Returns an actor with a token for these ventures.
pub(crate) fn holder(access: Access, ventures: &[&str]) -> Actor {
    let ventures = ventures.iter().map(|venture| venture.parse().unwrap()).collect();
    Actor { key_id: ActorKeyId::of("token"), access, ventures: VentureScope::Only(ventures) }
}

impl Stage {
    /// Reports an event of the chat.
    pub(crate) fn hook(&self, event: &str, more: Value) -> Reply {
        self.call("hook.report", report(event, more))
    }

    /// Reports an event and asserts that it succeeds with an empty response.
    #[track_caller]
    pub(crate) fn hooked(&self, event: &str, more: Value) {
        assert_eq!(ok(&self.hook(event, more)), json!({}));
    }

    /// Calls an operation as an actor.
    pub(crate) fn as_holder(&self, actor: &Actor, name: &str, params: Value) -> Reply {
        let envelope = baton_app::Call { actor: actor.clone(), ..self.envelope(None) };
        self.app.call_blocking(operation(name), envelope, params)
    }

    /// Returns the active sessions of all ventures, newest first.
    pub(crate) fn active(&self) -> Vec<Session> {
        read(&self.store, |tx| tx.active_sessions(&SessionFilter::default(), Page::first(100)))
    }

    /// Returns the only active session.
    #[track_caller]
    pub(crate) fn only_session(&self) -> Session {
        let mut active = self.active();
        assert_eq!(active.len(), 1, "{active:?}");
        active.remove(0)
    }

    /// Returns the prompts of a session, oldest first.
    pub(crate) fn prompts(&self, session: SessionId) -> Vec<String> {
        let turns = read(&self.store, move |tx| tx.turns(session, None, 100));
        turns.into_iter().rev().map(|turn| turn.prompt).collect()
    }

    /// Returns the number of queue items by status: raw, processing, done, error.
    pub(crate) fn queue(&self) -> [u64; 4] {
        let stats = read(&self.store, |tx| tx.queue_stats());
        [stats.raw, stats.processing, stats.done, stats.error]
    }

    /// Processes all pending queue items like a worker and returns their number.
    pub(crate) fn work(&self) -> usize {
        let (queue, compressor) = self.worker();
        let mut done = 0;
        loop {
            let claimed = queue.claim(10).unwrap();
            if claimed.is_empty() {
                return done;
            }
            for claimed in &claimed {
                let made = compressor.compress(&queue.tool_use(claimed).unwrap()).unwrap();
                let finished = queue.observe(claimed, made, compressor.as_ref()).unwrap();
                assert!(queue.finish(vec![finished]).remove(0).unwrap());
                done += 1;
            }
        }
    }

    /// Creates all due summaries like a worker and returns how many changed.
    pub(crate) fn summarize_due(&self) -> usize {
        let (queue, compressor) = self.worker();
        let mut made = 0;
        while let Some(job) = queue.claim_summary().unwrap() {
            let id = job.session_id();
            let stored = || read(&self.store, move |tx| tx.summary(id));
            let before = stored();
            let is_empty = job.needs_no_summary(compressor.as_ref());
            let summary = (!is_empty).then(|| compressor.summarize(job.material()).unwrap());
            assert!(queue.keep_summary(&job, summary, compressor.as_ref()).unwrap());
            made += usize::from(stored() != before);
        }
        made
    }

    /// Marks all pending queue items as failed.
    pub(crate) fn fail_all(&self) {
        let (queue, compressor) = self.worker();
        for claimed in queue.claim(100).unwrap() {
            assert!(queue.fail(&claimed, "poison", TokenUsage::default(), compressor.as_ref()).unwrap());
        }
    }

    /// Claims all pending queue items and releases them, like a worker that is stopped.
    pub(crate) fn stop_before_work(&self) {
        let (queue, _) = self.worker();
        for claimed in queue.claim(100).unwrap() {
            let back = QueueRelease { run_at: self.app.now(), counts: false, failed_at: None, error: None };
            assert!(queue.release(&claimed, back).unwrap());
        }
    }

    fn worker(&self) -> (WorkQueue, Arc<dyn Compressor>) {
        (self.app.work_queue(), self.app.settings().observations.compressor.clone())
    }

    /// Returns the observations of all ventures, newest first.
    pub(crate) fn observations(&self) -> Vec<Value> {
        let listed = ok(&self.call("observation.list", json!({})));
        listed["observations"].as_array().unwrap().clone()
    }
}
