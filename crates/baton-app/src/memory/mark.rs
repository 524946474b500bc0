//! `memory.reject`, `memory.supersede`, `memory.pin` and `memory.restore`: the mark of an item.

use baton_core::recall::{ItemKind, Mark, MarkKind};

use crate::prelude::*;
use crate::recall::{Item, Loader, MarkView, kind_of, no_item};
use crate::summary::renew_session_texts;

/// The item to replace.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SupersedeParams")]
pub struct SupersedeItem {
    /// Id of the outdated item, for example `note_01J…`.
    pub id: String,
    /// Id of the item that replaces the outdated item, for example `note_01J…`.
    pub by: String,
}

/// The item and its mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MarkOutput {
    /// Id of the item, for example `obs_01J…` or `note_01J…`.
    pub id: String,
    /// Kind of the item, for example `observation`, `handoff` or `note`.
    pub kind: ItemKind,
    /// Title of the item.
    pub title: String,
    /// Mark after the call, or null.
    pub mark: Option<MarkView>,
}

/// Implements an operation that sets or removes the mark of an item and needs nothing but its id.
macro_rules! mark_operation {
    ($operation:ident, $name:literal, $mark:expr, $summary:literal) => {
        /// The item to mark.
        #[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
        #[schemars(rename = "MarkParams")]
        pub struct $operation {
            /// Item id from search, timeline or context, for example `note_01J…` or `turn_42`.
            pub id: String,
        }

        impl Operation<OnStore> for $operation {
            const NAME: &'static str = $name;
            const SUMMARY: &'static str = $summary;
            const EFFECT: Effect = Effect::Write;
            type Output = MarkOutput;
            params_as_input!();

            fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self) -> Result<MarkOutput, Fault> {
                let item = readable_item(context, tx, &params.id)?;
                set_mark(context, tx, item, $mark)
            }
        }
    };
}

mark_operation!(
    RejectItem,
    "memory.reject",
    Some((MarkKind::Rejected, None)),
    "Reject a recorded item that is wrong: search, timeline, lists and context no longer return it. To replace it with a \
     correct item, use memory_supersede."
);
mark_operation!(
    PinItem,
    "memory.pin",
    Some((MarkKind::Pinned, None)),
    "Pin an important item: it comes first in the context of new chats and ranks higher in search."
);
mark_operation!(
    RestoreItem,
    "memory.restore",
    None,
    "Remove the mark of an item that was rejected, superseded or pinned."
);

impl Operation<OnStore> for SupersedeItem {
    const NAME: &'static str = "memory.supersede";
    const SUMMARY: &'static str = "Replace an outdated item with a newer one, for example a note: search, timeline, \
        lists and context no longer return the outdated item.";
    const EFFECT: Effect = Effect::Write;
    type Output = MarkOutput;
    params_as_input!(|params| {
        Fault::require(params.id != params.by, "by", "must not be the item itself")
            .map_err(|fault| fault.hint("give the id of the item that replaces it, or reject the item"))
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let item = readable_item(context, tx, &params.id)?;
        let by = readable_item(context, tx, &params.by)?;
        if by.venture != item.venture {
            return Err(Fault::invalid("by", "must be in the same venture as the item"));
        }
        let mark = tx.marks_of(&[&by.id])?.pop();
        if let Some(mark) = mark.filter(|mark| mark.kind.hides()) {
            return Err(Fault::invalid("by", format!("names an item that is {}", mark.kind.as_str()))
                .hint("give the id of an item that is not rejected or superseded"));
        }
        set_mark(context, tx, item, Some((MarkKind::Superseded, Some(by.id))))
    }
}

/// Finds an item of a venture that the caller may access.
pub(super) fn readable_item(context: &Context<'_>, tx: &mut dyn Tx, id: &str) -> Result<Item, Fault> {
    let found = Loader::default().load(tx, kind_of(id), id)?;
    found.filter(|item| context.actor.may_access(&item.venture)).ok_or_else(|| no_item(id))
}

/// Removes the mark of an item, which may be deleted already.
pub(super) fn remove_mark(context: &Context<'_>, tx: &mut dyn Tx, id: &str) -> Result<(), Fault> {
    match Loader::default().load(tx, kind_of(id), id)? {
        Some(item) => _ = set_mark(context, tx, item, None)?,
        None => _ = tx.delete_mark(id)?,
    }
    Ok(())
}

/// Sets or removes the mark of an item. Texts that quote it are recreated if it becomes hidden or visible.
/// Repeating the call changes nothing.
fn set_mark(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    item: Item,
    mark: Option<(MarkKind, Option<String>)>,
) -> Result<MarkOutput, Fault> {
    let before = tx.marks_of(&[&item.id])?.pop();
    if before.as_ref().map(|before| (before.kind, before.replaced_by.clone())) == mark {
        return Ok(MarkOutput {
            id: item.id,
            kind: item.kind,
            title: item.title,
            mark: before.map(Into::into),
        });
    }
    let after = mark.map(|(kind, replaced_by)| Mark {
        item: item.id.clone(),
        venture: item.venture.clone(),
        repo: item.repo.clone(),
        kind,
        replaced_by,
        created_at: context.now,
        actor_key_id: context.actor.key_id.clone(),
    });
    match &after {
        Some(mark) => tx.put_mark(mark)?,
        None => _ = tx.delete_mark(&item.id)?,
    }
    let hides = |mark: &Option<Mark>| mark.as_ref().is_some_and(|mark| mark.kind.hides());
    if hides(&after) {
        tx.delete_documents(item.kind, std::slice::from_ref(&item.id))?;
    }
    // Also for a hidden item: it may be in the batch that another process indexes now.
    tx.enqueue_for_index(item.kind, &item.id)?;
    if is_quoted(item.kind)
        && hides(&before) != hides(&after)
        && let Some(session) = item.session_id
    {
        renew_session_texts(context, tx, session)?;
    }
    Ok(MarkOutput { id: item.id, kind: item.kind, title: item.title, mark: after.map(Into::into) })
}

/// Returns true if summaries and automatic handoffs quote items of a kind.
pub(super) const fn is_quoted(kind: ItemKind) -> bool {
    matches!(kind, ItemKind::Turn | ItemKind::Observation | ItemKind::Note)
}
