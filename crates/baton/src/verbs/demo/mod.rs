//! `baton demo`: two agents, a person, a reviewer and a validator work on one task in a temporary checkout. Every step runs
//! this binary as a user or the hooks of an agent would, on a temporary store.

mod history;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use baton_app::{Clock, SystemClock};
use clap::Args;
use serde_json::{Value, json};

use crate::checkout::git;
use crate::config::{Config, Flag, Sources};
use crate::exit::Exit;
use crate::output::{Answer, Failure, Format, print};
use crate::stop_signal::StopSignal;
use crate::verbs::serve;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton demo
  $ baton demo --serve   # until Ctrl-C";

#[derive(Debug, Args)]
pub(crate) struct DemoArgs {
    /// Add a month of history and serve the store on a free port until the command is interrupted
    #[arg(long)]
    serve: bool,
}

/// Files of the checkout. A repository without commits is a few files, so git is not needed to create it.
const FILES: [(&str, &str); 8] = [
    (".git/HEAD", "ref: refs/heads/main\n"),
    (".git/objects/.keep", ""),
    (".git/refs/.keep", ""),
    (
        ".git/config",
        "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\
         [remote \"origin\"]\n\turl = https://example.org/acme/webshop.git\n",
    ),
    (".git/info/exclude", "/tasks/\n/standards/\n"),
    (CODE, "pub fn logout() {}\n"),
    ("standards/backend.md", "# Backend\n\n## Sessions\n\nA session ends when its user logs out.\n"),
    (
        "tasks/TASK-0007-logout.task.yaml",
        "title: Logout\nstatus: in_progress\npriority: P1\narea: backend\ndescription: Customers can log out.\n\
         scope: { in: [src/**] }\nacceptance_criteria: [The cookie is gone]\n\
         standards: [\"standards/backend.md#sessions\"]\nqa: { commands: [grep jar.remove src/logout.rs] }\n",
    ),
];

const CODE: &str = "src/logout.rs";
const CODE_OF_AGENT: &str = "pub fn logout(jar: &mut Jar) {\n    jar.remove(\"sid\");\n}\n";
const CODE_OF_PERSON: &str =
    "pub fn logout(jar: &mut Jar) {\n    jar.remove(\"sid\");\n    // also delete the row in sessions\n}\n";
const CODE_OF_REVIEWER: &str =
    "pub fn logout(jar: &mut Jar, db: &Db) {\n    jar.remove(\"sid\");\n    db.end_session();\n}\n";

const TEST_RUN: &str = "running 2 tests\ntest logout::clears_cookie ... ok\ntest logout::twice ... FAILED\n\n\
    failures:\n\n---- logout::twice stdout ----\nthread 'logout::twice' panicked at src/logout.rs:41:5:\n\
    assertion failed: jar.is_empty()\n\n\
    test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 12 filtered out; finished in 0.02s\n";

/// Standard input of a command: a made-up file name and its content.
#[derive(Clone, Copy)]
struct Input<'a> {
    file: &'a str,
    comment: &'a str,
    value: &'a Value,
}

/// A chat of an agent.
#[derive(Clone, Copy)]
struct Chat {
    client: &'static str,
    id: &'static str,
}

/// Runs commands in the checkout and prints them with their output.
struct Demo {
    program: PathBuf,
    folder: PathBuf,
    format: Format,
    stop: StopSignal,
    steps: Vec<Value>,
}

