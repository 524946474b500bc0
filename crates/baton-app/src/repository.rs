//! What is known about a repository: its latest handoffs, and the active sessions besides the own one.

use std::cmp::Reverse;

use baton_core::{Fault, Handoff, HandoffAuthor, Repo, Session, Track, Venture};
use baton_store::{HandoffFilter, Page, SessionFilter, Tx};

use crate::context::Context;

/// Maximum number of other sessions; `session.list` returns all of them.
const MAX_OTHERS: u32 = 50;

/// Finds the latest handoffs of a repository and track, newest first: the latest one that an agent wrote, and the latest
/// ones of a person and of Baton that are newer. Only a handoff of an agent replaces the others, because agents receive
/// those before they write it.
pub(crate) fn latest_handoffs(
    tx: &mut dyn Tx,
    venture: &Venture,
    repo: &Repo,
    track: Option<Track>,
) -> Result<Vec<Handoff>, Fault> {
    let filter =
        HandoffFilter { repo: Some(repo.clone()), track: Some(track), ..HandoffFilter::of(venture.clone()) };
    let mut found = tx.handoffs(&filter, Page::first(1))?;
    let Some(latest) = found.first().map(|latest| latest.written_by) else { return Ok(found) };
    if latest == HandoffAuthor::Agent {
        return Ok(found);
    }
    for author in [HandoffAuthor::Agent, HandoffAuthor::Person, HandoffAuthor::Hook] {
        if author != latest {
            let filter = HandoffFilter { written_by: Some(author), ..filter.clone() };
            found.extend(tx.handoffs(&filter, Page::first(1))?);
        }
    }
    found.sort_by_key(|handoff| Reverse((handoff.created_at, handoff.id)));
    if let Some(by_agent) = found.iter().position(|handoff| handoff.written_by == HandoffAuthor::Agent) {
        found.truncate(by_agent + 1);
    }
    Ok(found)
}

/// Returns true if a session is not run by the same agent. Two sessions with the same agent name are different chats if
/// both have a chat id; otherwise they may be one chat that reached Baton in two ways.
fn is_other(session: &Session, own: &Session) -> bool {
    let (theirs, mine) = (&session.tuple.client_session_id, &own.tuple.client_session_id);
    session.id != own.id
        && (session.tuple.agent != own.tuple.agent
            || session.tuple.track != own.tuple.track
            || (theirs.is_some() && mine.is_some()))
}

/// Returns the other active sessions of a repository.
pub(crate) fn other_sessions(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    venture: &Venture,
    repo: &Repo,
    own: Option<&Session>,
) -> Result<Vec<Session>, Fault> {
    let filter = SessionFilter {
        venture: Some(venture.clone()),
        repo: Some(repo.clone()),
        alive_since: Some(context.settings.liveness.stale_before(context.now)),
        ..SessionFilter::default()
    };
    let found = tx.active_sessions(&filter, Page::first(MAX_OTHERS + 1))?;
    let others = found.into_iter().filter(|session| own.is_none_or(|own| is_other(session, own)));
    Ok(others.take(MAX_OTHERS as usize).collect())
}
