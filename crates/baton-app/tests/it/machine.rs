//! Operations that read the server's machine: which callers see its files and agents.

use std::path::Path;
use std::sync::Arc;

use baton_app::agent::ListAgentsOutput;
use baton_app::task::TaskFiles;
use baton_app::{Call, Machine};
use baton_core::task::TaskId;
use baton_core::{Actor, ErrorCode, Fault, VentureScope};
use serde_json::{Value, json};

use crate::stage::{Stage, ok, operation, refused};

/// A machine with one readable checkout.
#[derive(Debug)]
struct TestMachine;

impl Machine for TestMachine {
    fn host(&self) -> String {
        "build-3".to_owned()
    }

    fn task_files(&self, checkout: &Path, id: &TaskId) -> Result<TaskFiles, Fault> {
        if checkout != Path::new("/srv/webshop") {
            return Err(Fault::new(ErrorCode::NotFound, "there are no files"));
        }
        let context = json!({ "task_id": id }).as_object().unwrap().clone();
        Ok(TaskFiles { context, warnings: Vec::new(), next: String::new(), diffs: Vec::new() })
    }

    fn agents(&self, _: bool) -> Result<ListAgentsOutput, Fault> {
        Ok(ListAgentsOutput { host: self.host(), connections: Vec::new(), mcp_server: None })
    }
}

fn record(stage: &Stage, host: &str, checkout: &str) -> Value {
    let task = json!({ "task_id": "TASK-1", "host": host, "checkout": checkout, "venture": "v",
        "title": "Faster", "status": "waiting" });
    ok(&stage.call("task.record", task));
    json!({ "id": format!("v/TASK-1@{host}:{checkout}") })
}

fn limited(stage: &Stage, ventures: &[&str]) -> Call {
    let ventures = ventures.iter().map(|venture| venture.parse().unwrap()).collect();
    let actor = Actor { ventures: VentureScope::Only(ventures), ..Actor::shared("key") };
    Call { actor, ..stage.envelope(None) }
}

#[test]
fn files_of_a_task_are_shown_if_the_checkout_is_on_this_machine() {
    for stage in Stage::each_with(|settings| settings.machine = Some(Arc::new(TestMachine))) {
        let here = record(&stage, "build-3", "/srv/webshop");
        let shown = ok(&stage.call("task.show", here));
        assert_eq!((&shown["task"]["title"], &shown["problem"]), (&json!("Faster"), &Value::Null));
        assert_eq!(shown["files"]["context"]["task_id"], "TASK-1");

        let elsewhere = record(&stage, "laptop", "/srv/webshop");
        let shown = ok(&stage.call("task.show", elsewhere));
        assert_eq!(shown["files"], Value::Null);
        assert!(shown["problem"].as_str().unwrap().contains("The files are on laptop"), "{shown}");

        let gone = record(&stage, "build-3", "/srv/gone");
        let shown = ok(&stage.call("task.show", gone));
        assert_eq!((&shown["files"], &shown["problem"]), (&Value::Null, &json!("there are no files")));

        let unknown = json!({ "id": "v/TASK-2@build-3:/srv/webshop" });
        refused(&stage.call("task.show", unknown), "not_found");
        refused(&stage.call("task.show", json!({ "id": "TASK-1" })), "invalid_request");
    }
}

#[test]
fn limited_tokens_see_neither_files_nor_agents_of_the_machine() {
    for stage in Stage::each_with(|settings| settings.machine = Some(Arc::new(TestMachine))) {
        let here = record(&stage, "build-3", "/srv/webshop");
        let call = |name: &str, ventures: &[&str], params: Value| {
            stage.app.call_blocking(operation(name), limited(&stage, ventures), params)
        };
        // An index entry with any path can be written with such a token.
        let shown = ok(&call("task.show", &["v"], here.clone()));
        assert_eq!((&shown["task"]["title"], &shown["files"]), (&json!("Faster"), &Value::Null));
        refused(&call("task.show", &["other"], here), "forbidden");
        refused(&call("agent.list", &["v"], json!({})), "forbidden");
        assert_eq!(ok(&stage.call("agent.list", json!({})))["host"], "build-3");
    }
}
