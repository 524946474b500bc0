//! Compares the tables in `docs/` with the registered routes and tools.

use std::collections::BTreeSet;
use std::path::Path;

use baton_app::{routes, tools};

/// Reads the lines of one section of a document.
fn section(document: &str, heading: &str) -> Vec<String> {
    let path = Path::new("../../docs").join(document);
    let text = std::fs::read_to_string(&path).unwrap();
    let lines = text.lines().skip_while(|line| *line != heading).skip(1);
    let lines: Vec<String> = lines.take_while(|line| !line.starts_with("## ")).map(str::to_owned).collect();
    assert!(!lines.is_empty(), "{document} has no section {heading}");
    lines
}

/// Returns the parts of a text between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn table_of_endpoints_lists_every_route_with_its_operation() {
    let mut documented = BTreeSet::new();
    for line in section("http-api.md", "## Endpoints") {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [_, endpoint, operation, ..] = cells[..] else { continue };
        let Some(operation) = quoted(operation).next() else { continue };
        let mut previous = "";
        for name in quoted(endpoint) {
            let (method, path) = name.split_once(' ').unwrap_or((previous, name));
            previous = method;
            documented.insert(format!("{method} {path} {operation}"));
        }
    }
    let registered: BTreeSet<String> = routes()
        .iter()
        .map(|route| format!("{} {} {}", route.method.as_str(), route.path, route.operation.name))
        .collect();
    let missing: Vec<_> = registered.difference(&documented).collect();
    let unknown: Vec<_> = documented.difference(&registered).collect();
    assert!(
        missing.is_empty() && unknown.is_empty(),
        "docs/http-api.md, table of endpoints: missing {missing:#?}, not registered {unknown:#?}"
    );
}

#[test]
fn table_of_tools_lists_every_tool() {
    let lines = section("mcp.md", "## Tools");
    let rows = lines.iter().skip_while(|line| *line != "| set | tools |").skip(2);
    let rows = rows.take_while(|line| line.starts_with('|'));
    let documented: BTreeSet<&str> = rows.filter_map(|row| row.split('|').nth(2)).flat_map(quoted).collect();
    let registered: BTreeSet<&str> = tools().iter().map(|binding| binding.name).collect();
    assert_eq!(documented, registered, "docs/mcp.md, table of sets (left) differs from the tools (right)");
}
