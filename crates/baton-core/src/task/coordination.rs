//! Where each role stands, and who may do what when.
//!
//! One role holds the task at a time. A role may take it when the roles before it are done; a role that is done, or
//! blocked, may take it again, and then those after it have to look again. What a role took over is verified when it
//! takes it: while it holds the task the tree is its own.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::context::{QaResults, TaskContext};
use super::name::Role;
use super::scope::counted;
use super::snapshot::{SnapshotRef, WorktreeSnapshot};
use crate::error::{ErrorCode, Fault};
use crate::time::Timestamp;

/// Status of a role.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RoleStatus {
    /// The role has not started or must run again.
    #[default]
    Pending,
    /// The role holds the task.
    InProgress,
    /// The role is done.
    Done,
    /// The role reported a blocking finding.
    Blocked,
}

impl RoleStatus {
    /// Returns the wire name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Done => "done",
            Self::Blocked => "blocked",
        }
    }
}

impl std::fmt::Display for RoleStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// State of one role.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RoleState {
    /// Status of the role.
    pub status: RoleStatus,
    /// Time when the role last acquired the task.
    pub started_at: Option<Timestamp>,
    /// Time when the role finished, or null.
    pub completed_at: Option<Timestamp>,
    /// Number of times the role acquired the task.
    pub rounds: u64,
    /// Number of snapshots when the role acquired the task.
    pub snapshots_before: u64,
    /// Snapshot that the role started from, or null.
    #[serde(default)]
    pub taken_over: Option<TakenOver>,
    /// Path of the QA log.
    pub qa_log_path: Option<String>,
    /// Last QA result.
    pub qa_results: Option<QaResults>,
    /// Session that worked in this role.
    pub session_id: Option<String>,
    /// Open blocking findings.
    pub blocking_findings: Vec<String>,
    /// Resolved blocking findings.
    pub resolved_findings: Vec<String>,
    /// Last snapshot of the role.
    pub worktree_snapshot: Option<WorktreeSnapshot>,
    /// Number of open drifts. An open drift blocks all roles.
    pub drift_budget: u64,
    /// Actor that last worked in this role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actor: Option<String>,
}

/// Snapshot that a role started from. Its incremental diff starts there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TakenOver {
    /// Number of the snapshot.
    pub sequence: u64,
    /// Role that recorded the snapshot.
    pub agent: Role,
    /// Internal data for comparing the tree with another.
    pub record: Value,
}

/// Precondition for acquiring the task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acquisition {
    /// The role already holds the task.
    Held,
    /// There is no snapshot to verify.
    Fresh,
    /// The working tree must match this snapshot.
    Verify(SnapshotRef),
}

impl TaskContext {
    /// Finds a role of the pipeline.
    ///
    /// # Errors
    ///
    /// `invalid_request` naming the roles that there are.
    pub fn role(&self, role: &Role) -> Result<&RoleState, Fault> {
        self.coordination.get(role).ok_or_else(|| self.unknown_role(role))
    }

    /// Finds a role of the pipeline, to change it.
    ///
    /// # Errors
    ///
    /// As [`role`](Self::role).
    pub fn role_mut(&mut self, role: &Role) -> Result<&mut RoleState, Fault> {
        if !self.coordination.contains_key(role) {
            return Err(self.unknown_role(role));
        }
        Ok(self.coordination.entry(role.clone()).or_default())
    }

    fn unknown_role(&self, role: &Role) -> Fault {
        let roles: Vec<&str> = self.pipeline.iter().map(Role::as_str).collect();
        Fault::invalid("agent", format!("{} has no role {role}; it has {}", self.task_id, roles.join(", ")))
    }

    /// Gives the role that holds the task.
    pub fn holder(&self) -> Option<&Role> {
        self.pipeline.iter().find(|role| {
            self.coordination.get(*role).is_some_and(|state| state.status == RoleStatus::InProgress)
        })
    }

    /// Gives the newest snapshot: the state to go on from.
    pub fn latest_snapshot(&self) -> Option<&SnapshotRef> {
        self.snapshots.last()
    }

    /// Gives the commit that HEAD should be at: where the newest snapshot was taken, or where the task began.
    pub fn expected_head(&self) -> Option<&String> {
        self.latest_snapshot().map_or(self.git.head.as_ref(), |snapshot| snapshot.head.as_ref())
    }

