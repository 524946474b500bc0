//! Real coding agents with a fake model: setup, a chat, a second chat that remembers the first one, and removal.
//!
//! `scripts/agents` installs the agents from npm and prints their folder, which `BATON_TEST_AGENTS` names. Without it the
//! tests are skipped, and fail on CI.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use baton_testkit::binary::{Finished, Home};
use baton_testkit::model_server::{AgentCall, AgentScript, Behaviour, ModelServer};
use serde_json::{Value, json};

/// Maximum duration of a chat.
const CHAT_LIMIT: Duration = Duration::from_secs(180);

const CLAUDE_CODE: &str = "node_modules/@anthropic-ai/claude-code-linux-x64/claude";
const CODEX: &str = "node_modules/@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex";
const CODEX_FLAGS: [&str; 3] = [
    "--skip-git-repo-check",
    "--dangerously-bypass-approvals-and-sandbox",
    "--dangerously-bypass-hook-trust",
];

/// A home with a project, an agent and its model.
struct Rig {
    home: Home,
    model: ModelServer,
    packages: PathBuf,
}

impl Rig {
    /// Creates a rig; `None` if the agents are not installed.
    fn new() -> Option<Self> {
        let Some(packages) = std::env::var_os("BATON_TEST_AGENTS").map(PathBuf::from) else {
            assert!(std::env::var_os("CI").is_none(), "BATON_TEST_AGENTS is not set; run scripts/agents");
            return None;
        };
        let home = Home::new(env!("CARGO_BIN_EXE_baton")).working_in("shop");
        let git = Command::new("git")
            .args(["init", "--quiet"])
            .current_dir(home.working_folder())
            .status()
            .unwrap();
        assert!(git.success());
        let model = ModelServer::start();
        model.behave(Behaviour::Agent(AgentScript {
            calls: vec![
                AgentCall::Shell("echo shipped-feature-7".into()),
                AgentCall::Shell("cat missing-file-42".into()),
                AgentCall::Tool(
                    "workflow_checkpoint_save".into(),
                    json!({ "sessionId": "plan-9", "context": { "goal": "ship feature-7" } }).to_string(),
                ),
            ],
            closing: "Feature-7 is shipped; file-42 does not exist.".into(),
        }));
        Some(Self { home, model, packages })
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.home.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, path: &str) -> String {
        fs::read_to_string(self.home.path().join(path)).unwrap()
    }

    fn setup(&self, arguments: &[&str]) -> Finished {
        let finished = self.home.run(&[&["setup"], arguments].concat());
        assert_eq!(finished.code, 0, "{finished:?}");
        finished
    }

    /// Runs an agent to its end and returns the bodies of the requests that it sent with tools.
    fn chat(&self, program: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Vec<Value> {
        self.model.forget();
        let log = self.home.path().join("tmp/agent.log");
        let output = fs::File::create(&log).unwrap();
        let mut child = Command::new(program)
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.home.path())
            .env("BATON_WORKER_AUTOSTART", "off")
            .envs(variables.iter().copied())
            .current_dir(self.home.working_folder())
            .stdin(Stdio::null())
            .stdout(output.try_clone().unwrap())
            .stderr(output)
            .spawn()
            .unwrap();
        let deadline = Instant::now() + CHAT_LIMIT;
        let status = loop {
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            if Instant::now() > deadline {
                // Its status is then a failure.
                child.kill().unwrap();
                break child.wait().unwrap();
            }
            std::thread::sleep(Duration::from_millis(20));
        };
        assert!(status.success(), "{status}: {}", fs::read_to_string(&log).unwrap());
        let bodies =
            self.model.requests().iter().map(baton_testkit::model_server::Request::json).collect::<Vec<_>>();
        bodies
            .into_iter()
            .filter(|body| body["tools"].as_array().is_some_and(|tools| !tools.is_empty()))
            .collect()
    }

