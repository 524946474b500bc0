//! `baton demo`: runs sessions, checkpoints, hooks and a task on a temporary store and prints the commands and results.

use std::path::Path;

use baton_app::Operation;
use baton_app::bundle::ReadContext;
use baton_app::checkpoint::{LoadCheckpoint, MarkCritical, SaveCheckpoint};
use baton_app::handoff::AckHandoff;
use baton_app::note::CreateNote;
use baton_app::observation::{Hook, ListObservations, SummarizeSession};
use baton_app::recall::Search;
use baton_app::session::{EndSession, Heartbeat, ListSessions, StartSession};
use serde_json::{Value, json};

use crate::backend::Backend;
use crate::checkout::git;
use crate::config::{Config, Flag, Sources};
use crate::exit::Exit;
use crate::output::{Answer, Failure};
use crate::verbs::checkpoint::describe_save;
use crate::verbs::session::{describe_end, describe_start};
use crate::verbs::{task, worker};

/// Runs operations on the temporary store and collects the transcript.
struct Demo {
    backend: Backend,
    transcript: Vec<String>,
    steps: Vec<Value>,
}

impl Demo {
    fn add_line(&mut self, line: &str) {
        self.transcript.push(line.to_owned());
    }

    fn run_step<O: Operation>(
        &mut self,
        command: &str,
        params: &Value,
        describe: impl FnOnce(&O::Output) -> String,
    ) -> Result<O::Output, Failure> {
        let (output, data) = self.backend.call::<O>(params, None)?;
        self.transcript.push(format!("\n$ {command}"));
        self.transcript.extend(describe(&output).lines().map(|line| format!("  {line}")));
        self.steps.push(json!({ "operation": O::NAME, "output": data }));
        Ok(output)
    }
}

pub(crate) fn run() -> Result<Answer, Failure> {
    let folder = tempfile::Builder::new().prefix("baton-demo-").tempdir().map_err(|error| {
        Failure::new(Exit::Failure, "internal", format!("cannot create a temporary folder: {error}"))
            .hint("set TMPDIR to a folder that can be written")
    })?;
    // The user's configuration is not read, so that the demo is the same everywhere.
    let flags = Flag::given("--data-dir", "data_dir", Some(folder.path())).into_iter().collect();
    let (config, _) = Config::load(&Sources { flags, ..Sources::default() })?;
    let mut demo = Demo { backend: Backend::open(&config)?, transcript: Vec::new(), steps: Vec::new() };
    demo.add_line(
        "Demo on a temporary store: one agent works and leaves a handoff, another agent continues.",
    );
    relay(&mut demo)?;
    observations(&mut demo, &config)?;
    tasks(&mut demo, &folder.path().join("webshop"))?;
    demo.add_line("\nThe temporary store was deleted. Connect your agent: baton setup");
    let Demo { backend, transcript, steps } = demo;
    drop(backend);
    Ok(Answer::new(json!({ "steps": steps }), transcript.join("\n")))
}

fn relay(demo: &mut Demo) -> Result<(), Failure> {
    let repo = "acme/webshop";
    let first = demo.run_step::<StartSession>(
        "baton session start --agent claude-1 --repo acme/webshop --branch feature/login",
        &json!({ "agent": "claude-1", "repo": repo, "branch": "feature/login" }),
        describe_start,
    )?;
    demo.run_step::<Heartbeat>(
        &format!("baton session heartbeat {}", first.session_id),
        &json!({ "session_id": first.session_id }),
        |output| format!("recorded a heartbeat; next heartbeat before {}", output.next_heartbeat_at),
    )?;
    demo.run_step::<ListSessions>(
        "baton session list --repo acme/webshop",
        &json!({ "repo": repo }),
        |output| output.sessions.iter().map(|session| format!("{}  {}", session.id, session.agent)).collect(),
    )?;
    save_context(demo, repo)?;
    demo.run_step::<EndSession>(
        &format!("baton session end {} --summary … --decision … --next …", first.session_id),
        &json!({
            "session_id": first.session_id,
            "summary": "Login form and session cookie work; logout is missing.",
            "status_label": "in-progress",
            "payload": {
                "goal": "customers stay signed in", "work_completed": ["login form"],
                "decisions": ["cookies instead of tokens: the proxy drops headers"], "next_actions": ["add logout"],
            },
        }),
        describe_end,
    )?;
    demo.add_line("\nThe first chat is over. Another agent starts in the same repository:");
    let second = demo.run_step::<StartSession>(
        "baton session start --agent codex-2 --repo acme/webshop",
        &json!({ "agent": "codex-2", "repo": repo }),
        describe_start,
    )?;
    if let Some(handoff) = second.last_handoff {
        demo.run_step::<AckHandoff>(
            &format!("baton handoff ack {} --agent codex-2", handoff.id),
            &json!({ "handoff_id": handoff.id, "agent": "codex-2" }),
            |output| format!("acknowledged by {}", output.acknowledged_by),
        )?;
    }
    demo.run_step::<LoadCheckpoint>(
        "baton checkpoint load --session login --max-tokens 60",
        &json!({ "sessionId": "login", "maxTokens": 60 }),
        |output| {
            let omitted = output.view.as_ref().map_or(0, |view| {
                view.omissions.len() + view.unlisted.map_or(0, |unlisted| unlisted.count)
            });
            let context = serde_json::to_string_pretty(&output.context).unwrap_or_default();
            format!("{context}\n({omitted} values shortened or omitted; without --max-tokens the whole context is loaded)")
        },
    )?;
    Ok(())
}

