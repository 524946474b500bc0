//! State of the connection of an agent: its files, the binary that they name, and whether the agent may run the hooks.

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use serde_json::json;

use super::agent::Agent;
use super::agents::codex;
use super::environment::SetupEnvironment;
use super::record::Records;
use super::rpc::RpcProgram;
use super::user_file::resolve;

/// Time limit for the response of a program.
const ANSWER_LIMIT: Duration = Duration::from_secs(10);

/// State of the files of an agent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Files {
    /// The files contain nothing of Baton.
    NotSetUp,
    /// All files are as setup writes them.
    Current,
    /// These files are missing or differ from what setup writes.
    Changed(Vec<PathBuf>),
    /// The files name a binary that does not exist.
    MissingBinary(PathBuf),
}

/// Returns the state of the files of an agent.
pub(crate) fn files_of(agent: &Agent, environment: &SetupEnvironment, records: &Records) -> Files {
    let (mut found, mut changed, mut binaries) = (false, Vec::new(), Vec::new());
    for file in (agent.files)(environment) {
        let path = resolve(&file.path).unwrap_or_else(|_| file.path.clone());
        let text = std::fs::read_to_string(&path).unwrap_or_default();
        let is_recorded =
            records.read(&path).is_some_and(|record| record.agents.iter().any(|id| id == agent.id));
        found |= is_recorded || file.content.is_in(&text) || text.contains("baton hook");
        if !file.content.is_in(&text) {
            changed.push(path);
        }
        binaries.extend(named_binaries(&text));
    }
    match binaries.into_iter().find(|binary| !binary.exists()) {
        _ if !found => Files::NotSetUp,
        Some(binary) => Files::MissingBinary(binary),
        None if changed.is_empty() => Files::Current,
        None => Files::Changed(changed),
    }
}

/// Returns the absolute paths of binaries named `baton` in a text.
fn named_binaries(text: &str) -> Vec<PathBuf> {
    let words = text.split(|c: char| c.is_whitespace() || "\"'`,".contains(c));
    let mut found: Vec<PathBuf> =
        words.filter(|word| word.starts_with('/') && word.ends_with("/baton")).map(PathBuf::from).collect();
    found.dedup();
    found
}

/// Returns why the agent does not run the hooks although they are installed, as far as that can be found out.
pub(crate) fn trust_problem(agent: &Agent, environment: &SetupEnvironment) -> Option<String> {
    if agent.id != codex::AGENT.id || !environment.has_program("codex") {
        return None;
    }
    match untrusted_codex_hooks(environment) {
        Ok(0) => None,
        Ok(count) => Some(format!("{count} hooks are not trusted, so Codex ignores them")),
        Err(problem) => {
            Some(format!("cannot read the trust state of the hooks from `codex app-server`: {problem}"))
        }
    }
}

/// Asks Codex how many hooks of Baton it does not trust.
fn untrusted_codex_hooks(environment: &SetupEnvironment) -> Result<usize, String> {
    let mut command = Command::new("codex");
    command.arg("app-server").current_dir(&environment.project);
    let mut codex = RpcProgram::start(&mut command, ANSWER_LIMIT)?;
    let client = json!({ "name": "baton", "version": env!("CARGO_PKG_VERSION") });
    codex.request("initialize", &json!({ "clientInfo": client }))?;
    codex.notify("initialized")?;
    let listed = codex.request("hooks/list", &json!({ "cwds": [&environment.project] }))?;
    let hooks =
        listed["data"].as_array().into_iter().flatten().flat_map(|one| one["hooks"].as_array()).flatten();
    let own = hooks.filter(|hook| {
        hook["command"]
            .as_str()
            .is_some_and(|command| command.contains(" hook ") && command.contains("baton"))
    });
    Ok(own.filter(|hook| !matches!(hook["trustStatus"].as_str(), Some("trusted" | "managed"))).count())
}

/// Starts the MCP server as agents do, and returns the number of tools that it lists.
pub(crate) fn mcp_tools(environment: &SetupEnvironment) -> Result<usize, String> {
    let mut command = Command::new(&environment.program.binary);
    command.args(environment.program.mcp_args()).current_dir(&environment.project);
    let mut server = RpcProgram::start(&mut command, ANSWER_LIMIT)?;
    let client = json!({ "name": "baton-doctor", "version": env!("CARGO_PKG_VERSION") });
    let hello = json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client });
    server.request("initialize", &hello)?;
    server.notify("notifications/initialized")?;
    let listed = server.request("tools/list", &json!({}))?;
    Ok(listed["tools"].as_array().map_or(0, Vec::len))
}
