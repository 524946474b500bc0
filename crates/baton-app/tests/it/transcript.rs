//! `transcript.import`: the session of an imported chat and the stored progress.

use serde_json::{Value, json};

use crate::stage::{NOW, Stage, ok, refused, session_id};

fn import(client: &str) -> Value {
    json!({
        "client_session_id": format!("chat of {client}"), "client": client, "venture": "v", "repo": "o/r", "started_at": NOW,
        "progress": { "file": "chat-1.jsonl", "position": 40, "size": null },
        "reports": [{ "event": "user-prompt-submit", "prompt": "Make it fast", "reported_at": NOW }],
    })
}

#[test]
fn the_agent_of_a_client_without_a_valid_agent_name_is_called_agent() {
    for stage in Stage::each() {
        for (client, agent) in [("codex", "codex"), ("Cursor IDE", "agent")] {
            let session = session_id(&ok(&stage.call("transcript.import", import(client))));
            assert_eq!(stage.session(session).tuple.agent.as_str(), agent);
        }
    }
}

#[test]
fn damaged_progress_is_not_read_as_no_progress() {
    for stage in Stage::each() {
        let stored = ok(&stage.call("transcript.import", import("codex")));
        assert_eq!(ok(&stage.call("transcript.import", import("codex")))["progress"], stored["progress"]);
        let sql = r#"UPDATE sessions SET meta_json = '{"import":{"files":7}}'"#;
        stage.store.place().execute(sql, sql);
        refused(&stage.call("transcript.import", import("codex")), "internal");
    }
}
