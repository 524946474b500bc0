//! The connections of agents, as `baton doctor` and the dashboard report them.

use baton_app::agent::{AgentConnection, ListAgentsOutput, McpServerState};
use baton_core::Timestamp;

use crate::config::Config;
use crate::hooks::LastCaptured;
use crate::host::host;
use crate::output::Failure;
use crate::setup::{Agent, Files, Records, Scope, SetupEnvironment, all, files_of, mcp_tools, trust_problem};

/// Extent of a check of connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Probe {
    /// Files only.
    Files,
    /// Also programs, which takes longer: the MCP server, and Codex for the trust state of its hooks.
    Programs,
}

/// Returns the connections of all agents that are set up, for the user and for the current project, and the state of
/// the MCP server that they start.
pub(crate) fn connections(config: &Config, probe: Probe) -> Result<ListAgentsOutput, Failure> {
    let (records, captured) = (Records::of(&config.data_dir), LastCaptured::of(&config.data_dir).read());
    let mut connections = Vec::new();
    for scope in [Scope::User, Scope::Project] {
        let environment = SetupEnvironment::of_process(scope, config)?;
        // In the home folder, files of a project are files of the user.
        if scope == Scope::Project
            && environment.project.canonicalize().ok() == environment.home.canonicalize().ok()
        {
            continue;
        }
        for agent in all() {
            let files = files_of(agent, &environment, &records);
            if files != Files::NotSetUp {
                let last_event_at = captured.get(agent.id).copied();
                let (problem, fix) = problem(agent, &environment, &files, last_event_at, probe).unzip();
                connections.push(AgentConnection {
                    id: agent.id.to_owned(),
                    name: agent.name.to_owned(),
                    scope: scope.to_string(),
                    last_event_at,
                    problem,
                    fix,
                });
            }
        }
    }
    let mcp_server = if probe == Probe::Programs && !connections.is_empty() {
        Some(mcp_server(&SetupEnvironment::of_process(Scope::User, config)?))
    } else {
        None
    };
    Ok(ListAgentsOutput { host: host(), connections, mcp_server })
}

/// Returns what is wrong with a connection, and what to do about it.
fn problem(
    agent: &Agent,
    environment: &SetupEnvironment,
    files: &Files,
    last_event_at: Option<Timestamp>,
    probe: Probe,
) -> Option<(String, String)> {
    let again = format!("baton setup {} --scope {}", agent.id, environment.scope);
    match files {
        Files::NotSetUp => None,
        Files::MissingBinary(path) => {
            Some((format!("the configured binary {} does not exist", path.display()), again))
        }
        Files::Changed(paths) => {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            Some((format!("the configuration differs from what setup writes: {}", paths.join(", ")), again))
        }
        Files::Current => {
            let untrusted = if probe == Probe::Programs { trust_problem(agent, environment) } else { None };
            match untrusted {
                Some(problem) => {
                    Some((problem, "start codex, enter /hooks and trust the hooks of Baton".to_owned()))
                }
                None if last_event_at.is_none() => Some((
                    "the agent has sent nothing; hooks are loaded when a chat starts".to_owned(),
                    format!("start a new chat in {}, then run baton doctor again", agent.name),
                )),
                None => None,
            }
        }
    }
}

fn mcp_server(environment: &SetupEnvironment) -> McpServerState {
    let (tools, problem) = match mcp_tools(environment) {
        Ok(count) => (Some(count), None),
        Err(problem) => (None, Some(problem)),
    };
    McpServerState { binary: environment.program.binary.display().to_string(), tools, problem }
}
