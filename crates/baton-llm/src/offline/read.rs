//! Tools that show a file: the part that was shown, its definitions, and the names used in it.

use std::borrow::Cow;

use baton_core::{starts_with_any, strip_any};
use baton_observation::count_lines;
use serde_json::Value;

use super::call::{Call, LARGE_BYTES};
use super::code::{self, Symbol};
use super::draft::Draft;
use super::excerpt::{excerpt, excerpt_without};
use super::facts::{Detail, names};
use super::language::{Kind, Language};
use super::prose::{self, is_prose};
use super::skeleton::WHOLE_BYTES;
use super::text::{
    clean, counted, file_name, first_sentence, join_within, one_line, size_in_words, split_digits, unique,
};
use super::title::title;
use super::{edit, patch, structure};

const PATHS: &[&str] = &["file_path", "filePath", "path", "notebook_path", "absolute_path", "target_file"];

/// Number of lines that Claude Code shows if the agent sets no limit.
const DEFAULT_LIMIT: usize = 2_000;

/// Describes the use of a tool that shows a file.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    let name = call.tool.to_ascii_lowercase();
    let is_view = name.starts_with("str_replace") && call.input_text(&["command"]) == Some("view");
    if !is_view
        && !matches!(
            name.as_str(),
            "read" | "read_file" | "view" | "notebookread" | "view_file" | "open_file"
        )
    {
        return None;
    }
    let file = call.response.get("file").unwrap_or(call.response);
    let path = call.input_text(PATHS).or_else(|| file["filePath"].as_str())?;
    let to_usize =
        |value: Option<&Value>| value.and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    let number = |name: &str| to_usize(file.get(name));
    let content = match file.get("content").or_else(|| file.get("text")).and_then(Value::as_str) {
        Some(content) => clean(content).into_owned(),
        None => call.output(),
    };
    let kind = call.response["type"].as_str().unwrap_or_default();
    if matches!(kind, "image" | "pdf") || file.get("base64").is_some() {
        return Some(not_text(call, path, kind, file));
    }
    let (content, numbered_from) = without_line_numbers(&content);
    let asked_range = call.input.get("view_range");
    let asked_from = to_usize(call.input.get("offset").or_else(|| asked_range?.get(0)));
    let limit = to_usize(call.input.get("limit")).unwrap_or(DEFAULT_LIMIT);
    let is_limited = asked_range.is_some() || count_lines(&content) == limit;
    let view = View {
        path: call.path(path),
        start: number("startLine").or(numbered_from).or(asked_from).unwrap_or(1).max(1),
        lines: number("numLines"),
        total: number("totalLines").or(is_limited.then_some(usize::MAX)),
        content: &content,
    };
    Some(describe(call, &view))
}

/// The visible part of a file.
pub(super) struct View<'a> {
    pub(super) path: String,
    pub(super) start: usize,
    /// Number of visible lines, if the tool states it. It includes a blank line at the end.
    pub(super) lines: Option<usize>,
    /// Number of lines of the file; `usize::MAX` if only a part is visible and the number is not known.
    pub(super) total: Option<usize>,
    pub(super) content: &'a str,
}

impl View<'_> {
    fn lines(&self) -> usize {
        count_lines(self.content)
    }

    /// Whether the content is parsed without its bodies, which can miss definitions.
    fn is_simplified(&self) -> bool {
        self.content.len() > WHOLE_BYTES
    }

    /// Returns the range of visible lines; `None` if the whole file is visible.
    fn range(&self) -> Option<String> {
        let lines = self.lines();
        let end = self.start.saturating_add(self.lines.unwrap_or(lines).saturating_sub(1));
        let is_all =
            self.start <= 1 && self.total.is_none_or(|total| self.lines.unwrap_or(lines + 1) >= total);
        (!is_all).then(|| format!("lines {}-{end}", self.start))
    }
}

