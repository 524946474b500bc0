//! Tools that search for text or list files: number and location of hits.

use serde_json::Value;

use super::call::Call;
use super::compressor::Draft;
use super::facts::{Detail, names};
use super::text::{counted, join_within, one_line, relative};
use super::title::title;

/// Maximum number of hits that are examined.
const MAX_HITS: usize = 20_000;

/// Describes the use of a search tool.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    match call.tool.to_ascii_lowercase().as_str() {
        "grep" | "search_file_content" | "ripgrep" | "codebase_search" | "grep_search" | "search_files" => {
            Some(grep(call))
        }
        "glob" | "ls" | "list_directory" | "list_dir" | "find_files" | "file_search" | "list_files" => {
            Some(list(call))
        }
        _ => None,
    }
}

/// The hits in one file.
#[derive(Debug, Default)]
struct FileHits<'a> {
    path: &'a str,
    hits: Vec<(Option<usize>, &'a str)>,
    context: Vec<&'a str>,
}

fn grep(call: &Call<'_>) -> Draft {
    let pattern = call.input_text(&["pattern", "query", "regex", "search"]).unwrap_or("text");
    let place = call.input_text(&["path", "directory", "dir_path", "include"]).map(|path| call.path(path));
    let place = place.filter(|place| place != ".");
    let output = match call.response.get("content").and_then(Value::as_str) {
        Some(content) => super::text::clean(content).into_owned(),
        None => call.output(),
    };
    let places = match (&place, call.input_text(&["glob", "type"])) {
        (Some(place), Some(filter)) => format!(" in {place} ({filter})"),
        (Some(place), None) => format!(" in {place}"),
        (None, Some(filter)) => format!(" in {filter} files"),
        (None, None) => String::new(),
    };
    let listed = listed_files(call);
    if !listed.is_empty() {
        let outcome = counted(listed.len(), "file");
        let title = title(&format!("Search for '{}'{places}", one_line(pattern, 60)), Some(&outcome));
        let summary = format!("Searched for `{}`{places}: found in {outcome}.", one_line(pattern, 200));
        let (draft, mut detail) = Draft::begin(call, title, summary);
        fill_files(&listed, &mut detail);
        return draft.with_detail(detail);
    }
    describe(
        call,
        &Search {
            pattern,
            places: &places,
            file: place.as_deref().filter(|place| is_file(place)),
            purpose: None,
        },
        &output,
    )
}

/// The pattern and scope of a search.
pub(super) struct Search<'a> {
    pub(super) pattern: &'a str,
    /// Scope in words, with a leading space.
    pub(super) places: &'a str,
    /// The file that was searched, if it was a single one.
    pub(super) file: Option<&'a str>,
    pub(super) purpose: Option<&'a str>,
}

/// Returns true if a path looks like the path of a file.
pub(super) fn is_file(path: &str) -> bool {
    super::text::file_name(path).trim_start_matches('.').contains('.') && !path.contains('*')
}

/// Describes the hits of a search.
pub(super) fn describe(call: &Call<'_>, search: &Search<'_>, output: &str) -> Draft {
    let files = hits(output, call.cwd, search.file);
    let count: usize = files.iter().map(|file| file.hits.len()).sum();
    let outcome = match files.len() {
        0 => "no hits".to_owned(),
        1 => counted(count, "hit"),
        number => format!("{} in {}", counted(count, "hit"), counted(number, "file")),
    };
    let title =
        title(&format!("Search for '{}'{}", one_line(search.pattern, 60), search.places), Some(&outcome));
    let purpose = search
        .purpose
        .map(|purpose| format!("{}: s", purpose.trim_end_matches('.')))
        .unwrap_or_else(|| "S".into());
    let summary =
        format!("{purpose}earched for `{}`{}: {outcome}.", one_line(search.pattern, 200), search.places);
    let (draft, mut detail) = Draft::begin(call, title, summary);
    fill_hits(&files, &mut detail);
    draft.with_detail(detail)
}

