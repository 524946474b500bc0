//! Tools that fetch pages and search the web.

use serde_json::Value;

use super::call::Call;
use super::draft::Draft;
use super::facts::Detail;
use super::prose;
use super::text::{counted, first_sentence, one_line};
use super::title::title;

/// Detail size of an answer from the web.
const PAGE_BYTES: usize = 3_000;

/// Reads the use of a tool that searches or fetches web pages.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    match call.tool.to_ascii_lowercase().as_str() {
        "webfetch" | "web_fetch" | "fetch" | "browser_navigate" | "read_url" => Some(fetch(call)),
        "websearch" | "web_search" | "google_web_search" => Some(search(call)),
        _ => None,
    }
}

fn fetch(call: &Call<'_>) -> Draft {
    let url = call.input_text(&["url", "uri"]).or_else(|| call.response_text(&["url"])).unwrap_or("a page");
    let page = url.split_once("://").map_or(url, |(_, page)| page).trim_end_matches('/');
    let text = match call.response_text(&["result", "content", "text"]) {
        Some(text) => super::text::clean(text).into_owned(),
        None => call.output(),
    };
    let status = call.response["code"].as_u64().filter(|code| !(200..300).contains(code));
    let outcome = status.map_or_else(|| heading(&text), |status| Some(format!("status {status}")));
    let title = title(&format!("Fetch {}", one_line(page, 64)), outcome.as_deref());
    let asked = call
        .input_text(&["prompt"])
        .map(|prompt| format!(" to learn: {}", first_sentence(prompt, 160)))
        .unwrap_or_default();
    let answer = prose::gist(&text, 260);
    let summary = format!("Fetched {}{asked} {answer}", one_line(url, 120));
    Draft::written(call, title, summary, &text, PAGE_BYTES)
}

fn search(call: &Call<'_>) -> Draft {
    let query =
        call.input_text(&["query", "q"]).or_else(|| call.response_text(&["query"])).unwrap_or("something");
    let mut links = Vec::new();
    let mut texts = Vec::new();
    collect(call.response.get("results").unwrap_or(call.response), &mut links, &mut texts, 0);
    let title =
        title(&format!("Search web for '{}'", one_line(query, 80)), Some(&counted(links.len(), "result")));
    let text = super::text::clean(&texts.join("\n")).into_owned();
    let answer = prose::gist(&text, 300);
    let summary = format!("Searched the web for \"{}\". {answer}", one_line(query, 200));
    let mut detail = Detail::new(PAGE_BYTES, &title, &summary);
    let links = links.iter().map(|(name, url)| format!("{}: {url}", one_line(name, 60)));
    detail.reserving(detail.left() / 2, |detail| detail.lines(links));
    prose::fill(&text, call.cwd, &mut detail);
    Draft { title, summary, ..Draft::default() }.with_detail(detail)
}

/// Collects links and texts at any depth.
fn collect<'a>(
    value: &'a Value,
    links: &mut Vec<(&'a str, &'a str)>,
    texts: &mut Vec<&'a str>,
    depth: usize,
) {
    if depth > 8 || links.len() > 100 {
        return;
    }
    match value {
        Value::String(text) if text.contains(' ') => texts.push(text),
        Value::Array(elements) => {
            elements.iter().for_each(|element| collect(element, links, texts, depth + 1))
        }
        Value::Object(members) => {
            match (members.get("title").and_then(Value::as_str), members.get("url").and_then(Value::as_str)) {
                (Some(title), Some(url)) => links.push((title, url)),
                _ => members
                    .values()
                    .filter(|member| !member.is_number())
                    .for_each(|member| collect(member, links, texts, depth + 1)),
            }
        }
        _ => {}
    }
}

/// Returns the first heading of a text.
fn heading(text: &str) -> Option<String> {
    let line = text.lines().take(40).find(|line| line.starts_with('#'))?;
    Some(one_line(line.trim_matches(['#', ' ', '*']), 48)).filter(|line| !line.is_empty())
}
