//! `session.history`: lists sessions in any status.

use baton_core::{Agent, Repo, SessionStatus, Venture};
use baton_store::SessionFilter;

use super::list::meta_size;
use crate::page::{Pagination, RequestedPage};
use crate::prelude::*;
use crate::session::SessionView;

/// Filters and page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionHistory {
    /// Filter by venture. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Filter by agent, for example `claude-1`.
    pub agent: Option<Agent>,
    /// Filter by status: `active`, `ended` or `abandoned`.
    pub status: Option<SessionStatus>,
    /// Maximum number of sessions, 1 to 200. Defaults to 50.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// One page of sessions, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SessionHistoryOutput {
    /// Sessions that match, newest first.
    pub sessions: Vec<SessionView>,
    /// Cursor of the next page.
    pub pagination: Pagination,
}

impl Operation<OnStore> for SessionHistory {
    const NAME: &'static str = "session.history";
    const SUMMARY: &'static str = "List active and ended sessions, newest first. Call it to find an earlier session; \
        turn_list shows what happened in it.";
    const EFFECT: Effect = Effect::Read;
    type Output = SessionHistoryOutput;
    params_and!(RequestedPage, |params| {
        RequestedPage::of("session history", 50, params.limit, params.cursor.as_deref())
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, requested) = input;
        let filter = SessionFilter {
            venture: params.venture.clone(),
            ventures: context.readable_ventures(params.venture.as_ref())?,
            repo: params.repo.clone(),
            agent: params.agent.clone(),
            ..SessionFilter::default()
        };
        let mut found = tx.sessions(params.status, &filter, requested.rows())?;
        let pagination = requested.cut_by_size(&mut found, meta_size, |session| session.id.ulid());
        Ok(SessionHistoryOutput { sessions: found.into_iter().map(Into::into).collect(), pagination })
    }
}
