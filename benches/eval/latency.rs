//! Latency for generated outputs of 100 KB, one of each kind. The fastest run is least affected by other load.

use std::time::Instant;

use baton_benches::{Timings, table};
use baton_llm::{Compressor, Offline};
use baton_observation::ToolUse;
use serde_json::{Value, json};

const BYTES: usize = 100_000;
const RUNS: usize = 51;

/// Measures and prints the latencies.
pub(crate) fn report() {
    let rows = cases().into_iter().map(|(name, tool_use)| {
        let name = format!("{} {name}", tool_use.tool_name);
        let timings = (0..RUNS).map(|_| {
            let started = Instant::now();
            let compression = Offline.compress(&tool_use).expect("it never fails");
            std::hint::black_box(compression);
            started.elapsed()
        });
        let timings = Timings::new(timings.collect());
        let milliseconds = |percent| format!("{:.2}", timings.percentile_ms(percent));
        vec![name, milliseconds(0), milliseconds(50), milliseconds(99), milliseconds(100)]
    });
    table(
        "Made-up outputs of 100 KB",
        &["output", "fastest ms", "p50 ms", "p99 ms", "max ms"],
        &rows.collect::<Vec<_>>(),
    );
}

fn cases() -> Vec<(&'static str, ToolUse)> {
    let test_log = fill(|index| {
        let verdict = if index % 97 == 3 { "FAILED" } else { "ok" };
        format!("test module_{index}::handles_case_{} ... {verdict}\n", index * 7)
    });
    let log = fill(|index| {
        format!(
            "2026-01-02 10:00:{:02} INFO request_id=req{index} handled GET /items/{index} in {} ms\n",
            index % 60,
            index % 97
        )
    });
    let hits = fill(|index| {
        format!(
            "src/module_{}/file_{index}.rs:{}:    let value = parse_header(input_{index})?;\n",
            index % 40,
            index * 3
        )
    });
    let array = format!(
        "[{}]",
        fill(|index| format!(
            "{{\"id\":{index},\"title\":\"Item number {index}\",\"path\":\"src/file_{index}.ts\"}},"
        ))
        .trim_end_matches(',')
    );
    let prose = fill(|index| {
        format!(
            "## Part {index}\n\nThe function `handle_request_{index}` in src/http_{index}.rs returns {index} rows.\n\n"
        )
    });
    let read = |name: &str, content: String| {
        let file =
            json!({ "filePath": format!("/w/{name}"), "content": content, "startLine": 1, "numLines": 1 });
        tool_use(
            "Read",
            json!({ "file_path": format!("/w/{name}") }),
            json!({ "type": "text", "file": file }),
        )
    };
    let mut cases = vec![
        (
            "cargo test log",
            tool_use("Bash", json!({ "command": "cargo test" }), json!({ "stdout": test_log, "stderr": "" })),
        ),
        (
            "server log",
            tool_use("Bash", json!({ "command": "./serve" }), json!({ "stdout": log, "stderr": "" })),
        ),
        (
            "one line",
            tool_use(
                "Bash",
                json!({ "command": "cat app.min.js" }),
                json!({ "stdout": "let aB=1;".repeat(BYTES / 9) }),
            ),
        ),
        (
            "search",
            tool_use(
                "Grep",
                json!({ "pattern": "parse_header" }),
                json!({ "mode": "content", "content": hits }),
            ),
        ),
        (
            "JSON of an MCP tool",
            tool_use("mcp__x__list", json!({}), json!([{ "type": "text", "text": array }])),
        ),
        (
            "report of a sub-agent",
            tool_use(
                "Task",
                json!({ "description": "Explore" }),
                json!({ "content": [{ "type": "text", "text": prose }] }),
            ),
        ),
    ];
    for (name, content) in sources() {
        cases.push((name, read(name, content.clone())));
    }
    for (name, content) in sources() {
        cases.push((name, edit(name, &content)));
    }
    cases
}

/// Returns a file of 100 KB in each language.
fn sources() -> Vec<(&'static str, String)> {
    vec![
        (
            "a.rs",
            fill(|i| {
                format!(
                    "/// Handles {i}.\npub fn handle_{i}(input: &str) -> Result<u32, Error> {{\n    let value = input.parse::<u32>().map_err(Error::from)?;\n    if value > {i} {{ return Err(Error::TooLarge {{ value }}); }}\n    Ok(value)\n}}\n\n"
                )
            }),
        ),
        (
            "a.py",
            fill(|i| {
                format!(
                    "def handle_{i}(self, value: int) -> str:\n    \"\"\"Handles {i}.\"\"\"\n    if value > {i}:\n        raise ValueError(f\"too large: {{value}}\")\n    return self.store.get(value, default={i})\n\n\n"
                )
            }),
        ),
        (
            "a.ts",
            fill(|i| {
                format!(
                    "export async function handle{i}(input: Request): Promise<Response> {{\n  const value = await input.json<{{ n: number }}>();\n  if (value.n > {i}) throw new Error(`too large: ${{value.n}}`);\n  return new Response(JSON.stringify({{ ok: true }}));\n}}\n\n"
                )
            }),
        ),
        (
            "a.js",
            fill(|i| {
                format!(
                    "const handle{i} = async (input) => {{\n  const value = await input.json();\n  if (value.n > {i}) throw new Error(`too large`);\n  return {{ ok: true, value }};\n}};\n\n"
                )
            }),
        ),
        (
            "a.go",
            fill(|i| {
                format!(
                    "// Handle{i} handles it.\nfunc (s *Store) Handle{i}(ctx context.Context, input string) (int, error) {{\n\tvalue, err := strconv.Atoi(input)\n\tif err != nil {{\n\t\treturn 0, fmt.Errorf(\"parse %q: %w\", input, err)\n\t}}\n\treturn value + {i}, nil\n}}\n\n"
                )
            }),
        ),
        (
            "a.java",
            format!(
                "class A {{\n{}}}\n",
                fill(|i| format!(
                    "  public int handle{i}(String input) throws IOException {{\n    int value = Integer.parseInt(input);\n    if (value > {i}) {{ throw new IllegalArgumentException(\"too large\"); }}\n    return value;\n  }}\n\n"
                ))
            ),
        ),
    ]
}

/// Returns an edit of one line in the middle of a file; the response contains the whole file.
fn edit(name: &str, content: &str) -> ToolUse {
    let middle = content.floor_char_boundary(content.len() / 2);
    let line = content.get(middle..).and_then(|rest| rest.lines().nth(1)).unwrap_or_default();
    let path = format!("/w/{name}");
    let new = format!("{line} ");
    tool_use(
        "Edit",
        json!({ "file_path": path, "old_string": line, "new_string": new }),
        json!({ "filePath": path, "oldString": line, "newString": new, "originalFile": content }),
    )
}

fn fill(line: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    let mut index = 0;
    while text.len() < BYTES {
        text.push_str(&line(index));
        index += 1;
    }
    text
}

fn tool_use(name: &str, tool_input: Value, tool_response: Value) -> ToolUse {
    ToolUse { tool_name: name.into(), tool_input, tool_response, cwd: Some("/w".into()), turn: None }
}
