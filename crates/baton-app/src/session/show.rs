//! `session.show`: a session with the handoff that ended it and its summary.

use baton_core::SessionId;

use crate::handoff::HandoffSummary;
use crate::prelude::*;
use crate::session::SessionView;
use crate::summary::SummaryView;

/// The session to show.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowSession {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
}

/// A session with its handoff and summary.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ShowSessionOutput {
    /// The full session.
    pub session: SessionView,
    /// Handoff that ended the session, or null.
    pub handoff: Option<HandoffSummary>,
    /// Stored summary of the session, or null.
    pub summary: Option<SummaryView>,
}

impl Operation<OnStore> for ShowSession {
    const NAME: &'static str = "session.show";
    const SUMMARY: &'static str =
        "Show a session in any status, with its summary and the handoff that ended it.";
    const EFFECT: Effect = Effect::Read;
    type Output = ShowSessionOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let session = context.session(tx, params.session_id)?;
        let handoff = tx.ending_handoff(session.id)?;
        let summary = tx.summary(session.id)?;
        Ok(ShowSessionOutput {
            session: session.into(),
            handoff: handoff.map(TryInto::try_into).transpose()?,
            summary: summary.map(Into::into),
        })
    }
}
