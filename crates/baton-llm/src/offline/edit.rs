//! Tools that change files: what changed, in which functions, and with which names.

use baton_core::observation::{FunctionAction, FunctionChange};
use serde_json::Value;

use super::call::Call;
use super::code::{self, Change};
use super::compressor::Draft;
use super::facts::{Detail, names};
use super::language::Kind;
use super::patch::{self, Fate, FilePatch};
use super::run::Run;
use super::text::{counted, file_name, join_within, one_line, shorten};
use super::title::title;

/// How long the detail of a change may be; most changes are smaller than the files they are in.
const MAX_DETAIL_BYTES: usize = 1_100;
/// Up to this many bytes of changed lines are shown as they are.
const SHOWN_BYTES: usize = 700;

const PATHS: &[&str] = &["file_path", "filePath", "path", "notebook_path", "filename", "target_file"];

/// Reads the use of a tool that changes files.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    let name = call.tool.to_ascii_lowercase();
    let command = call.input.get("command").and_then(Value::as_str).unwrap_or_default();
    match name.as_str() {
        "edit" | "multiedit" | "write" | "notebookedit" | "write_file" | "replace" | "edit_file"
        | "create_file" | "str_replace" | "search_replace" => one_file(call),
        "str_replace_editor" | "str_replace_based_edit_tool" if command != "view" => one_file(call),
        _ => from_codex(call, patch_of(call)?),
    }
}

/// The patch that a tool was asked to apply, as Codex words it.
fn patch_of<'a>(call: &Call<'a>) -> Option<&'a str> {
    match call.tool.to_ascii_lowercase().as_str() {
        "apply_patch" => call.asked(&["patch", "input", "command"]).or(call.input.as_str()),
        "shell" | "local_shell" | "exec_command" | "bash" => {
            patch_in_command(call.input.get("command").or_else(|| call.input.get("cmd"))?)
        }
        _ => None,
    }
}

/// The files of a patch that was not applied, and what was said instead.
pub(super) fn failed_patch(call: &Call<'_>) -> Option<(String, String)> {
    let patch = patch_of(call)?;
    let run = Run::of(call);
    let failed = run.failed() || run.output.trim_start().starts_with("apply_patch verification failed");
    let files = patch::read_codex(patch);
    let paths: Vec<String> = files.iter().map(|file| call.path(file.path)).collect();
    (failed && !paths.is_empty()).then(|| (format!("Patch {}", join_within(&paths, 70)), run.output))
}

/// The patch of `apply_patch`, given to a shell.
fn patch_in_command(command: &Value) -> Option<&str> {
    let is_patch = |text: &&str| text.contains("*** Begin Patch");
    match command {
        Value::String(text) if text.trim_start().starts_with("apply_patch") => {
            Some(text.as_str()).filter(is_patch)
        }
        Value::Array(words)
            if words.iter().take(3).filter_map(Value::as_str).any(|word| word.contains("apply_patch")) =>
        {
            words.iter().filter_map(Value::as_str).find(is_patch)
        }
        _ => None,
    }
}

/// A changed file and what is known of it before and after.
struct Changed<'a> {
    path: String,
    patch: FilePatch<'a>,
    line: Option<u64>,
    changes: Vec<Change>,
}