    /// Finds the whole record of a snapshot; `None` if only its number is kept.
    pub fn whole_snapshot(&self, reference: &SnapshotRef) -> Option<&WorktreeSnapshot> {
        let of_role = self.coordination.get(&reference.agent)?.worktree_snapshot.as_ref();
        of_role.into_iter().chain(&self.resolution).find(|whole| whole.sequence == reference.sequence)
    }

    /// Finds the snapshot that the tree must equal after a role's work: its last one, or the resolution of a drift from
    /// it.
    pub fn expected_snapshot(&self, role: &Role) -> Option<&WorktreeSnapshot> {
        let own = self.coordination.get(role)?.worktree_snapshot.as_ref();
        let resolved = self.latest_snapshot().filter(|latest| latest.agent == *role);
        resolved.and_then(|latest| self.whole_snapshot(latest)).or(own)
    }

    /// Gives the newest snapshot as a role would take it over; none when there is none, or only its number is known.
    pub fn newest_snapshot(&self) -> Option<TakenOver> {
        let latest = self.latest_snapshot()?;
        self.whole_snapshot(latest).map(|whole| TakenOver {
            sequence: latest.sequence,
            agent: latest.agent.clone(),
            record: whole.record.clone(),
        })
    }

    /// Refuses to go on while a drift is open.
    ///
    /// # Errors
    ///
    /// `task_blocked` saying how to settle it.
    pub fn require_no_drift(&self) -> Result<(), Fault> {
        let open = self.drift.open();
        if open == 0 {
            return Ok(());
        }
        let id = &self.task_id;
        let events: Vec<_> = self.drift.unresolved().collect();
        Err(Fault::new(
            ErrorCode::TaskBlocked,
            format!("{id} is blocked: {}", counted(open, "unresolved working-tree drift")),
        )
        .hint(format!(
            "show it with baton task get-diff {id} --type drift --content; then keep it with baton task resolve-drift {id} \
             --note TEXT, or undo it with baton task resolve-drift {id} --restore-all --note TEXT"
        ))
        .details(json!({ "drift_budget": open, "drift": events })))
    }

    /// Decides whether a role may take the task now, and what must be verified first.
    ///
    /// # Errors
    ///
    /// `task_conflict` while another holds it or one before is not done, `task_blocked` while a drift is open or one
    /// before is blocked.
    pub fn acquisition(&self, role: &Role) -> Result<Acquisition, Fault> {
        let state = self.role(role)?;
        self.require_no_drift()?;
        if state.status == RoleStatus::InProgress {
            return Ok(Acquisition::Held);
        }
        if let Some(holder) = self.holder() {
            return Err(Fault::new(ErrorCode::TaskConflict, format!("{holder} holds {}", self.task_id)).hint(format!(
                "wait until it is done, or give it back: baton task update-agent {} --agent {holder} --status pending",
                self.task_id
            )));
        }
        self.require_turn(role)?;
        Ok(self
            .latest_snapshot()
            .map_or(Acquisition::Fresh, |snapshot| Acquisition::Verify(snapshot.clone())))
    }

    /// Every role before this one must be done.
    fn require_turn(&self, role: &Role) -> Result<(), Fault> {
        for before in self.pipeline.iter().take_while(|other| *other != role) {
            let Some(state) = self.coordination.get(before) else { continue };
            match state.status {
                RoleStatus::Done => {}
                RoleStatus::Blocked => {
                    return Err(Fault::new(
                        ErrorCode::TaskBlocked,
                        format!(
                            "{} is blocked by {before}: {}",
                            self.task_id,
                            state.blocking_findings.join("; ")
                        ),
                    )
                    .hint(format!("{before} must be done before {role} begins"))
                    .details(json!({ "agent": before, "blocking_findings": state.blocking_findings })));
                }
                RoleStatus::Pending | RoleStatus::InProgress => {
                    return Err(Fault::new(
                        ErrorCode::TaskConflict,
                        format!("it is not the turn of {role}: {before} is {}", state.status),
                    )
                    .hint(format!("{before} must be done before {role} begins")));
                }
            }
        }
        Ok(())
    }

