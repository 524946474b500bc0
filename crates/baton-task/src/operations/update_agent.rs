//! `task.update_agent`

use baton_core::task::{Acquisition, Role, RoleState, RoleStatus, TaskContext, TaskId, counted};
use baton_core::{ClientSessionId, ErrorCode, Fault};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::folder::{Draft, Writing};
use crate::gather::{stale, task_file_is_unchanged};
use crate::inside::read_inside;
use crate::operation::{Effect, TaskOperation};
use crate::place::TaskPlace;
use crate::shelf;
use crate::worktree::verify;

/// Says where a role stands. Taking a task verifies that the tree is as it was left.
#[derive(Debug)]
pub struct UpdateAgent;

/// What [`UpdateAgent`] is told.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateAgentParams {
    /// The task, like `TASK-0824`.
    pub task_id: TaskId,
    /// The role, like `reviewer`.
    pub agent: Role,
    /// Where it stands now; `in_progress` takes the task.
    pub status: RoleStatus,
    /// The log of its quality checks, from the root of the checkout.
    #[serde(default)]
    pub qa_log: Option<String>,
    /// The session that works in this role.
    #[serde(default)]
    pub session_id: Option<ClientSessionId>,
    /// Who acts.
    #[serde(default)]
    pub actor: Option<String>,
    /// Write it although it looks like it holds a credential; that is recorded.
    #[serde(default)]
    pub force_secrets: bool,
}

/// What [`UpdateAgent`] answers.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UpdateAgentOutput {
    /// The task.
    pub task_id: TaskId,
    /// The role.
    pub agent: Role,
    /// What is known of it now.
    pub state: RoleState,
    /// The number of the snapshot that the tree was verified against; `null` when nothing had to be.
    pub verified_snapshot: Option<u64>,
    /// What a person should know.
    pub warnings: Vec<String>,
}

impl TaskOperation for UpdateAgent {
    const NAME: &'static str = "task.update_agent";
    const SUMMARY: &'static str = "Take a task (in_progress, which verifies the working tree), finish it (done) or give it back (pending)";
    const EFFECT: Effect = Effect::Write;
    const IDEMPOTENT: bool = true;
    type Params = UpdateAgentParams;
    type Output = UpdateAgentOutput;

    fn run(place: &TaskPlace, params: &UpdateAgentParams) -> Result<UpdateAgentOutput, Fault> {
        let log =
            params.qa_log.as_deref().map(|path| read_inside(place.root(), "qa_log", path)).transpose()?;
        let writing = Writing {
            verb: "update-agent",
            actor: params.actor.as_deref(),
            force_secrets: params.force_secrets,
        };
        let mut draft = Draft::open(place, &params.task_id, &writing)?;
        draft.context.role(&params.agent)?;
        draft.context.require_no_drift()?;
        let session = params.session_id.as_ref().map(ToString::to_string);
        if matches!(params.status, RoleStatus::InProgress | RoleStatus::Done) {
            draft.context.require_session(&params.agent, session.as_deref())?;
        }
        let verified_snapshot = match params.status {
            RoleStatus::InProgress => match acquire(&mut draft, &params.agent)? {
                Taken::Yes(snapshot) => snapshot,
                Taken::Drifted(fault) => {
                    draft.save()?;
                    return Err(*fault);
                }
            },
            RoleStatus::Done => finish(&mut draft, &params.agent).map(|()| None)?,
            RoleStatus::Pending => {
                draft.warn_of_unsaved(&params.agent)?;
                draft.context.give_back(&params.agent).map(|()| None)?
            }
            RoleStatus::Blocked => block(&mut draft, &params.agent).map(|()| None)?,
        };
        if let Some(file) = log {
            draft.scan().bytes(&file.path, &file.bytes);
            draft.context.role_mut(&params.agent)?.qa_log_path = Some(file.path);
        }
        if let Some(session) = session {
            draft.scan().value("session_id", &json!(session));
            draft.context.role_mut(&params.agent)?.session_id = Some(session);
        }
        let (context, warnings) = draft.save()?;
        let state = context.role(&params.agent)?.clone();
        Ok(UpdateAgentOutput {
            task_id: context.task_id,
            agent: params.agent.clone(),
            state,
            verified_snapshot,
            warnings,
        })
    }
}

