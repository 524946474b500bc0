//! The live session of the agent that runs a command in a checkout.
//!
//! An agent that runs `baton` in its shell does not know the session that its hooks opened. The newest live session of the
//! same program in the repository of the checkout is used. The program is recognised by the variables that it sets for the
//! commands it runs.

use baton_app::session::{ListSessions, ListSessionsOutput, SessionView, session_of_client};
use baton_core::Fault;
use baton_observation::{CLIENTS, Client};

use crate::backend::Backend;
use crate::checkout::repository_here;
use crate::config::Config;
use crate::output::Failure;

/// Returns the names of the variables by which programs are recognised.
pub(crate) fn client_variables() -> impl Iterator<Item = &'static str> {
    CLIENTS.iter().flat_map(|client| client.variables.iter().copied())
}

/// Returns the program that runs this command, if it is a known agent.
pub(crate) fn client_here() -> Option<&'static str> {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let runs = |client: &&Client| client.variables.iter().any(|name| is_set(name));
    CLIENTS.iter().find(runs).map(|client| client.name)
}

/// Finds the live session of this program in a repository, or of any program if this program is not a known
/// agent. `venture` is the one given on the command line.
pub(crate) fn live_session(
    repo: &str,
    venture: Option<&str>,
    config: &Config,
    backend: &Backend,
) -> Result<Option<SessionView>, Failure> {
    let sessions = live_sessions(Some(repo), venture, config, backend)?.sessions;
    Ok(session_of_client(&sessions, client_here()).cloned())
}

/// Lists the newest live sessions of a repository, or of all repositories.
pub(crate) fn live_sessions(
    repo: Option<&str>,
    venture: Option<&str>,
    config: &Config,
    backend: &Backend,
) -> Result<ListSessionsOutput, Failure> {
    let repo = repo.map(str::parse).transpose().map_err(|error| Fault::invalid("repo", error))?;
    let filter = ListSessions { repo, limit: Some(200), ..ListSessions::default() };
    backend.call::<ListSessions>(&config.with_venture(venture, &filter), None)
}

/// Finds the live session in the repository of the current checkout. Returns `None` outside of a checkout.
pub(crate) fn live_session_here(config: &Config, backend: &Backend) -> Result<Option<SessionView>, Failure> {
    match repository_here()? {
        Some(repo) => live_session(repo.as_str(), None, config, backend),
        None => Ok(None),
    }
}

/// Returns the given session id, or the id of the live session in the current checkout.
pub(crate) fn session_id(
    given: Option<String>,
    config: &Config,
    backend: &Backend,
) -> Result<String, Failure> {
    if let Some(id) = given {
        return Ok(id);
    }
    let live = live_session_here(config, backend)?.ok_or_else(|| {
        Failure::usage(
            "no session given, and this client has no active session in the repository of this checkout",
        )
        .hint("give the session id (baton session list), or start a session: baton session start")
    })?;
    Ok(live.id.to_string())
}
