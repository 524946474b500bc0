//! What never reaches the disk: secrets, and what somebody marked as private, wherever an agent puts them.

use serde_json::{Value, json};

use crate::hooked::{Hooked, files_below};
use crate::served::with;

/// What stands between marks, and must be seen nowhere.
const PRIVATE: &str = "CANARYPRIVATECANARY";
/// What a secret has in it, and must be seen nowhere.
const SECRET: &str = "cAnArY7sEcReTcAnArY9";

/// A secret as it is found in the wild. Not written in one piece, because this file is looked over for secrets too.
fn secret() -> String {
    format!("gh{}_{SECRET}{}", "p", "k1L2m3N4o5P6q7R8")
}

/// A text with both in it, twice private: once in marks that nobody closed.
fn canary() -> String {
    format!("see <private>{PRIVATE}</private> and {} here <PRIVATE>{PRIVATE}", secret())
}

const EVENTS: [&str; 6] =
    ["session-start", "user-prompt-submit", "post-tool-use", "pre-compact", "stop", "session-end"];

/// Fields that take any text, all of them with canaries.
fn texts() -> Value {
    let canary = canary();
    json!({
        "transcript_path": format!("/home/dev/{canary}"), "permission_mode": canary, "hook_event_name": canary,
        "tool_name": canary, "tool_use_id": canary, "error": canary,
        "tool_input": {
            "command": canary, "file_path": format!("/src/{canary}"), &canary: [canary, { "deep": canary }],
            "aws_secret_access_key": format!("{SECRET}{SECRET}"),
        },
        "tool_response": {
            "stdout": canary, "lines": [[canary]], &canary: canary,
            "structuredPatch": [{ "lines": ["+<private>", format!("+{PRIVATE}"), "+</private>"] }],
        },
        "prompt": canary, "trigger": canary, "custom_instructions": canary, "reason": canary,
        "source": canary, "model": canary, "an_unknown_field": { "of": [canary] }, &canary: 1,
    })
}

/// Fields that must be names, each with a canary as like a name as it can be.
fn names() -> Vec<Value> {
    let (private, secret) = (format!("<private>{PRIVATE}</private>"), secret());
    let fields = [
        "session_id",
        "agent",
        "client",
        "venture",
        "repo",
        "branch",
        "commit_sha",
        "host",
        "track",
        "cwd",
        "root",
    ];
    fields
        .into_iter()
        .flat_map(|field| {
            [json!({ field: private }), json!({ field: format!("o/{secret}") }), json!({ field: secret })]
        })
        .collect()
}

/// Looks at every file, and at what the product says when it unpacks them.
#[track_caller]
fn assert_unseen(hooked: &Hooked, when: &str) {
    let is_in = |bytes: &[u8]| {
        [PRIVATE, SECRET]
            .into_iter()
            .find(|canary| bytes.windows(canary.len()).any(|part| part == canary.as_bytes()))
    };
    let files = files_below(&hooked.home.data_dir());
    assert!(!files.is_empty());
    for file in files {
        let found = is_in(&std::fs::read(&file).unwrap());
        assert_eq!(found, None, "{when}: in {}", file.display());
    }
    if when == "spilled" {
        return;
    }
    let mut told = vec![hooked.data(&["doctor"])];
    for one in hooked.observations() {
        told.push(hooked.raw(&one));
    }
    for status in ["raw", "done", "error"] {
        told.push(hooked.data(&["queue", "list", "--status", status, "--limit", "200"]));
    }
    told.push(hooked.data(&["session", "list", "--venture", "local"]));
    for handoff in hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"].as_array().unwrap() {
        told.push(hooked.data(&["handoff", "show", handoff["id"].as_str().unwrap()]));
    }
    for workflow in hooked.data(&["checkpoint", "workflows"])["workflows"].as_array().unwrap() {
        told.push(hooked.data(&["checkpoint", "load", "--session", workflow["sessionId"].as_str().unwrap()]));
    }
    for told in told {
        assert_eq!(is_in(told.to_string().as_bytes()), None, "{when}: {told}");
    }
}

#[test]
fn canaries_are_seen_nowhere() {
    let hooked = Hooked::new();
    for event in EVENTS {
        let report = hooked.claude(event, texts());
        hooked.call(&[event], report.to_string().as_bytes());
        // A document that has to be mended first.
        let broken = report.to_string().replace("an_unknown_field", "a\\qfield");
        hooked.call(&[event], broken.as_bytes());
        assert_unseen(&hooked, event);
    }
    assert!(hooked.troubles().is_empty(), "all of it was taken: {:?}", hooked.troubles());
    // Enough to be packed, and enough to be a file.
    for times in [50, 5_000] {
        let said = format!("{} {}", canary().replace("<PRIVATE>", ""), "lorem ipsum dolor ").repeat(times);
        hooked.call(
            &["post-tool-use"],
            hooked.bash("cat", &said.replace(PRIVATE, "<private>x</private>")).to_string().as_bytes(),
        );
    }
    assert_eq!(hooked.work(), 3, "of those with an id of their own one");
    assert_unseen(&hooked, "understood");
    let kept = hooked.observations().iter().map(|one| hooked.raw(one).to_string()).collect::<String>();
    assert!(kept.contains("[private]") && kept.contains("[redacted:"), "something was kept of it");
}

#[test]
fn canaries_in_names_are_seen_nowhere() {
    let hooked = Hooked::new();
    for fields in names() {
        for event in ["post-tool-use", "session-end"] {
            let report = with(hooked.bash("ls", "a"), fields.clone());
            hooked.call(&[event], report.to_string().as_bytes());
        }
    }
    let (private, secret) = (format!("<private>{PRIVATE}</private>"), secret());
    for text in [&private, &secret] {
        hooked.call(&[text], b"{}");
        hooked.call(&["stop", "--client", text], b"{}");
        hooked.call(&["stop", "--agent", text], b"{}");
        hooked.call(&["stop", text], b"{}");
        hooked.call(&["stop", &format!("--{text}")], b"{}");
    }
    hooked.call(&["stop"], canary().as_bytes());
    hooked.call(&["stop"], format!("{{\"prompt\": \"{}", canary()).as_bytes());
    hooked.call(&["stop"], json!([canary()]).to_string().as_bytes());
    assert_unseen(&hooked, "names");
    hooked.work();
    assert_unseen(&hooked, "names, understood");
}

#[test]
fn canaries_are_not_in_what_waits_as_a_file() {
    let hooked = Hooked::new();
    hooked.hook("stop", &json!({}));
    let mend = hooked.break_database();
    for event in EVENTS {
        hooked.call(&[event], hooked.claude(event, texts()).to_string().as_bytes());
    }
    for fields in names() {
        hooked.call(&["post-tool-use"], with(hooked.bash("ls", "a"), fields).to_string().as_bytes());
    }
    assert!(hooked.spilled().len() > EVENTS.len(), "{:?}", hooked.troubles());
    assert_unseen(&hooked, "spilled");
    mend();
    hooked.work();
    let is_aside = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "refused");
    assert!(hooked.spilled().iter().all(is_aside), "{:?}", hooked.spilled());
    assert_unseen(&hooked, "taken in");
}
