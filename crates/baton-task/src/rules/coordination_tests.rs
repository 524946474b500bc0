use super::*;
use crate::rules::context::tests::sample;
use crate::rules::drift::Resolution;
use crate::rules::drift::tests::found;
use crate::rules::role_state::QaResults;
use crate::rules::snapshot::SnapshotKind;

const NOW: Timestamp = Timestamp::EPOCH;

fn role(name: &str) -> Role {
    name.parse().unwrap()
}

fn snapshot(context: &mut TaskContext, name: &str) {
    let sequence = context.snapshots.len() as u64 + 1;
    context.snapshots.push(SnapshotRef {
        sequence,
        kind: SnapshotKind::Work,
        agent: role(name),
        actor: "me".into(),
        snapshot_time: NOW,
        tree: format!("t{sequence}"),
        head: None,
        diff_from_base: "d".into(),
        diff_from_previous: None,
    });
}

fn work(context: &mut TaskContext, name: &str) {
    let role = role(name);
    context.acquisition(&role).unwrap();
    context.acquire(&role, NOW).unwrap();
    snapshot(context, name);
    context.finish(&role, NOW).unwrap();
}

fn code(result: Result<Acquisition, Fault>) -> ErrorCode {
    result.unwrap_err().code
}

fn statuses(context: &TaskContext) -> Vec<String> {
    context.pipeline.iter().map(|role| context.coordination[role].status.to_string()).collect()
}

#[test]
fn roles_acquire_the_task_in_order() {
    let mut context = sample();
    assert_eq!(context.acquisition(&role("implementer")).unwrap(), Acquisition::Fresh);
    assert_eq!(code(context.acquisition(&role("reviewer"))), ErrorCode::TaskConflict);
    context.acquire(&role("implementer"), NOW).unwrap();
    assert_eq!(context.acquisition(&role("implementer")).unwrap(), Acquisition::Held);
    assert_eq!(code(context.acquisition(&role("validator"))), ErrorCode::TaskConflict);
    snapshot(&mut context, "implementer");
    context.finish(&role("implementer"), NOW).unwrap();
    let Acquisition::Verify(verify) = context.acquisition(&role("reviewer")).unwrap() else { panic!() };
    assert_eq!((verify.sequence, verify.tree.as_str()), (1, "t1"));
    work(&mut context, "reviewer");
    work(&mut context, "validator");
    assert_eq!(statuses(&context), ["done", "done", "done"]);
    assert!(context.require_complete().is_ok());
}

#[test]
fn role_after_one_without_a_snapshot_verifies_the_last_snapshot() {
    let mut context = sample();
    work(&mut context, "implementer");
    context.acquire(&role("reviewer"), NOW).unwrap();
    assert!(!context.has_recorded_snapshot(&role("reviewer")));
    context.finish(&role("reviewer"), NOW).unwrap();
    let Acquisition::Verify(verify) = context.acquisition(&role("validator")).unwrap() else { panic!() };
    assert_eq!(verify.sequence, 1);
}

#[test]
fn only_the_holder_or_the_first_role_may_write() {
    let mut context = sample();
    assert_eq!(context.hold_or_start(&role("reviewer"), NOW).unwrap_err().code, ErrorCode::TaskConflict);
    context.hold_or_start(&role("implementer"), NOW).unwrap();
    assert_eq!(context.holder(), Some(&role("implementer")));
    snapshot(&mut context, "implementer");
    context.finish(&role("implementer"), NOW).unwrap();
    assert_eq!(context.hold_or_start(&role("implementer"), NOW).unwrap_err().code, ErrorCode::TaskConflict);
}

#[test]
fn next_command_follows_the_workflow() {
    let mut context = sample();
    let next = |context: &TaskContext| context.next_command().trim_start_matches("baton task ").to_owned();
    assert_eq!(next(&context), "update-agent TASK-1 --agent implementer --status in_progress");
    context.acquire(&role("implementer"), NOW).unwrap();
    assert_eq!(next(&context), "run-qa TASK-1 --agent implementer");
    for (status, command) in [
        (QaStatus::Failed, "run-qa TASK-1 --agent implementer"),
        (QaStatus::Passed, "snapshot-worktree TASK-1 --agent implementer"),
    ] {
        let results = QaResults { recorded_at: Some(NOW), status, ..QaResults::default() };
        context.role_mut(&role("implementer")).unwrap().qa_results = Some(results);
        assert_eq!(next(&context), command);
    }
    snapshot(&mut context, "implementer");
    assert_eq!(next(&context), "update-agent TASK-1 --agent implementer --status done");
    let later = Timestamp::from_millis(NOW.as_millis() + 1);
    for (status, command) in [
        (QaStatus::Failed, "run-qa TASK-1 --agent implementer"),
        (QaStatus::Passed, "update-agent TASK-1 --agent implementer --status done"),
    ] {
        let results = QaResults { recorded_at: Some(later), status, ..QaResults::default() };
        context.role_mut(&role("implementer")).unwrap().qa_results = Some(results);
        assert_eq!(next(&context), command, "a check after the snapshot");
    }
    context.finish(&role("implementer"), NOW).unwrap();
    assert_eq!(next(&context), "update-agent TASK-1 --agent reviewer --status in_progress");
    context.acquire(&role("reviewer"), NOW).unwrap();
    context.block(&role("reviewer"), Some("no tests")).unwrap();
    assert_eq!(next(&context), "update-agent TASK-1 --agent implementer --status in_progress");
    work(&mut context, "implementer");
    assert_eq!(next(&context), "update-agent TASK-1 --agent reviewer --status in_progress");
    work(&mut context, "reviewer");
    work(&mut context, "validator");
    assert_eq!(next(&context), "complete TASK-1");
}

