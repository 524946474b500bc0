use baton_core::task::default_pipeline;

use super::*;

pub(crate) fn sample() -> TaskContext {
    let immutable = Immutable {
        task_snapshot: TaskSnapshot {
            title: "Do it".into(),
            priority: Priority::P1,
            area: "backend".parse().unwrap(),
            description: "Well.\n".into(),
            scope_in: vec!["src/x.rs\n".into()],
            scope_out: Vec::new(),
            acceptance_criteria: vec!["It works\n".into()],
        },
        standards_citations: vec![Citation {
            file: "standards/a.md".into(),
            section: "b".into(),
            requirement: "c".into(),
            line_span: Some("L1-L2".into()),
            content_sha: Some("0123456789abcdef".into()),
        }],
        validation_baseline: ValidationBaseline {
            commands: vec!["cargo test".into()],
            commands_from: "task".into(),
            initial_results: QaResults::default(),
        },
        repo_paths: vec!["src/x.rs".into()],
        scope_patterns: vec!["src/x.rs".into()],
    };
    let now = Timestamp::EPOCH;
    TaskContext {
        version: CONTEXT_VERSION,
        task_id: "TASK-1".parse().unwrap(),
        task_file: "tasks/TASK-1.task.yaml".into(),
        created_at: now,
        created_by: "me".into(),
        git: GitBase {
            head: Some("c1".into()),
            branch: Some("main".into()),
            base_commit: Some("c1".into()),
            task_file_sha: Sha256Hash::of(b"task"),
            dirty_at_init: false,
            state_at_init: None,
        },
        pipeline: default_pipeline(),
        immutable_revision: Revision {
            number: 1,
            sha256: immutable.hash().unwrap(),
            created_at: now,
            created_by: "me".into(),
            reason: "init".into(),
        },
        immutable,
        past_revisions: Vec::new(),
        sources: Vec::new(),
        coordination: default_pipeline().into_iter().map(|role| (role, RoleState::default())).collect(),
        last_holder: None,
        snapshots: Vec::new(),
        drift: DriftLog::default(),
        evidence: Vec::new(),
        notes: Vec::new(),
        resolution: None,
        artifact_count: 0,
        audit: Audit {
            updated_at: now,
            updated_by: "me".into(),
            updated_with: "init-context".into(),
            git_head: None,
            update_count: 1,
            forced_secrets: Vec::new(),
            accepted_secrets: Vec::new(),
        },
    }
}

#[test]
fn document_round_trips_in_canonical_form() {
    let context = sample();
    let text = context.to_document().unwrap();
    assert!(text.ends_with("}\n") && text.starts_with("{\"artifact_count\":0,"));
    let read = TaskContext::from_document(text.as_bytes(), "context.json").unwrap();
    assert_eq!(read, context);
    assert_eq!(read.to_document().unwrap(), text);
}

#[test]
fn document_contains_every_specified_field() {
    let value: Value = serde_json::from_str(&sample().to_document().unwrap()).unwrap();
    let paths = [
        "/version",
        "/task_id",
        "/created_at",
        "/created_by",
        "/git/head",
        "/git/task_file_sha",
        "/immutable",
        "/immutable/task_snapshot/title",
        "/immutable/task_snapshot/priority",
        "/immutable/task_snapshot/area",
        "/immutable/task_snapshot/description",
        "/immutable/task_snapshot/scope_in",
        "/immutable/task_snapshot/scope_out",
        "/immutable/task_snapshot/acceptance_criteria",
        "/immutable/standards_citations/0/file",
        "/immutable/standards_citations/0/section",
        "/immutable/standards_citations/0/requirement",
        "/immutable/standards_citations/0/line_span",
        "/immutable/standards_citations/0/content_sha",
        "/immutable/validation_baseline/commands",
        "/immutable/validation_baseline/initial_results/status",
        "/immutable/repo_paths",
        "/coordination/reviewer/status",
        "/coordination/reviewer/completed_at",
        "/coordination/reviewer/qa_log_path",
        "/coordination/reviewer/session_id",
        "/coordination/reviewer/blocking_findings",
        "/coordination/reviewer/worktree_snapshot",
        "/coordination/reviewer/drift_budget",
        "/audit/updated_at",
        "/audit/updated_by",
        "/audit/update_count",
    ];
    for path in paths {
        assert!(value.pointer(path).is_some(), "{path}");
    }
    let snapshot = serde_json::to_value(crate::rules::snapshot::sample()).unwrap();
    let fields = [
        "base_commit",
        "snapshot_time",
        "diff_from_base",
        "diff_sha",
        "status_report",
        "file_metadata",
        "files_changed",
        "diff_stat",
        "scope_hash",
        "diff_from_implementer",
        "incremental_diff_sha",
        "incremental_diff_error",
    ];
    for field in fields {
        assert!(snapshot.get(field).is_some(), "{field}");
    }
    assert_eq!(value["immutable"]["validation_baseline"]["initial_results"]["status"], "pending");
}

