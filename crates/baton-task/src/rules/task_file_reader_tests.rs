use super::*;
use serde_json::{Value, json};

fn id() -> TaskId {
    "TASK-1".parse().unwrap()
}

fn node(value: &Value) -> Node {
    match value {
        Value::Null => Node::Null,
        Value::String(text) => Node::Text(text.clone()),
        Value::Bool(_) | Value::Number(_) => Node::Other(value.to_string()),
        Value::Array(items) => Node::List(items.iter().map(node).collect()),
        Value::Object(members) => {
            Node::Map(members.iter().map(|(key, value)| (key.clone(), node(value))).collect())
        }
    }
}

fn read_task_file(file: &Value, id: &TaskId) -> Result<(TaskFile, Vec<String>), &'static str> {
    super::read_task_file(&node(file), id)
}

fn read(extra: Value) -> (TaskFile, Vec<String>) {
    let mut value = json!({ "title": "t", "status": "in_progress", "priority": "P1", "area": "backend",
        "description": "d" });
    baton_core::merge_patch(value.as_object_mut().unwrap(), extra.as_object().unwrap());
    read_task_file(&value, &id()).unwrap()
}

#[test]
fn criteria_may_be_a_mapping_of_lists_and_items_may_contain_colons() {
    let (task, warnings) = read(json!({ "acceptance_criteria": {
        "must": ["one", { "p95": "below 20 ms" }], "quality_gates": ["two"], "note": "three" } }));
    assert_eq!(
        task.acceptance_criteria,
        ["must: one", "must: p95: below 20 ms", "note: three", "quality_gates: two"]
    );
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn commands_come_from_validation_and_paths_from_context() {
    let (task, _) = read(
        json!({ "scope": { "in": ["a.rs (new)"] }, "context": { "repo_paths": ["src", ":ui"] },
        "validation": { "static_checks": ["pnpm lint", ""], "unit_tests": { "mobile": ["pnpm test"] },
            "commands": [{ "command": "make" }], "manual_checks": ["look"], "artifacts": [{ "screenshots": [] }] } }),
    );
    assert_eq!(task.qa_commands, ["make", "pnpm lint", "pnpm test"]);
    assert_eq!(task.scope_in, ["a.rs (new)", "src", ":ui"]);
    let step = json!({ "name": "Unit tests", "description": "Runs them", "commands": ["echo ok"] });
    let (steps, _) =
        read(json!({ "validation": { "steps": [step, { "id": "x", "title": "Y", "lint": "make lint" }] } }));
    assert_eq!(steps.qa_commands, ["echo ok", "make lint"]);
    let (own, _) =
        read(json!({ "qa": { "commands": ["cargo test"] }, "validation": { "commands": ["make"] } }));
    assert_eq!(own.qa_commands, ["cargo test"]);
}

#[test]
fn unknown_and_invalid_fields_are_warnings() {
    let (task, warnings) =
        read(json!({ "priority": "urgent", "area": ["x"], "id": "x", "standards": [{ "file": "a" }, 3],
        "pipeline": ["A B"], "description": null, "outcome": "o", "plan": [{ "id": 1 }], "order": 5 }));
    assert_eq!(
        (task.priority, task.area.as_str(), task.description.as_str()),
        (Priority::P2, "unspecified", "o")
    );
    assert!(task.pipeline.is_none() && task.id.is_none() && task.standards.is_empty());
    let all = warnings.join("\n");
    for part in [
        "priority \"urgent\"",
        "area",
        "id \"x\"",
        "standards[0]",
        "standards[1]",
        "pipeline",
        "description is missing",
        "does not use: order, plan",
    ] {
        assert!(all.contains(part), "{part}: {all}");
    }
}

#[test]
fn only_a_file_that_is_no_mapping_is_rejected() {
    assert!(read_task_file(&json!(["x"]), &id()).is_err());
    assert!(read_task_file(&json!(null), &id()).is_err());
    let (task, warnings) = read_task_file(&json!({ "status": "in_progress", "title": " " }), &id()).unwrap();
    assert_eq!((task.title.as_str(), task.description.as_str()), ("TASK-1", "TASK-1"));
    assert!(warnings.join("\n").contains("title is missing"), "{warnings:?}");
}

#[test]
fn other_names_of_title_and_id_and_a_nested_task_are_read() {
    for (field, value) in [("name", "n"), ("objective", "o"), ("summary", "s")] {
        let (task, warnings) = read_task_file(&json!({ field: value, "task_id": "TASK-1" }), &id()).unwrap();
        assert_eq!((task.title.as_str(), task.id), (value, Some(id())));
        let all = warnings.join("\n");
        assert!(all.contains(&format!("the {field} is used instead")) && !all.contains("not use"), "{all}");
    }
    let nested = json!({ "task": { "title": "t", "acceptance_criteria": ["a"] }, "status": "in_progress" });
    let (task, warnings) = read_task_file(&nested, &id()).unwrap();
    assert_eq!((task.title.as_str(), task.acceptance_criteria), ("t", vec!["a".to_owned()]));
    assert!(warnings.join("\n").contains("task contains fields"), "{warnings:?}");
}

#[test]
fn unknown_members_of_known_fields_are_warnings() {
    let (_, warnings) =
        read(json!({ "scope": { "in": ["a"], "foo": 1 }, "qa": { "commands": ["c"], "foo": 1 },
        "context": { "related_docs": ["x"] }, "validation": { "manual_checks": ["look"] } }));
    let expected =
        "fields that Baton does not use: context.related_docs, qa.foo, scope.foo, validation.manual_checks";
    assert_eq!(warnings, [expected]);
}

#[test]
fn all_notations_of_scope_and_standards_are_read() {
    let (task, warnings) = read(json!({ "scope": { "in": ["a"], "out": ["b"] }, "scope_in": ["c"],
        "standards": ["a.md#b", { "file": "c.md", "section": "D" }] }));
    assert_eq!((task.scope_in, task.scope_out), (vec!["a".to_owned(), "c".to_owned()], vec!["b".to_owned()]));
    let names: Vec<String> =
        task.standards.iter().map(|one| format!("{}#{}", one.file, one.section)).collect();
    assert_eq!(names, ["a.md#b", "c.md#D"]);
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn mapping_in_a_list_of_criteria_is_one_criterion() {
    let (task, _) = read(json!({ "acceptance_criteria": [{ "given": "a", "then": "c", "when": "b" }] }));
    assert_eq!(task.acceptance_criteria, ["given: a; then: c; when: b"]);
}

#[test]
fn missing_title_and_status_get_defaults() {
    let (task, warnings) = read_task_file(&json!({ "id": 7 }), &id()).unwrap();
    assert_eq!((task.title.as_str(), task.status.as_str()), ("TASK-1", "in_progress"));
    let all = warnings.join("\n");
    assert!(all.contains("title is missing") && all.contains("status is missing"), "{all}");
    let (task, _) = read_task_file(&json!({ "title": 7, "status": "In Progress" }), &id()).unwrap();
    assert_eq!((task.title.as_str(), task.description.as_str()), ("7", "7"));
    assert_eq!(task.status, "in_progress");
    let (task, _) = read_task_file(&json!({ "title": ["a", { "b": "c" }] }), &id()).unwrap();
    assert_eq!(task.title, "a; b: c");
    let (task, _) = read_task_file(&json!({ "title": { "": null } }), &id()).unwrap();
    assert_eq!(task.title, id().to_string());
    let (task, _) = read_task_file(&json!({ "title": "t", "status": "done" }), &id()).unwrap();
    assert_eq!(task.status, "done");
}

#[test]
fn invalid_pipeline_is_a_warning() {
    for pipeline in [json!([]), json!(["a", "b", "a"]), json!({ "a": 1 }), json!([1, 2])] {
        let (task, warnings) = read(json!({ "pipeline": pipeline }));
        assert!(task.pipeline.is_none() && warnings.join("").contains("pipeline"), "{warnings:?}");
    }
}

#[test]
fn a_title_that_looks_like_a_comment_is_used_as_the_description() {
    let (task, warnings) = read(json!({ "title": "#12 Logout", "description": null }));
    assert_eq!(task.description, "TASK-1: #12 Logout");
    assert_eq!(warnings, ["description is missing; the title is used instead"]);
}
