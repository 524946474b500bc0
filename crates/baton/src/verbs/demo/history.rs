//! A month of made-up chats for `baton demo --serve`, as transcripts of Claude Code, which `baton import` reads.

use std::path::Path;
use std::time::Duration;

use baton_core::Timestamp;
use serde_json::{Value, json};

const DAYS: u64 = 30;
const DAY: Duration = Duration::from_secs(86_400);

/// Request, file, command and its output, and closing message of a chat.
struct Topic {
    branch: &'static str,
    request: &'static str,
    file: &'static str,
    output: &'static str,
    closing: &'static str,
}

const TOPICS: [Topic; 6] = [
    Topic {
        branch: "feature/login",
        request: "Customers must stay signed in for a day.",
        file: "src/session.rs",
        output: "test result: ok. 14 passed; 0 failed; 0 ignored",
        closing: "Sessions live for 24 hours; the cookie is renewed with every request.",
    },
    Topic {
        branch: "fix/cart",
        request: "The cart loses items when two tabs are open.",
        file: "src/cart.rs",
        output: "test cart::two_tabs ... FAILED\ntest result: FAILED. 8 passed; 1 failed; 0 ignored",
        closing: "The cart is merged by item now. One test still fails: the order of items differs.",
    },
    Topic {
        branch: "feature/search",
        request: "Search must find products by their number.",
        file: "src/search.rs",
        output: "test result: ok. 31 passed; 0 failed; 0 ignored",
        closing: "Product numbers are indexed as whole words and by their beginning.",
    },
    Topic {
        branch: "chore/upgrade",
        request: "Upgrade the payment library.",
        file: "Cargo.toml",
        output: "test result: ok. 52 passed; 0 failed; 0 ignored",
        closing: "The library is upgraded; refunds need the new field `reason`.",
    },
    Topic {
        branch: "fix/mail",
        request: "Why are some order mails sent twice?",
        file: "src/mail.rs",
        output: "test result: ok. 9 passed; 0 failed; 0 ignored",
        closing: "The queue retried after a timeout although the mail was sent. Mails have an idempotency key now.",
    },
    Topic {
        branch: "docs/setup",
        request: "Describe how to run the shop locally.",
        file: "README.md",
        output: "all links work",
        closing: "The README describes the setup with and without Docker.",
    },
];

/// Returns the name and the text of each transcript, for the days before `now`.
pub(super) fn transcripts(checkout: &Path, now: Timestamp) -> Vec<(String, String)> {
    let chats = (0..DAYS).flat_map(|day| (0..=day % 3).map(move |chat| (day, chat)));
    chats
        .map(|(day, chat)| {
            let topic = &TOPICS[((day * 5 + chat * 2) % TOPICS.len() as u64) as usize];
            let start = now.minus(DAY * (DAYS - day) as u32).plus(Duration::from_secs(chat * 5_400));
            let id = format!("demo-{day:02}-{chat}");
            (format!("{id}.jsonl"), transcript(topic, &id, checkout, start))
        })
        .collect()
}

fn transcript(topic: &Topic, id: &str, checkout: &Path, start: Timestamp) -> String {
    let edit = json!({
        "file_path": checkout.join(topic.file), "old_string": "before", "new_string": "after",
    });
    let check = json!({ "command": "cargo test" });
    let call = |id: &str, name: &str, input: Value| json!([{ "type": "tool_use", "id": id, "name": name, "input": input }]);
    let result =
        |id: &str, text: &str| json!([{ "type": "tool_result", "tool_use_id": id, "content": text }]);
    let messages = [
        ("user", topic.request.into()),
        ("assistant", call("toolu_1", "Edit", edit)),
        ("user", result("toolu_1", "The file was updated")),
        ("assistant", call("toolu_2", "Bash", check)),
        ("user", result("toolu_2", topic.output)),
        ("assistant", json!([{ "type": "text", "text": topic.closing }])),
    ];
    let lines = messages.into_iter().enumerate().map(|(number, (role, content))| {
        let line = json!({
            "type": role, "sessionId": id, "cwd": checkout, "gitBranch": topic.branch, "isSidechain": false,
            "timestamp": start.plus(Duration::from_secs(number as u64 * 90)),
            "message": { "role": role, "content": content },
        });
        format!("{line}\n")
    });
    lines.collect()
}
