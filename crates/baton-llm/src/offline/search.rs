//! Tools that search for text or list files: number and location of hits.

use std::collections::{HashMap, HashSet};

use baton_observation::{is_truncated, is_truncation_marker};
use serde_json::Value;

use super::call::Call;
use super::draft::Draft;
use super::excerpt::{Relevance, relevance};
use super::facts::Detail;
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

#[derive(Debug, Default)]
struct FileHits<'a> {
    path: &'a str,
    hits: Vec<(Option<usize>, &'a str)>,
    /// Lines around the hits, each with the number of hits before it.
    context: Vec<(usize, &'a str)>,
}

impl<'a> FileHits<'a> {
    /// Returns the formatted context lines after a number of hits.
    fn context_after(&self, hits: usize) -> impl Iterator<Item = String> {
        let own = self.context.iter().filter(move |(after, line)| *after == hits && !line.trim().is_empty());
        own.map(|(_, line)| format!("| {}", line.trim_end()))
    }
}

fn grep(call: &Call<'_>) -> Draft {
    let pattern = call.input_text(&["pattern", "query", "regex", "search"]).unwrap_or("text");
    let place = call.input_text(&["path", "directory", "dir_path", "include"]).map(|path| call.path(path));
    let place = place.filter(|place| place != ".");
    let output = match call.response["content"].as_str() {
        Some(content) => super::text::clean(content).into_owned(),
        // The other texts of such a response describe the search.
        None if call.response.get("mode").is_some() => String::new(),
        None => call.output(),
    };
    let places = match (&place, call.input_text(&["glob", "type"])) {
        (Some(place), Some(filter)) => format!(" in {place} ({filter})"),
        (Some(place), None) => format!(" in {place}"),
        (None, Some(filter)) => format!(" in {filter} files"),
        (None, None) => String::new(),
    };
    let is_limited = call.response.get("appliedLimit").is_some_and(|limit| !limit.is_null());
    let listed = listed_files(call, &output);
    if !listed.is_empty() {
        let prefix = count_prefix(is_limited, listed.len(), &output);
        let outcome = format!("{prefix}{}", counted(listed.len(), "file"));
        let title = title(&format!("Search for '{}'{places}", one_line(pattern, 60)), Some(&outcome));
        let summary = format!("Searched for `{}`{places}: found in {outcome}.", one_line(pattern, 200));
        return Draft::filled(call, title, summary, |detail| fill_files(&listed, detail));
    }
    let is_count =
        |value: &Value| value.get("mode").or_else(|| value.get("output_mode")) == Some(&"count".into());
    let has_context = ["-A", "-B", "-C", "context"].iter().any(|name| call.input.get(name).is_some());
    let format =
        Format { has_context, is_count: is_count(call.response) || is_count(call.input), is_limited };
    let search = Search {
        pattern,
        places: &places,
        file: place.as_deref().filter(|place| is_file(place)),
        purpose: None,
        format,
    };
    describe(call, &search, &output)
}

/// The pattern and scope of a search.
pub(super) struct Search<'a> {
    pub(super) pattern: &'a str,
    /// Scope in words, with a leading space.
    pub(super) places: &'a str,
    /// The file that was searched, if it was a single one.
    pub(super) file: Option<&'a str>,
    pub(super) purpose: Option<&'a str>,
    pub(super) format: Format,
}

/// Format of the output of a search.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Format {
    /// Whether lines around the hits were requested.
    pub(super) has_context: bool,
    /// Whether each line is a file and its number of hits.
    pub(super) is_count: bool,
    /// Whether the output ends after a given number of hits.
    pub(super) is_limited: bool,
}

