//! `note.list`: notes, newest first.

use baton_core::{NoteKind, Repo, SessionId, Venture};
use baton_store::NoteFilter;

use super::view::NoteView;
use crate::page::{Pagination, RequestedPage};
use crate::prelude::*;

/// Filters and page.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListNotes {
    /// Filter by venture. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
    /// Filter by repository, as owner/name.
    pub repo: Option<Repo>,
    /// Filter by session id.
    pub session_id: Option<SessionId>,
    /// Filter by kind: `decision`, `rejected`, `gotcha`, `todo` or `fact`.
    pub kind: Option<NoteKind>,
    /// Maximum number of notes, 1 to 200. Defaults to 50.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// `next_cursor` of the previous page.
    pub cursor: Option<String>,
}

/// One page of notes, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListNotesOutput {
    /// Notes that match, newest first.
    pub notes: Vec<NoteView>,
    /// Cursor of the next page.
    pub pagination: Pagination,
}

impl Operation<OnStore> for ListNotes {
    const NAME: &'static str = "note.list";
    const SUMMARY: &'static str = "List notes of agents, newest first, by repository, session or kind: decisions, rejected approaches, gotchas.";
    const EFFECT: Effect = Effect::Read;
    const AFTER_OUTBOX: bool = true;
    type Output = ListNotesOutput;
    params_and!(RequestedPage, |params| {
        RequestedPage::of("notes", 50, params.limit, params.cursor.as_deref())
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, requested) = input;
        let filter = NoteFilter {
            ventures: context.readable_ventures(params.venture.as_ref())?,
            repo: params.repo.clone(),
            session_id: params.session_id,
            kind: params.kind,
            file: None,
        };
        let mut found = tx.notes(&filter, requested.rows())?;
        let pagination = requested.cut(&mut found, |note| note.id.ulid());
        Ok(ListNotesOutput { notes: found.into_iter().map(Into::into).collect(), pagination })
    }
}