/// Adds the locations of the hits and, if they are few, their text; then the names in all of them.
fn fill_hits(files: &[FileHits<'_>], detail: &mut Detail) {
    let count: usize = files.iter().map(|file| file.hits.len()).sum();
    let size: usize = files
        .iter()
        .map(|file| {
            file.path.len()
                + 4
                + file.hits.iter().map(|(_, text)| text.trim().len().min(200) + 8).sum::<usize>()
        })
        .sum();
    let is_whole = size <= detail.left();
    let whole = detail.reserve(if is_whole { 0 } else { detail.left() * 2 / 5 });
    let mut folder = "";
    for (index, file) in files.iter().enumerate() {
        let (of_file, name) = file.path.rsplit_once('/').unwrap_or(("", file.path));
        let next =
            files.get(index + 1).and_then(|next| next.path.rsplit_once('/')).map_or("", |(next, _)| next);
        // A folder with several files is written once, before them.
        if of_file != folder && of_file == next && !of_file.is_empty() {
            detail.line(&format!("{of_file}/:"));
            folder = of_file;
        }
        let path = if of_file == folder && !folder.is_empty() { name } else { file.path };
        if is_whole || count <= 8 {
            let room = if is_whole { 200 } else { (detail.left() / count.max(1)).clamp(40, 140) };
            if !path.is_empty() {
                detail.line(&format!("{path}:"));
            }
            let number = |line: Option<usize>| line.map(|line| format!("{line}: ")).unwrap_or_default();
            detail.lines(
                file.hits.iter().map(|(line, text)| format!("  {}{}", number(*line), one_line(text, room))),
            );
        } else {
            let lines: Vec<String> =
                file.hits.iter().filter_map(|(line, _)| line.map(|line| line.to_string())).collect();
            let lines = if lines.is_empty() {
                counted(file.hits.len(), "hit")
            } else {
                join_within(&lines, 220 - path.len().min(100))
            };
            detail.line(&format!("{}: {lines}", if path.is_empty() { "Lines" } else { path }));
        }
    }
    detail.restore(whole);
    if is_whole {
        // Few hits were shown with their lines; what was asked to stand around them comes after.
        let around = files.iter().flat_map(|file| &file.context).filter(|line| !line.trim().is_empty());
        return detail.lines(around.map(|line| format!("| {}", line.trim_end())));
    }
    let hits: Vec<&str> = files.iter().flat_map(|file| file.hits.iter().map(|(_, text)| *text)).collect();
    detail.names("Names", &names(&hits.join("\n")));
}

/// Groups the output of a search by file.
fn hits<'a>(output: &'a str, cwd: Option<&str>, single: Option<&'a str>) -> Vec<FileHits<'a>> {
    let mut files: Vec<FileHits<'a>> = Vec::new();
    let mut index: std::collections::HashMap<&'a str, usize> = std::collections::HashMap::new();
    for line in output.lines().take(MAX_HITS).filter(|line| !line.is_empty() && *line != "--") {
        if line.starts_with("No files found") || line.starts_with("No matches found") {
            return Vec::new();
        }
        let hit = split_hit(line, single.is_some());
        let path = hit.path.map_or(single.unwrap_or_default(), |path| relative(path, cwd));
        let at = *index.entry(path).or_insert_with(|| {
            files.push(FileHits { path, ..FileHits::default() });
            files.len() - 1
        });
        let Some(file) = files.get_mut(at) else { continue };
        if hit.is_context {
            file.context.push(hit.text);
        } else {
            file.hits.push((hit.line, hit.text));
        }
    }
    files.retain(|file| !file.hits.is_empty());
    files
}

struct Hit<'a> {
    path: Option<&'a str>,
    line: Option<usize>,
    text: &'a str,
    is_context: bool,
}

/// Parses `path:12:text`, context lines `path-12-text`, `12:text` for a single file, and `path:text` without line
/// numbers.
fn split_hit(line: &str, is_single: bool) -> Hit<'_> {
    for (mark, is_context) in [(':', false), ('-', true)] {
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        if digits > 0 && line.as_bytes().get(digits).copied() == Some(mark as u8) {
            let number = line.get(..digits).and_then(|number| number.parse().ok());
            return Hit {
                path: None,
                line: number,
                text: line.get(digits + 1..).unwrap_or_default(),
                is_context,
            };
        }
        for (at, _) in line.match_indices(mark).take(24) {
            let rest = line.get(at + 1..).unwrap_or_default();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            // Behind a quote or a bracket the line itself has begun, which may hold times like 16:49:46.
            if line.get(..at).is_none_or(|path| path.contains(['"', '{', '(', ' '])) {
                break;
            }
            if at > 0 && digits > 0 && rest.as_bytes().get(digits).copied() == Some(mark as u8) {
                return Hit {
                    path: line.get(..at),
                    line: rest.get(..digits).and_then(|number| number.parse().ok()),
                    text: rest.get(digits + 1..).unwrap_or_default(),
                    is_context,
                };
            }
        }
    }
    let named = line
        .split_once(':')
        .filter(|(path, _)| !is_single && !path.contains(' ') && path.contains(['/', '.']));
    match named {
        Some((path, text)) => Hit { path: Some(path), line: None, text, is_context: false },
        None => Hit { path: None, line: None, text: line, is_context: false },
    }
}