/// Describes an image or a document by type and size.
fn not_text(call: &Call<'_>, path: &str, kind: &str, file: &Value) -> Draft {
    let path = call.path(path);
    let number = |name: &str| file[name].as_u64();
    let encoded = file["base64"].as_str().map_or(0, |data| data.len() * 3 / 4);
    let bytes = number("originalSize").map_or(encoded, |bytes| usize::try_from(bytes).unwrap_or(encoded));
    let kind = file["type"].as_str().unwrap_or(kind);
    let dimensions = file.get("dimensions").and_then(|size| {
        let side = |name: &str| size[name].as_u64();
        Some(format!(", {}×{} pixels", side("originalWidth")?, side("originalHeight")?))
    });
    let pages = number("pages").map(|pages| format!(", {pages} pages"));
    let extent = dimensions.or(pages).unwrap_or_default();
    let what = format!("{}, {}", one_line(kind, 40), size_in_words(bytes));
    Draft {
        title: title(&format!("Look at {path}"), Some(&what)),
        summary: format!("Looked at {path}: {what}{extent}."),
        ..Draft::default()
    }
}

/// Describes the visible part of a file.
pub(super) fn describe(call: &Call<'_>, view: &View<'_>) -> Draft {
    let range = view.range();
    let source =
        if range.is_some() { without_partial_definition(view.content) } else { Cow::Borrowed(view.content) };
    let mut symbols = code::outline(&view.path, &source);
    if range.is_some() {
        // In a part of a file, code inside a function can look like top-level code.
        symbols.retain(|symbol| symbol.kind != Kind::Constant);
    }
    let short = if view.path.len() > 48 { file_name(&view.path) } else { &view.path };
    let mut done = format!("Read {short}");
    if let Some(range) = &range {
        done.push_str(&format!(" {range}"));
    }
    let heads = headings(view);
    // A definition that begins in the second half of a part is not its subject.
    let is_subject = |symbol: &&Symbol| range.is_none() || symbol.line * 2 <= view.lines() + 1;
    let conflicts = view.content.lines().filter(|line| line.starts_with("<<<<<<< ")).count();
    let first = symbols.iter().find(|symbol| symbol.kind != Kind::Constant).or(symbols.first());
    let outcome = match first.filter(is_subject) {
        _ if conflicts > 0 => Some(format!("{} not resolved", counted(conflicts, "merge conflict"))),
        Some(symbol) if symbols.len() == 1 && !view.is_simplified() => Some(symbol.qualified(&view.path)),
        Some(symbol) if view.is_simplified() || range.is_some() => {
            Some(format!("{} and others", symbol.qualified(&view.path)))
        }
        Some(symbol) => Some(format!("{} and {} more", symbol.qualified(&view.path), symbols.len() - 1)),
        None => heads.first().map(|heading| one_line(heading, 40)),
    };
    let outcome = outcome.or_else(|| range.is_none().then(|| counted(view.lines(), "line")));
    let title = title(&done, outcome.as_deref());
    Draft::filled(call, title, summary(view, &symbols, range.as_deref()), |detail| {
        if symbols.is_empty() && Language::of_path(&view.path).is_none() {
            text_detail(call, view, &heads, detail);
        } else {
            code_detail(view, &source, &symbols, detail);
        }
    })
}