fn one_file(call: &Call<'_>) -> Option<Draft> {
    let path = call.asked(PATHS).or_else(|| call.said(PATHS))?;
    let shown = call.path(path);
    let input = |names: &[&str]| names.iter().find_map(|name| call.input.get(name).and_then(Value::as_str));
    let said = |name: &str| call.response.get(name).and_then(Value::as_str);
    let original = said("originalFile").or_else(|| said("originalFileContents"));
    let pairs = replacements(call, &input);
    let (mut file, line) = call
        .response
        .get("structuredPatch")
        .and_then(|patch| patch::read_structured(path, patch))
        .unwrap_or_else(|| (FilePatch::default(), None));
    let whole = input(&["content", "file_text"]).or_else(|| said("content"));
    let changes = if pairs.is_empty() {
        let after = whole.or_else(|| input(&["new_source", "insert_text"]))?;
        let created = said("type") == Some("create") || original.is_none();
        if file.added.is_empty() && file.removed.is_empty() {
            file = patch::between(path, original.unwrap_or_default(), after);
        }
        file.fate = if created && whole.is_some() { Fate::Created } else { Fate::Updated };
        code::compare(path, original.unwrap_or_default(), after)
    } else {
        if file.added.is_empty() && file.removed.is_empty() {
            for (old, new) in &pairs {
                let part = patch::between(path, old, new);
                file.removed.extend(part.removed);
                file.added.extend(part.added);
            }
        }
        let all = [call.input, call.response].iter().any(|side| {
            ["replace_all", "replaceAll"]
                .iter()
                .any(|name| side.get(name).and_then(Value::as_bool) == Some(true))
        });
        compare_replaced(path, original, &pairs, all)
    };
    file.path = path;
    Some(describe(call, &[Changed { path: shown, patch: file, line, changes }]))
}

type Input<'a, 'b> = &'b dyn Fn(&[&str]) -> Option<&'a str>;

/// What was replaced by what.
fn replacements<'a>(call: &Call<'a>, input: Input<'a, '_>) -> Vec<(&'a str, &'a str)> {
    if let Some(edits) = call.input.get("edits").and_then(Value::as_array) {
        let text = |edit: &'a Value, name: &str| edit.get(name).and_then(Value::as_str).unwrap_or_default();
        return edits
            .iter()
            .map(|edit| (text(edit, "old_string"), text(edit, "new_string")))
            .take(100)
            .collect();
    }
    let (old, new) = (input(&["old_string", "old_str"]), input(&["new_string", "new_str"]));
    if old.is_none() && new.is_none() {
        Vec::new()
    } else {
        vec![(old.unwrap_or_default(), new.unwrap_or_default())]
    }
}

/// Compares the whole file where it is known, else the pieces that were replaced.
fn compare_replaced(path: &str, original: Option<&str>, pairs: &[(&str, &str)], all: bool) -> Vec<Change> {
    if let Some(original) = original {
        let mut after = original.to_owned();
        for (old, new) in pairs.iter().filter(|(old, _)| !old.is_empty()) {
            after = if all { after.replace(old, new) } else { after.replacen(old, new, 1) };
        }
        if after != original {
            return code::compare(path, original, &after);
        }
    }
    pairs.iter().flat_map(|(old, new)| code::compare(path, old, new)).collect()
}

fn from_codex(call: &Call<'_>, text: &str) -> Option<Draft> {
    let files: Vec<Changed<'_>> = patch::read_codex(text)
        .into_iter()
        .map(|patch| Changed {
            path: call.path(patch.moved_to.unwrap_or(patch.path)),
            line: None,
            changes: code::compare(patch.path, &patch.before, &patch.after),
            patch,
        })
        .collect();
    (!files.is_empty()).then(|| describe(call, &files))
}

fn describe(call: &Call<'_>, files: &[Changed<'_>]) -> Draft {
    let summary = files.iter().take(6).map(sentence).collect::<Vec<_>>().join(" ");
    let summary =
        if files.len() > 6 { format!("{summary} And {} more files.", files.len() - 6) } else { summary };
    let title = match files {
        [only] => title_of(only),
        _ => {
            let paths: Vec<&str> = files.iter().map(|file| file_name(&file.path)).collect();
            title(&format!("Change {}: {}", counted(files.len(), "file"), join_within(&paths, 70)), None)
        }
    };
    let (mut draft, mut detail) = Draft::begin(call, title, summary);
    let room = detail.left();
    detail.reserve(room.saturating_sub(MAX_DETAIL_BYTES));
    for file in files {
        if files.len() > 1 {
            detail.line(&format!("{}:", file.path));
        }
        detail_of(file, &mut detail);
    }
    draft.files = files.iter().map(|file| file.path.clone()).collect();
    draft.files.extend(
        files.iter().filter(|file| file.patch.moved_to.is_some()).map(|file| call.path(file.patch.path)),
    );
    draft.functions = files
        .iter()
        .flat_map(|file| {
            file.changes.iter().filter(|change| change.kind == Kind::Function).map(|change| FunctionChange {
                file: file.path.clone(),
                name: change.name.clone(),
                action: change.action,
            })
        })
        .collect();
    draft.with_detail(detail)
}