pub(crate) fn run(args: &DemoArgs, format: Format) -> Result<Answer, Failure> {
    // Most steps need git; without it, this is the clearest error.
    git()?;
    let failed = |what: &str, error: std::io::Error| Failure::internal(format!("cannot {what}: {error}"));
    let temporary = tempfile::Builder::new().prefix("baton-demo-").tempdir().map_err(|error| {
        failed("create a temporary folder", error).hint("set TMPDIR to a folder that can be written")
    })?;
    // An interrupted demo also removes its folder.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
    let runtime = runtime.map_err(|error| failed("start the async runtime", error))?;
    let mut demo = Demo {
        program: std::env::current_exe().map_err(|error| failed("find the path of this program", error))?,
        folder: temporary.path().to_owned(),
        format,
        stop: StopSignal::listen(&runtime).map_err(|error| failed("listen for signals", error))?,
        steps: Vec::new(),
    };
    for (path, text) in FILES {
        demo.write(path, text)?;
    }
    demo.say("Demo on a temporary store and repository. Two agents, a person, a reviewer and a validator work on a task.");
    if args.serve {
        demo.import_history()?;
    }
    run_steps(&mut demo)?;
    if args.serve {
        agents_at_work(&mut demo)?;
        demo.say("The store is served until you press Ctrl-C.");
        demo.serve()?;
    }
    demo.say("The temporary store and repository are deleted. Connect your agent: baton setup");
    match format {
        Format::Human => Ok(Answer::silent()),
        Format::Json => Answer::new(&json!({ "steps": demo.steps }), String::new()),
    }
}

fn run_steps(demo: &mut Demo) -> Result<(), Failure> {
    first_agent(demo)?;
    demo.say("A person edits a file before the next agent starts.");
    demo.write(CODE, CODE_OF_PERSON)?;
    second_agent(demo)?;
    demo.say("The validator runs the checks of the task and finishes it.");
    demo.baton("task update-agent TASK-0007 --agent validator --status in_progress")?;
    demo.baton("task run-qa TASK-0007 --agent validator")?;
    demo.baton("task snapshot-worktree TASK-0007 --agent validator")?;
    demo.baton("task update-agent TASK-0007 --agent validator --status done")?;
    demo.say("Later, everything can be found again.");
    demo.baton("search 'why does logout fail' --limit 2")?;
    demo.baton("context")
}

fn first_agent(demo: &mut Demo) -> Result<(), Failure> {
    demo.say(
        "Agent A, Claude Code, starts a chat. Its hooks report the chat, the request and every tool use.",
    );
    let chat = Chat { client: "claude-code", id: "chat-a" };
    demo.hook(chat, "session-start", "a new chat", json!({ "source": "startup" }))?;
    let prompt = json!({ "prompt": "Logout must clear the cookie." });
    demo.hook(chat, "user-prompt-submit", "the request", prompt)?;
    demo.baton("task init-context TASK-0007")?;
    demo.baton("task update-agent TASK-0007 --agent implementer --status in_progress")?;
    demo.write(CODE, CODE_OF_AGENT)?;
    let edit = edit("toolu_1", CODE, "pub fn logout() {}\n", CODE_OF_AGENT);
    demo.hook(chat, "post-tool-use", "an edit of src/logout.rs", edit)?;
    let test = json!({ "tool_name": "Bash", "tool_use_id": "toolu_2", "tool_input": { "command": "cargo test logout" },
        "tool_response": { "stdout": TEST_RUN, "stderr": "", "interrupted": false } });
    demo.hook(chat, "post-tool-use", "cargo test, one test fails", test)?;
    demo.baton("note 'Expire the session on the server: clients keep the cookie' --kind decision")?;
    demo.save_checkpoint(&json!({
        "goal": "Customers can log out", "plan": ["clear the cookie", "end the session on the server"],
        "lastTestRun": TEST_RUN,
    }))?;
    demo.baton("task snapshot-worktree TASK-0007 --agent implementer")?;
    demo.baton("task update-agent TASK-0007 --agent implementer --status done")?;
    demo.say("Agent A is blocked. It hands off and its chat ends.");
    demo.baton(
        "session end --summary 'Logout removes the cookie, but the server still accepts it.' --status blocked \
         --blocker 'No access to the table of sessions' --next 'End the session on the server'",
    )?;
    demo.hook(chat, "session-end", "the end of the chat", json!({ "reason": "exit" }))?;
    demo.say("A worker creates observations from the tool uses, here without a model.");
    demo.baton("worker run --once")
}