#[test]
fn blocked_task_returns_to_the_previous_role_and_back() {
    let mut context = sample();
    work(&mut context, "implementer");
    context.acquire(&role("reviewer"), NOW).unwrap();
    context.block(&role("reviewer"), Some("no tests")).unwrap();
    context.block(&role("reviewer"), Some("no tests")).unwrap();
    assert_eq!(context.coordination[&role("reviewer")].blocking_findings, ["no tests"]);
    assert_eq!(code(context.acquisition(&role("validator"))), ErrorCode::TaskBlocked);
    work(&mut context, "implementer");
    assert_eq!(statuses(&context), ["done", "blocked", "pending"]);
    work(&mut context, "reviewer");
    let reviewer = &context.coordination[&role("reviewer")];
    assert_eq!((reviewer.rounds, reviewer.blocking_findings.len()), (2, 0));
    assert_eq!(reviewer.resolved_findings, ["no tests"]);
    work(&mut context, "validator");
    work(&mut context, "implementer");
    assert_eq!(statuses(&context), ["done", "pending", "pending"]);
    assert_eq!(context.require_complete().unwrap_err().code, ErrorCode::TaskConflict);
}

#[test]
fn only_the_holder_can_finish_and_it_can_release_the_task() {
    let mut context = sample();
    assert_eq!(context.finish(&role("implementer"), NOW).unwrap_err().code, ErrorCode::TaskConflict);
    context.acquire(&role("implementer"), NOW).unwrap();
    assert!(context.require_holder(&role("reviewer")).is_err());
    context.release(&role("implementer")).unwrap();
    assert_eq!(context.acquisition(&role("implementer")).unwrap(), Acquisition::Fresh);
    assert_eq!(context.acquire(&role("stranger"), NOW).unwrap_err().code, ErrorCode::InvalidRequest);
}

#[test]
fn blocked_role_can_release_the_task_and_a_done_role_cannot() {
    let mut context = sample();
    work(&mut context, "implementer");
    let fault = context.release(&role("implementer")).unwrap_err();
    assert_eq!((fault.code, fault.hint.is_some()), (ErrorCode::TaskConflict, true));
    context.block(&role("reviewer"), Some("no tests")).unwrap();
    context.release(&role("reviewer")).unwrap();
    let reviewer = context.role(&role("reviewer")).unwrap();
    assert_eq!(reviewer.status, RoleStatus::Pending);
    assert!(reviewer.blocking_findings.is_empty() && reviewer.resolved_findings == ["no tests"]);
}

#[test]
fn only_one_session_holds_a_role() {
    let mut context = sample();
    let implementer = role("implementer");
    context.acquire(&implementer, NOW).unwrap();
    assert!(context.require_session(&implementer, Some("s1")).is_ok(), "the state has no session id");
    context.role_mut(&implementer).unwrap().session_id = Some("s1".into());
    assert!(context.require_session(&implementer, Some("s1")).is_ok());
    assert!(context.require_session(&implementer, None).is_ok());
    let fault = context.require_session(&implementer, Some("s2")).unwrap_err();
    assert!(fault.code == ErrorCode::TaskConflict && fault.message.contains("the session s1 holds"));
    assert!(fault.hint.unwrap().ends_with("--status pending"));
    context.release(&implementer).unwrap();
    assert!(context.require_session(&implementer, Some("s2")).is_ok());
}

#[test]
fn open_drift_blocks_all_roles_until_it_is_resolved() {
    let mut context = sample();
    work(&mut context, "implementer");
    context.drift.record(found("t1", "t9", "me"));
    context.update_drift_budgets();
    assert!(context.coordination.values().all(|state| state.drift_budget == 1));
    for name in ["implementer", "reviewer"] {
        assert_eq!(code(context.acquisition(&role(name))), ErrorCode::TaskBlocked);
    }
    assert_eq!(context.require_complete().unwrap_err().code, ErrorCode::TaskBlocked);
    context.drift.resolve(&Resolution {
        resolved_at: NOW,
        resolved_by: "me".into(),
        note: "n".into(),
        snapshot: 2,
        restored: Vec::new(),
        set_aside: Vec::new(),
    });
    context.update_drift_budgets();
    assert!(context.acquisition(&role("reviewer")).is_ok());
}

#[test]
fn custom_pipelines_follow_the_same_rules() {
    let mut context = sample();
    context.pipeline = vec![role("writer"), role("editor")];
    context.coordination = context.pipeline.iter().map(|role| (role.clone(), RoleState::default())).collect();
    assert!(context.may_start_implicitly(&role("writer")) && !context.may_start_implicitly(&role("editor")));
    work(&mut context, "writer");
    work(&mut context, "editor");
    assert!(context.require_complete().is_ok());
    assert_eq!(code(context.acquisition(&role("reviewer"))), ErrorCode::InvalidRequest);
}
