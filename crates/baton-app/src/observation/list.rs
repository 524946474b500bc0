//! `observation.list`: lists observations, newest first.

use baton_core::{Repo, SessionId, Venture};
use baton_store::ObservationFilter;

use super::view::ObservationView;
use crate::page::{Pagination, RequestedPage};
use crate::prelude::*;

/// Filters and page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListObservations {
    /// Filter by venture. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Filter by session id.
    pub session_id: Option<SessionId>,
    /// Filter by tool, for example `Bash` or `Edit`.
    pub tool: Option<String>,
    /// Filter by file: a path or the end of a path, for example `store.rs` or `src/store.rs`.
    pub file: Option<String>,
    /// Maximum number of observations, 1 to 200. Defaults to 50.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// One page of observations, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListObservationsOutput {
    /// Observations that match, newest first.
    pub observations: Vec<ObservationView>,
    /// Cursor of the next page.
    pub pagination: Pagination,
}

impl Operation<OnStore> for ListObservations {
    const NAME: &'static str = "observation.list";
    const SUMMARY: &'static str = "List observations of tool uses, newest first, by session, repository, \
        file or tool. Call it to learn what was already done or found.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListObservationsOutput;
    params_and!(RequestedPage, |params| {
        RequestedPage::of("observations", 50, params.limit, params.cursor.as_deref())
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, requested) = input;
        let filter = ObservationFilter {
            ventures: context.readable_ventures(params.venture.as_ref())?,
            repo: params.repo.clone(),
            session_id: params.session_id,
            tool_name: params.tool.clone(),
            file: params.file.as_ref().map(|file| file.trim_start_matches("./").to_owned()),
        };
        let mut found = tx.observations(&filter, requested.rows())?;
        let pagination = requested.cut(&mut found, |observation| observation.id.ulid());
        Ok(ListObservationsOutput { observations: found.into_iter().map(Into::into).collect(), pagination })
    }
}
