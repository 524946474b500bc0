//! Short ways to report what hooks report, to do the work of a worker, and to look at what came of it.

use std::sync::Arc;

use baton_app::observation::WorkQueue;
use baton_app::{Reply, Settings};
use baton_core::observation::{CompressedObservation, SessionMaterial, SessionSummary, ToolUse};
use baton_core::{Access, Actor, ActorKeyId, Session, SessionId, VentureScope};
use baton_llm::{CompressError, Compression, Compressor, Summarization, TokenUsage};
use baton_store::{Page, QueueRelease, SessionFilter};
use baton_testkit::contract::read;
use serde_json::{Value, json};

use crate::stage::{Stage, ok, operation};

/// The chat that reports come from unless they say otherwise.
pub(crate) const CHAT: &str = "chat-1";

/// A model that finds the same in everything.
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

/// Puts the model in the place of the compressor without one.
pub(crate) fn with_model(settings: &mut Settings) {
    settings.observations.compressor = Arc::new(FakeModel);
}

/// What an agent in `v` and `o/r` reports, with fields added or replaced.
pub(crate) fn report(event: &str, mut more: Value) -> Value {
    let mut report = json!({
        "event": event, "session_id": CHAT, "cwd": "/home/dev/shop", "venture": "v", "repo": "o/r",
        "transcript_path": "/home/dev/.claude/projects/shop/chat-1.jsonl", "permission_mode": "default",
    });
    report.as_object_mut().unwrap().append(more.as_object_mut().unwrap());
    report
}

/// A use of a tool that edits a file.
pub(crate) fn edit(file: &str) -> Value {
    json!({
        "tool_name": "Edit",
        "tool_input": { "file_path": format!("/home/dev/shop/{file}"), "old_string": "one", "new_string": "two" },
        "tool_response": { "filePath": format!("/home/dev/shop/{file}"), "oldString": "one", "newString": "two" },
    })
}

/// A use of a tool that runs a command.
pub(crate) fn bash(command: &str, said: &str) -> Value {
    json!({
        "tool_name": "Bash", "tool_input": { "command": command },
        "tool_response": { "stdout": said, "stderr": "", "interrupted": false },
    })
}

/// Whoever holds a token of these ventures.
pub(crate) fn holder(access: Access, ventures: &[&str]) -> Actor {
    let ventures = ventures.iter().map(|venture| venture.parse().unwrap()).collect();
    Actor { key_id: ActorKeyId::of("token"), access, ventures: VentureScope::Only(ventures) }
}

impl Stage {
    /// Reports an event of the chat.
    pub(crate) fn hook(&self, event: &str, more: Value) -> Reply {
        self.call("hook.report", report(event, more))
    }

    /// Reports an event that must be taken, and about which the agent is told nothing.
    #[track_caller]
    pub(crate) fn hooked(&self, event: &str, more: Value) {
        assert_eq!(ok(&self.hook(event, more)), json!({}));
    }

    /// Calls an operation as somebody.
    pub(crate) fn as_holder(&self, actor: &Actor, name: &str, params: Value) -> Reply {
        let envelope = baton_app::Call { actor: actor.clone(), ..self.envelope(None) };
        self.app.call_blocking(operation(name), envelope, params)
    }

    /// The active sessions of all ventures, newest first.
    pub(crate) fn active(&self) -> Vec<Session> {
        read(&self.store, |tx| tx.active_sessions(&SessionFilter::default(), Page::first(100)))
    }

    /// The one active session.
    #[track_caller]
    pub(crate) fn only_session(&self) -> Session {
        let mut active = self.active();
        assert_eq!(active.len(), 1, "{active:?}");
        active.remove(0)
    }

    /// What the user of a session asked for, oldest first.
    pub(crate) fn prompts(&self, session: SessionId) -> Vec<String> {
        let turns = read(&self.store, move |tx| tx.turns(session, None, 100));
        turns.into_iter().rev().map(|turn| turn.prompt).collect()
    }

    /// How many items of the queue have come how far: raw, processing, done, error.
    pub(crate) fn queue(&self) -> [u64; 4] {
        let stats = read(&self.store, |tx| tx.queue_stats());
        [stats.raw, stats.processing, stats.done, stats.error]
    }

    /// Makes observations of all that waits, as a worker does, and tells of how many.
    pub(crate) fn work(&self) -> usize {
        let (queue, compressor) = self.workshop();
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

    /// Makes all summaries that are due, as a worker does, and tells how many said something new.
    pub(crate) fn summarize_due(&self) -> usize {
        let (queue, compressor) = self.workshop();
        let mut made = 0;
        while let Some(job) = queue.claim_summary().unwrap() {
            let id = job.session_id();
            let stored = || read(&self.store, move |tx| tx.summary(id));
            let before = stored();
            let is_empty = job.is_empty(compressor.as_ref());
            let summary =
                (!is_empty).then(|| compressor.summarize(job.material(compressor.as_ref())).unwrap());
            assert!(queue.keep_summary(&job, summary, compressor.as_ref()).unwrap());
            made += usize::from(stored() != before);
        }
        made
    }

    /// Gives all that waits up, as a worker does with what nothing can be made of.
    pub(crate) fn fail_all(&self) {
        let (queue, compressor) = self.workshop();
        for claimed in queue.claim(100).unwrap() {
            assert!(queue.fail(&claimed, "poison", TokenUsage::default(), compressor.as_ref()).unwrap());
        }
    }

    /// Claims all that waits and gives it back, as a worker does that is told to stop.
    pub(crate) fn stop_before_work(&self) {
        let (queue, _) = self.workshop();
        for claimed in queue.claim(100).unwrap() {
            let back = QueueRelease { run_at: self.app.now(), counts: false, failed_at: None, error: None };
            assert!(queue.release(&claimed, back).unwrap());
        }
    }

    fn workshop(&self) -> (WorkQueue, Arc<dyn Compressor>) {
        (WorkQueue::of(self.app.clone()), self.app.settings().observations.compressor.clone())
    }

    /// The observations of all ventures, newest first.
    pub(crate) fn observations(&self) -> Vec<Value> {
        let listed = ok(&self.call("observation.list", json!({})));
        listed["observations"].as_array().unwrap().clone()
    }
}
