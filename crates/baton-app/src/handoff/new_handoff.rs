//! Creates the handoffs that agents write.

use baton_core::{Fault, Handoff, HandoffAuthor, HandoffDraft, Session};
use baton_store::Tx;

use crate::context::Context;

/// Creates a handoff that the agent of a session wrote, with `ends_session` and `late` set to false. It is linked to the
/// latest checkpoint of the workflow that the session saved to last.
pub(crate) fn new_handoff(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    draft: HandoffDraft,
    schema_version: Option<&str>,
) -> Result<Handoff, Fault> {
    let payload_hash = draft.payload.hash();
    let saved = tx.latest_checkpoint_of(session.id)?;
    let linked = match &saved {
        Some(saved) => tx.latest_checkpoint(&saved.venture, &saved.workflow_id)?,
        None => None,
    };
    Ok(Handoff {
        id: context.handoff_id(tx)?,
        session_id: session.id,
        venture: session.tuple.venture.clone(),
        repo: session.tuple.repo.clone(),
        track: session.tuple.track,
        issue_number: session.facts.issue_number,
        branch: session.facts.branch.clone(),
        commit_sha: session.facts.commit_sha.clone(),
        from_agent: session.tuple.agent.clone(),
        to_agent: draft.to_agent,
        status_label: draft.status_label,
        summary: draft.summary,
        payload_json: draft.payload.into_text(),
        payload_hash,
        schema_version: schema_version.unwrap_or("1.0").to_owned(),
        ends_session: false,
        late: false,
        written_by: HandoffAuthor::Agent,
        checkpoint_id: linked.as_ref().map(|checkpoint| checkpoint.id),
        workflow_id: linked.map(|checkpoint| checkpoint.workflow_id),
        automatic_json: None,
        incomplete: false,
        withdrawn_at: None,
        acknowledged_at: None,
        acknowledged_by: None,
        acknowledged_session_id: None,
        created_at: context.now,
        actor_key_id: context.actor.key_id.clone(),
        creation_correlation_id: context.correlation_id.clone(),
    })
}
