//! `session.list`: who is at work.

use baton_core::{Agent, Fault, Repo, Session, SessionId, Track, Venture, VentureScope};
use baton_store::{Page, SessionFilter, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Context, Effect, Operation, store_fault};
use crate::page::{Pagination, cursor_of, fitting, limit_of, paginate};
use crate::session::SessionView;

const LIST: &str = "sessions";
const DEFAULT_LIMIT: u32 = 100;

/// Lists the sessions that are alive.
#[derive(Debug)]
pub struct ListSessions;

/// Which sessions. At least one of venture, repo and agent is needed.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsParams {
    /// Of this undertaking.
    #[serde(default)]
    pub venture: Option<Venture>,
    /// In this repository.
    #[serde(default)]
    pub repo: Option<Repo>,
    /// In this lane.
    #[serde(default)]
    pub track: Option<Track>,
    /// Of this agent.
    #[serde(default)]
    pub agent: Option<Agent>,
    /// How many at the most: 1 to 200, 100 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// A page of sessions, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsOutput {
    /// The sessions.
    pub sessions: Vec<SessionView>,
    /// Where the list goes on.
    pub pagination: Pagination,
}

impl Operation for ListSessions {
    const NAME: &'static str = "session.list";
    const SUMMARY: &'static str = "List the sessions that are alive: who works on what right now.";
    const EFFECT: Effect = Effect::Read;
    type Params = ListSessionsParams;
    type Output = ListSessionsOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        if params.venture.is_none() && params.repo.is_none() && params.agent.is_none() {
            return Err(Fault::invalid("venture", "at least one of venture, repo and agent is needed")
                .hint("name what you want to see, for example venture=local"));
        }
        limit_of(params.limit, DEFAULT_LIMIT)?;
        cursor_of(params.cursor.as_deref(), LIST)?;
        Ok(())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        if let Some(venture) = &params.venture {
            context.actor.require_venture(venture)?;
        }
        let filter = SessionFilter {
            venture: params.venture.clone(),
            ventures: match &context.actor.ventures {
                VentureScope::All => None,
                VentureScope::Only(ventures) => Some(ventures.clone()),
            },
            repo: params.repo.clone(),
            track: params.track,
            agent: params.agent.clone(),
            alive_since: Some(context.settings.liveness.stale_before(context.now)),
        };
        let limit = limit_of(params.limit, DEFAULT_LIMIT)?;
        let page = Page { before: cursor_of(params.cursor.as_deref(), LIST)?, limit: limit + 1 };
        let mut found = tx.active_sessions(&filter, page).map_err(store_fault)?;
        let limit = fitting(&found, limit, meta_size);
        let pagination = paginate(&mut found, limit, LIST, |session| SessionId::ulid(session.id));
        Ok(ListSessionsOutput { sessions: found.into_iter().map(Into::into).collect(), pagination })
    }
}

/// About how much of an answer a session takes: all but `meta` is small.
fn meta_size(session: &Session) -> usize {
    session.meta.as_ref().map_or(0, |meta| serde_json::to_string(meta).map_or(0, |text| text.len()))
}
