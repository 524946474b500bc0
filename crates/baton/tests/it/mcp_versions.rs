//! Revisions of the MCP protocol: the stateless 2026-07-28, and two older ones with a handshake.

use baton_testkit::binary::{Home, initialize_params};
use serde_json::{Value, json};

use crate::mcp_http::{ask, post};
use crate::served::{Served, expect, who};

const STATELESS: &str = "2026-07-28";
const OLDER: [&str; 2] = ["2025-11-25", "2025-06-18"];

/// Adds the metadata of the stateless revision, in which each request identifies its client.
fn stateless(version: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": version,
        "io.modelcontextprotocol/clientInfo": { "name": "raw", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    params
}

fn start() -> Value {
    json!({ "name": "session_start", "arguments": who("a") })
}

fn assert_started(answer: &Value) {
    assert!(answer["result"]["structuredContent"]["session_id"].is_string(), "{answer}");
}

#[test]
fn over_stdio_older_revisions_use_a_handshake() {
    for version in OLDER {
        let home = Home::new(env!("CARGO_BIN_EXE_baton"));
        let mut client = home.mcp_before_handshake();
        let initialized = client.initialize(version);
        assert_eq!(initialized["protocolVersion"], version);
        assert_eq!(initialized["serverInfo"]["name"], "baton");
        for offer in ["tools", "resources", "prompts"] {
            assert!(initialized["capabilities"][offer].is_object(), "{initialized}");
        }
        assert_eq!(client.request("ping", &json!({}))["result"], json!({}));
        let answer = client.request("tools/call", &start());
        assert_started(&answer);
        assert!(answer["result"].get("resultType").is_none(), "older revisions have no result type");
    }
}

#[test]
fn over_stdio_unknown_revisions_are_offered_the_newest_with_a_handshake() {
    for version in ["2024-11-05", "2999-01-01", STATELESS] {
        let home = Home::new(env!("CARGO_BIN_EXE_baton"));
        let initialized = home.mcp_before_handshake().initialize(version);
        assert_eq!(initialized["protocolVersion"], "2025-11-25", "{version}");
    }
}

#[test]
fn over_stdio_the_stateless_revision_needs_no_handshake() {
    let home = Home::new(env!("CARGO_BIN_EXE_baton"));
    let mut client = home.mcp_before_handshake();
    let found = client.request("server/discover", &stateless(STATELESS, json!({})));
    assert_eq!(
        found["result"]["supportedVersions"],
        json!(["2025-06-18", "2025-11-25", STATELESS]),
        "{found}"
    );
    let answer = client.request("tools/call", &stateless(STATELESS, start()));
    assert_started(&answer);
    assert_eq!(answer["result"]["resultType"], "complete");
    let listed = client.request("resources/list", &stateless(STATELESS, json!({})));
    assert!(listed["result"]["ttlMs"].is_number() && listed["result"]["cacheScope"].is_string(), "{listed}");
    let unknown = client.request("tools/call", &stateless("2999-01-01", start()));
    assert_eq!(unknown["error"]["code"], -32022, "{unknown}");
    // The stateless revision has no ping.
    let ping = client.request("ping", &stateless(STATELESS, json!({})));
    assert_eq!(ping["error"]["code"], -32601, "{ping}");
    let unnamed = client.request("tools/call", &start());
    assert_eq!(unnamed["error"]["code"], -32602, "{unnamed}");
}

#[test]
fn over_http_older_revisions_use_a_handshake_and_any_server_continues() {
    let served = Served::sqlite();
    let other = served.home.serve();
    for version in OLDER {
        let headers = [("mcp-protocol-version", version)];
        let initialized = ask(&served, &[], "initialize", &initialize_params("2025-11-25"));
        assert_eq!(initialized["result"]["protocolVersion"], "2025-11-25");
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": initialize_params(version) });
        let initialized = expect(&post(&served, &headers, request.to_string().as_bytes()), 200);
        assert_eq!(initialized["result"]["protocolVersion"], version);
        let done = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let noted = post(&served, &headers, done.to_string().as_bytes());
        assert_eq!((noted.status, noted.text.as_str()), (202, ""));
        let request = json!({ "jsonrpc": "2.0", "id": "x", "method": "tools/call", "params": start() });
        let answer = expect(&post(&other, &headers, request.to_string().as_bytes()), 200);
        assert_started(&answer);
        assert_eq!(answer["id"], "x");
    }
}

#[test]
fn over_http_the_stateless_revision_needs_no_handshake() {
    let served = Served::sqlite();
    let send = |method: &str, name: Option<&str>, params: &Value| {
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params });
        let mut headers = vec![("mcp-protocol-version", STATELESS), ("mcp-method", method)];
        headers.extend(name.map(|name| ("mcp-name", name)));
        post(&served, &headers, request.to_string().as_bytes())
    };
    let found = expect(&send("server/discover", None, &stateless(STATELESS, json!({}))), 200);
    assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!(STATELESS)), "{found}");
    assert_started(&expect(&send("tools/call", Some("session_start"), &stateless(STATELESS, start())), 200));
    // Proxies route by the headers, so they must match the body.
    let other_name = expect(&send("tools/call", Some("session_end"), &stateless(STATELESS, start())), 400);
    assert_eq!(other_name["error"]["code"], -32020, "{other_name}");
    let unnamed = expect(&send("tools/call", Some("session_start"), &start()), 400);
    assert_eq!(unnamed["error"]["code"], -32602, "{unnamed}");
    for gone in ["nothing/here", "initialize", "ping"] {
        let unknown = expect(&send(gone, None, &stateless(STATELESS, json!({}))), 404);
        assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    }
}