impl Format {
    /// Returns the format that the flags of `grep`, `rg` and `ag` request; `None` if the lines are no hits.
    pub(super) fn of_words(words: &[String]) -> Option<Self> {
        // A word may combine several flags, and the last one may have a value: `-rnA3`.
        let is_short = |word: &str, letters: &[char]| {
            let flags = word.trim_end_matches(|letter: char| letter.is_ascii_digit());
            let flags = flags.strip_prefix('-').unwrap_or_default();
            flags.bytes().all(|byte| byte.is_ascii_alphabetic()) && flags.contains(letters)
        };
        let has = |letters: &[char], long: &[&str]| {
            words.iter().any(|word| is_short(word, letters) || long.iter().any(|long| word.starts_with(long)))
        };
        let is_other = has(&['l', 'L', 'v'], &["--files", "--invert"]);
        (!is_other).then(|| Self {
            has_context: has(&['A', 'B', 'C'], &["--context", "--after", "--before"]),
            is_count: has(&['c'], &["--count"]),
            is_limited: has(&['m'], &["--max-count"]),
        })
    }
}

/// Returns true if a path looks like the path of a file.
pub(super) fn is_file(path: &str) -> bool {
    super::text::file_name(path).trim_start_matches('.').contains('.') && !path.contains('*')
}

/// Returns the words before the number of results, if there may be more results than were counted.
fn count_prefix(is_limited: bool, counted: usize, output: &str) -> &'static str {
    if is_limited {
        "first "
    } else if counted >= MAX_HITS || is_truncated(output) {
        "at least "
    } else {
        ""
    }
}

/// Describes the hits of a search.
pub(super) fn describe(call: &Call<'_>, search: &Search<'_>, output: &str) -> Draft {
    let files = hits(output, call.cwd, search);
    let count: usize = files.iter().map(|file| hits_of(file, search.format)).sum();
    let prefix = count_prefix(search.format.is_limited, output.lines().count(), output);
    let outcome = match files.len() {
        0 => "no hits".to_owned(),
        1 => format!("{prefix}{}", counted(count, "hit")),
        number => format!("{prefix}{} in {}", counted(count, "hit"), counted(number, "file")),
    };
    let title =
        title(&format!("Search for '{}'{}", one_line(search.pattern, 60), search.places), Some(&outcome));
    let searched = match search.purpose {
        Some(purpose) => format!("{}: searched", purpose.trim_end_matches('.')),
        None => "Searched".to_owned(),
    };
    let summary = format!("{searched} for `{}`{}: {outcome}.", one_line(search.pattern, 200), search.places);
    Draft::filled(call, title, summary, |detail| fill_hits(by_folder(files), detail))
}

/// Returns the number of hits in a file: the lines of the file, or the number that is printed for it.
fn hits_of(file: &FileHits<'_>, format: Format) -> usize {
    let printed = |(_, text): &(Option<usize>, &str)| text.trim().parse::<usize>().unwrap_or(1);
    if format.is_count { file.hits.iter().map(printed).sum() } else { file.hits.len() }
}

