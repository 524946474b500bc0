//! Secrets and private parts never reach the disk, in any field of a report.

use serde_json::{Value, json};

use crate::hooked::{Hooked, files_below};
use crate::served::with;

/// Text between private tags, which must not be stored.
const PRIVATE: &str = "CANARYPRIVATECANARY";
/// Part of a secret, which must not be stored.
const SECRET: &str = "cAnArY7sEcReTcAnArY9";

/// Returns a realistic secret. Built at run time, because this file is scanned for secrets as well.
fn secret() -> String {
    format!("gh{}_{SECRET}{}", "p", "k1L2m3N4o5P6q7R8")
}

/// Returns a text with a secret and two private parts, one of them in an unclosed tag.
fn canary() -> String {
    format!("see <private>{PRIVATE}</private> and {} here <PRIVATE>{PRIVATE}", secret())
}

const EVENTS: [&str; 6] =
    ["session-start", "user-prompt-submit", "post-tool-use", "pre-compact", "stop", "session-end"];

/// Fields that accept any text, all with canaries.
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

/// Fields that must be names, each with canaries in the form of a name.
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

/// Asserts that no file and no output of Baton contains a canary.
#[track_caller]
fn assert_no_canaries(hooked: &Hooked, when: &str) {
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
    let mut outputs = vec![hooked.data(&["doctor"])];
    for one in hooked.observations() {
        outputs.push(hooked.raw(&one));
    }
    for status in ["raw", "done", "error"] {
        outputs.push(hooked.data(&["queue", "list", "--status", status, "--limit", "200"]));
    }
    outputs.push(hooked.data(&["session", "list", "--venture", "local"]));
    for handoff in hooked.data(&["handoff", "list", "--venture", "local"])["handoffs"].as_array().unwrap() {
        outputs.push(hooked.data(&["handoff", "show", handoff["id"].as_str().unwrap()]));
    }
    for workflow in hooked.data(&["checkpoint", "workflows"])["workflows"].as_array().unwrap() {
        outputs.push(hooked.data(&[
            "checkpoint",
            "load",
            "--session",
            workflow["sessionId"].as_str().unwrap(),
        ]));
    }
    for output in outputs {
        assert_eq!(is_in(output.to_string().as_bytes()), None, "{when}: {output}");
    }
}

#[test]
fn secrets_and_private_text_are_stored_nowhere() {
    let hooked = Hooked::new();
    for event in EVENTS {
        let report = hooked.claude(event, texts());
        hooked.call(&[event], report.to_string().as_bytes());
        // Malformed JSON, which is repaired first.
        let broken = report.to_string().replace("an_unknown_field", "a\\qfield");
        hooked.call(&[event], broken.as_bytes());
        assert_no_canaries(&hooked, event);
    }
    assert!(hooked.troubles().is_empty(), "every report must be stored: {:?}", hooked.troubles());
    // Large enough to be compressed, and large enough to be a blob.
    for times in [50, 5_000] {
        let text = format!("{} {}", canary().replace("<PRIVATE>", ""), "lorem ipsum dolor ").repeat(times);
        hooked.call(
            &["post-tool-use"],
            hooked.bash("cat", &text.replace(PRIVATE, "<private>x</private>")).to_string().as_bytes(),
        );
    }
    assert_eq!(hooked.work(), 3, "reports with the same tool use id must be stored once");
    assert_no_canaries(&hooked, "understood");
    let kept = hooked.observations().iter().map(|one| hooked.raw(one).to_string()).collect::<String>();
    assert!(kept.contains("[private]") && kept.contains("[redacted:"), "the rest of the text must be kept");
}

#[test]
fn secrets_and_private_text_in_names_are_stored_nowhere() {
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
    assert_no_canaries(&hooked, "names");
    hooked.work();
    assert_no_canaries(&hooked, "names, understood");
}

#[test]
fn reports_in_the_outbox_contain_no_secrets_and_private_text() {
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
    assert_no_canaries(&hooked, "spilled");
    mend();
    hooked.work();
    let is_aside = |path: &std::path::PathBuf| path.extension().is_some_and(|ending| ending == "refused");
    assert!(hooked.spilled().iter().all(is_aside), "{:?}", hooked.spilled());
    assert_no_canaries(&hooked, "taken in");
}