    fn chat_with_claude_code(&self, program: &str, prompt: &str) -> Vec<Value> {
        let url = self.model.url();
        let variables = [
            ("ANTHROPIC_BASE_URL", url.as_str()),
            ("ANTHROPIC_API_KEY", "sk-ant-fake"),
            ("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
            ("ENABLE_TOOL_SEARCH", "false"),
            // Without it Claude Code refuses to skip permissions as root.
            ("IS_SANDBOX", "1"),
        ];
        let arguments = ["-p", prompt, "--dangerously-skip-permissions"];
        self.chat(&self.packages.join(program), &arguments, &variables)
    }

    /// Writes a configuration of Codex with the fake model and returns it.
    fn configure_codex(&self) -> String {
        let config = format!(
            "# my provider\nmodel = \"gpt-5\"\nmodel_provider = \"fake\"\n\n[model_providers.fake]\n\
             name = \"fake\" # local\nbase_url = \"{}/v1\"\nenv_key = \"FAKE_KEY\"\nwire_api = \"responses\"\n",
            self.model.url()
        );
        self.write(".codex/config.toml", &config);
        config
    }

    /// Checks what the first chat left in the store.
    fn assert_captured(&self, client: &str) {
        self.home.run(&["worker", "run", "--once"]);
        let observations = self.home.run(&["observation", "list", "--format", "json"]).stdout;
        assert!(observations.contains("shipped-feature-7"), "{observations}");
        assert!(observations.contains("missing-file-42"), "a failing tool must be captured: {observations}");
        let checkpoints = self.home.run(&["checkpoint", "list", "--session", "plan-9", "--format", "json"]);
        assert!(
            checkpoints.stdout.contains("ckpt_"),
            "the MCP server must use the same store: {checkpoints:?}"
        );
        let status = self.home.run(&["status", "--format", "json"]).json();
        assert!(status["data"]["last_captured"][client].is_string(), "{status}");
    }

    /// Imports the chats that an agent recorded into an empty store, and checks that a second import adds nothing.
    fn assert_imported(&self, client: &str) {
        let run = |arguments: &[&str]| {
            let mut command = self.home.command();
            command.args(arguments).args(["--format", "json"]);
            command.env("BATON_DATA_DIR", self.home.path().join("tmp/imported"));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{output:?}");
            serde_json::from_slice::<Value>(&output.stdout).unwrap()["data"].clone()
        };
        let done = run(&["import", client]);
        assert_eq!((&done["turns"], &done["invalid"]), (&2.into(), &0.into()), "{done}");
        let observations = run(&["observation", "list"]).to_string();
        assert!(observations.contains("echo shipped-feature-7"), "{observations}");
        assert!(observations.contains("missing-file-42"), "{observations}");
        let found = run(&["search", "ship", "feature-7"]).to_string();
        assert!(found.contains("Feature-7 is shipped"), "{found}");
        let again = run(&["import", client]);
        assert_eq!((&again["turns"], &again["observations"]), (&0.into(), &0.into()), "{again}");
    }
}

/// Runs two chats and checks that the second one receives the context of the first one.
fn check(rig: &Rig, client: &str, chat: impl Fn(&str) -> Vec<Value>) {
    let first = chat("Please ship feature-7.");
    assert!(first.len() >= 4, "three tool calls and a closing message need four requests: {}", first.len());
    let last = first.last().unwrap().to_string();
    assert!(last.contains("shipped-feature-7") && last.contains("file-42"), "{last}");
    assert!(last.contains("ckpt_"), "the MCP tool must answer: {last}");
    rig.assert_captured(client);
    let second = chat("What happened before?");
    let opening = second.first().unwrap().to_string();
    assert!(opening.contains("Feature-7 is shipped"), "the second chat must know the first one: {opening}");
}

/// Returns the paths below the home whose name contains `baton`, except Baton's own data.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let name = entry.file_name().to_string_lossy().into_owned();
        if name == "data" || name == "tmp" {
            continue;
        }
        if name.contains("baton") {
            found.push(path);
        } else if entry.file_type().unwrap().is_dir() {
            found.extend(traces(&path));
        }
    }
    found
}

#[test]
fn claude_code_remembers_the_previous_chat() {
    check_claude_code(CLAUDE_CODE);
}

#[test]
fn claude_code_2_1_197_remembers_the_previous_chat() {
    check_claude_code("node_modules/claude-code-2.1.197/claude");
}

fn check_claude_code(program: &str) {
    let Some(rig) = Rig::new() else { return };
    let settings = "{\n  \"hooks\": { \"Stop\": [{ \"hooks\": [{ \"type\": \"command\", \"command\": \"true\" }] }] }\n}\n";
    rig.write(".claude/settings.json", settings);
    rig.setup(&["claude-code"]);
    check(&rig, "claude-code", |prompt| rig.chat_with_claude_code(program, prompt));
    rig.setup(&["claude-code", "--remove"]);
    assert_eq!(rig.read(".claude/settings.json"), settings);
    assert_eq!(traces(&rig.home.path().join(".claude/skills")), Vec::<PathBuf>::new());
}

#[test]
fn codex_remembers_the_previous_chat() {
    let Some(rig) = Rig::new() else { return };
    let config = rig.configure_codex();
    let hooks =
        json!({ "hooks": { "Stop": [{ "hooks": [{ "type": "command", "command": "true" }] }] } }).to_string();
    rig.write(".codex/hooks.json", &hooks);
    let shown = rig.setup(&["codex"]).stdout;
    assert!(shown.contains("/hooks"), "the user must be told to trust the hooks: {shown}");
    let program = rig.packages.join(CODEX);
    check(&rig, "codex", |prompt| {
        let arguments = [&["exec"], &CODEX_FLAGS[..], &[prompt]].concat();
        rig.chat(&program, &arguments, &[("FAKE_KEY", "x")])
    });
    rig.setup(&["codex", "--remove"]);
    assert!(rig.read(".codex/config.toml").starts_with(&config), "comments and entries must be kept");
    assert!(!rig.read(".codex/config.toml").contains("baton"));
    assert_eq!(rig.read(".codex/hooks.json"), hooks);
    assert_eq!(traces(&rig.home.path().join(".codex/skills")), Vec::<PathBuf>::new());
}