fn summary(view: &View<'_>, symbols: &[Symbol], range: Option<&str>) -> String {
    let lines = view.lines();
    let seen = match (range, view.total) {
        (Some(range), Some(total @ ..usize::MAX)) => format!("Read {range} of {total} in {}", view.path),
        // If a shell printed the part, the length of the file is not known.
        (Some(range), _) => format!("Read {range} of {}", view.path),
        (None, _) if lines == 0 => return format!("{} is empty.", view.path),
        (None, _) => format!("Read all {} of {}", counted(lines, "line"), view.path),
    };
    let count = |kind| symbols.iter().filter(|symbol| symbol.kind == kind).count();
    // The parser may miss a definition that is cut off at the end of a part or split by a merge conflict.
    let is_countable = range.is_none() && !view.is_simplified() && !view.content.contains("\n<<<<<<< ");
    let counts: Vec<String> =
        [(Kind::Function, "function"), (Kind::Type, "type"), (Kind::Constant, "global")]
            .into_iter()
            .filter(|(kind, _)| count(*kind) > 0 && is_countable)
            .map(|(kind, noun)| counted(count(kind), noun))
            .collect();
    let seen = if counts.is_empty() { format!("{seen}.") } else { format!("{seen}: {}.", counts.join(", ")) };
    let says = match view.start {
        2.. => None,
        _ if is_prose(&view.path) => Some(prose::gist(view.content, 200)).filter(|gist| gist.contains(' ')),
        _ => opening_comment(view.content),
    };
    match says {
        Some(words) => format!("{seen} Says: \"{}\".", words.trim_end_matches('.')),
        None => seen,
    }
}

/// Returns the first sentence of the comment at the start of a source file or script, which usually states its purpose.
fn opening_comment(content: &str) -> Option<String> {
    let lines = content.lines().map(str::trim).skip_while(|line| line.is_empty() || line.starts_with("#!"));
    let mut words: Vec<&str> = Vec::new();
    for line in lines.take(20) {
        let text = match strip_any(line, "//!|///|//|/**|/*|\"\"\"|# ") {
            Some(text) => text,
            // The lines inside a block comment.
            None if !words.is_empty() => line.strip_prefix("* ").unwrap_or_default(),
            None => return None,
        };
        let text = text.trim_end_matches("*/").trim_end_matches("\"\"\"").trim();
        if text.is_empty() && !words.is_empty() {
            break;
        }
        words.extend(Some(text).filter(|text| !text.is_empty()));
    }
    let comment = words.join(" ");
    const NOTICES: &str = "Copyright|SPDX|Licensed|License|nolint|eslint|-*-|@|go:build|+build";
    let is_sentence = comment.split_whitespace().count() >= 4 && !starts_with_any(&comment, NOTICES);
    is_sentence.then(|| first_sentence(&comment, 160).trim_end_matches('.').to_owned())
}

/// Adds the most informative lines. For a large file, first lists the types with their methods, the functions, and the
/// values of constants.
fn code_detail(view: &View<'_>, source: &str, symbols: &[Symbol], detail: &mut Detail) {
    if symbols.is_empty() || view.content.len() <= LARGE_BYTES {
        return excerpt(view.content, detail);
    }
    let place = |symbol: &Symbol| format!("{}:{}", symbol.name, symbol.line + view.start - 1);
    let of = |kind: Kind| symbols.iter().filter(move |symbol| symbol.kind == kind);
    detail.reserving(detail.left() / 3, |detail| {
        detail.list("Types", of(Kind::Type).map(place));
        detail.list("Functions", of(Kind::Function).filter(|symbol| symbol.owner.is_none()).map(place));
        for owner in unique(of(Kind::Function).filter_map(|symbol| symbol.owner.as_deref())).take(40) {
            let methods = of(Kind::Function).filter(|symbol| symbol.owner.as_deref() == Some(owner));
            detail.list(&format!("{owner} methods"), methods.map(place));
        }
    });
    if view.range().is_none() {
        let globals = of(Kind::Constant).map(|symbol| one_line(symbol.text(source), 60));
        detail.reserving(detail.left() * 4 / 5, |detail| detail.list("Globals", globals));
    }
    let listed = symbols.iter().map(|symbol| symbol.line - 1).collect();
    detail.reserving(detail.left() / 4, |detail| excerpt_without(view.content, &listed, detail));
    // The names make a large file searchable.
    detail.top_names("Names", &names(view.content));
}