/// Returns files without a folder first, then the files of each folder together, in the order of their first hits.
fn by_folder(mut files: Vec<FileHits<'_>>) -> Vec<FileHits<'_>> {
    let mut order: HashMap<&str, usize> = HashMap::new();
    order.insert("", 0);
    for file in &files {
        let next = order.len();
        order.entry(folder_of(file.path)).or_insert(next);
    }
    files.sort_by_key(|file| order.get(folder_of(file.path)).copied());
    files
}

fn folder_of(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Adds the locations of the hits and, if they are few, their text. States how many hits were left out.
fn fill_hits(files: Vec<FileHits<'_>>, detail: &mut Detail) {
    let count: usize = files.iter().map(|file| file.hits.len()).sum();
    let size: usize = files
        .iter()
        .map(|file| {
            let hits = file.hits.iter().map(|(_, text)| text.trim().len().min(200) + 8);
            file.path.len() + 4 + hits.sum::<usize>()
        })
        .sum();
    let is_whole = size <= detail.left();
    let context: usize =
        files.iter().flat_map(|file| &file.context).map(|(_, line)| line.trim().len().min(200) + 3).sum();
    let is_complete = size + context <= detail.left();
    let room = if is_whole { 200 } else { (detail.left() / count.max(1)).clamp(40, 140) };
    let mut lines: Vec<(usize, String)> = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let folder = folder_of(file.path);
        let is_same =
            |other: Option<&FileHits<'_>>| other.is_some_and(|other| folder_of(other.path) == folder);
        let is_after = is_same(index.checked_sub(1).and_then(|before| files.get(before)));
        let is_before = is_same(files.get(index + 1));
        // A folder with several files is written once, before them.
        if is_before && !is_after && !folder.is_empty() {
            lines.push((0, format!("{folder}/:")));
        }
        let path = if is_before || is_after { super::text::file_name(file.path) } else { file.path };
        if is_whole || count <= 8 || files.len() == 1 {
            if !path.is_empty() {
                lines.push((0, format!("{path}:")));
            }
            let number = |line: Option<usize>| line.map(|line| format!("{line}: ")).unwrap_or_default();
            let around = |hits: usize| file.context_after(hits).filter(|_| is_complete).map(|line| (0, line));
            lines.extend(around(0));
            for (index, (line, text)) in file.hits.iter().enumerate() {
                lines.push((1, format!("{}{}", number(*line), one_line(text, room))));
                lines.extend(around(index + 1));
            }
            continue;
        }
        let numbers: Vec<String> =
            file.hits.iter().filter_map(|(line, _)| line.map(|line| line.to_string())).collect();
        let places = if numbers.is_empty() {
            counted(file.hits.len(), "hit")
        } else {
            join_within(&numbers, 220 - path.len().min(100))
        };
        let path = if path.is_empty() { "Lines" } else { path };
        lines.push((file.hits.len(), format!("{path}: {places}")));
    }
    // If there are many hits, their texts come before their places.
    let is_summarized = !is_whole && count > 8 && files.len() > 1;
    if is_summarized {
        detail.reserving(detail.left() / 2, |detail| detail.lines(different_hits(&files)));
    }
    let shown: usize = detail.reserving(if is_whole { 0 } else { 40 }, |detail| {
        lines.iter().take_while(|(_, line)| detail.line(line)).map(|(hits, _)| hits).sum()
    });
    if shown < count {
        let what = if is_summarized { "places" } else { "hits" };
        detail.line(&format!("[{} of {count} {what} left out]", count - shown));
    } else if let ([file], 1, false) = (files.as_slice(), count, is_complete) {
        // The lines after the hit are more informative than lines far before it.
        let around: Vec<String> = file.context_after(1).chain(file.context_after(0)).collect();
        detail.counted_lines(&around);
    } else if context > 0 && !is_complete {
        let lines: usize = files.iter().map(|file| file.context.len()).sum();
        detail.line(&format!("[{} around the hits left out]", counted(lines, "line")));
    }
}

/// Returns the hits with different texts: definitions first, those of tests last. Lines that use a name often repeat each
/// other.
fn different_hits(files: &[FileHits<'_>]) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut hits: Vec<((bool, bool), String)> = Vec::new();
    for file in files {
        for (line, text) in file.hits.iter().filter(|(_, text)| seen.insert(text.trim())) {
            let line = line.map(|line| format!(":{line}")).unwrap_or_default();
            let hit = format!("{}{line}: {}", super::text::file_name(file.path), one_line(text, 110));
            let is_test = file.path.to_ascii_lowercase().contains("test");
            hits.push(((relevance(text) != Relevance::Definition, is_test), hit));
        }
    }
    hits.sort_by_key(|(rank, _)| *rank);
    hits.into_iter().map(|(_, hit)| hit).collect()
}

/// Groups the output of a search by file.
fn hits<'a>(output: &'a str, cwd: Option<&str>, search: &Search<'a>) -> Vec<FileHits<'a>> {
    let is_result_line = |line: &&str| {
        let is_note = line.starts_with("[Showing results") || line.starts_with("Found 0 ");
        !line.is_empty() && *line != "--" && !is_note && !is_truncation_marker(line)
    };
    let lines: Vec<&str> = output.lines().take(MAX_HITS).filter(is_result_line).collect();
    if lines
        .first()
        .is_none_or(|line| line.starts_with("No files found") || line.starts_with("No matches found"))
    {
        return Vec::new();
    }
    let single = search.file;
    let has_context = search.format.has_context;
    let split: Vec<Hit<'a>> = lines.iter().map(|line| split_hit(line, single.is_some())).collect();
    // If hits have line numbers, other lines are context, whatever their path: Claude Code makes the paths of some
    // lines relative and leaves others absolute.
    let is_numbered = split.iter().any(|hit| hit.line.is_some());
    let with_hits: HashSet<&str> = split
        .iter()
        .filter(|hit| hit.line.is_some() || !is_numbered)
        .filter_map(|hit| hit.path)
        .map(|path| relative(path, cwd))
        .collect();
    let mut files: Vec<FileHits<'a>> = Vec::new();
    let mut index: HashMap<&'a str, usize> = HashMap::new();
    for (line, hit) in lines.into_iter().zip(split) {
        let context = (has_context && hit.line.is_none())
            .then(|| context_line(line, |path| with_hits.contains(relative(path, cwd))))
            .flatten()
            .or((has_context && is_numbered && hit.line.is_none()).then_some((None, line)));
        let path = context.map_or(hit.path, |(path, _)| path);
        let path = path.map_or(single.unwrap_or_default(), |path| relative(path, cwd));
        let at = *index.entry(path).or_insert_with(|| {
            files.push(FileHits { path, ..FileHits::default() });
            files.len() - 1
        });
        let Some(file) = files.get_mut(at) else { continue };
        match context {
            Some((_, text)) => file.context.push((file.hits.len(), text)),
            None => file.hits.push((hit.line, hit.text)),
        }
    }
    files.retain(|file| !file.hits.is_empty());
    files
}

struct Hit<'a> {
    path: Option<&'a str>,
    line: Option<usize>,
    text: &'a str,
}

/// Parses `path:12:text`, `12:text` for a single file, and `path:text` without line numbers.
fn split_hit(line: &str, is_single: bool) -> Hit<'_> {
    if let Some((number, text)) = numbered(line, ':') {
        return Hit { path: None, line: Some(number), text };
    }
    for (at, _) in line.match_indices(':').take(24) {
        let (path, rest) = (line.get(..at).unwrap_or_default(), line.get(at + 1..).unwrap_or_default());
        // A quote or a bracket is not part of a path but of the text, which may contain times such as 16:49:46.
        if path.is_empty() || path.contains(['"', '{', '(', ' ', '\t']) {
            break;
        }
        if let Some((number, text)) = numbered(rest, ':') {
            return Hit { path: Some(path), line: Some(number), text };
        }
    }
    let named = line
        .split_once(':')
        .filter(|(path, _)| !is_single && !path.contains([' ', '\t']) && path.contains(['/', '.']));
    match named {
        Some((path, text)) => Hit { path: Some(path), line: None, text },
        None => Hit { path: None, line: None, text: line },
    }
}