    /// Gives the task to a role. What was approved after it has to be approved again.
    ///
    /// # Errors
    ///
    /// `invalid_request` for an unknown role.
    pub fn acquire(&mut self, role: &Role, now: Timestamp) -> Result<(), Fault> {
        let snapshots_before = self.snapshots.len() as u64;
        let taken_over = self.newest_snapshot();
        let state = self.role_mut(role)?;
        if state.status == RoleStatus::InProgress {
            return Ok(());
        }
        state.status = RoleStatus::InProgress;
        state.started_at = Some(now);
        state.completed_at = None;
        state.rounds += 1;
        state.snapshots_before = snapshots_before;
        state.taken_over = taken_over;
        self.last_holder = Some(role.clone());
        let after: Vec<Role> =
            self.pipeline.iter().skip_while(|other| *other != role).skip(1).cloned().collect();
        for later in after {
            let state = self.role_mut(&later)?;
            if state.status == RoleStatus::Done {
                state.status = RoleStatus::Pending;
                state.completed_at = None;
            }
        }
        Ok(())
    }

    /// Tells whether a role may begin without saying so: it is the first, and nobody worked yet.
    pub fn may_begin_silently(&self, role: &Role) -> bool {
        self.pipeline.first() == Some(role) && self.last_holder.is_none() && self.snapshots.is_empty()
    }

    /// Refuses what only the role that holds the task may do.
    ///
    /// # Errors
    ///
    /// `task_conflict` saying who holds it.
    pub fn require_holder(&self, role: &Role) -> Result<(), Fault> {
        let state = self.role(role)?;
        if state.status == RoleStatus::InProgress {
            return Ok(());
        }
        let held = self.holder().map_or_else(|| "nobody does".into(), |holder| format!("{holder} does"));
        let message = format!("{role} does not hold {}: it is {}, {held}", self.task_id, state.status);
        Err(Fault::new(ErrorCode::TaskConflict, message).hint(format!(
            "take it first: baton task update-agent {} --agent {role} --status in_progress",
            self.task_id
        )))
    }

    /// Marks the role that holds the task as done. What blocked it is dealt with.
    ///
    /// # Errors
    ///
    /// As [`require_holder`](Self::require_holder).
    pub fn finish(&mut self, role: &Role, now: Timestamp) -> Result<(), Fault> {
        if self.role(role)?.status == RoleStatus::Done {
            return Ok(());
        }
        self.require_holder(role)?;
        let state = self.role_mut(role)?;
        state.status = RoleStatus::Done;
        state.completed_at = Some(now);
        let dealt_with = std::mem::take(&mut state.blocking_findings);
        state.resolved_findings.extend(dealt_with);
        Ok(())
    }

    /// Gives the task back without being done. A role that is blocked takes its findings back with that.
    ///
    /// # Errors
    ///
    /// `invalid_request` for an unknown role, `task_conflict` for one that is done.
    pub fn give_back(&mut self, role: &Role) -> Result<(), Fault> {
        let id = self.task_id.clone();
        let state = self.role_mut(role)?;
        if state.status == RoleStatus::Done {
            let message = format!("{role} is done with {id} and has nothing to give back");
            return Err(Fault::new(ErrorCode::TaskConflict, message).hint(format!(
                "if it must work again: baton task update-agent {id} --agent {role} --status in_progress"
            )));
        }
        state.status = RoleStatus::Pending;
        state.completed_at = None;
        let withdrawn = std::mem::take(&mut state.blocking_findings);
        state.resolved_findings.extend(withdrawn);
        Ok(())
    }

    /// Refuses a session other than the one that holds the task in this role. Who names none, then or now, may be the
    /// same.
    ///
    /// # Errors
    ///
    /// `task_conflict` naming the session that holds it.
    pub fn require_session(&self, role: &Role, session: Option<&str>) -> Result<(), Fault> {
        let state = self.role(role)?;
        let (Some(session), Some(holder)) = (session, state.session_id.as_deref()) else { return Ok(()) };
        if state.status != RoleStatus::InProgress || session == holder {
            return Ok(());
        }
        let id = &self.task_id;
        let since = state.started_at.map(|at| format!(" since {at}")).unwrap_or_default();
        let message = format!("the session {holder} holds {id} as {role}{since}");
        Err(Fault::new(ErrorCode::TaskConflict, message)
            .hint(format!(
                "wait until it is done; if it is gone, give the task back first: baton task update-agent {id} --agent {role} --status pending"
            ))
            .details(json!({ "agent": role, "session_id": holder, "started_at": state.started_at })))
    }