fn named<'a>(file: &'a Changed<'_>, action: FunctionAction) -> Vec<&'a str> {
    let of = |kind| {
        file.changes
            .iter()
            .filter(move |change| change.action == action && change.kind == kind)
            .map(|change| change.name.as_str())
    };
    of(Kind::Function).chain(of(Kind::Type)).chain(of(Kind::Constant)).collect()
}

fn title_of(file: &Changed<'_>) -> String {
    let path = if file.path.len() > 48 { file_name(&file.path) } else { &file.path };
    let (new, modified, deleted) = (
        named(file, FunctionAction::New),
        named(file, FunctionAction::Modified),
        named(file, FunctionAction::Deleted),
    );
    let some = |names: &[&str]| match names {
        [one] => shorten(one, 60),
        [one, two] => format!("{} and {}", shorten(one, 40), shorten(two, 40)),
        [one, rest @ ..] => format!("{} and {} more", shorten(one, 50), rest.len()),
        [] => String::new(),
    };
    if file.patch.fate == Fate::Created {
        return match new.as_slice() {
            [] => title(&format!("Create {path}"), Some(&counted(file.patch.added.len(), "line"))),
            _ => title(&format!("Create {path} with {}", some(&new)), None),
        };
    }
    if file.patch.fate == Fate::Deleted {
        return title(&format!("Delete file {path}"), None);
    }
    match (new.is_empty(), modified.is_empty(), deleted.is_empty()) {
        (true, true, true) => {
            let place = subject_of(file).map(|subject| format!(" ({subject})")).unwrap_or_default();
            title(&format!("Edit {path}{place}"), Some(&line_counts(file)))
        }
        (false, true, true) => title(&format!("Add {} to {path}", some(&new)), None),
        (true, true, false) => title(&format!("Remove {} from {path}", some(&deleted)), None),
        (true, false, true) => title(&format!("Modify {} in {path}", some(&modified)), None),
        (false, true, false) => {
            title(&format!("Replace {} by {} in {path}", some(&deleted), some(&new)), None)
        }
        (false, false, _) => {
            title(&format!("Add {} and modify {} in {path}", some(&new), some(&modified)), None)
        }
        (true, false, false) => {
            title(&format!("Modify {} and remove {} in {path}", some(&modified), some(&deleted)), None)
        }
    }
}

/// What a change outside functions is about: imports, a comment, a heading.
fn subject_of(file: &Changed<'_>) -> Option<String> {
    let lines: Vec<&str> = file
        .patch
        .added
        .iter()
        .chain(&file.patch.removed)
        .map(|line| line.trim())
        .filter(|line| !line.is_empty())
        .collect();
    let all = |test: fn(&str) -> bool| !lines.is_empty() && lines.iter().all(|line| test(line));
    if all(|line| ["import ", "use ", "from ", "\"", "package "].iter().any(|start| line.starts_with(start)))
    {
        return Some("imports".into());
    }
    if let Some(heading) = lines
        .iter()
        .find(|line| line.starts_with("# ") || line.starts_with("## ") || line.starts_with("### "))
    {
        return Some(one_line(heading.trim_start_matches(['#', ' ']), 40));
    }
    if all(is_comment) {
        return Some("comments".into());
    }
    None
}

fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    ["//", "# ", "/*", "* ", "\"\"\"", "<!--", "--"].iter().any(|mark| line.starts_with(mark))
        && !line.starts_with("#[")
}

fn line_counts(file: &Changed<'_>) -> String {
    format!("+{} -{} lines", file.patch.added.len(), file.patch.removed.len())
}