/// Parses the context lines `path-12-text` and `path-text` of known files, and `12-text` of a single file.
fn context_line(line: &str, is_known: impl Fn(&str) -> bool) -> Option<(Option<&str>, &str)> {
    if let Some((_, text)) = numbered(line, '-') {
        return Some((None, text));
    }
    line.match_indices('-').take(24).find_map(|(at, _)| {
        let (path, rest) = (line.get(..at)?, line.get(at + 1..)?);
        let text = numbered(rest, '-').map_or(rest, |(_, text)| text);
        is_known(path).then_some((Some(path), text))
    })
}

/// Splits `12:text` into number and text.
fn numbered(line: &str, mark: char) -> Option<(usize, &str)> {
    let (number, text) = line.split_once(mark)?;
    let is_number = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| number.parse().ok()).flatten().map(|number| (number, text))
}

/// Returns the files that a tool listed, in a member or as text below `Found 3 files`.
fn listed_files(call: &Call<'_>, output: &str) -> Vec<String> {
    if let Some((first, paths)) = output.split_once('\n')
        && first.starts_with("Found ")
        && first.split_whitespace().nth(2).is_some_and(|noun| matches!(noun, "file" | "files"))
    {
        return paths
            .lines()
            .filter(|line| !line.is_empty())
            .map(|path| call.path(path))
            .take(MAX_HITS)
            .collect();
    }
    let names =
        ["filenames", "files", "matches", "entries"].iter().find_map(|name| call.response[name].as_array());
    let text = |value: &Value| value.as_str().or_else(|| value["path"].as_str()).map(|path| call.path(path));
    names.into_iter().flatten().filter_map(text).take(MAX_HITS).collect()
}

