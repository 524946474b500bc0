//! `session.list`: lists active sessions that are not stale.

use baton_core::{Agent, Repo, Session, TrackFilter, Venture};
use baton_store::SessionFilter;

use crate::page::{Pagination, RequestedPage};
use crate::prelude::*;
use crate::session::SessionView;

/// Filters. At least one of `venture`, `repo` and `agent` is required.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListSessions {
    /// Filter by venture, for example `acme`.
    pub venture: Option<Venture>,
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Number of a track, or `none` for sessions without a track.
    pub track: Option<TrackFilter>,
    /// Filter by agent, for example `claude-1`.
    pub agent: Option<Agent>,
    /// Maximum number of sessions, 1 to 200. Defaults to 100.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// One page of active sessions, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListSessionsOutput {
    /// Active sessions.
    pub sessions: Vec<SessionView>,
    /// Cursor of the next page.
    pub pagination: Pagination,
}

impl Operation<OnStore> for ListSessions {
    const NAME: &'static str = "session.list";
    const SUMMARY: &'static str = "List active sessions, newest first. Call it to see who else works in a \
        repository. Requires venture, repo or agent.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListSessionsOutput;
    params_and!(RequestedPage, |params| {
        let is_named = params.venture.is_some() || params.repo.is_some() || params.agent.is_some();
        let ((), page) = Fault::both(
            Fault::require(is_named, "venture", "at least one of venture, repo and agent is required")
                .map_err(|fault| fault.hint("add a filter, for example venture=local")),
            RequestedPage::of("sessions", 100, params.limit, params.cursor.as_deref()),
        )?;
        Ok(page)
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, requested) = input;
        let filter = SessionFilter {
            venture: params.venture.clone(),
            ventures: context.readable_ventures(params.venture.as_ref())?,
            repo: params.repo.clone(),
            track: params.track,
            agent: params.agent.clone(),
            alive_since: Some(context.settings.liveness.stale_before(context.now)),
        };
        let mut found = tx.active_sessions(&filter, requested.rows())?;
        let pagination = requested.cut_by_size(&mut found, meta_size, |session| session.id.ulid());
        Ok(ListSessionsOutput { sessions: found.into_iter().map(Into::into).collect(), pagination })
    }
}

/// Returns the approximate size of a session in a response. `meta` is included twice, as an object and as text; the
/// other fields are small.
pub(super) fn meta_size(session: &Session) -> usize {
    session.meta.as_ref().map_or(0, |meta| serde_json::to_string(meta).map_or(0, |text| 2 * text.len()))
}
