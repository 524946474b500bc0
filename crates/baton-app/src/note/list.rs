//! `note.list`: notes, newest first.

use std::cmp::Reverse;

use baton_core::{Note, NoteKind, Repo, SessionId, Venture};
use baton_store::NoteFilter;

use super::spooled::spooled_notes;
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
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Input = (NoteFilter, RequestedPage);
    type Output = ListNotesOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        let requested = RequestedPage::of("notes", 50, params.limit, params.cursor.as_deref())?;
        let filter = NoteFilter {
            ventures: context.readable_ventures(params.venture.as_ref())?,
            repo: params.repo,
            session_id: params.session_id,
            kind: params.kind,
            file: None,
        };
        Ok((filter, requested))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (filter, requested) = input;
        let stored = tx.notes(filter, requested.rows())?;
        Ok(page_of(spooled_notes(context), stored, input))
    }

    fn without_store(context: &Context<'_>, input: &Self::Input) -> Option<Result<Self::Output, Fault>> {
        let spooled = spooled_notes(context);
        (!spooled.is_empty()).then(|| Ok(page_of(spooled, Vec::new(), input)))
    }
}

/// Returns one page of notes of the outbox and of the database. A note that was just replayed may be in both.
fn page_of(
    mut found: Vec<Note>,
    stored: Vec<Note>,
    (filter, requested): &(NoteFilter, RequestedPage),
) -> ListNotesOutput {
    let before = requested.rows().before.map(|cursor| cursor.before);
    found.retain(|note| {
        filter.ventures.as_ref().is_none_or(|ventures| ventures.contains(&note.venture))
            && filter.repo.as_ref().is_none_or(|repo| *repo == note.repo)
            && filter.session_id.is_none_or(|session| Some(session) == note.session_id)
            && filter.kind.is_none_or(|kind| kind == note.kind)
            && before.is_none_or(|before| note.id.ulid() < before)
    });
    found.extend(stored);
    found.sort_by_key(|note| Reverse(note.id));
    found.dedup_by_key(|note| note.id);
    let pagination = requested.cut(&mut found, |note| note.id.ulid());
    ListNotesOutput { notes: found.into_iter().map(Into::into).collect(), pagination }
}
