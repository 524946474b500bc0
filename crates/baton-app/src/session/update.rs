//! `session.update`: what changed in the middle of a session.

use baton_core::{
    Fault, IssueNumber, Label, SessionFacts, SessionId, Timestamp, merge_patch, require_sound_meta,
};
use baton_store::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::operation::{Context, Effect, KeyUse, Operation, store_fault};

/// Updates a session on its way.
#[derive(Debug)]
pub struct UpdateSession;

/// What changed. What is left out stays.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UpdateSessionParams {
    /// The version of this shape: `1.0`.
    #[serde(default)]
    pub schema_version: Option<String>,
    /// The session.
    pub session_id: SessionId,
    /// The branch.
    #[serde(default)]
    pub branch: Option<Label>,
    /// The commit.
    #[serde(default)]
    pub commit_sha: Option<Label>,
    /// The issue that is worked on.
    #[serde(default)]
    pub issue_number: Option<IssueNumber>,
    /// A JSON merge patch of the session's `meta`: `null` removes a key.
    #[serde(default)]
    pub meta: Option<Map<String, Value>>,
}

/// When it was taken in.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UpdateSessionOutput {
    /// The session.
    pub session_id: SessionId,
    /// When it was updated.
    pub updated_at: Timestamp,
}

impl Operation for UpdateSession {
    const NAME: &'static str = "session.update";
    const SUMMARY: &'static str =
        "Write down where your session stands: branch, commit, issue, anything in meta.";
    const EFFECT: Effect = Effect::Write;
    const KEY: KeyUse = KeyUse::Required;
    type Params = UpdateSessionParams;
    type Output = UpdateSessionOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        params.meta.as_ref().map_or(Ok(()), require_sound_meta)
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let mut session = context.lock_session(tx, params.session_id)?;
        session.resume(
            context.now,
            SessionFacts {
                branch: params.branch.clone().map(Into::into),
                commit_sha: params.commit_sha.clone().map(Into::into),
                issue_number: params.issue_number.map(Into::into),
                ..SessionFacts::default()
            },
        )?;
        if let Some(patch) = &params.meta {
            let meta = session.meta.get_or_insert_default();
            merge_patch(meta, patch);
            require_sound_meta(meta)?;
        }
        tx.update_session(&session).map_err(store_fault)?;
        Ok(UpdateSessionOutput { session_id: session.id, updated_at: context.now })
    }
}
