//! Task files in every form that YAML allows: each initialises a context, and unusable fields cause warnings.

use baton_core::ErrorCode;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::checkout::{Checkout, TASK, context_at};

const PATH: &str = "tasks/open/TASK-0824-settings.task.yaml";

/// Initialises a context from a task file and returns its title and warnings.
fn init(bytes: &[u8]) -> Result<(String, String), baton_core::Fault> {
    let checkout = Checkout::new();
    std::fs::write(checkout.root().join(PATH), bytes).unwrap();
    let answer = checkout.try_call("init_context", json!({ "task_id": TASK }))?;
    let title = context_at(checkout.root(), TASK).immutable.task_snapshot.title;
    Ok((title, answer["warnings"].to_string()))
}

#[test]
fn every_yaml_form_initialises_a_context() {
    let cases: &[(&str, &str, &str)] = &[
        ("plain", "id: TASK-0824\ntitle: T\nstatus: in_progress\n", "T"),
        ("number as title and id", "id: 824\ntitle: 2026\nstatus: in_progress\n", "2026"),
        ("boolean as title", "id: true\ntitle: false\nstatus: in_progress\n", "false"),
        (
            "date as title",
            "title: 2026-11-16\nstatus: in_progress\ndue: 2026-11-16T02:30:00Z\n",
            "2026-11-16",
        ),
        (
            "float and special numbers",
            "title: T\nstatus: in_progress\na: .nan\nb: -.inf\nc: 1e400\nd: 0x1F\ne: 0o17\n",
            "T",
        ),
        (
            "large integers",
            "title: T\nstatus: in_progress\na: 18446744073709551616\nb: -9223372036854775809\n",
            "T",
        ),
        (
            "null fields",
            "title: T\nstatus: in_progress\ndescription: null\npriority: ~\narea:\nscope:\nqa:\nstandards:\npipeline:\nacceptance_criteria:\nid:\n",
            "T",
        ),
        (
            "mapping of lists",
            "title: T\nstatus: in_progress\nacceptance_criteria:\n  must: [a, b]\n  should:\n    - c: d\n",
            "T",
        ),
        (
            "nested lists",
            "title: T\nstatus: in_progress\nscope: {in: [[src, [docs]], [[[README.md]]]]}\nacceptance_criteria: [[a, [b, [c]]]]\n",
            "T",
        ),
        (
            "anchors and aliases",
            "title: &t T\nstatus: in_progress\ndescription: *t\nscope: {in: &s [src]}\nscope_in: *s\n",
            "T",
        ),
        (
            "merge keys",
            "base: &base\n  status: in_progress\n  title: From base\nother: &other {area: backend}\n<<: [*base, *other]\ntitle: Own\n",
            "Own",
        ),
        (
            "merge of the whole task",
            "base: &base {title: Merged, status: in_progress}\n<<: *base\n",
            "Merged",
        ),
        ("documents", "title: First\nstatus: in_progress\n---\ntitle: Second\n---\n- third\n...\n", "First"),
        ("empty first document", "---\n---\ntitle: T\nstatus: in_progress\n", "T"),
        (
            "directives and end mark",
            "%YAML 1.2\n%TAG !e! tag:example.com,2026:\n---\ntitle: !e!x T\nstatus: in_progress\n...\n",
            "T",
        ),
        (
            "tags",
            "title: !!str 5\nstatus: !custom in_progress\nx: !!binary aGk=\ny: !!set {a, b}\nz: !thing {a: 1}\nw: !!omap [a: 1]\nv: !!float 1\n",
            "5",
        ),
        ("broken binary", "title: T\nstatus: in_progress\nx: !!binary '/w=='\n", "T"),
        (
            "block scalars",
            "title: >-\n  Folded\n  title\nstatus: in_progress\ndescription: |+\n  kept\n\n\nnote: |2\n    indented\n",
            "Folded title",
        ),
        ("quoted", "\"title\": \"T \\u00e9 \\t\"\n'status': 'in_progress'\n", "T \u{e9}"),
        (
            "unicode",
            "title: Schnellere Einstellungen 設定 🚀 \u{202e}rtl\nstatus: in_progress\narea: größe\n",
            "Schnellere Einstellungen 設定 🚀 \u{202e}rtl",
        ),
        ("byte order mark", "\u{feff}title: T\nstatus: in_progress\n", "T"),
        ("carriage returns", "title: T\r\nstatus: in_progress\r\ndescription: |\r\n  one\r\n  two\r\n", "T"),
        ("duplicate keys", "title: T\nstatus: in_progress\ntitle: U\nscope: {in: [a], in: [b]}\n", "U"),
        (
            "keys that are no text",
            "title: T\nstatus: in_progress\n1: a\ntrue: b\n~: c\n1.5: d\n2026-11-16: e\n? [x, y]\n: f\n? {k: v}\n: g\n",
            "T",
        ),
        (
            "flow style and comments",
            "# first\n{title: T, status: in_progress, # inside\n scope: {in: [src, 'a b'],},}\n# last\n",
            "T",
        ),
        ("title as list", "title: [a, b]\nstatus: in_progress\n", "a; b"),
        ("title as mapping", "title: {Fix: the bug}\nstatus: in_progress\n", "Fix: the bug"),
        ("no title", "status: in_progress\ndescription: Do it.\n", "TASK-0824"),
        ("no status", "title: T\n", "T"),
        ("status in other words", "title: T\nstatus: In Progress\n", "T"),
        ("only an id", "id: TASK-0824\n", "TASK-0824"),
        (
            "description of comments",
            "title: T\nstatus: in_progress\ndescription: |\n  # nothing\n\n  # here\n",
            "T",
        ),
        (
            "fields of other types",
            "title: T\nstatus: in_progress\npriority: 1\narea: [a, b]\nscope: 5\nqa: 7\nstandards: {a: b}\npipeline: {a: b}\nvalidation: 3\ncontext: x\nacceptance_criteria: true\n",
            "T",
        ),
        ("pipeline with a role twice", "title: T\nstatus: in_progress\npipeline: [a, a]\n", "T"),
        (
            "odd scopes",
            "title: T\nstatus: in_progress\nscope: {in: ['/etc', '../x', 'a[b', '', ' ', '**', ':nope', \"a\\0b\"]}\n",
            "T",
        ),
        ("tabs after keys", "title:\tT\nstatus:\tin_progress\n", "T"),
        (
            "long line",
            &format!("title: T\nstatus: in_progress\ndescription: {}\n", "word ".repeat(20_000)),
            "T",
        ),
    ];
    for (name, text, title) in cases {
        let (found, warnings) = init(text.as_bytes())
            .unwrap_or_else(|fault| panic!("{name}: {} {:?}", fault.message, fault.hint));
        assert_eq!(found, *title, "{name}: {warnings}");
    }
}