/// Reports tool uses through hooks and runs a worker that creates observations.
fn observations(demo: &mut Demo, config: &Config) -> Result<(), Failure> {
    demo.add_line("\nHooks of an agent capture its prompts and tool uses without any action of the agent:");
    let chat = json!({ "session_id": "chat-7", "client": "claude-code", "repo": "acme/webshop" });
    let with = |more: Value| {
        let mut report = chat.clone();
        if let (Some(report), Value::Object(more)) = (report.as_object_mut(), more) {
            report.extend(more);
        }
        report
    };
    for (event, report) in [
        ("session-start", with(json!({ "event": "session-start" }))),
        (
            "user-prompt-submit",
            with(json!({ "event": "user-prompt-submit", "prompt": "Logout must clear the cookie." })),
        ),
        (
            "post-tool-use",
            with(json!({
                "event": "post-tool-use", "tool_name": "Edit", "tool_use_id": "toolu_1",
                "tool_input": { "file_path": "src/logout.rs",
                    "old_string": "fn logout() {}\n",
                    "new_string": "fn logout(jar: &mut Jar) {\n    jar.remove(\"sid\");\n}\n\nfn expire() {}\n" },
                "tool_response": { "filePath": "src/logout.rs" },
            })),
        ),
        (
            "post-tool-use",
            with(json!({
                "event": "post-tool-use", "tool_name": "Bash", "tool_use_id": "toolu_2",
                "tool_input": { "command": "cargo test logout" },
                "tool_response": { "stdout": TEST_RUN, "stderr": "", "interrupted": false },
            })),
        ),
        ("stop", with(json!({ "event": "stop" }))),
    ] {
        demo.run_step::<Hook>(&format!("baton hook {event} < report.json"), &report, |output| {
            let response = output.hook_specific_output.as_ref();
            response
                .map_or_else(|| "(no response)".to_owned(), |response| response.additional_context.clone())
        })?;
    }
    demo.add_line("\nA worker turns the tool uses into observations, here without a model:");
    let drained = worker::drain(config)?;
    demo.transcript.push("\n$ baton worker run --once".into());
    demo.transcript.push(format!("  {}", drained.text));
    let found = demo.run_step::<ListObservations>(
        "baton observation list --repo acme/webshop",
        &json!({ "repo": "acme/webshop" }),
        |output| {
            output.observations.iter().map(|one| format!("[{}] {}\n", one.tool_name, one.title)).collect()
        },
    )?;
    let Some(first) = found.observations.last() else { return Ok(()) };
    let session = first.session_id;
    demo.run_step::<CreateNote>(
        "baton note 'Expire the cookie on the server: clients keep it' --kind decision",
        &json!({ "session_id": session, "kind": "decision",
                 "text": "Expire the cookie on the server: clients keep it" }),
        |output| output.note.id.to_string(),
    )?;
    demo.run_step::<SummarizeSession>(
        &format!("baton summarize {session}"),
        &json!({ "session_id": session }),
        |output| output.summary.clone(),
    )?;
    demo.run_step::<Search>(
        "baton search why does logout fail --limit 2",
        &json!({ "q": "why does logout fail", "limit": 2 }),
        |output| output.results.iter().map(|one| format!("{}  {}\n", one.title, one.why)).collect(),
    )?;
    demo.add_line("\nThis is what the next chat receives when it starts:");
    demo.run_step::<ReadContext>(
        "baton context --repo acme/webshop",
        &json!({ "repo": "acme/webshop" }),
        |output| output.context.clone(),
    )?;
    Ok(())
}

const TEST_RUN: &str = "running 3 tests\ntest logout::clears_cookie ... ok\ntest logout::twice ... FAILED\n\
    test logout::expires ... ok\n\nfailures:\n\n---- logout::twice stdout ----\n\
    thread 'logout::twice' panicked at src/logout.rs:41:5:\nassertion failed: jar.is_empty()\n\n\
    test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 12 filtered out; finished in 0.02s\n";

/// Passes a task from role to role in a temporary checkout. Skipped if git is not available.
fn tasks(demo: &mut Demo, checkout: &Path) -> Result<(), Failure> {
    if let Err(fault) = git() {
        demo.add_line(&format!("\n{}: the part about tasks is left out.", fault.message));
        return Ok(());
    }
    demo.add_line("\nA task passes from role to role in one checkout, and unexpected changes are detected:");
    for step in task::demo(checkout)? {
        demo.transcript.push(format!("\n$ {}", step.command));
        demo.transcript.extend(step.text.lines().map(|line| format!("  {line}")));
        demo.steps.push(json!({ "operation": step.operation, "output": step.output }));
    }
    Ok(())
}

/// Saves a context twice; the second checkpoint is stored as a difference.
fn save_context(demo: &mut Demo, repo: &str) -> Result<(), Failure> {
    let log: Vec<String> = (0..60).map(|line| format!("test login::case_{line} ... ok")).collect();
    let mut context = json!({
        "goal": "Customers log in with their e-mail address",
        "decisions": ["the session cookie lives for a day", "no password hints"],
        "plan": ["login form", "session cookie", "logout"],
        "lastTestRun": log.join("\n"),
        "progress": { "done": 1 },
    });
    demo.run_step::<SaveCheckpoint>(
        "baton checkpoint save --session login < context.json",
        &json!({ "sessionId": "login", "repo": repo, "context": context }),
        describe_save,
    )?;
    context["progress"]["done"] = 2.into();
    demo.run_step::<SaveCheckpoint>(
        "baton checkpoint save --session login < context.json     # one number changed",
        &json!({ "sessionId": "login", "repo": repo, "context": context }),
        describe_save,
    )?;
    demo.run_step::<MarkCritical>(
        "baton checkpoint mark-critical --session login plan",
        &json!({ "sessionId": "login", "contextKey": "plan" }),
        |output| output.message.clone(),
    )?;
    Ok(())
}
