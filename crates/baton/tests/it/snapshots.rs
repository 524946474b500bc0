//! Snapshots of the public interfaces, so that every change of them is visible in review.

use baton_testkit::binary::Home;
use serde_json::{Value, json};

use crate::checkout::Checkout;
use crate::served::Served;

fn home() -> Home {
    Home::new(env!("CARGO_BIN_EXE_baton"))
}

#[test]
fn openapi_document_matches_the_snapshot() {
    let mut document = Served::sqlite().found("/openapi.json");
    assert_eq!(document["info"]["version"], env!("CARGO_PKG_VERSION"));
    document["info"]["version"] = "<version>".into();
    insta::assert_json_snapshot!("openapi", document);
}

#[test]
fn mcp_tools_match_the_snapshot() {
    let mut client = home().mcp_with(&["--tools", "sessions,checkpoints,tasks,memory"]);
    let tools = client.request("tools/list", &json!({}))["result"]["tools"].clone();
    for tool in tools.as_array().unwrap() {
        let name = &tool["name"];
        for schema in [&tool["inputSchema"], &tool["outputSchema"]] {
            assert_eq!(schema["type"], "object", "{name}");
            for combined in ["oneOf", "anyOf", "allOf", "$ref", "$defs"] {
                assert!(schema.get(combined).is_none(), "{name}: schemas must be plain objects for models");
            }
        }
        let described = |(_, property): (&String, &Value)| property["description"].is_string();
        assert!(tool["inputSchema"]["properties"].as_object().unwrap().iter().all(described), "{name}");
        assert!(tool["description"].is_string(), "{name}");
    }
    insta::assert_json_snapshot!("mcp_tools", tools);
}

#[test]
fn mcp_resources_and_prompts_match_the_snapshot() {
    let mut client = home().mcp();
    let mut list = |method: &str, items: &str| client.request(method, &json!({}))["result"][items].clone();
    let lists = json!({
        "resources": list("resources/list", "resources"),
        "templates": list("resources/templates/list", "resourceTemplates"),
        "prompts": list("prompts/list", "prompts"),
    });
    insta::assert_json_snapshot!("mcp_resources_and_prompts", lists);
}

/// Returns the verbs that a help text lists.
fn verbs(help: &str) -> Vec<String> {
    let listed = help.split("Commands:\n").nth(1).unwrap_or_default();
    let lines = listed.lines().take_while(|line| !line.is_empty());
    let words = lines.filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    words.filter(|word| *word != "help").map(str::to_owned).collect()
}

/// Appends the help of a verb and of its subcommands.
fn reference(home: &Home, path: &[String], text: &mut String) {
    let arguments = [path, &["--help".to_owned()]].concat();
    let finished = home.run(&arguments);
    assert_eq!((finished.code, finished.stderr.as_str()), (0, ""), "{path:?}");
    *text += &format!("$ baton {}\n{}\n", arguments.join(" "), finished.stdout);
    for verb in verbs(&finished.stdout) {
        reference(home, &[path, &[verb]].concat(), text);
    }
}

#[test]
fn command_line_help_matches_the_snapshot() {
    let mut text = String::new();
    reference(&home(), &[], &mut text);
    for verb in ["baton session start --help", "baton handoff ack --help", "baton token revoke --help"] {
        assert!(text.contains(verb), "the reference must include {verb}");
    }
    insta::assert_snapshot!("cli_reference", text);
}

/// Returns the commands that a help text shows as examples.
fn examples(help: &str) -> Vec<String> {
    help.lines().filter_map(|line| line.trim_start().strip_prefix("$ ")).map(str::to_owned).collect()
}

#[test]
fn examples_of_groups_run() {
    let checkout = Checkout::new();
    let home = &checkout.home;
    let path = std::path::Path::new(env!("CARGO_BIN_EXE_baton")).parent().unwrap();
    let path = format!("{}:{}", path.display(), std::env::var("PATH").unwrap());
    home.run(&["session", "start", "--agent", "claude-1"]);
    for group in [
        "",
        "session",
        "handoff",
        "checkpoint",
        "key",
        "task",
        "queue",
        "observation",
        "turn",
        "token",
        "config",
    ] {
        let words: Vec<&str> = group.split_whitespace().chain(["--help"]).collect();
        let examples = examples(&home.run(&words).stdout);
        assert!(!examples.is_empty(), "{group}");
        for example in examples {
            let mut command = std::process::Command::new("sh");
            for (name, value) in home.command().get_envs() {
                command.envs(value.map(|value| (name, value)));
            }
            command.current_dir(home.working_folder()).env("PATH", &path);
            let output = command.args(["-c", &example]).output().unwrap();
            assert!(output.status.success(), "{example}: {output:?}");
        }
    }
}
