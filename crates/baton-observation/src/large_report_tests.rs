use proptest::prelude::*;
use serde_json::json;

use super::*;
use crate::{PRIVATE_MARK, is_truncated, read_lenient};

/// Reads a report as a stream. Returns it and its output.
fn large(report: &[u8]) -> (LargeReport<()>, Value) {
    let read = read_large(report, Vec::new()).unwrap();
    let (fields, output_bytes) = (read.fields.clone(), read.output_bytes);
    let output = serde_json::from_slice(&read.seal(Some("/work")).unwrap()).unwrap();
    (LargeReport { fields, output_bytes, sink: () }, output)
}

/// Redacts a report in memory. Returns its fields and its output.
fn whole(report: &[u8]) -> (Map<String, Value>, Value) {
    let mut report = Value::Object(read_lenient(report).unwrap());
    make_private(&mut report);
    let Value::Object(mut fields) = report else { unreachable!() };
    let input = fields.get("tool_input").cloned();
    let [response, error] = ["tool_response", "error"].map(|name| fields.remove(name));
    let members = [("tool_input", input), ("tool_response", response), ("error", error)];
    let mut output: Map<String, Value> =
        members.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect();
    output.insert("cwd".into(), "/work".into());
    (fields, Value::Object(output))
}

fn assert_same(report: &[u8]) {
    let ((read, output), (fields, expected)) = (large(report), whole(report));
    let shown = String::from_utf8_lossy(&report[..report.len().min(2_000)]);
    assert!(output == expected, "{shown}");
    if serde_json::to_string(&fields).unwrap().len() < FIELDS.text.total {
        assert_eq!(Value::Object(read.fields), Value::Object(fields));
    }
}

fn token() -> String {
    format!("ghp_{}", "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1xY3z5A")
}

#[test]
fn streaming_redacts_like_in_memory() {
    let token = token();
    for report in [
        json!({}),
        json!({ "prompt": "hello", "n": [1, -2.5, true, null], "deep": { "a": { "b": [] } } }),
        json!({ "session_id": "c", "tool_name": "Bash", "tool_input": { "command": format!("echo {token}") },
                "tool_response": { "stdout": format!("a <private>b</private> {token}"), "code": 0 }, "cwd": "/x" }),
        json!({ "tool_response": "just text", "error": "it failed", "tool_input": null }),
        json!({ "tool_response": ["+<private>", "LEAK", 12, { "x": [3], "y": "LEAK", "z": null }, "+</private>", "b"] }),
        json!({ "tool_response": { "a<private>n</private>": "<private>", token.clone(): "b", "c": "</private> d" } }),
        json!({ "tool_input": { "headers": { "authorization": "Bearer abcdefghij0123456789xyz" } },
                "tool_response": { "env": ["DB_PASSWORD=hunter2hunter2", "x"], "client_secret": "q8Zr71bb0Lxx" } }),
        json!({ "tool_response": [["a"], [], [[["-----BEGIN PRIVATE KEY-----", "MIIE", "-----END PRIVATE KEY-----"]]], {}] }),
    ] {
        assert_same(report.to_string().as_bytes());
        assert_same(serde_json::to_string_pretty(&report).unwrap().as_bytes());
    }
    assert_same(b"\xef\xbb\xbf {\"tool_response\":\"cut \\ud83d\\n \xff \\d \x00\",\"a\":[1e400,NaN]} ");
}

#[test]
fn streaming_redacts_long_texts_like_in_memory() {
    let token = token();
    let line = format!("{}\n", "2026-11-15 INFO é handled in 12 ms".repeat(3));
    let log = line.repeat(9_000);
    for (before, inside, after) in [
        (log.len(), "nothing".to_owned(), 0),
        (log.len() / 2, format!("export TOKEN={token}\n"), log.len() / 2),
        (65_530, format!("<private reason=\"x\">{token}</private>"), 300_000),
        (100, format!("<private>{}</private>", log.replace("é", "LEAK")), 200_000),
        (
            65_000,
            format!(
                "-----BEGIN RSA PRIVATE KEY-----\n{}-----END RSA PRIVATE KEY-----",
                "MIIEabcd\n".repeat(900)
            ),
            200_000,
        ),
    ] {
        let part = |bytes: usize| log.get(..log.floor_char_boundary(bytes)).unwrap();
        let text = format!("{}\n{inside}\n{}", part(before), part(after));
        assert_same(json!({ "tool_response": text }).to_string().as_bytes());
        assert_same(
            json!({ "tool_response": { "stdout": text, "n": 1 }, "tool_input": { "content": text } })
                .to_string()
                .as_bytes(),
        );
        assert_same(
            json!({ "tool_response": [{ "type": "text", "text": text }, text, 3] }).to_string().as_bytes(),
        );
    }
    // A private tag that is open before a long text of a list hides all of it.
    let (_, output) =
        large(json!({ "tool_response": ["<private>", log, "</private>b", log] }).to_string().as_bytes());
    assert_eq!(output["tool_response"], json!([PRIVATE_MARK, PRIVATE_MARK, format!("{PRIVATE_MARK}b"), log]));
}

