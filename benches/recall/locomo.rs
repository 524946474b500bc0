//! Questions about long conversations.

use std::collections::HashSet;
use std::path::Path;

use baton_benches::{release_binary, table};
use baton_testkit::binary::Home;
use serde_json::{Value, json};

use super::{percent, search};

/// Imports each conversation into its own store and asks its questions.
pub(super) fn measure(data: &Path) {
    let text = std::fs::read_to_string(data).expect("a file of conversations");
    let conversations: Value = serde_json::from_str(&text).expect("conversations as JSON");
    let (mut rows, mut all_hits, mut all) = (Vec::new(), 0, 0);
    for conversation in conversations.as_array().expect("a list of conversations") {
        let home = Home::new(&release_binary("baton").to_string_lossy());
        let lines: Vec<String> =
            array(&conversation["turns"]).iter().map(|turn| line(turn).to_string()).collect();
        let file = home.path().join("conversation.jsonl");
        std::fs::write(&file, lines.join("\n")).expect("a file");
        let imported = home.run(&["import", "observations", &file.to_string_lossy()]);
        assert_eq!(imported.code, 0, "{imported:?}");
        let server = home.serve();
        let questions = array(&conversation["questions"]);
        let hits = questions.iter().filter(|question| {
            let gold: HashSet<&str> = array(&question["evidence"]).iter().filter_map(Value::as_str).collect();
            let found = search(&server, question["question"].as_str().expect("a question"));
            found.iter().any(|result| result["external_id"].as_str().is_some_and(|id| gold.contains(id)))
        });
        let hits = hits.count();
        rows.push(vec![conversation["sample"].to_string(), percent(hits, questions.len())]);
        all_hits += hits;
        all += questions.len();
    }
    rows.push(vec!["all".into(), percent(all_hits, all)]);
    table("LoCoMo, any@10 of turns", &["conversation", "answered"], &rows);
}

fn array(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Returns a turn as a line of `baton import observations`.
fn line(turn: &Value) -> Value {
    let text = |name: &str| turn[name].as_str().expect("text");
    let said = format!("{}: {}", text("speaker"), text("text"));
    let title: String = said.chars().take(80).collect();
    let session = text("id").split(':').next().expect("the session before a colon");
    json!({
        "title": title, "summary": said, "external_id": text("id"), "repo": "locomo/conversation",
        "session": session, "created_at": time(text("time")),
    })
}

/// Converts `1:56 pm on 8 May, 2023` to RFC 3339.
fn time(text: &str) -> String {
    let words: Vec<&str> = text.split([' ', ',', ':']).filter(|word| !word.is_empty()).collect();
    let words: [&str; 7] = words.try_into().expect("hour, minute, half, on, day, month and year");
    let [hour, minute, half, _, day, month, year] = words;
    let months = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let month = months.iter().position(|name| month.to_lowercase().starts_with(name)).expect("a month") + 1;
    let hour: u32 = hour.parse::<u32>().expect("an hour") % 12 + if half == "pm" { 12 } else { 0 };
    let day: u32 = day.parse().expect("a day");
    format!("{year}-{month:02}-{day:02}T{hour:02}:{minute}:00Z")
}