/// Adds the text, or its headings and parts of it.
fn text_detail(call: &Call<'_>, view: &View<'_>, headings: &[&str], detail: &mut Detail) {
    if view.path.ends_with(".json") && structure::fill(view.content, detail) {
        return;
    }
    let diff = patch::read_unified(view.content);
    if !diff.is_empty() {
        return edit::fill_diff(call, &diff, detail);
    }
    if view.content.len() <= detail.left() {
        return excerpt(view.content, detail);
    }
    let sections = headings.iter().map(|heading| join_within(&[heading], 60));
    detail.reserving(detail.left() * 3 / 4, |detail| detail.list("Sections", sections));
    if is_prose(&view.path) {
        return prose::fill(view.content, call.cwd, detail);
    }
    excerpt(view.content, detail);
}

/// Replaces the rest of a definition that began before the visible part by empty lines, so that line numbers stay.
fn without_partial_definition(content: &str) -> Cow<'_, str> {
    let is_inside = |line: &str| line.is_empty() || line.starts_with([' ', '\t', '}', ')', ']']);
    if !content.lines().find(|line| !line.trim().is_empty()).is_some_and(is_inside) {
        return Cow::Borrowed(content);
    }
    let count = content.lines().take_while(|line| is_inside(line)).count();
    if count == content.lines().count() {
        return Cow::Borrowed(content);
    }
    let rest: Vec<&str> = content.lines().skip(count).collect();
    Cow::Owned(format!("{}{}\n", "\n".repeat(count), rest.join("\n")))
}

/// Returns the headings of Markdown, the names of tables in TOML and INI, and the top-level keys of YAML.
fn headings<'a>(view: &View<'a>) -> Vec<&'a str> {
    let ending = view.path.rsplit('.').next().unwrap_or_default();
    let is_heading: fn(&str) -> bool = match ending {
        "md" | "mdx" | "markdown" => |line| line.starts_with('#') && line.contains("# "),
        "toml" | "ini" | "cfg" => |line| line.starts_with('['),
        "yml" | "yaml" => |line| {
            starts_with_any(line, "name:|description:")
                || line.ends_with(':') && line.starts_with(char::is_alphabetic)
        },
        _ => |_| false,
    };
    let clean = |line: &'a str| line.trim_matches(['#', ' ', '[', ']', ':']);
    view.content
        .lines()
        .filter(|line| is_heading(line))
        .map(clean)
        .filter(|line| !line.is_empty())
        .take(60)
        .collect()
}

/// Removes the line numbers that a tool put before each line (`  12→code`, `12\tcode`). Also returns the first number.
fn without_line_numbers(content: &str) -> (String, Option<usize>) {
    let split = |line: &str| -> Option<(usize, usize)> {
        let (number, rest) = split_digits(line.trim_start());
        let number = number.parse().ok()?;
        let mark = ["→", "\t", "|"].iter().find(|mark| rest.starts_with(**mark))?;
        Some((number, line.len() - rest.len() + mark.len()))
    };
    let Some((first, _)) = content.lines().next().and_then(split) else { return (content.to_owned(), None) };
    let numbered = content.lines().take(20).filter(|line| split(line).is_some()).count();
    if numbered < content.lines().take(20).count() {
        return (content.to_owned(), None);
    }
    let mut bare = String::with_capacity(content.len());
    for line in content.lines() {
        let at = split(line).map_or(0, |(_, at)| at);
        bare.push_str(line.get(at..).unwrap_or(line));
        bare.push('\n');
    }
    (bare, Some(first))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_an_earlier_function_is_left_out() {
        let part = "\treturn nil\n}\n\nfunc next() {\n\tx := 1\n}\n";
        assert_eq!(without_partial_definition(part), "\n\n\nfunc next() {\n\tx := 1\n}\n");
        assert_eq!(without_partial_definition("func a() {\n"), "func a() {\n");
        assert_eq!(without_partial_definition("  only\n  inside\n"), "  only\n  inside\n");
    }

    #[test]
    fn line_numbers_are_removed() {
        assert_eq!(without_line_numbers("     7→fn a() {\n     8→}\n"), ("fn a() {\n}\n".into(), Some(7)));
        assert_eq!(without_line_numbers("1\ta\nno number\n").1, None);
        assert_eq!(without_line_numbers("").1, None);
    }
}