#[test]
fn utf_16_files_are_read() {
    let text = "\u{feff}title: Größe\nstatus: in_progress\n";
    let little: Vec<u8> = text.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = text.encode_utf16().flat_map(u16::to_be_bytes).collect();
    for bytes in [little, big] {
        assert_eq!(init(&bytes).unwrap().0, "Größe");
    }
    assert_eq!(init(b"title: \xff\n").unwrap_err().code, ErrorCode::InvalidRequest);
}

#[test]
fn unusable_content_is_listed_in_warnings() {
    let text = "title: T\ntitle: U\nstatus: in_progress\nowner: me\npriority: high\n---\nsecond: document\n";
    let (_, warnings) = init(text.as_bytes()).unwrap();
    for part in ["duplicate key", "2 documents", "does not use: owner", "priority"] {
        assert!(warnings.contains(part), "{part}: {warnings}");
    }
}

#[test]
fn deep_nesting_is_refused_without_a_crash() {
    let deep = format!("title: T\nstatus: in_progress\nx: {}{}\n", "[".repeat(50_000), "]".repeat(50_000));
    assert_eq!(init(deep.as_bytes()).unwrap_err().code, ErrorCode::InvalidRequest);
}

fn any_value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("JSON has no other numbers", |x| x.is_finite()).prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map("\\PC{0,8}", inner, 0..5)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    /// JSON is valid YAML: a task with an id initialises with any values in its fields.
    #[test]
    fn any_value_in_any_field_initialises(
        fields in prop::collection::btree_map(
            prop::sample::select(vec!["title", "priority", "area", "description", "scope", "scope_in", "scope_out",
                "acceptance_criteria", "qa", "pipeline", "validation", "context", "outcome", "other"]),
            any_value(),
            0..6,
        )
    ) {
        let mut file = json!({ "id": TASK, "status": "in_progress" });
        for (name, value) in &fields {
            file[*name] = value.clone();
        }
        if let Err(fault) = init(file.to_string().as_bytes()) {
            // A random text may look like a secret.
            prop_assert!(fault.code == ErrorCode::SecretFound, "{file}: {}", fault.message);
        }
    }
}