enum Taken {
    Yes(Option<u64>),
    Drifted(Box<Fault>),
}

fn acquire(draft: &mut Draft<'_>, role: &Role) -> Result<Taken, Fault> {
    let place = draft.place();
    let verified = match draft.context.acquisition(role)? {
        Acquisition::Held => return Ok(Taken::Yes(None)),
        Acquisition::Fresh => None,
        Acquisition::Verify(expected) => {
            require_current_standards(place, &draft.context)?;
            let verified = verify(place, &draft.context, &expected.agent)?;
            if !verified.verdict.matches() {
                let (now, actor) = (draft.now, draft.actor.clone());
                draft.context.drift.record(verified.found(), now, &actor);
                draft.context.count_drift();
                return Ok(Taken::Drifted(Box::new(verified.fault(&draft.context, true))));
            }
            draft.warnings.extend(verified.verdict.notices.into_iter().map(|notice| notice.message));
            Some(expected.sequence)
        }
    };
    if verified.is_none() {
        require_current_standards(place, &draft.context)?;
    }
    if !task_file_is_unchanged(place, &draft.context) {
        draft.warnings.push(format!("{} changed after the context was made", draft.context.task_file));
    }
    let others =
        shelf::live(place).into_iter().filter(|other| *other != draft.context.task_id).count() as u64;
    if others > 0 {
        let have = if others == 1 { "has" } else { "have" };
        draft.warnings.push(format!("{} {have} a context in this checkout", counted(others, "other task")));
    }
    let now = draft.now;
    draft.context.acquire(role, now)?;
    // The session of an earlier round does not hold it now.
    draft.context.role_mut(role)?.session_id = None;
    Ok(Taken::Yes(verified))
}

/// A standard that changed makes the citations wrong: whoever begins must not go by them.
fn require_current_standards(place: &TaskPlace, context: &TaskContext) -> Result<(), Fault> {
    let stale = stale(place, &context.immutable);
    if stale.is_empty() {
        return Ok(());
    }
    let message = format!("cited standards changed after the context was made: {}", stale.join("; "));
    Err(Fault::new(ErrorCode::TaskConflict, message)
        .hint(format!(
            "take them over with baton task rebuild-context {id}, then take the task again; files of this checkout that \
             changed are drift as well: baton task resolve-drift {id} --note TEXT settles that",
            id = context.task_id
        ))
        .details(json!({ "stale_citations": stale })))
}

fn finish(draft: &mut Draft<'_>, role: &Role) -> Result<(), Fault> {
    let now = draft.now;
    if draft.context.may_begin_silently(role) {
        draft.context.acquire(role, now)?;
    }
    let before = draft.context.role(role)?.snapshots_before;
    let is_last = draft.context.pipeline.last() == Some(role);
    if !is_last && draft.context.snapshots.iter().any(|snapshot| snapshot.sequence > before) {
        draft.warn_of_unsaved(role)?;
    }
    draft.context.finish(role, now)?;
    if !is_last && !draft.context.snapshots.iter().any(|snapshot| snapshot.sequence > before) {
        draft.warnings.push(format!(
            "{role} left no snapshot; the next role cannot begin before baton task snapshot-worktree {} --agent {role}",
            draft.context.task_id
        ));
    }
    Ok(())
}

fn block(draft: &mut Draft<'_>, role: &Role) -> Result<(), Fault> {
    if draft.context.role(role)?.blocking_findings.is_empty() {
        return Err(Fault::invalid("status", "blocked needs a finding").hint(format!(
            "baton task mark-blocked {} --agent {role} --finding TEXT",
            draft.context.task_id
        )));
    }
    draft.warn_of_unsaved(role)?;
    draft.context.block(role, None)
}
