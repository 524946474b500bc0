//! The calls of the scenarios, described for each interface.

use serde_json::{Value, json};

use super::interfaces::Step;

pub(super) fn start(mut params: Value) -> Step {
    // Over MCP the client is recorded even if the call does not name it.
    for (name, value) in [("client", "c"), ("client_version", "1")] {
        params.as_object_mut().unwrap().entry(name).or_insert_with(|| value.into());
    }
    Step {
        http: ("POST", "/sod"),
        tool: "session_start",
        verb: &["session", "start"],
        params,
        positional: &[],
    }
}

pub(super) fn heartbeat(session_id: &str) -> Step {
    Step {
        http: ("POST", "/heartbeat"),
        tool: "session_heartbeat",
        verb: &["session", "heartbeat"],
        params: json!({ "session_id": session_id }),
        positional: &["session_id"],
    }
}

pub(super) fn end(params: Value) -> Step {
    Step {
        http: ("POST", "/eod"),
        tool: "session_end",
        verb: &["session", "end"],
        params,
        positional: &["session_id"],
    }
}

pub(super) fn list(params: Value) -> Step {
    Step {
        http: ("GET", "/active"),
        tool: "active_sessions",
        verb: &["session", "list"],
        params,
        positional: &[],
    }
}

pub(super) fn update(params: Value) -> Step {
    Step {
        http: ("POST", "/update"),
        tool: "session_update",
        verb: &["session", "update"],
        params,
        positional: &["session_id"],
    }
}

pub(super) fn show(session_id: &str) -> Step {
    Step {
        http: ("GET", "/sessions/{session_id}"),
        tool: "session_show",
        verb: &["session", "show"],
        params: json!({ "session_id": session_id }),
        positional: &["session_id"],
    }
}

pub(super) fn latest(params: Value) -> Step {
    Step {
        http: ("GET", "/handoffs/latest"),
        tool: "handoff_latest",
        verb: &["handoff", "latest"],
        params,
        positional: &[],
    }
}

pub(super) fn handoffs(params: Value) -> Step {
    Step {
        http: ("GET", "/handoffs"),
        tool: "handoff_list",
        verb: &["handoff", "list"],
        params,
        positional: &[],
    }
}

pub(super) fn show_handoff(handoff_id: &str) -> Step {
    Step {
        http: ("GET", "/handoffs/{handoff_id}"),
        tool: "handoff_show",
        verb: &["handoff", "show"],
        params: json!({ "handoff_id": handoff_id }),
        positional: &["handoff_id"],
    }
}

pub(super) fn create(params: Value) -> Step {
    Step {
        http: ("POST", "/handoffs"),
        tool: "handoff_create",
        verb: &["handoff", "create"],
        params,
        positional: &[],
    }
}

pub(super) fn ack(handoff_id: &str, agent: &str) -> Step {
    Step {
        http: ("POST", "/handoffs/{handoff_id}/ack"),
        tool: "handoff_ack",
        verb: &["handoff", "ack"],
        params: json!({ "handoff_id": handoff_id, "agent": agent }),
        positional: &["handoff_id"],
    }
}

pub(super) fn withdraw(handoff_id: &str) -> Step {
    Step {
        http: ("POST", "/handoffs/{handoff_id}/withdraw"),
        tool: "handoff_withdraw",
        verb: &["handoff", "withdraw"],
        params: json!({ "handoff_id": handoff_id }),
        positional: &["handoff_id"],
    }
}

pub(super) fn note(params: Value) -> Step {
    Step { http: ("POST", "/api/notes"), tool: "note", verb: &["note"], params, positional: &["text"] }
}

pub(super) fn notes(params: Value) -> Step {
    Step { http: ("GET", "/api/notes"), tool: "note_list", verb: &["note", "list"], params, positional: &[] }
}

pub(super) fn show_note(note_id: &str) -> Step {
    Step {
        http: ("GET", "/api/notes/{note_id}"),
        tool: "note_show",
        verb: &["note", "show"],
        params: json!({ "note_id": note_id }),
        positional: &["note_id"],
    }
}