fn second_agent(demo: &mut Demo) -> Result<(), Failure> {
    demo.say("Agent B, Codex, starts a chat. Its session-start hook adds the handoff of agent A.");
    let chat = Chat { client: "codex", id: "chat-b" };
    demo.hook(chat, "session-start", "a new chat", json!({ "source": "startup" }))?;
    demo.baton("checkpoint load --session logout --max-tokens 60")?;
    demo.say(
        "Agent B acquires the task as the reviewer. Baton detects the edit of the person and stops agent B.",
    );
    demo.step("task update-agent TASK-0007 --agent reviewer --status in_progress", None, Exit::Drift)?;
    demo.baton("task get-diff TASK-0007 --type drift --content")?;
    demo.baton("task resolve-drift TASK-0007 --note 'The comment names what is missing'")?;
    demo.baton("task update-agent TASK-0007 --agent reviewer --status in_progress")?;
    demo.say("Agent B finishes the work and its chat ends.");
    demo.write(CODE, CODE_OF_REVIEWER)?;
    let edit = edit("call_1", CODE, CODE_OF_PERSON, CODE_OF_REVIEWER);
    demo.hook(chat, "post-tool-use", "an edit of src/logout.rs", edit)?;
    demo.save_checkpoint(&json!({
        "goal": "Customers can log out", "plan": [], "done": ["clear the cookie", "end the session on the server"],
    }))?;
    demo.baton("checkpoint diff --session logout")?;
    demo.baton("task snapshot-worktree TASK-0007 --agent reviewer")?;
    demo.baton("task update-agent TASK-0007 --agent reviewer --status done")?;
    let closing = json!({ "last_assistant_message": "Logout ends the session on the server as well." });
    demo.hook(chat, "stop", "the closing message", closing)?;
    demo.baton("session end --summary 'Logout ends the session on the server as well.' --status done")?;
    demo.hook(chat, "session-end", "the end of the chat", json!({ "reason": "exit" }))?;
    demo.baton("worker run --once")
}

/// Two agents that are still at work when the dashboard is opened, on the same file.
fn agents_at_work(demo: &mut Demo) -> Result<(), Failure> {
    demo.say("Two other agents are at work, and both change src/cart.rs.");
    for (client, id, prompt) in [
        ("claude-code", "chat-c", "The cart must survive a restart of the browser."),
        ("codex", "chat-d", "Show the total of the cart with taxes."),
    ] {
        let chat = Chat { client, id };
        demo.hook(chat, "session-start", "a new chat", json!({ "source": "startup" }))?;
        demo.hook(chat, "user-prompt-submit", "the request", json!({ "prompt": prompt }))?;
        let edit = edit(id, "src/cart.rs", "before", "after");
        demo.hook(chat, "post-tool-use", "an edit of src/cart.rs", edit)?;
    }
    demo.baton("worker run --once")
}

/// Returns the report of an edit.
fn edit(id: &str, file: &str, old: &str, new: &str) -> Value {
    json!({
        "tool_name": "Edit", "tool_use_id": id, "tool_response": { "filePath": file },
        "tool_input": { "file_path": file, "old_string": old, "new_string": new },
    })
}

impl Demo {
    fn checkout(&self) -> PathBuf {
        self.folder.join("webshop")
    }

    fn write(&self, path: &str, text: &str) -> Result<(), Failure> {
        let path = self.checkout().join(path);
        let write = || {
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/")))?;
            fs::write(&path, text)
        };
        write().map_err(|error: std::io::Error| {
            Failure::internal(format!("cannot write {}: {error}", path.display()))
                .hint("set TMPDIR to a folder that can be written")
        })
    }

    fn say(&self, text: &str) {
        if self.format == Format::Human {
            print(&format!("\n==> {text}"));
        }
    }

    /// Imports a month of recorded chats.
    fn import_history(&mut self) -> Result<(), Failure> {
        self.say("A month of chats from before Baton was installed is imported.");
        for (name, text) in history::transcripts(&self.checkout(), SystemClock.now()) {
            self.write(&format!("../transcripts/{name}"), &text)?;
        }
        self.baton("import claude-code ../transcripts")?;
        self.baton("worker run --once")
    }

