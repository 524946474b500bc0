//! `baton memory` through the real binary: reject, supersede, pin, restore, list and forget.

use baton_testkit::processes::wait_until;
use serde_json::{Value, json};

use crate::checkout::Checkout;
use crate::hooked::Hooked;

fn note(hooked: &Hooked, text: &str) -> String {
    let made = hooked.data(&["note", text, "--repo", "local/shop", "--kind", "decision"]);
    made["note"]["id"].as_str().unwrap().to_owned()
}

fn found(hooked: &Hooked, query: &str) -> Vec<String> {
    let results = hooked.data(&["search", query])["results"].clone();
    results.as_array().unwrap().iter().map(|result| result["id"].as_str().unwrap().to_owned()).collect()
}

fn context(hooked: &Hooked) -> String {
    hooked.data(&["context", "--repo", "local/shop"])["context"].as_str().unwrap().to_owned()
}

fn text(hooked: &Hooked, arguments: &[&str]) -> String {
    let finished = hooked.home.run(arguments);
    assert_eq!(finished.code, 0, "{arguments:?}: {finished:?}");
    finished.stdout
}

/// Runs a verb that must fail and returns its exit code and error.
fn failure(hooked: &Hooked, arguments: &[&str]) -> (i32, Value) {
    let finished = hooked.home.run(&[arguments, &["--format", "json"]].concat());
    (finished.code, finished.json()["error"].clone())
}

#[test]
fn items_are_rejected_superseded_pinned_and_restored() {
    for hooked in Hooked::each() {
        let [cookies, tokens, headers] =
            ["Walrus cookies", "Walrus tokens", "Walrus headers"].map(|text| note(&hooked, text));
        let rejected = text(&hooked, &["memory", "reject", &tokens]);
        assert_eq!(rejected.trim(), format!("{tokens}  rejected  decision: Walrus tokens"));
        text(&hooked, &["memory", "supersede", &headers, "--by", &cookies]);
        text(&hooked, &["memory", "pin", &cookies]);
        assert_eq!(found(&hooked, "walrus"), [cookies.as_str()]);
        let shown = context(&hooked);
        assert!(shown.contains(&format!("Pinned:\n- Walrus cookies [{cookies}]")), "{shown}");
        assert!(!shown.contains("Walrus tokens") && !shown.contains("Walrus headers"), "{shown}");
        let got = text(&hooked, &["get", &tokens, &headers]);
        assert!(
            got.contains("mark    rejected") && got.contains(&format!("mark    superseded by {cookies}")),
            "{got}"
        );
        let listed = hooked.data(&["memory", "list"])["items"].clone();
        assert_eq!(listed.as_array().unwrap().len(), 3);
        text(&hooked, &["memory", "restore", &tokens]);
        assert_eq!(found(&hooked, "walrus tokens").first(), Some(&tokens));

        let (code, error) = failure(&hooked, &["memory", "supersede", &cookies, "--by", &cookies]);
        assert_eq!((code, &error["code"]), (7, &"invalid_request".into()), "{error}");
        let (_, error) = failure(&hooked, &["memory", "reject", "note_01HQXV3NK8ZZZZZZZZZZZZZZZZ"]);
        assert_eq!(error["code"], "not_found", "{error}");
    }
}

#[test]
fn forgotten_items_are_deleted_once() {
    for hooked in Hooked::each() {
        hooked.hook(
            "user-prompt-submit",
            &hooked.claude("UserPromptSubmit", json!({ "prompt": "Fix the walrus" })),
        );
        hooked.hook("post-tool-use", &hooked.bash("cargo test walrus", "ok"));
        assert_eq!(hooked.work(), 1);
        let session = hooked.sessions()[0]["id"].as_str().unwrap().to_owned();
        let kept = note(&hooked, "Walrus cookies");
        let observation = hooked.observations()[0]["id"].as_str().unwrap().to_owned();

        let planned = text(&hooked, &["memory", "forget", "--session", &session, "--dry-run"]);
        assert_eq!(planned.trim(), "would delete: turns 1, observations 1, raw outputs 1");
        let deleted = text(&hooked, &["memory", "forget", &observation]);
        assert_eq!(deleted.trim(), "deleted: observations 1, raw outputs 1");
        let (code, error) = failure(&hooked, &["memory", "forget", &observation]);
        assert_eq!((code, &error["code"]), (3, &"not_found".into()), "{error}");
        assert_eq!(hooked.queue(), [0; 4]);
        let deleted = text(&hooked, &["memory", "forget", "--session", &session]);
        assert_eq!(deleted.trim(), "deleted: turns 1");
        assert_eq!(found(&hooked, "walrus"), [kept.as_str()]);
        let deleted = hooked.data(&["memory", "forget", "--repo", "local/shop", "--before", "0d"]);
        assert_eq!((&deleted["forgotten"]["notes"], &deleted["more"]), (&1.into(), &false.into()));
        assert!(found(&hooked, "walrus").is_empty());
        let (code, error) = failure(&hooked, &["memory", "forget"]);
        assert_eq!((code, &error["code"]), (2, &"usage".into()), "{error}");
    }
}

#[test]
fn the_end_of_a_chat_reports_branches_that_are_not_merged() {
    let checkout = Checkout::new();
    checkout.git(&["branch", "-M", "main"]);
    checkout.git(&["switch", "-c", "experiment"]);
    checkout.write("walrus.rs", "one");
    checkout.commit();
    let hooked = Hooked::at(checkout.home);
    let chat = |prompt: &str| {
        hooked.hook("user-prompt-submit", &hooked.claude("UserPromptSubmit", json!({ "prompt": prompt })));
        hooked.hook("session-end", &hooked.claude("SessionEnd", json!({})));
    };
    chat("Try the walrus");
    let why = || hooked.data(&["search", "walrus"])["results"][0]["why"].as_str().unwrap().to_owned();
    assert!(!why().contains("not merged"), "the current branch is not labelled: {}", why());
    let git = |arguments: &[&str]| {
        let done = std::process::Command::new("git")
            .current_dir(hooked.home.working_folder())
            .args(arguments)
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
    };
    git(&["switch", "-q", "main"]);
    // The hook waits for git only 100 ms, so on a busy machine the end of a later chat reports the branches.
    let is_labelled = || why().contains("branch experiment is not merged");
    wait_until("the branch is labelled", || {
        let was_reported = is_labelled();
        if !was_reported {
            git(&["switch", "-q", "experiment"]);
            chat("Go on");
            git(&["switch", "-q", "main"]);
        }
        was_reported
    });
    git(&["merge", "-q", "experiment"]);
    wait_until("the label is gone", || {
        chat("Merge it");
        !is_labelled()
    });
}