fn sentence(file: &Changed<'_>) -> String {
    let mut parts = Vec::new();
    for (verb, action) in [
        ("adds", FunctionAction::New),
        ("modifies", FunctionAction::Modified),
        ("removes", FunctionAction::Deleted),
    ] {
        let names = named(file, action);
        if !names.is_empty() {
            parts.push(format!("{verb} {}", join_within(&names, 160)));
        }
    }
    let place = match (file.patch.fate, file.line) {
        (Fate::Created, _) => format!("{} (new, {})", file.path, counted(file.patch.added.len(), "line")),
        (Fate::Deleted, _) => format!("{} (deleted)", file.path),
        (Fate::Updated, Some(line)) => format!("{} ({} at line {line})", file.path, line_counts(file)),
        (Fate::Updated, None) => format!("{} ({})", file.path, line_counts(file)),
    };
    let moved = file.patch.moved_to.map(|_| format!(", moved from {}", file.patch.path)).unwrap_or_default();
    let mut sentence = match parts.as_slice() {
        [] => format!("Changed {place}{moved}."),
        _ => format!("Change to {place}{moved} {}.", parts.join(", ")),
    };
    if let Some(comment) = reason(file) {
        sentence.push_str(&format!(" Says: \"{comment}\"."));
    }
    sentence
}

/// The longest comment among the new lines: it often tells why.
fn reason(file: &Changed<'_>) -> Option<String> {
    let mut best = "";
    for line in file.patch.added.iter().take(400) {
        let comment = line.trim();
        let comment = if is_comment(comment) {
            comment.trim_start_matches(['/', '#', '*', '!', ' ', '"', '<', '-'])
        } else {
            comment.split_once(" // ").map_or("", |(_, comment)| comment)
        };
        if comment.starts_with("nolint") || comment.starts_with("eslint") || comment.starts_with("noqa") {
            continue;
        }
        if comment.len() > best.len()
            && comment.split_whitespace().count() >= 4
            && !file.patch.removed.contains(line)
        {
            best = comment;
        }
    }
    (!best.is_empty()).then(|| one_line(best.trim_end_matches('.'), 130))
}

/// The lines themselves when they are few, else those that define something, and the names in the others.
fn detail_of(file: &Changed<'_>, detail: &mut Detail) {
    let says = |line: &&&str| line.chars().filter(|letter| letter.is_alphanumeric()).count() >= 2;
    let (removed, added): (Vec<&str>, Vec<&str>) = (
        file.patch.removed.iter().filter(says).map(|line| line.trim()).collect(),
        file.patch.added.iter().filter(says).map(|line| line.trim()).collect(),
    );
    let size: usize = removed.iter().chain(&added).map(|line| line.len() + 3).sum();
    if size <= SHOWN_BYTES.min(detail.left()) {
        detail.lines(removed.iter().map(|line| format!("- {line}")));
        detail.lines(added.iter().map(|line| format!("+ {line}")));
        return;
    }
    let whole = detail.reserve(detail.left() / 2);
    for (mark, lines) in [('-', &removed), ('+', &added)] {
        let telling = lines.iter().filter(|line| is_telling(line));
        detail.lines(telling.take(6).map(|line| format!("{mark} {}", one_line(line, 110))));
    }
    detail.restore(whole);
    let (old, new) = (removed.join("\n"), added.join("\n"));
    let dropped: Vec<&str> = {
        let kept: std::collections::HashSet<&str> = names(&new).into_iter().collect();
        names(&old).into_iter().filter(|name| !kept.contains(name)).collect()
    };
    if !dropped.is_empty() {
        let whole = detail.reserve(detail.left() * 2 / 3);
        detail.names("No longer uses", &dropped);
        detail.restore(whole);
    }
    detail.names("Uses", &names(&new));
}

/// Tells whether a line is worth showing by itself: it defines something or says why.
fn is_telling(line: &str) -> bool {
    const STARTS: &[&str] = &[
        "func ",
        "fn ",
        "pub ",
        "def ",
        "class ",
        "async def ",
        "type ",
        "struct ",
        "interface ",
        "export ",
        "function ",
        "const ",
        "async fn ",
        "async function ",
        "public ",
        "private ",
        "protected ",
        "#",
    ];
    STARTS.iter().any(|start| line.starts_with(start)) && !line.starts_with("#[") && line.len() > 8
}
