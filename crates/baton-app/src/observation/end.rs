//! `session-end`: ends the session. What was captured becomes its handoff, or is added to the handoff of the agent.

use baton_core::{EndReason, Fault, Handoff, HandoffAuthor, HandoffDraft, Session};
use baton_store::Tx;
use serde_json::Value;

use super::hook_params::Hook;
use crate::context::Context;
use crate::handoff::new_handoff;
use crate::summary::{add_automatic_content, automatic_content};

/// Ends a session. If the agent wrote a handoff in it, the captured content is added to that handoff. Otherwise it becomes
/// a handoff. Writes none for a session without content, because an empty handoff would become the latest one.
pub(super) fn end(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    mut session: Session,
    params: &Hook,
) -> Result<(), Fault> {
    session.end(context.now, EndReason::Manual)?;
    tx.update_session(&session)?;
    if let Some(mut handoff) = tx.latest_handoff_of(session.id)? {
        add_automatic_content(context.settings, tx, &mut handoff)?;
        tx.update_handoff(&handoff)?;
    } else {
        let Some(mut content) = automatic_content(context.settings, tx, session.id)? else { return Ok(()) };
        content.payload.insert("summary".into(), content.summary.into());
        content.payload.insert("written_by".into(), "session-end hook".into());
        if let Some(reason) = &params.reason {
            let reason: String = reason.chars().filter(|character| !character.is_control()).collect();
            content.payload.insert("reason".into(), Value::from(reason));
        }
        let draft = HandoffDraft::read(content.payload, "")?;
        let handoff = Handoff {
            ends_session: true,
            written_by: HandoffAuthor::Hook,
            incomplete: content.incomplete,
            ..new_handoff(context, tx, &session, draft, None)?
        };
        tx.insert_handoff(&handoff)?;
    }
    // The summary of the whole session is made when all tool uses are processed. It updates the handoff.
    tx.request_summary(session.id, context.now, context.now).map_err(Fault::from)
}
