//! QA results: exit codes, the baseline, and which role may record them.

use baton_core::ErrorCode;
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK, TASK_FILE};

fn record(checkout: &Checkout, agent: &str, content: &str) -> Value {
    checkout.call("record_qa", json!({ "task_id": TASK, "agent": agent, "content": content }))
}

fn run(checkout: &Checkout, agent: &str, command: &str) -> Value {
    checkout.call("run_qa", json!({ "task_id": TASK, "agent": agent, "command": [command] }))
}

#[test]
fn log_with_an_unrecognised_part_is_unknown_and_with_a_failure_failed() {
    let checkout = Checkout::with_context();
    let both = record(&checkout, "implementer", "sh: 1: pytest: not found\nAll checks passed!\n");
    assert_eq!(both["status"], "failed");
    let odd = record(&checkout, "implementer", "something else\nAll checks passed!\n");
    assert_eq!((&odd["status"], odd["reason"].is_string()), (&json!("unknown"), true));
    assert_eq!(record(&checkout, "implementer", "All checks passed!\n")["status"], "passed");
}

#[test]
fn given_exit_code_decides() {
    let checkout = Checkout::with_context();
    let with = |code: i32, content: &str| {
        let params =
            json!({ "task_id": TASK, "agent": "implementer", "content": content, "exit_code": code });
        checkout.call("record_qa", params)
    };
    assert_eq!(with(1, "All checks passed!\n")["status"], "failed");
    assert_eq!(with(0, "something else\n")["status"], "passed");
    let hidden = with(0, "1 failed in 0.1s\n");
    assert_eq!(hidden["status"], "passed");
    assert!(hidden["warnings"].to_string().contains("reports failures of pytest"), "{hidden}");
    assert_eq!(
        with(0, "running 0 tests\n\ntest result: ok. 0 passed; 0 failed; 0 ignored\n")["status"],
        "unknown"
    );
}

#[test]
fn run_qa_records_command_exit_code_duration_and_log() {
    let checkout = Checkout::with_context();
    let failed = run(&checkout, "implementer", "echo All checks passed!; exit 3");
    assert_eq!((&failed["status"], &failed["commands"][0]["exit_code"]), (&json!("failed"), &json!(3)));
    assert_eq!(failed["commands"][0]["command"], "echo All checks passed!; exit 3");
    assert!(failed["commands"][0]["duration_ms"].is_u64());
    let log = checkout.read(failed["qa_log_path"].as_str().unwrap());
    assert_eq!(log, b"All checks passed!\n");
    let context = checkout.context();
    let state = &context.coordination[&"implementer".parse().unwrap()];
    let results = state.qa_results.as_ref().unwrap();
    assert_eq!((results.actor.as_deref(), results.commands.len()), (Some("tester"), 1));
    assert_eq!(run(&checkout, "implementer", "test -f src/main.rs")["status"], "passed");
    assert_eq!(
        run(&checkout, "implementer", "test \"$TASK_CONTEXT_PATH\" -ef .agent-output/TASK-0824/context.json")
            ["status"],
        "passed"
    );
}

#[test]
fn run_qa_runs_the_commands_of_the_task() {
    let checkout = Checkout::new();
    let file = TASK_FILE.replace("cargo test", "echo one");
    checkout.write("tasks/open/TASK-0824-settings.task.yaml", &file);
    checkout.write(".baton.toml", "[task.qa]\ncommands = ['echo one', 'exit 2']\n");
    checkout.call("init_context", json!({ "task_id": TASK }));
    let answer = checkout.call("run_qa", json!({ "task_id": TASK, "agent": "implementer" }));
    let commands = checkout.context().immutable.validation_baseline.commands;
    assert_eq!(answer["commands"].as_array().unwrap().len(), commands.len());
    assert_eq!(answer["commands"][0]["command"], json!(commands[0]));
}