fn list(call: &Call<'_>) -> Draft {
    let pattern = call.input_text(&["pattern", "query", "glob"]);
    let place =
        call.input_text(&["path", "directory", "dir_path", "target_directory"]).map(|path| call.path(path));
    let place = place.filter(|place| place != ".");
    let output = call.output();
    let mut files = listed_files(call, "");
    if files.is_empty() {
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
    let is_limited = call.response["truncated"] == true;
    let prefix = count_prefix(is_limited, files.len(), &output);
    let outcome = match files.len() {
        0 => "none found".to_owned(),
        number => format!("{prefix}{}", counted(number, "entry")),
    };
    let summary = format!("{what}: {outcome}.");
    Draft::filled(call, title(&what, Some(&outcome)), summary, |detail| fill_files(&files, detail))
}

/// Adds files grouped by folder, so that each folder is written once.
fn fill_files(files: &[String], detail: &mut Detail) {
    let mut folders: Vec<(&str, Vec<&str>)> = Vec::new();
    for file in files {
        let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
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

    fn found<'a>(output: &'a str, file: Option<&'a str>, has_context: bool) -> Vec<FileHits<'a>> {
        let format = Format { has_context, ..Format::default() };
        hits(output, Some("/w"), &Search { pattern: "x", places: "", file, purpose: None, format })
    }

    #[test]
    fn hits_are_grouped_by_file() {
        let output = "/w/a/x-1-b.go-11-before\n/w/a/x-1-b.go:12:\thit()\n--\nb.go:3:other\n";
        let files = found(output, None, true);
        assert_eq!(files.len(), 2);
        assert_eq!(
            (files[0].path, files[0].hits.as_slice()),
            ("a/x-1-b.go", [(Some(12), "\thit()")].as_slice())
        );
        assert_eq!(files[0].context, [(0, "before")]);
        assert_eq!(found("7:let x\n8-ctx\n", Some("a.rs"), true)[0].hits, [(Some(7), "let x")]);
        assert!(found("No matches found", None, false).is_empty());
        let log = found("a.log:{\"time\":\"16:49:46\"}\n", None, false);
        assert_eq!((log[0].path, log[0].hits[0].0), ("a.log", None));
    }

    #[test]
    fn digits_between_dashes_are_not_context_lines() {
        let files =
            found("logs/2026-01-20-run/a.log:TODO fix\nlogs/2026-01-20-run/b.log:TODO too\n", None, false);
        assert_eq!(
            files.iter().map(|file| file.path).collect::<Vec<_>>(),
            ["logs/2026-01-20-run/a.log", "logs/2026-01-20-run/b.log"]
        );
        let without_numbers = found("src/a.rs:hit\nsrc/a.rs-after the hit\n", None, true);
        assert_eq!(
            (without_numbers[0].hits.len(), without_numbers[0].context.as_slice()),
            (1, [(1, "after the hit")].as_slice())
        );
    }

    #[test]
    fn flags_determine_the_format() {
        let words = |command: &str| command.split(' ').map(str::to_owned).collect::<Vec<_>>();
        let format = |command: &str| Format::of_words(&words(command)).unwrap();
        assert!(format("grep -rnA3 x src").has_context && format("rg --context=2 x").has_context);
        assert!(!format("grep -rn -e-A src").has_context);
        assert!(format("grep -rc x src").is_count && !format("grep -rn x src").is_count);
        assert!(Format::of_words(&words("grep -rl x src")).is_none());
    }
}
