//! `session.update`: changes the branch, commit, issue, repository or meta of an active session.

use baton_core::{
    IssueNumber, Label, Repo, Session, SessionFacts, SessionId, SessionTuple, Timestamp, merge_patch,
    require_valid_meta,
};
use serde_json::{Map, Value};

use crate::prelude::*;

/// Fields to change. Omitted fields keep their value.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "UpdateSessionParams")]
pub struct UpdateSession {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Session id returned by `session_start`.
    pub session_id: SessionId,
    /// Current branch, for example `feature/logout`.
    pub branch: Option<Label>,
    /// Current commit, for example `3f2a9c1`.
    pub commit_sha: Option<Label>,
    /// Number of the issue you work on, for example 185.
    pub issue_number: Option<IssueNumber>,
    /// Corrected repository as owner/name, for example acme/webshop. The handoffs and observations of the
    /// session move to it.
    pub repo: Option<Repo>,
    /// JSON merge patch for the session's `meta`. `null` removes a key.
    pub meta: Option<Map<String, Value>>,
}

/// Time of the update.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UpdateSessionOutput {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// Time when the session was updated.
    pub updated_at: Timestamp,
}

impl Operation<OnStore> for UpdateSession {
    const NAME: &'static str = "session.update";
    const SUMMARY: &'static str = "Update the branch, commit, issue, repository or meta of your session. It also counts as a heartbeat.";
    const EFFECT: Effect = Effect::Write;
    const KEY: KeyUse = KeyUse::Required;
    type Output = UpdateSessionOutput;
    params_as_input!(|params| params.meta.as_ref().map_or(Ok(()), require_valid_meta));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
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
            require_valid_meta(meta)?;
        }
        tx.update_session(&session)?;
        if let Some(repo) = params.repo.as_ref().filter(|repo| **repo != session.tuple.repo) {
            correct_repo(tx, &session, repo)?;
        }
        Ok(UpdateSessionOutput { session_id: session.id, updated_at: context.now })
    }
}

/// Changes the repository of a session, unless the agent has another active session there.
fn correct_repo(tx: &mut dyn Tx, session: &Session, repo: &Repo) -> Result<(), Fault> {
    let tuple = SessionTuple { repo: repo.clone(), ..session.tuple.clone() };
    if let Some(other) = tx.lock_active_sessions(&tuple)?.first() {
        let problem = format!("{} is already active in {repo} for the same agent", other.id);
        return Err(Fault::invalid("repo", problem).hint("end that session first, or continue it"));
    }
    tx.correct_session_repo(session.id, repo).map_err(Fault::from)
}