#[test]
fn baseline_is_explicit_and_before_the_first_work() {
    let checkout = Checkout::with_context();
    let finished = record(&checkout, "implementer", "FAILED t.py::a - x\n1 failed in 0.1s\n");
    assert_eq!(
        (&finished["is_baseline"], &finished["compared_with_baseline"]),
        (&json!(false), &json!(null))
    );
    let baseline = |content: &str| json!({ "task_id": TASK, "agent": "implementer", "content": content, "baseline": true });
    let answer = checkout
        .call("record_qa", baseline("FAILED t.py::a - x\n1 failed, 3 passed in 0.1s\nAll checks passed!\n"));
    assert_eq!((&answer["is_baseline"], &answer["immutable_revision"]), (&json!(true), &json!(2)));
    let later = record(&checkout, "implementer", "FAILED t.py::b - x\n1 failed in 0.1s\n");
    let compared = &later["compared_with_baseline"];
    assert_eq!(compared["fixed"], json!(["pytest: t.py::a in t.py"]));
    assert_eq!(compared["new_failures"], json!(["pytest: t.py::b in t.py"]));
    assert_eq!(compared["missing_tools"], json!(["ruff"]));
    assert!(later["warnings"].to_string().contains("ruff"), "{later}");
    checkout.write("src/main.rs", "changed\n");
    let edited = checkout.refused("record_qa", baseline("All checks passed!\n"));
    assert_eq!(edited.code, ErrorCode::TaskConflict);
    assert!(edited.message.contains("cannot record the baseline"), "{}", edited.message);
    checkout.snapshot("implementer");
    assert_eq!(checkout.code("record_qa", baseline("All checks passed!\n")), ErrorCode::TaskConflict);
    let export: Value =
        serde_json::from_slice(&checkout.read(".agent-output/TASK-0824/context-implementer.json")).unwrap();
    assert_eq!(export["immutable"]["validation_baseline"]["initial_results"]["status"], "failed");
}

#[test]
fn incomplete_lists_of_failures_are_compared_with_a_warning() {
    let checkout = Checkout::with_context();
    let log = |numbers: std::ops::Range<u32>| {
        let lines: String = numbers.clone().map(|number| format!("FAILED t.py::t{number} - x\n")).collect();
        format!("{lines}{} failed in 0.1s\n", numbers.len())
    };
    checkout.call("record_qa", baseline(&log(1..81)));
    let later = record(&checkout, "implementer", &log(11..81));
    assert_eq!(later["compared_with_baseline"]["new_failures"], json!([]), "{later}");
    assert_eq!(later["compared_with_baseline"]["fixed"], json!([]), "{later}");
    assert!(later["warnings"].to_string().contains("not all failures of pytest are stored"), "{later}");
}

fn baseline(content: &str) -> Value {
    json!({ "task_id": TASK, "agent": "implementer", "content": content, "baseline": true })
}

#[test]
fn baseline_is_refused_when_there_are_new_files() {
    let checkout = Checkout::with_context();
    checkout.write("src/new.rs", "fn new() {}\n");
    let record = checkout.refused("record_qa", baseline("All checks passed!\n"));
    let mut run = baseline("");
    run.as_object_mut().unwrap().remove("content");
    run["command"] = json!(["true"]);
    let run = checkout.refused("run_qa", run);
    for fault in [record, run] {
        assert_eq!(fault.code, ErrorCode::TaskConflict);
        assert!(fault.message.contains("src/new.rs"), "{}", fault.message);
    }
    std::fs::remove_file(checkout.root().join("src/new.rs")).unwrap();
    assert_eq!(checkout.call("record_qa", baseline("All checks passed!\n"))["is_baseline"], json!(true));
}