pub(super) fn edit_note(params: Value) -> Step {
    Step {
        http: ("POST", "/api/notes/{note_id}"),
        tool: "note_update",
        verb: &["note", "edit"],
        params,
        positional: &["note_id"],
    }
}

pub(super) fn delete_note(note_id: &str) -> Step {
    Step {
        http: ("DELETE", "/api/notes/{note_id}"),
        tool: "note_delete",
        verb: &["note", "delete"],
        params: json!({ "note_id": note_id }),
        positional: &["note_id"],
    }
}

pub(super) fn reject(id: &str) -> Step {
    Step {
        http: ("POST", "/api/memory/reject"),
        tool: "memory_reject",
        verb: &["memory", "reject"],
        params: json!({ "id": id }),
        positional: &["id"],
    }
}

pub(super) fn supersede(id: &str, by: &str) -> Step {
    Step {
        http: ("POST", "/api/memory/supersede"),
        tool: "memory_supersede",
        verb: &["memory", "supersede"],
        params: json!({ "id": id, "by": by }),
        positional: &["id"],
    }
}

pub(super) fn save(params: Value) -> Step {
    Step {
        http: ("POST", "/api/checkpoints"),
        tool: "workflow_checkpoint_save",
        verb: &["checkpoint", "save"],
        params,
        positional: &[],
    }
}

pub(super) fn load(params: Value) -> Step {
    Step {
        http: ("GET", "/api/checkpoints/load"),
        tool: "workflow_checkpoint_load",
        verb: &["checkpoint", "load"],
        params,
        positional: &["checkpointId"],
    }
}

pub(super) fn load_by_path(checkpoint_id: &str) -> Step {
    let params = json!({ "checkpointId": checkpoint_id });
    Step { http: ("GET", "/api/checkpoints/{checkpointId}"), ..load(params) }
}

pub(super) fn list_checkpoints(params: Value) -> Step {
    Step {
        http: ("GET", "/api/checkpoints"),
        tool: "workflow_checkpoint_list",
        verb: &["checkpoint", "list"],
        params,
        positional: &[],
    }
}

pub(super) fn mark(session_id: &str, key: &str) -> Step {
    Step {
        http: ("POST", "/api/checkpoints/critical"),
        tool: "workflow_mark_critical",
        verb: &["checkpoint", "mark-critical"],
        params: json!({ "sessionId": session_id, "contextKey": key }),
        positional: &["contextKey"],
    }
}

pub(super) fn diff(params: Value) -> Step {
    Step {
        http: ("GET", "/api/checkpoints/diff"),
        tool: "workflow_checkpoint_diff",
        verb: &["checkpoint", "diff"],
        params,
        positional: &["from", "to"],
    }
}

pub(super) fn explain(params: Value) -> Step {
    Step {
        http: ("GET", "/api/checkpoints/explain"),
        tool: "workflow_explain",
        verb: &["checkpoint", "explain"],
        params,
        positional: &["checkpointId"],
    }
}

pub(super) fn delete(checkpoint_id: &str) -> Step {
    Step {
        http: ("DELETE", "/api/checkpoints/{checkpointId}"),
        tool: "workflow_checkpoint_delete",
        verb: &["checkpoint", "delete"],
        params: json!({ "checkpointId": checkpoint_id }),
        positional: &["checkpointId"],
    }
}

pub(super) fn workflows(params: Value) -> Step {
    Step {
        http: ("GET", "/api/workflows"),
        tool: "workflow_list",
        verb: &["checkpoint", "workflows"],
        params,
        positional: &[],
    }
}

pub(super) fn search(params: Value) -> Step {
    let (http, verb) = (("GET", "/api/search"), &["search"] as &[_]);
    Step { http, tool: "search", verb, params, positional: &["q"] }
}

pub(super) fn timeline(params: Value) -> Step {
    let (http, verb) = (("GET", "/api/timeline"), &["timeline"] as &[_]);
    Step { http, tool: "timeline", verb, params, positional: &["id"] }
}

pub(super) fn get_items(ids: &str) -> Step {
    let (http, verb) = (("GET", "/api/items"), &["get"] as &[_]);
    Step { http, tool: "get", verb, params: json!({ "ids": ids }), positional: &["ids"] }
}