#[test]
fn manual_changes_are_detected() {
    let text = sample().to_document().unwrap();
    for (from, to) in
        [("\"Do it\"", "\"Do that\""), ("pending", "done"), ("\"update_count\":1", "\"update_count\":2")]
    {
        assert!(text.contains(from));
        let fault = TaskContext::from_document(text.replacen(from, to, 1).as_bytes(), "x").unwrap_err();
        assert_eq!(fault.code, ErrorCode::TaskCorrupt, "{from}");
        assert!(fault.message.contains("is corrupt"), "{}", fault.message);
    }
    for cut in [0, 1, text.len() / 2, text.len() - 3] {
        let fault = TaskContext::from_document(&text.as_bytes()[..cut], "x").unwrap_err();
        assert_eq!(fault.code, ErrorCode::TaskCorrupt, "{cut}");
    }
}

#[test]
fn replaced_frozen_part_is_detected_despite_a_valid_checksum() {
    let mut context = sample();
    context.immutable.task_snapshot.title = "Other".into();
    let fault = TaskContext::from_document(context.to_document().unwrap().as_bytes(), "x").unwrap_err();
    assert!(fault.message.contains("the immutable block was changed"), "{}", fault.message);
}

#[test]
fn other_versions_are_rejected() {
    let mut context = sample();
    context.version = 2;
    let fault = TaskContext::from_document(context.to_document().unwrap().as_bytes(), "x").unwrap_err();
    assert_eq!(fault.code, ErrorCode::UnsupportedSchemaVersion);
}

#[test]
fn new_revision_keeps_the_previous_one() {
    let mut context = sample();
    let before = context.immutable_revision.clone();
    let mut next = context.immutable.clone();
    next.task_snapshot.title = "Other".into();
    let past = Artifact {
        path: "p".into(),
        sha256: before.sha256,
        stored_sha256: before.sha256,
        size_bytes: 1,
        encoding: crate::rules::snapshot::Encoding::Gzip,
    };
    context.revise(next, past, "rebuild", Timestamp::EPOCH, "me").unwrap();
    assert_eq!((context.immutable_revision.number, &context.past_revisions[0].revision), (2, &before));
    assert!(TaskContext::from_document(context.to_document().unwrap().as_bytes(), "x").is_ok());
    assert_eq!(context.artifacts().len(), 1);
}

#[test]
fn files_that_are_not_a_context_are_corrupt() {
    for text in ["[]", "null", "1", "{}", r#"{"version":"1"}"#, r#"{"version":null}"#] {
        let fault = TaskContext::from_document(text.as_bytes(), "context.json").unwrap_err();
        assert_eq!(fault.code, ErrorCode::TaskCorrupt, "{text}: {}", fault.message);
        assert!(fault.hint.unwrap().contains("purge-context"), "{text}");
    }
}

#[test]
fn document_is_read_by_its_text_or_in_full_with_the_same_result() {
    let context = sample();
    let text = context.to_document().unwrap();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(baton_core::canonicalize(&value).unwrap() + "\n", text, "the document is canonical");
    // Other white space changes the text but not the content.
    let spaced = serde_json::to_string_pretty(&value).unwrap();
    for text in [text.as_str(), &spaced] {
        assert_eq!(TaskContext::from_document(text.as_bytes(), "x").unwrap(), context);
    }
    let mut other = context.clone();
    other.created_by = "text with ,\"checksum\":\" and ,\"immutable\": in it".into();
    let text = other.to_document().unwrap();
    assert_eq!(TaskContext::from_document(text.as_bytes(), "x").unwrap(), other);
}