#[test]
fn gemini_remembers_the_previous_chat() {
    let Some(rig) = Rig::new() else { return };
    let settings =
        "{\n  // mine\n  \"security\": { \"auth\": { \"selectedType\": \"gemini-api-key\" } }\n}\n";
    rig.write(".gemini/settings.json", settings);
    rig.setup(&["gemini"]);
    let program = rig.packages.join("node_modules/@google/gemini-cli/bundle/gemini.js");
    let url = rig.model.url();
    check(&rig, "gemini", |prompt| {
        let variables = [("GEMINI_API_KEY", "fake"), ("GOOGLE_GEMINI_BASE_URL", url.as_str())];
        let program = program.to_str().unwrap();
        // A named model needs no request that chooses one.
        let arguments =
            [program, "--model", "gemini-2.5-flash", "--yolo", "--skip-trust", "--prompt", prompt];
        rig.chat(&rig.packages.join("node"), &arguments, &variables)
    });
    rig.assert_imported("gemini");
    rig.setup(&["gemini", "--remove"]);
    assert!(rig.read(".gemini/settings.json").contains("// mine"));
    assert!(!rig.home.path().join(".gemini/extensions/baton").exists());
}

#[test]
fn opencode_remembers_the_previous_chat() {
    let Some(rig) = Rig::new() else { return };
    let config = format!(
        "{{\n  \"$schema\": \"https://opencode.ai/config.json\",\n  // my provider\n  \"model\": \"fake/fake\",\n  \"provider\": {{ \"fake\": {{\n    \"npm\": \
         \"@ai-sdk/openai-compatible\",\n    \"options\": {{ \"baseURL\": \"{}/v1\", \"apiKey\": \"x\" }},\n    \
         \"models\": {{ \"fake\": {{}} }}\n  }} }}\n}}\n",
        rig.model.url()
    );
    let plugin = "export const Mine = async () => ({})\n";
    rig.write(".config/opencode/opencode.jsonc", &config);
    rig.write(".config/opencode/plugins/mine.js", plugin);
    rig.setup(&["opencode"]);
    let program = rig.packages.join("node_modules/opencode-linux-x64/bin/opencode");
    check(&rig, "opencode", |prompt| {
        let variables = [
            ("OPENCODE_DISABLE_AUTOUPDATE", "1"),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1"),
            ("OPENCODE_DISABLE_MODELS_FETCH", "1"),
        ];
        rig.chat(&program, &["run", "--auto", prompt], &variables)
    });
    let observations = rig.home.run(&["observation", "list", "--format", "json"]).stdout;
    assert!(observations.contains(": exit 1, cat: missing-file-42"), "{observations}");
    rig.assert_imported("opencode");
    rig.setup(&["opencode", "--remove"]);
    assert_eq!(rig.read(".config/opencode/opencode.jsonc"), config);
    assert_eq!(rig.read(".config/opencode/plugins/mine.js"), plugin);
    assert_eq!(traces(&rig.home.path().join(".config/opencode/plugins")), Vec::<PathBuf>::new());
}

#[test]
fn codex_continues_the_work_of_claude_code() {
    let Some(rig) = Rig::new() else { return };
    rig.configure_codex();
    rig.setup(&["claude-code", "codex"]);
    rig.chat_with_claude_code(CLAUDE_CODE, "Please ship feature-7.");
    // Adds the flags without which Codex runs no hooks and no commands here.
    let script = format!(
        "#!/bin/sh\nmode=$1\nshift\nexec {} \"$mode\" {} \"$@\"\n",
        rig.packages.join(CODEX).display(),
        CODEX_FLAGS.join(" ")
    );
    rig.write("agents/codex", &script);
    let agents = rig.home.path().join("agents");
    fs::set_permissions(agents.join("codex"), fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", agents.display(), std::env::var("PATH").unwrap_or_default());
    let data_dir = rig.home.data_dir();
    let variables =
        [("PATH", path.as_str()), ("FAKE_KEY", "x"), ("BATON_DATA_DIR", data_dir.to_str().unwrap())];
    let requests = rig.chat(Path::new(env!("CARGO_BIN_EXE_baton")), &["relay", "--to", "codex"], &variables);
    let opening = requests.first().unwrap().to_string();
    for part in ["Continue the work of claude-code", "Please ship feature-7.", "Feature-7 is shipped"] {
        assert!(opening.contains(part), "{part}: {opening}");
    }
    let handoffs = rig.home.run(&["handoff", "list", "--format", "json"]).json();
    let relayed = &handoffs["data"]["handoffs"].as_array().unwrap().iter().next_back().unwrap();
    assert_eq!(relayed["from_agent"], "claude-code", "{relayed}");
    assert_eq!(relayed["acknowledged_by"], "codex", "{relayed}");
    assert!(relayed["acknowledged_session_id"].is_string(), "{relayed}");
}