    /// Serves the store until a stop signal.
    fn serve(&self) -> Result<(), Failure> {
        let data = self.folder.join("data");
        let flags = [
            Flag::given("--data-dir", "data_dir", Some(data)),
            Flag::given("--listen", "server.listen", Some("127.0.0.1:0")),
        ];
        // The user's configuration is not read.
        let sources = Sources { flags: flags.into_iter().flatten().collect(), ..Sources::default() };
        let (config, _) = Config::load(&sources)?;
        serve::run(&serve::ServeArgs { listen: None, no_worker: false }, &config).map(|_| ())
    }

    /// Sends a report of an agent's hook, about `what`, and prints the text that the agent receives.
    fn hook(&mut self, chat: Chat, event: &str, what: &str, mut report: Value) -> Result<(), Failure> {
        report["session_id"] = chat.id.into();
        report["cwd"] = json!(self.checkout());
        let input = Input { file: "report.json", comment: what, value: &report };
        self.step(&format!("hook {event} --client {}", chat.client), Some(input), Exit::Ok)
    }

    fn save_checkpoint(&mut self, context: &Value) -> Result<(), Failure> {
        let input = Input { file: "context.json", comment: "context of the agent", value: context };
        self.step("checkpoint save --session logout", Some(input), Exit::Ok)
    }

    fn baton(&mut self, arguments: &str) -> Result<(), Failure> {
        self.step(arguments, None, Exit::Ok)
    }

    /// Runs a command that is expected to end with `exit`.
    fn step(&mut self, arguments: &str, input: Option<Input<'_>>, exit: Exit) -> Result<(), Failure> {
        if self.stop.is_received() {
            return Err(Failure::new(Exit::Failure, "interrupted", "the demo was interrupted"));
        }
        let shown = input.map(|input| format!(" < {}   # {}", input.file, input.comment)).unwrap_or_default();
        let command = format!("baton {arguments}{shown}");
        let output = self
            .execute(arguments, input.map(|input| input.value))
            .map_err(|error| Failure::internal(format!("cannot run {command}: {error}")))?;
        let text = text_of(&output);
        if output.status.code() != Some(exit as i32) {
            return Err(Failure::internal(format!("the demo failed: {command}: {}: {text}", output.status))
                .hint("run baton doctor"));
        }
        if self.format == Format::Human {
            let lines = text.lines().map(|line| format!("\n  {line}"));
            print(&format!("\n$ {command}{}", lines.collect::<String>()));
        }
        self.steps.push(json!({ "command": command, "exit_code": exit as i32, "output": text }));
        Ok(())
    }

    /// Runs this binary in the checkout. The user's configuration and environment are not used, so that the demo is the
    /// same everywhere; no model and no network is used.
    fn execute(&self, arguments: &str, input: Option<&Value>) -> std::io::Result<Output> {
        let mut command = Command::new(&self.program);
        command.env_clear().current_dir(self.checkout()).args(words(arguments));
        for name in ["PATH", "TMPDIR", "LANG"] {
            command.envs(std::env::var_os(name).map(|value| (name, value)));
        }
        let mut child = command
            .env("HOME", self.folder.join("home"))
            .env("BATON_DATA_DIR", self.folder.join("data"))
            .env("BATON_COMPRESSOR", "offline")
            .env("BATON_WORKER_AUTOSTART", "off")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()?;
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            stdin.write_all(input.to_string().as_bytes())?;
        }
        child.wait_with_output()
    }
}

/// Splits arguments as they are typed; words in single quotes may contain spaces.
fn words(arguments: &str) -> Vec<&str> {
    let mut words = Vec::new();
    for (position, part) in arguments.split('\'').enumerate() {
        let is_quoted = position % 2 == 1;
        if is_quoted { words.push(part) } else { words.extend(part.split_whitespace()) }
    }
    words
}

/// Returns the output of a command; for a hook, the text that the agent receives.
fn text_of(output: &Output) -> String {
    let stdout = String::from_utf8_lossy(&output.stdout);
    let response: Value = serde_json::from_str(&stdout).unwrap_or_default();
    let added = response["hookSpecificOutput"]["additionalContext"].as_str();
    let stderr = String::from_utf8_lossy(&output.stderr);
    format!("{}\n{}", added.unwrap_or(stdout.trim_end()), stderr.trim_end()).trim().to_owned()
}