    /// Adds a finding that must be dealt with, and takes the task from the role. The same finding counts once.
    ///
    /// # Errors
    ///
    /// `invalid_request` for an unknown role.
    pub fn block(&mut self, role: &Role, finding: Option<&str>) -> Result<(), Fault> {
        let state = self.role_mut(role)?;
        if let Some(finding) = finding
            && !state.blocking_findings.iter().any(|known| known == finding)
        {
            state.blocking_findings.push(finding.to_owned());
        }
        state.status = RoleStatus::Blocked;
        state.completed_at = None;
        Ok(())
    }

    /// Says that a role left no snapshot, and what to do about it.
    pub fn no_snapshot(&self, role: &Role) -> Fault {
        let id = &self.task_id;
        let fault = Fault::new(ErrorCode::NotFound, format!("no snapshot found for {role} of {id}"));
        fault.hint(if self.holder() == Some(role) {
            format!("take one with baton task snapshot-worktree {id} --agent {role} --actor NAME")
        } else {
            format!("{role} has left none; baton task get-context {id} shows who has")
        })
    }

    /// Returns true if the role took a snapshot since it took the task.
    pub fn has_left_snapshot(&self, role: &Role) -> bool {
        let before = self.coordination.get(role).map_or(0, |state| state.snapshots_before);
        self.snapshots.iter().any(|snapshot| snapshot.agent == *role && snapshot.sequence > before)
    }

    /// Returns true if the role recorded a QA result since it took the task.
    pub fn has_recorded_qa(&self, role: &Role) -> bool {
        let Some(state) = self.coordination.get(role) else { return false };
        let recorded = state.qa_results.as_ref().and_then(|results| results.recorded_at);
        recorded.is_some_and(|at| state.started_at.is_none_or(|started| at >= started))
    }

    /// Refuses what the role that holds the task may do, and takes the task for the first role if no role worked yet.
    ///
    /// # Errors
    ///
    /// As [`require_holder`](Self::require_holder).
    pub fn hold(&mut self, role: &Role, now: Timestamp) -> Result<(), Fault> {
        if self.may_begin_silently(role) && self.role(role)?.status == RoleStatus::Pending {
            return self.acquire(role, now);
        }
        self.require_holder(role)
    }

    /// Names the command that continues the task.
    pub fn next_command(&self) -> String {
        let id = &self.task_id;
        let take = |role: &Role| format!("baton task update-agent {id} --agent {role} --status in_progress");
        if self.drift.open() > 0 {
            return format!("baton task get-diff {id} --type drift --content");
        }
        if let Some(role) = self.holder() {
            let checks = !self.immutable.validation_baseline.commands.is_empty();
            return if self.has_left_snapshot(role) {
                format!("baton task update-agent {id} --agent {role} --status done")
            } else if checks && !self.has_recorded_qa(role) {
                format!("baton task run-qa {id} --agent {role}")
            } else {
                format!("baton task snapshot-worktree {id} --agent {role}")
            };
        }
        let status = |role: &Role| self.coordination.get(role).map(|state| state.status);
        let Some(at) = self.pipeline.iter().position(|role| status(role) != Some(RoleStatus::Done)) else {
            return format!("baton task complete {id}");
        };
        let role = &self.pipeline[at];
        // A finding is for the role before, unless that role has dealt with it.
        let before = at.checked_sub(1).map(|before| &self.pipeline[before]);
        match before {
            Some(before)
                if status(role) == Some(RoleStatus::Blocked) && self.last_holder.as_ref() != Some(before) =>
            {
                take(before)
            }
            _ => take(role),
        }
    }

    /// Counts the open drifts at every role.
    pub fn count_drift(&mut self) {
        let open = self.drift.open();
        self.coordination.values_mut().for_each(|state| state.drift_budget = open);
    }

    /// Refuses to complete a task that is not.
    ///
    /// # Errors
    ///
    /// `task_blocked` while a drift is open or a role is blocked, `task_conflict` while one is not done.
    pub fn require_complete(&self) -> Result<(), Fault> {
        self.require_no_drift()?;
        for role in &self.pipeline {
            let state = self.role(role)?;
            let (code, why) = match state.status {
                RoleStatus::Done => continue,
                RoleStatus::Blocked => (ErrorCode::TaskBlocked, state.blocking_findings.join("; ")),
                RoleStatus::Pending | RoleStatus::InProgress => (ErrorCode::TaskConflict, "not done".into()),
            };
            return Err(Fault::new(
                code,
                format!("{} is not complete: {role} is {}: {why}", self.task_id, state.status),
            )
            .hint("every role must be done; add --force to complete it all the same"));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "coordination_tests.rs"]
mod tests;
