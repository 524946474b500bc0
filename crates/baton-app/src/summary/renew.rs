//! Recreates the derived texts of a session after some of its records were hidden or deleted.

use baton_core::{Fault, SessionId};
use baton_store::Tx;

use super::automatic::replace_automatic_content;
use super::material::read_summary_input;
use super::summarize::without_model;
use crate::context::Context;

/// Replaces the summary of a session and the automatic content of its handoffs, which may quote the records.
/// If a model wrote the summary, a new one is requested from the worker.
pub(crate) fn renew_session_texts(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: SessionId,
) -> Result<(), Fault> {
    if let Some(before) = tx.summary(session)? {
        tx.delete_summary(session)?;
        let input = read_summary_input(tx, session)?;
        if before.provenance.model.is_some() {
            tx.request_summary(session, context.now, context.now)?;
        } else if input.has_content() {
            tx.keep_summary(session, &without_model(context, &input)?, None)?;
        }
    }
    replace_automatic_content(context.settings, tx, session)
}
