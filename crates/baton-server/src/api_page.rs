//! The API reference as an HTML page, generated from the same table as the OpenAPI document.

use std::fmt::Write;

use baton_app::{Route, routes};
use serde_json::Value;

use crate::openapi::example;

const HEAD: &str = "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>Baton API</title>\
<meta name=\"viewport\" content=\"width=device-width\"><style>\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}\
code{font:14px ui-monospace,monospace;background:#f2f4f6;padding:.1em .3em;border-radius:4px}\
h2{margin-top:2rem;border-top:1px solid #d8dee4;padding-top:1rem}table{border-collapse:collapse}\
td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}\
pre{background:#f2f4f6;padding:1rem;overflow:auto}</style><h1>Baton API</h1>\
<p>Send the relay key as <code>X-Relay-Key</code> or a token as <code>Authorization: Bearer</code>. \
The machine-readable document is <a href=\"/openapi.json\">/openapi.json</a>.</p>";

pub(crate) fn api_page() -> String {
    let mut page = String::from(HEAD);
    for route in routes() {
        page.push_str(&section(&route));
    }
    page.push_str("</html>");
    page
}

fn section(route: &Route) -> String {
    let operation = route.operation;
    let mut section = format!(
        "<h2><code>{} {}</code></h2><p>{}</p><table><tr><th>parameter</th><th>type</th><th></th></tr>",
        route.method.as_str(),
        escape(route.path),
        escape(operation.summary)
    );
    let schema = operation.params_schema();
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        let kind = kind_of(&property["type"]);
        let needed = if required.iter().any(|field| field == name) { ", required" } else { "" };
        let text = escape(property["description"].as_str().unwrap_or_default());
        // Writing to a string cannot fail.
        let _ =
            write!(section, "<tr><td><code>{name}</code></td><td>{kind}{needed}</td><td>{text}</td></tr>");
    }
    section.push_str("</table>");
    if let Some(example) = example(operation.name).filter(|_| route.method.has_body()) {
        let _ = write!(section, "<pre>{}</pre>", escape(&format!("{example:#}")));
    }
    section
}

fn kind_of(kind: &Value) -> String {
    match kind {
        Value::Array(kinds) => {
            let kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.collect::<Vec<_>>().join(" or ")
        }
        kind => kind.as_str().unwrap_or("any").to_owned(),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
