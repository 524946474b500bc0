//! The API reference as an HTML page, generated from the same table as the OpenAPI document.

use baton_app::{Route, routes};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use serde_json::Value;

use crate::openapi::example;

const STYLE: &str = "\
body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1b1f24}\
code{font:14px ui-monospace,monospace;background:#f2f4f6;padding:.1em .3em;border-radius:4px}\
h2{margin-top:2rem;border-top:1px solid #d8dee4;padding-top:1rem}table{border-collapse:collapse}\
td,th{text-align:left;padding:.2rem 1rem .2rem 0;vertical-align:top}\
pre{background:#f2f4f6;padding:1rem;overflow:auto}";

pub(crate) fn api_page() -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            meta charset="utf-8";
            title { "Baton API" }
            meta name="viewport" content="width=device-width";
            style { (PreEscaped(STYLE)) }
            h1 { "Baton API" }
            p {
                "Send the relay key as " code { "X-Relay-Key" } " or a token as " code { "Authorization: Bearer" } ". "
                "The machine-readable document is " a href="/openapi.json" { "/openapi.json" } "."
            }
            @for route in routes() { (section(&route)) }
        }
    };
    page.into_string()
}

fn section(route: &Route) -> Markup {
    let operation = route.operation;
    let schema = operation.params_schema();
    let is_required =
        |name| schema["required"].as_array().is_some_and(|fields| fields.contains(&Value::from(name)));
    let properties = schema["properties"].as_object().into_iter().flatten();
    html! {
        h2 { code { (route.method.as_str()) " " (route.path) } }
        p { (operation.summary) }
        table {
            tr { th { "parameter" } th { "type" } th {} }
            @for (name, property) in properties {
                tr {
                    td { code { (name) } }
                    td { (kind_of(&property["type"])) @if is_required(name.as_str()) { ", required" } }
                    td { (property["description"].as_str().unwrap_or_default()) }
                }
            }
        }
        @if let Some(example) = example(operation.name).filter(|_| route.method.has_body()) {
            pre { (format!("{example:#}")) }
        }
    }
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
