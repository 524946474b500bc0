//! The connections of agents, as `baton doctor` reports them.

use baton_core::Timestamp;

use crate::config::Config;
use crate::hooks::LastCaptured;
use crate::output::Failure;
use crate::setup::{Agent, Files, Place, Records, Scope, all, files_of, mcp_tools, trust_problem};
use crate::terminal::when;
use crate::verbs::setup::place;

/// State of one connection.
pub(crate) struct Connection {
    /// Agent and scope, and the last event.
    pub(crate) message: String,
    /// What is wrong.
    pub(crate) problem: Option<String>,
    /// What to do about it; `None` if nothing is wrong.
    pub(crate) fix: Option<String>,
}

/// Returns the connections of all agents that are set up, for the user and for the current project, and of the MCP
/// server that they start.
pub(crate) fn connections(config: &Config) -> Result<Vec<Connection>, Failure> {
    let (records, captured) = (Records::of(&config.data_dir), LastCaptured::of(&config.data_dir).read());
    let mut found = Vec::new();
    for scope in [Scope::User, Scope::Project] {
        let place = place(scope, config)?;
        for agent in all() {
            let files = files_of(agent, &place, &records);
            if files != Files::NotSetUp {
                found.push(connection(agent, &place, &files, captured.get(agent.id).copied()));
            }
        }
    }
    if !found.is_empty() {
        found.push(mcp_server(&place(Scope::User, config)?));
    }
    Ok(found)
}

fn connection(agent: &Agent, place: &Place, files: &Files, last: Option<Timestamp>) -> Connection {
    let scope = place.scope.as_str();
    let last_event = last.map_or_else(|| "no event yet".to_owned(), |at| format!("last event {}", when(at)));
    let message = format!("{} ({scope}), {last_event}", agent.name);
    let again = format!("baton setup {} --scope {scope}", agent.id);
    let (problem, fix) = match files {
        Files::NotSetUp => (None, None),
        Files::MissingBinary(path) => {
            (Some(format!("the configured binary {} does not exist", path.display())), Some(again))
        }
        Files::Changed(paths) => {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            (
                Some(format!("the configuration differs from what setup writes: {}", paths.join(", "))),
                Some(again),
            )
        }
        Files::Current => match trust_problem(agent, place) {
            Some(problem) => {
                (Some(problem), Some("start codex, enter /hooks and trust the hooks of Baton".to_owned()))
            }
            None if last.is_none() => {
                let reason = "the agent has sent nothing; hooks are loaded when a chat starts";
                (
                    Some(reason.to_owned()),
                    Some(format!("start a new chat in {}, then run baton doctor again", agent.name)),
                )
            }
            None => (None, None),
        },
    };
    Connection { message, problem, fix }
}

fn mcp_server(place: &Place) -> Connection {
    let message = format!("MCP server {}", place.program.binary.display());
    match mcp_tools(place) {
        Ok(count) => {
            Connection { message: format!("{message} responds with {count} tools"), problem: None, fix: None }
        }
        Err(problem) => {
            let fix = format!("run {} mcp and read its errors", place.program.binary.display());
            Connection { message, problem: Some(problem), fix: Some(fix) }
        }
    }
}