/// Returns the files that a tool listed.
fn listed_files(call: &Call<'_>) -> Vec<String> {
    let names = ["filenames", "files", "matches", "entries"]
        .iter()
        .find_map(|name| call.response.get(name).and_then(Value::as_array));
    let text = |value: &Value| {
        value.as_str().or_else(|| value.get("path").and_then(Value::as_str)).map(|path| call.path(path))
    };
    names.into_iter().flatten().filter_map(text).take(MAX_HITS).collect()
}

fn list(call: &Call<'_>) -> Draft {
    let pattern = call.input_text(&["pattern", "query", "glob"]);
    let place =
        call.input_text(&["path", "directory", "dir_path", "target_directory"]).map(|path| call.path(path));
    let place = place.filter(|place| place != ".");
    let mut files = listed_files(call);
    if files.is_empty() {
        let output = call.output();
        files = output
            .lines()
            .map(|line| line.trim().trim_start_matches("- "))
            .filter(|line| !line.is_empty() && !line.starts_with("No files") && !line.contains("NOTE:"))
            .map(|line| call.path(line))
            .take(MAX_HITS)
            .collect();
    }
    let what = match (pattern, &place) {
        (Some(pattern), Some(place)) => format!("List files matching '{}' in {place}", one_line(pattern, 60)),
        (Some(pattern), None) => format!("List files matching '{}'", one_line(pattern, 60)),
        (None, Some(place)) => format!("List folder {place}"),
        (None, None) => "List current folder".to_owned(),
    };
    let outcome = if files.is_empty() { "none found".to_owned() } else { counted(files.len(), "entry") };
    let cut = call.response.get("truncated").and_then(Value::as_bool) == Some(true);
    let cut = if cut { ", cut short" } else { "" };
    let summary = format!("{what}: {outcome}{cut}.");
    let (draft, mut detail) = Draft::begin(call, title(&what, Some(&outcome)), summary);
    fill_files(&files, &mut detail);
    draft.with_detail(detail)
}

/// Adds files grouped by folder, so that each folder is written once.
fn fill_files(files: &[String], detail: &mut Detail) {
    let mut folders: Vec<(&str, Vec<&str>)> = Vec::new();
    for file in files {
        let (folder, name) =
            file.rsplit_once('/').map_or(("", file.as_str()), |(folder, name)| (folder, name));
        match folders.iter_mut().rev().take(64).find(|(known, _)| *known == folder) {
            Some((_, names)) => names.push(name),
            None => folders.push((folder, vec![name])),
        }
    }
    for (folder, names) in folders {
        let line = match (folder, names.as_slice()) {
            ("", names) => join_within(names, 200),
            (folder, [one]) => format!("{folder}/{one}"),
            (folder, names) => format!("{folder}/: {}", join_within(names, 200)),
        };
        if !detail.line(&line) {
            break;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hits_are_grouped_by_file() {
        let output = "/w/a/x-1.go-11-before\n/w/a/x-1.go:12:\thit()\n--\nb.go:3:other\n";
        let files = hits(output, Some("/w"), None);
        assert_eq!(files.len(), 2);
        assert_eq!(
            (files[0].path, files[0].hits.as_slice()),
            ("a/x-1.go", [(Some(12), "\thit()")].as_slice())
        );
        assert_eq!(files[0].context, ["before"]);
        assert_eq!(hits("7:let x\n8-ctx\n", None, Some("a.rs"))[0].hits, [(Some(7), "let x")]);
        assert!(hits("No matches found", None, None).is_empty());
        let log = hits("a.log:{\"time\":\"16:49:46\"}\n", None, None);
        assert_eq!((log[0].path, log[0].hits[0].0), ("a.log", None));
    }
}
