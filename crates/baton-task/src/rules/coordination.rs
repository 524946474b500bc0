//! Rules for acquiring, finishing and blocking a task.
//!
//! One role holds the task at a time. A role may acquire it when all earlier roles are done. A role that is done or
//! blocked may acquire it again; later roles that were done are then pending again. The working tree is verified
//! against the latest snapshot when a role acquires the task, and not while the role holds it.

use std::collections::BTreeMap;

use baton_core::task::Role;
use baton_core::{ErrorCode, Fault, Timestamp, counted};
use baton_qa::QaStatus;
use serde_json::json;

use super::context::TaskContext;
use super::role_state::{RoleState, RoleStatus, StartSnapshot};
use super::snapshot::{SnapshotRef, WorktreeSnapshot};

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
    /// Returns the state of a role.
    ///
    /// # Errors
    ///
    /// `invalid_request` for an unknown role; the message lists the known ones.
    pub fn role(&self, role: &Role) -> Result<&RoleState, Fault> {
        self.coordination.get(role).ok_or_else(|| self.unknown_role(role))
    }

    /// Returns the mutable state of a role.
    ///
    /// # Errors
    ///
    /// Fails like [`role`](Self::role).
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

    /// Returns the status of every role.
    pub fn statuses(&self) -> BTreeMap<Role, RoleStatus> {
        self.coordination.iter().map(|(role, state)| (role.clone(), state.status)).collect()
    }

    /// Returns the role that holds the task.
    pub fn holder(&self) -> Option<&Role> {
        self.pipeline.iter().find(|role| {
            self.coordination.get(*role).is_some_and(|state| state.status == RoleStatus::InProgress)
        })
    }

    /// Returns the newest snapshot.
    pub fn latest_snapshot(&self) -> Option<&SnapshotRef> {
        self.snapshots.last()
    }

    /// Returns the expected HEAD: the HEAD of the newest snapshot, or of the start of the task.
    pub fn expected_head(&self) -> Option<&String> {
        self.latest_snapshot().map_or(self.git.head.as_ref(), |snapshot| snapshot.head.as_ref())
    }

    /// Returns the full record of a snapshot; `None` if only its reference is stored.
    pub fn full_snapshot(&self, reference: &SnapshotRef) -> Option<&WorktreeSnapshot> {
        let of_role = self.coordination.get(&reference.agent)?.worktree_snapshot.as_ref();
        of_role.into_iter().chain(&self.resolution).find(|whole| whole.sequence == reference.sequence)
    }

    /// Returns the snapshot that the tree must match after a role's work: the last snapshot of the role, or the
    /// resolution of a drift from it.
    pub fn expected_snapshot(&self, role: &Role) -> Option<&WorktreeSnapshot> {
        let own = self.coordination.get(role)?.worktree_snapshot.as_ref();
        let resolved = self.latest_snapshot().filter(|latest| latest.agent == *role);
        resolved.and_then(|latest| self.full_snapshot(latest)).or(own)
    }

    /// Returns the newest snapshot, from which the next role starts; `None` without a snapshot or its full record.
    pub fn start_snapshot(&self) -> Option<StartSnapshot> {
        let latest = self.latest_snapshot()?;
        self.full_snapshot(latest).map(|whole| StartSnapshot {
            sequence: latest.sequence,
            agent: latest.agent.clone(),
            record: whole.record.clone(),
        })
    }

    /// Checks that no drift is open.
    ///
    /// # Errors
    ///
    /// `task_blocked` with instructions for resolving the drift.
    pub fn require_no_drift(&self) -> Result<(), Fault> {
        let open = self.drift.open_count();
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

    /// Decides whether a role may acquire the task, and what must be verified first.
    ///
    /// # Errors
    ///
    /// `task_conflict` while another role holds the task or an earlier role is not done, `task_blocked` while a drift
    /// is open or an earlier role is blocked.
    pub fn acquisition(&self, role: &Role) -> Result<Acquisition, Fault> {
        let state = self.role(role)?;
        self.require_no_drift()?;
        if state.status == RoleStatus::InProgress {
            return Ok(Acquisition::Held);
        }
        if let Some(holder) = self.holder() {
            return Err(Fault::new(ErrorCode::TaskConflict, format!("{holder} holds {}", self.task_id)).hint(format!(
                "wait until it is done, or release the task: baton task update-agent {} --agent {holder} --status pending",
                self.task_id
            )));
        }
        self.require_turn(role)?;
        Ok(self
            .latest_snapshot()
            .map_or(Acquisition::Fresh, |snapshot| Acquisition::Verify(snapshot.clone())))
    }

    /// Checks that all earlier roles are done.
    fn require_turn(&self, role: &Role) -> Result<(), Fault> {
        for before in self.pipeline.iter().take_while(|other| *other != role) {
            let Some(state) = self.coordination.get(before) else { continue };
            let fault = match state.status {
                RoleStatus::Done => continue,
                RoleStatus::Blocked => {
                    let findings = &state.blocking_findings;
                    let message = format!("{} is blocked by {before}: {}", self.task_id, findings.join("; "));
                    Fault::new(ErrorCode::TaskBlocked, message)
                        .details(json!({ "agent": before, "blocking_findings": findings }))
                }
                RoleStatus::Pending | RoleStatus::InProgress => {
                    let message = format!("{role} cannot start: {before} is {}", state.status);
                    Fault::new(ErrorCode::TaskConflict, message)
                }
            };
            return Err(fault.hint(format!("finish the role {before} first")));
        }
        Ok(())
    }

    /// Assigns the task to a role. Later roles that were done become pending.
    ///
    /// # Errors
    ///
    /// `invalid_request` for an unknown role.
    pub fn acquire(&mut self, role: &Role, now: Timestamp) -> Result<(), Fault> {
        let snapshots_before = self.snapshots.len() as u64;
        let taken_over = self.start_snapshot();
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

    /// Returns true if a role may start without acquiring the task: it is the first role, and no role has started.
    pub fn may_start_implicitly(&self, role: &Role) -> bool {
        self.pipeline.first() == Some(role) && self.last_holder.is_none() && self.snapshots.is_empty()
    }

    /// Checks that a role holds the task.
    ///
    /// # Errors
    ///
    /// `task_conflict` that names the role that holds the task.
    pub fn require_holder(&self, role: &Role) -> Result<(), Fault> {
        let state = self.role(role)?;
        if state.status == RoleStatus::InProgress {
            return Ok(());
        }
        let held = self.holder().map_or_else(|| "no role does".into(), |holder| format!("{holder} does"));
        let message = format!("{role} does not hold {}: it is {}, {held}", self.task_id, state.status);
        Err(Fault::new(ErrorCode::TaskConflict, message).hint(format!(
            "acquire it first: baton task update-agent {} --agent {role} --status in_progress",
            self.task_id
        )))
    }

    /// Marks the role that holds the task as done and its blocking findings as resolved.
    ///
    /// # Errors
    ///
    /// Fails like [`require_holder`](Self::require_holder).
    pub fn finish(&mut self, role: &Role, now: Timestamp) -> Result<(), Fault> {
        if self.role(role)?.status == RoleStatus::Done {
            return Ok(());
        }
        self.require_holder(role)?;
        let state = self.role_mut(role)?;
        state.status = RoleStatus::Done;
        state.completed_at = Some(now);
        let resolved = std::mem::take(&mut state.blocking_findings);
        state.resolved_findings.extend(resolved);
        Ok(())
    }

    /// Releases the task without finishing it. Blocking findings of the role become resolved.
    ///
    /// # Errors
    ///
    /// `invalid_request` for an unknown role, `task_conflict` for a role that is done.
    pub fn release(&mut self, role: &Role) -> Result<(), Fault> {
        let id = self.task_id.clone();
        let state = self.role_mut(role)?;
        if state.status == RoleStatus::Done {
            let message = format!("{role} is done with {id} and cannot release it");
            return Err(Fault::new(ErrorCode::TaskConflict, message).hint(format!(
                "acquire the task to work on it again: baton task update-agent {id} --agent {role} --status in_progress"
            )));
        }
        state.status = RoleStatus::Pending;
        state.completed_at = None;
        let resolved = std::mem::take(&mut state.blocking_findings);
        state.resolved_findings.extend(resolved);
        Ok(())
    }

    /// Rejects a session other than the one that holds the task in this role. A missing session id, in the call or in
    /// the state, matches any session.
    ///
    /// # Errors
    ///
    /// `task_conflict` that names the session that holds the task.
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
                "wait until it is done; if it no longer runs, release the task first: baton task update-agent {id} --agent {role} --status pending"
            ))
            .details(json!({ "agent": role, "session_id": holder, "started_at": state.started_at })))
    }

    /// Marks a role as blocked, with a finding. The role no longer holds the task. Duplicate findings are stored once.
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

    /// Returns the error for a role without a snapshot.
    pub fn no_snapshot(&self, role: &Role) -> Fault {
        let id = &self.task_id;
        let fault = Fault::new(ErrorCode::NotFound, format!("no snapshot found for {role} of {id}"));
        fault.hint(if self.holder() == Some(role) {
            format!("take one with baton task snapshot-worktree {id} --agent {role} --actor NAME")
        } else {
            format!("list the snapshots with baton task get-context {id}; {role} has recorded none")
        })
    }

    /// Returns true if the role recorded a snapshot since it acquired the task.
    pub fn has_recorded_snapshot(&self, role: &Role) -> bool {
        let before = self.coordination.get(role).map_or(0, |state| state.snapshots_before);
        self.snapshots.iter().any(|snapshot| snapshot.agent == *role && snapshot.sequence > before)
    }

    /// Returns true if the role recorded a QA result since it acquired the task.
    pub fn has_recorded_qa(&self, role: &Role) -> bool {
        let Some(state) = self.coordination.get(role) else { return false };
        let recorded = state.qa_results.as_ref().and_then(|results| results.recorded_at);
        recorded.is_some_and(|at| state.started_at.is_none_or(|started| at >= started))
    }

    /// Checks that a role holds the task. Acquires the task for the first role if no role has started.
    ///
    /// # Errors
    ///
    /// Fails like [`require_holder`](Self::require_holder).
    pub fn hold_or_start(&mut self, role: &Role, now: Timestamp) -> Result<(), Fault> {
        if self.may_start_implicitly(role) && self.role(role)?.status == RoleStatus::Pending {
            return self.acquire(role, now);
        }
        self.require_holder(role)
    }

    /// Returns the command that continues the task.
    pub fn next_command(&self) -> String {
        let id = &self.task_id;
        let acquire =
            |role: &Role| format!("baton task update-agent {id} --agent {role} --status in_progress");
        if self.drift.open_count() > 0 {
            return format!("baton task get-diff {id} --type drift --content");
        }
        if let Some(role) = self.holder() {
            let checks = !self.immutable.validation_baseline.commands.is_empty();
            let recorded = self.has_recorded_qa(role);
            let results = self.coordination.get(role).and_then(|state| state.qa_results.as_ref());
            let failed_at = results
                .filter(|results| recorded && results.status == QaStatus::Failed)
                .and_then(|results| results.recorded_at);
            let snapshot = self.latest_snapshot().filter(|_| self.has_recorded_snapshot(role));
            // A snapshot after a failed check hands over the failure; a check after the snapshot asks for a fix first.
            let must_check = match snapshot {
                Some(snapshot) => failed_at.is_some_and(|at| at > snapshot.snapshot_time),
                None => failed_at.is_some() || (checks && !recorded),
            };
            return if must_check {
                let command = if checks { "" } else { " -- COMMAND" };
                format!("baton task run-qa {id} --agent {role}{command}")
            } else if snapshot.is_some() {
                format!("baton task update-agent {id} --agent {role} --status done")
            } else {
                format!("baton task snapshot-worktree {id} --agent {role}")
            };
        }
        let status = |role: &Role| self.coordination.get(role).map(|state| state.status);
        let Some(at) = self.pipeline.iter().position(|role| status(role) != Some(RoleStatus::Done)) else {
            return format!("baton task complete {id}");
        };
        let role = &self.pipeline[at];
        // A blocking finding is for the previous role, unless that role has worked on it since.
        let before = at.checked_sub(1).map(|before| &self.pipeline[before]);
        match before {
            Some(before)
                if status(role) == Some(RoleStatus::Blocked) && self.last_holder.as_ref() != Some(before) =>
            {
                acquire(before)
            }
            _ => acquire(role),
        }
    }

    /// Stores the number of open drifts in the state of every role.
    pub fn update_drift_budgets(&mut self) {
        let open = self.drift.open_count();
        self.coordination.values_mut().for_each(|state| state.drift_budget = open);
    }

    /// Checks that all roles are done and no drift is open.
    ///
    /// # Errors
    ///
    /// `task_blocked` while a drift is open or a role is blocked, `task_conflict` while a role is not done.
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
            .hint("finish every role first, or add --force to complete the task anyway"));
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "coordination_tests.rs"]
mod tests;