#[test]
fn baseline_is_refused_when_a_file_that_was_modified_at_init_changes_again() {
    let checkout = Checkout::new();
    checkout.write("src/main.rs", "fn main() { one(); }\n");
    checkout.write("src/draft.rs", "one\n");
    checkout.call("init_context", json!({ "task_id": TASK }));
    assert_eq!(checkout.call("record_qa", baseline("All checks passed!\n"))["is_baseline"], json!(true));
    checkout.write("src/draft.rs", "two\n");
    assert_eq!(checkout.code("record_qa", baseline("All checks passed!\n")), ErrorCode::TaskConflict);
    checkout.write("src/draft.rs", "one\n");
    assert_eq!(checkout.call("record_qa", baseline("All checks passed!\n"))["is_baseline"], json!(true));
    checkout.tree.commit();
    let moved = checkout.refused("record_qa", baseline("All checks passed!\n"));
    assert!(moved.message.contains("HEAD moved"), "{}", moved.message);
}

#[test]
fn baseline_ignores_its_log_the_task_file_and_files_that_the_commands_write() {
    let checkout = Checkout::with_context();
    checkout.write("logs/qa.log", "All checks passed!\n");
    let absolute = checkout.root().join("logs/qa.log");
    for path in ["logs/qa.log", "./logs/qa.log", "logs/../logs/qa.log", absolute.to_str().unwrap()] {
        let from = json!({ "task_id": TASK, "agent": "implementer", "from": path, "baseline": true });
        assert_eq!(checkout.call("record_qa", from)["is_baseline"], json!(true), "{path}");
    }
    std::fs::remove_file(absolute).unwrap();
    let file = TASK_FILE.replace("faster.", "slower.");
    checkout.write("tasks/open/TASK-0824-settings.task.yaml", &file);
    checkout.call("rebuild_context", json!({ "task_id": TASK }));
    let command = json!({ "task_id": TASK, "agent": "implementer", "command": ["echo x > coverage"], "baseline": true });
    assert_eq!(checkout.call("run_qa", command.clone())["is_baseline"], json!(true));
    assert!(checkout.refused("run_qa", command).message.contains("coverage"));
}

#[test]
fn only_the_role_that_holds_the_task_records_results() {
    let checkout = Checkout::with_context();
    let params = json!({ "task_id": TASK, "agent": "validator", "content": "All checks passed!\n" });
    assert_eq!(checkout.code("record_qa", params.clone()), ErrorCode::TaskConflict);
    checkout.work("implementer", "src/main.rs", "x\n");
    for name in ["record_qa", "run_qa"] {
        let mut params = json!({ "task_id": TASK, "agent": "implementer" });
        let (key, value) =
            if name == "run_qa" { ("command", json!(["true"])) } else { ("content", json!("x")) };
        params[key] = value;
        assert_eq!(checkout.code(name, params), ErrorCode::TaskConflict, "{name}");
    }
    checkout.update("reviewer", "in_progress");
    assert_eq!(record(&checkout, "reviewer", "All checks passed!\n")["status"], "passed");
    checkout.write("tasks/open/TASK-0824-settings.task.yaml", &TASK_FILE.replace("faster.", "slower."));
    let changed = json!({ "task_id": TASK, "agent": "reviewer", "content": "All checks passed!\n" });
    assert!(checkout.refused("record_qa", changed).hint.unwrap().contains("rebuild-context"));
}

#[test]
fn log_is_read_from_any_path() {
    let checkout = Checkout::with_context();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(outside.path(), "All checks passed!\n").unwrap();
    let from = |path: &str| json!({ "task_id": TASK, "agent": "implementer", "from": path });
    assert_eq!(checkout.call("record_qa", from(outside.path().to_str().unwrap()))["status"], "passed");
    checkout.write("qa.log", "All checks passed!\n");
    assert_eq!(checkout.call("record_qa", from("qa.log"))["status"], "passed");
    assert_eq!(checkout.code("record_qa", from("none.log")), ErrorCode::NotFound);
    assert_eq!(checkout.code("record_qa", from("src")), ErrorCode::InvalidRequest);
}
