//! `task.update_agent`

use baton_core::task::{Role, TaskId};
use baton_core::{ClientSessionId, ErrorCode, Fault, counted};
use baton_qa::QaStatus;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::archive;
use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::gather::{stale_standards, task_file_is_unchanged};
use crate::named_file::read_in_checkout;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::rules::{Acquisition, RoleNote, RoleState, RoleStatus, TaskContext};
use crate::unsaved::{describe_unsaved, require_saved, warn_of_unsaved};
use crate::verification::verify;
use crate::working_tree::Reading;

/// Sets the status of a role. Acquiring a task verifies the working tree.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UpdateAgent {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role, for example `reviewer`.
    pub agent: Role,
    /// New status: `in_progress` acquires the task, `done` finishes the role, `pending` releases the task, `blocked`
    /// stops a role that has open findings.
    pub status: RoleStatus,
    /// Path of the QA log, relative to the root of the checkout, for example `qa.log`.
    pub qa_log: Option<String>,
    /// Id of the session that works in this role (`sess_…`).
    pub session_id: Option<ClientSessionId>,
    /// With `done`: finish without a snapshot, for example if the role changed nothing. The next role is verified
    /// against the last existing snapshot.
    #[serde(default)]
    pub without_snapshot: bool,
    /// With `done`: finish the validator without a QA result.
    #[serde(default)]
    pub without_qa: bool,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Store the text even if it appears to contain a secret (recorded in the audit log). Defaults to false.
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.update_agent`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct UpdateAgentOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Role in the task, for example `implementer`.
    pub agent: Role,
    /// State of the role after the call.
    pub state: RoleState,
    /// Number of the snapshot that the tree was verified against; null if no verification was needed.
    pub verified_snapshot: Option<u64>,
    /// Notes of other roles, when the role acquires the task.
    pub notes: Vec<RoleNote>,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for UpdateAgent {
    const NAME: &'static str = "task.update_agent";
    const SUMMARY: &'static str = "Set the status of a role: `in_progress` acquires the task and verifies \
        the working tree, `done` finishes the role, `pending` releases the task, `blocked` stops a role that has open \
        findings. Report a new finding with task_mark_blocked.";
    const EFFECT: Effect = Effect::Write;
    type Output = UpdateAgentOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let log = params
            .qa_log
            .as_deref()
            .map(|path| read_in_checkout(environment.root(), "qa_log", path))
            .transpose()?;
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        draft.context.role(&params.agent)?;
        draft.context.require_no_drift()?;
        let session = params.session_id.as_ref().map(ToString::to_string);
        if matches!(params.status, RoleStatus::InProgress | RoleStatus::Done) {
            draft.context.require_session(&params.agent, session.as_deref())?;
        }
        let verified_snapshot = match params.status {
            RoleStatus::InProgress => match acquire(&mut draft, &params.agent)? {
                AcquireOutcome::Acquired(snapshot) => snapshot,
                AcquireOutcome::Drifted(fault) => {
                    draft.save()?;
                    return Err(*fault);
                }
            },
            RoleStatus::Done => {
                finish(&mut draft, params)?;
                None
            }
            RoleStatus::Pending => {
                warn_of_unsaved(&mut draft, &params.agent)?;
                draft.context.release(&params.agent)?;
                None
            }
            RoleStatus::Blocked => {
                block(&mut draft, &params.agent)?;
                None
            }
        };
        if let Some(file) = log {
            draft.scan().bytes(&file.path, &file.bytes);
            draft.role(&params.agent)?.qa_log_path = Some(file.path);
        }
        if let Some(session) = session {
            draft.scan().value("session_id", &json!(session));
            draft.role(&params.agent)?.session_id = Some(session);
        }
        let state = draft.role(&params.agent)?.clone();
        let (context, warnings) = draft.save()?;
        Ok(UpdateAgentOutput {
            next: match params.status {
                // A role first reads what the others left.
                RoleStatus::InProgress => {
                    format!("baton task get-context {} --role {}", context.task_id, params.agent)
                }
                _ => context.next_command(),
            },
            notes: notes_for_role(&context, &params.agent, params.status),
            task_id: context.task_id,
            agent: params.agent.clone(),
            state,
            verified_snapshot,
            warnings,
        })
    }
}

enum AcquireOutcome {
    /// The role holds the task. Contains the number of the snapshot that the tree was compared with, if there was one.
    Acquired(Option<u64>),
    /// The tree differs from the snapshot. The drift was recorded, and the context must be saved.
    Drifted(Box<Fault>),
}

fn acquire(draft: &mut Draft<'_>, role: &Role) -> Result<AcquireOutcome, Fault> {
    let environment = draft.environment();
    let expected = match draft.context.acquisition(role)? {
        Acquisition::Held => return Ok(AcquireOutcome::Acquired(None)),
        Acquisition::Fresh => None,
        Acquisition::Verify(expected) => Some(expected),
    };
    require_current_standards(environment, &draft.context)?;
    if let Some(expected) = &expected {
        let verified = verify(environment, &draft.context, &expected.agent, Reading::Changed)?;
        if !verified.comparison.matches() {
            verified.record(draft)?;
            return Ok(AcquireOutcome::Drifted(Box::new(verified.fault(&draft.context, true))));
        }
        draft.warnings.extend(verified.comparison.notices.into_iter().map(|notice| notice.message));
    }
    if !task_file_is_unchanged(environment, &draft.context) {
        draft.warnings.push(format!("{} changed after the context was created", draft.context.task_file));
    }
    let others =
        archive::live(environment).into_iter().filter(|other| *other != draft.context.task_id).count() as u64;
    if others > 0 {
        let have = if others == 1 { "has" } else { "have" };
        draft.warnings.push(format!("{} {have} a context in this checkout", counted(others, "other task")));
    }
    draft.context.acquire(role, draft.now)?;
    // A session recorded in an earlier round does not hold the task now.
    draft.context.role_mut(role)?.session_id = None;
    Ok(AcquireOutcome::Acquired(expected.map(|expected| expected.sequence)))
}

/// Returns an error if a cited standard changed, because the role would work with outdated citations.
fn require_current_standards(environment: &TaskEnvironment, context: &TaskContext) -> Result<(), Fault> {
    let stale = stale_standards(environment, &context.immutable);
    if stale.is_empty() {
        return Ok(());
    }
    let message = format!("cited standards changed after the context was created: {}", stale.join("; "));
    Err(Fault::new(ErrorCode::TaskConflict, message)
        .hint(format!(
            "apply the changes with baton task rebuild-context {id}, then acquire the task again; changed files of this \
             checkout are drift as well: resolve it with baton task resolve-drift {id} --note TEXT",
            id = context.task_id
        ))
        .details(json!({ "stale_citations": stale })))
}

/// Returns the notes of other roles if the role acquires the task.
fn notes_for_role(context: &TaskContext, role: &Role, status: RoleStatus) -> Vec<RoleNote> {
    let others = context.notes.iter().filter(|note| note.agent != *role);
    if status == RoleStatus::InProgress { others.cloned().collect() } else { Vec::new() }
}

/// Finishes a role. Unless `without_snapshot` is set, the working tree must equal the newest snapshot.
fn finish(draft: &mut Draft<'_>, params: &UpdateAgent) -> Result<(), Fault> {
    let (role, now, id) = (&params.agent, draft.now, draft.context.task_id.clone());
    if draft.context.role(role)?.status == RoleStatus::Done {
        return Ok(());
    }
    draft.context.hold_or_start(role, now)?;
    if params.without_snapshot {
        warn_of_unsaved(draft, role)?;
    } else {
        require_snapshot(draft, role)?;
    }
    if role.as_str() == "validator" && !params.without_qa && !draft.context.has_recorded_qa(role) {
        let hint = format!(
            "run the QA commands with baton task run-qa {id} --agent {role}; add --without-qa to finish without them"
        );
        let message = format!("cannot finish {role} of {id}: it has recorded no QA result");
        return Err(Fault::new(ErrorCode::TaskConflict, message).hint(hint));
    }
    let results = draft.context.role(role)?.qa_results.as_ref().map(|results| results.status);
    if let Some(status @ (QaStatus::Failed | QaStatus::Unknown)) = results {
        draft.warnings.push(format!("the last QA result of {role} is {status}"));
    }
    draft.context.finish(role, now)
}

/// Returns an error if the tree has changes that are in no snapshot. A role that changed nothing needs no own snapshot.
fn require_snapshot(draft: &mut Draft<'_>, role: &Role) -> Result<(), Fault> {
    let id = draft.context.task_id.clone();
    let take = format!("baton task snapshot-worktree {id} --agent {role}");
    let cannot_finish = |problem: String, hint: String| {
        let message = format!("cannot finish {role} of {id}: {problem}");
        Err(Fault::new(ErrorCode::TaskConflict, message).hint(hint))
    };
    let Some(newest) = draft.context.latest_snapshot().map(|snapshot| snapshot.sequence) else {
        let hint = format!("take one with {take}; add --without-snapshot if {role} changed nothing");
        return cannot_finish("it has recorded no snapshot".into(), hint);
    };
    if let Some(unsaved) = describe_unsaved(draft, role)? {
        return cannot_finish(unsaved, format!("take a snapshot with {take}"));
    }
    if !draft.context.has_recorded_snapshot(role) {
        draft.warnings.push(format!("{role} changed nothing: the task continues from snapshot {newest}"));
    }
    Ok(())
}

fn block(draft: &mut Draft<'_>, role: &Role) -> Result<(), Fault> {
    if draft.context.role(role)?.blocking_findings.is_empty() {
        return Err(Fault::invalid("status", "the status blocked requires a finding").hint(format!(
            "baton task mark-blocked {} --agent {role} --finding TEXT",
            draft.context.task_id
        )));
    }
    require_saved(draft, role)?;
    draft.context.block(role, None)
}