#[test]
fn returns_the_output_size_and_truncated_input() {
    let long = "x\n".repeat(FIELDS.text.total);
    let report = json!({ "tool_input": { "file_path": "/a/b.rs", "content": long }, "tool_response": "ab\nc", "error": null });
    let (read, output) = large(report.to_string().as_bytes());
    assert_eq!((read.output_bytes, &read.fields["tool_input"]["file_path"]), (4, &json!("/a/b.rs")));
    let kept = read.fields["tool_input"]["content"].as_str().unwrap();
    assert!(is_truncated(kept) && kept.len() < FIELDS.text.total + 100, "{}", kept.len());
    assert!(output["tool_input"]["content"] == long.as_str());
    let response = json!({ "a": ["é\n", 1, null], "b": {} });
    assert_eq!(
        large(json!({ "tool_response": response }).to_string().as_bytes()).0.output_bytes,
        response.to_string().len() as u64
    );
    assert_eq!(large(br#"{"tool_response":null}"#).0.output_bytes, 0);
}

#[test]
fn small_fields_after_large_ones_are_kept() {
    let numbers: Vec<u32> = (1_000_000..2_000_000).collect();
    let report = json!({ "a": numbers, "b": numbers, "c": numbers, "d": "y".repeat(FIELDS.total), "session_id": "s-1" });
    let (read, _) = large(report.to_string().as_bytes());
    let names: Vec<&str> = read.fields.keys().map(String::as_str).collect();
    assert_eq!((names, &read.fields["session_id"]), (vec!["a", "b", "c", "d", "session_id"], &json!("s-1")));
}

#[test]
fn fields_are_truncated_and_those_after_the_limit_are_omitted() {
    let numbers: Vec<u32> = (1_000_000..2_000_000).collect();
    let long = "y".repeat(3 * FIELDS.total);
    let mut report =
        json!({ "a_prompt": long, "numbers": numbers, "tool_response": "said", "event": "stop" });
    (0..99).for_each(|number| report[format!("z{number:02}")] = long[..FIELDS.text.total].into());
    let (read, output) = large(report.to_string().as_bytes());
    assert_eq!(output["tool_response"], "said");
    assert_eq!((&read.fields["event"], read.fields.contains_key("z98")), (&json!("stop"), false));
    let kept_numbers = read.fields["numbers"].as_array().unwrap();
    assert!(kept_numbers.last().unwrap().as_str().unwrap().ends_with(" more items ...]"));
    assert!(is_truncated(read.fields["a_prompt"].as_str().unwrap()));
    let all: usize = read.fields.values().map(|value| value.to_string().len()).sum();
    assert!((FIELDS.total / 4..=FIELDS.total).contains(&all), "{all}");
}

#[test]
fn rejects_invalid_documents() {
    let error = |bytes: &[u8]| read_large(bytes, Vec::new()).unwrap_err().to_string();
    for (bytes, expected) in [
        (&b" \n"[..], "the input is empty"),
        (b"[1]", "the input is not a JSON object"),
        (b"\"tool_response\"", "the input is not a JSON object"),
        (b"{\"tool_response\":\"cut", "the input is not JSON: a text has no end at byte 21"),
        (b"{\"a\":1} x", "the input is not JSON: something follows the document at byte 8"),
        (b"{\"a\" 1}", "the input is not JSON: `:` is expected at byte 5"),
    ] {
        assert_eq!(error(bytes), expected);
    }
}

/// Generates private tags, secrets, prefixes of them and arbitrary text.
fn word() -> impl Strategy<Value = String> {
    let known = [
        "<private>",
        "</private>",
        "<private why=\"x\">",
        "<priv",
        "\\u003cprivate\\u003e",
        "LEAK",
        "password=",
        "\n",
    ];
    prop_oneof![4 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => Just(token()), 2 => any::<String>()]
}

fn any_report() -> impl Strategy<Value = Value> {
    let text = prop::collection::vec(word(), 0..6).prop_map(|words| Value::from(words.concat()));
    let leaf = prop_oneof![4 => text, 1 => any::<i64>().prop_map(Value::from), 1 => Just(Value::Null)];
    let inner = leaf.prop_recursive(4, 30, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::hash_map("[a-z]{1,4}", inner, 0..5)
                .prop_map(|members| members.into_iter().collect::<Value>()),
        ]
    });
    let name = prop::sample::select(vec!["tool_input", "tool_response", "error", "prompt", "other"])
        .prop_map(str::to_owned);
    prop::collection::hash_map(name, inner, 0..5).prop_map(|members| members.into_iter().collect::<Value>())
}

proptest! {
    #[test]
    fn streaming_redacts_any_report_like_in_memory(report in any_report()) {
        let bytes = report.to_string().into_bytes();
        let ((read, output), (fields, expected)) = (large(&bytes), whole(&bytes));
        prop_assert_eq!(Value::Object(read.fields), Value::Object(fields));
        prop_assert_eq!(output, expected);
    }
}
