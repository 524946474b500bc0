//! Tools that change files: the changes, the affected functions and the names used.

use std::borrow::Cow;
use std::collections::HashSet;

use baton_core::observation::{FunctionAction, FunctionChange};
use baton_core::{contains_any, shorten, starts_with_any};
use serde_json::Value;

use super::call::Call;
use super::code::{self, Change};
use super::draft::Draft;
use super::excerpt::{Relevance, is_comment, relevance, select};
use super::facts::{Detail, is_name, names};
use super::git;
use super::language::Kind;
use super::patch::{self, FileAction, FilePatch};
use super::prose::{self, PROSE_BYTES, is_prose};
use super::replaced::Replaced;
use super::run::Run;
use super::text::{counted, file_name, first_sentence, join_within, one_line, unique};
use super::title::title;

/// Maximum size of the detail of a change.
const MAX_DETAIL_BYTES: usize = 1_100;

/// Maximum number of removed lines in which a comment is searched.
const MAX_REMOVED: usize = 1_000;

const PATHS: &[&str] = &["file_path", "filePath", "path", "notebook_path", "filename", "target_file"];

/// Describes the use of a tool that changes files.
pub(super) fn read(call: &Call<'_>) -> Option<Draft> {
    let name = call.tool.to_ascii_lowercase();
    let command = call.input["command"].as_str().unwrap_or_default();
    match name.as_str() {
        "edit" | "multiedit" | "write" | "notebookedit" | "write_file" | "replace" | "edit_file"
        | "create_file" | "str_replace" | "search_replace" => one_file(call),
        "str_replace_editor" | "str_replace_based_edit_tool" if command != "view" => one_file(call),
        _ => from_codex(call, patch_of(call)?),
    }
}

/// Returns the patch in Codex format that a tool was asked to apply.
fn patch_of<'a>(call: &Call<'a>) -> Option<&'a str> {
    match call.tool.to_ascii_lowercase().as_str() {
        "apply_patch" => call.input_text(&["patch", "input", "command"]).or(call.input.as_str()),
        "shell" | "local_shell" | "exec_command" | "bash" => {
            patch_in_command(call.input.get("command").or_else(|| call.input.get("cmd"))?)
        }
        _ => None,
    }
}

/// Returns the files of a patch that was not applied, and the error message.
pub(super) fn failed_patch(call: &Call<'_>) -> Option<(String, String)> {
    let patch = patch_of(call)?;
    let run = Run::of(call);
    // Codex answers with a text: `Success. Updated the following files`, or why it did not.
    let first = run.output.trim_start().lines().next().unwrap_or_default().to_ascii_lowercase();
    let failed = run.failed() || contains_any(&first, "failed|error|invalid");
    let files = patch::read_codex(patch);
    let paths: Vec<String> = files.iter().map(|file| call.path(file.path)).collect();
    (failed && !paths.is_empty()).then(|| (format!("Patch {}", join_within(&paths, 70)), run.output))
}

/// Returns the patch of an `apply_patch` that was passed to a shell.
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

/// A changed file with its patch and the changed definitions.
#[derive(Default)]
struct Changed<'a> {
    path: String,
    patch: FilePatch<'a>,
    line: Option<u64>,
    changes: Vec<Change>,
    replaced: Option<Replaced>,
    /// The whole text of a document that was written, not edited.
    document: Option<&'a str>,
    /// The heading of a plan that was edited.
    plan: Option<String>,
    /// Whether the change removed all text of the file.
    is_emptied: bool,
}

impl Changed<'_> {
    /// Returns the text of a document that was written as a whole.
    fn document_text(&self) -> Option<Cow<'_, str>> {
        match self.document {
            Some(text) if text.trim().is_empty() => None,
            Some(text) => Some(Cow::Borrowed(text)),
            None if self.patch.file_action == FileAction::Created && is_prose(&self.path) => {
                Some(Cow::Owned(self.patch.added.join("\n")))
            }
            None => None,
        }
    }
}

fn one_file(call: &Call<'_>) -> Option<Draft> {
    let path = call.input_text(PATHS).or_else(|| call.response_text(PATHS))?;
    let shown = call.path(path);
    let response = |name: &str| call.response[name].as_str();
    let original = response("originalFile").or_else(|| response("originalFileContents"));
    let pairs = replacements(call);
    let (mut file, line) = call
        .response
        .get("structuredPatch")
        .and_then(|patch| patch::read_structured(path, patch))
        .unwrap_or_else(|| (FilePatch::default(), None));
    let whole = call.whole_input(&["content", "file_text"]).or_else(|| response("content"));
    let mut replaced = None;
    let changes = if pairs.is_empty() {
        let after = whole.or_else(|| call.whole_input(&["new_source", "insert_text"]))?;
        let created = response("type") == Some("create") || original.is_none();
        if file.added.is_empty() && file.removed.is_empty() {
            file = patch::between(path, original.unwrap_or_default(), after);
        }
        file.file_action = if created && whole.is_some() { FileAction::Created } else { FileAction::Updated };
        code::compare(path, original.unwrap_or_default(), after)
    } else {
        if file.added.is_empty() && file.removed.is_empty() {
            for (old, new) in &pairs {
                let part = patch::between(path, old, new);
                file.removed.extend(part.removed);
                file.added.extend(part.added);
            }
        }
        let replaces_all = [call.input, call.response]
            .iter()
            .any(|side| ["replace_all", "replaceAll"].iter().any(|name| side[name] == true));
        let everywhere = || Replaced::everywhere(&file, &pairs).filter(|_| replaces_all);
        replaced = Replaced::identifier(&file).or_else(everywhere);
        compare_replaced(path, original, &pairs, replaces_all)
    };
    file.path = path;
    let changes = confirmed(changes, &file);
    let document = whole.filter(|_| pairs.is_empty() && is_prose(path));
    let is_plan = is_prose(path) && path.to_ascii_lowercase().contains("plan");
    let plan = original.filter(|_| is_plan).and_then(prose::heading);
    let is_emptied = original.is_some_and(|text| !text.trim().is_empty())
        && pairs.is_empty()
        && whole.is_some_and(|text| text.trim().is_empty());
    let changed = Changed { path: shown, patch: file, line, changes, replaced, document, plan, is_emptied };
    Some(describe(call, &[changed]))
}

/// Returns pairs of replaced text and replacement.
fn replacements<'a>(call: &Call<'a>) -> Vec<(&'a str, &'a str)> {
    if let Some(edits) = call.input["edits"].as_array() {
        let text = |edit: &'a Value, name: &str| edit[name].as_str().unwrap_or_default();
        let pairs = edits.iter().map(|edit| (text(edit, "old_string"), text(edit, "new_string")));
        return pairs.take(100).collect();
    }
    match (call.whole_input(&["old_string", "old_str"]), call.whole_input(&["new_string", "new_str"])) {
        (None, None) => Vec::new(),
        (old, new) => vec![(old.unwrap_or_default(), new.unwrap_or_default())],
    }
}

/// Returns the lines that a tool was asked to change.
pub(super) fn proposed_lines(call: &Call<'_>) -> Vec<String> {
    let written = call.whole_input(&["content", "file_text", "new_source", "insert_text"]);
    let changed = |(old, new): (&str, &str)| {
        patch::changed_lines(&old.lines().collect::<Vec<_>>(), &new.lines().collect::<Vec<_>>())
    };
    replacements(call).into_iter().chain(written.map(|text| ("", text))).flat_map(changed).collect()
}

/// Compares the whole file if it is known, otherwise the replaced fragments.
fn compare_replaced(
    path: &str,
    original: Option<&str>,
    pairs: &[(&str, &str)],
    replaces_all: bool,
) -> Vec<Change> {
    if let Some(original) = original {
        let mut after = original.to_owned();
        for (old, new) in pairs.iter().filter(|(old, _)| !old.is_empty()) {
            after = if replaces_all { after.replace(old, new) } else { after.replacen(old, new, 1) };
        }
        if after != original {
            return code::compare(path, original, &after);
        }
    }
    pairs.iter().flat_map(|(old, new)| code::compare(path, old, new)).collect()
}

/// Drops additions and removals whose name is not in the changed lines: text at the start of a line in a long string can
/// look like code to the parser.
fn confirmed(changes: Vec<Change>, patch: &FilePatch<'_>) -> Vec<Change> {
    let is_in = |lines: &[&str], name: &str| {
        let name = name.rsplit(['.', ':']).next().unwrap_or(name);
        lines.iter().any(|line| line.contains(name))
    };
    let is_confirmed = |change: &Change| match change.action {
        FunctionAction::New => is_in(&patch.added, &change.name),
        FunctionAction::Deleted => is_in(&patch.removed, &change.name),
        FunctionAction::Modified => true,
    };
    changes.into_iter().filter(is_confirmed).collect()
}

fn from_codex(call: &Call<'_>, text: &str) -> Option<Draft> {
    let files: Vec<Changed<'_>> = patch::read_codex(text)
        .into_iter()
        .map(|patch| Changed {
            path: call.path(patch.moved_to.unwrap_or(patch.path)),
            changes: confirmed(code::compare(patch.path, &patch.before, &patch.after), &patch),
            replaced: Replaced::identifier(&patch),
            patch,
            ..Changed::default()
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
    if let [file] = files
        && let Some(text) = file.document_text()
    {
        detail = Detail::new(PROSE_BYTES, &draft.title, &draft.summary);
        prose::fill(&text, call.cwd, &mut detail);
    } else {
        detail.reserving(detail.left().saturating_sub(MAX_DETAIL_BYTES), |detail| {
            for file in files {
                if files.len() > 1 {
                    detail.line(&format!("{}:", file.path));
                }
                fill_changed(&file.patch, detail);
            }
        });
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
    let first_names = |names: &[&str]| match names {
        [one] => shorten(one, 60),
        [one, two] => format!("{} and {}", shorten(one, 40), shorten(two, 40)),
        [one, rest @ ..] => format!("{} and {} more", shorten(one, 50), rest.len()),
        [] => String::new(),
    };
    let (done, outcome) = if let Some(heading) = file.document_text().as_deref().and_then(prose::heading) {
        let noun = if file.path.to_ascii_lowercase().contains("plan") { "plan " } else { "" };
        (format!("Write {noun}'{}' to {path}", one_line(&heading, 70)), None)
    } else if let resolved @ 1.. = resolved_conflicts(&file.patch) {
        let conflicts = counted(resolved, "merge conflict");
        (format!("Resolve {conflicts} in {path}"), Some(line_counts(file)))
    } else if file.is_emptied {
        (format!("Empty {path}"), Some(line_counts(file)))
    } else if file.patch.file_action == FileAction::Created && new.is_empty() {
        (format!("Create {path}"), Some(counted(file.patch.added.len(), "line")))
    } else if file.patch.file_action == FileAction::Created {
        (format!("Create {path} with {}", first_names(&new)), None)
    } else if let Some(replaced) = &file.replaced {
        (format!("Replace {}", replaced.in_words(path)), None)
    } else if file.patch.file_action == FileAction::Deleted {
        (format!("Delete file {path}"), None)
    } else {
        let (new_names, modified_names, deleted_names) =
            (first_names(&new), first_names(&modified), first_names(&deleted));
        match (new.is_empty(), modified.is_empty(), deleted.is_empty()) {
            (true, true, true) => {
                let what = match (&file.plan, subject_of(file)) {
                    (Some(plan), _) => format!("Edit plan '{}' in {path}", one_line(plan, 60)),
                    (None, Some(subject)) => format!("Edit {path} ({subject})"),
                    (None, None) => format!("Edit {path}"),
                };
                (what, Some(line_counts(file)))
            }
            (false, true, true) => (format!("Add {new_names} to {path}"), None),
            (true, true, false) => (format!("Remove {deleted_names} from {path}"), None),
            (true, false, true) => (format!("Modify {modified_names} in {path}"), None),
            (false, true, false) => (format!("Replace {deleted_names} by {new_names} in {path}"), None),
            (false, false, _) => (format!("Add {new_names} and modify {modified_names} in {path}"), None),
            (true, false, false) => {
                (format!("Modify {modified_names} and remove {deleted_names} in {path}"), None)
            }
        }
    };
    title(&done, outcome.as_deref())
}

/// Returns the number of merge conflicts that a change removes.
fn resolved_conflicts(patch: &FilePatch<'_>) -> usize {
    let conflicts = |lines: &[&str]| lines.iter().filter(|line| line.starts_with("<<<<<<< ")).count();
    conflicts(&patch.removed).saturating_sub(conflicts(&patch.added))
}

/// Returns the subject of a change outside functions: imports, a heading, comments.
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
    if all(|line| starts_with_any(line, "import |use |from |\"|package ")) {
        return Some("imports".into());
    }
    if let Some(heading) = lines.iter().find(|line| starts_with_any(line, "# |## |### ")) {
        let heading = heading.trim_matches(['#', ' ', '-', '=', '*']);
        return Some(one_line(heading, 40)).filter(|heading| !heading.is_empty());
    }
    if all(is_comment) {
        return Some("comments".into());
    }
    None
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
    let place = match (file.patch.file_action, file.line) {
        (FileAction::Created, _) => {
            format!("{} (new, {})", file.path, counted(file.patch.added.len(), "line"))
        }
        (FileAction::Deleted, _) => format!("{} (deleted)", file.path),
        (FileAction::Updated, Some(line)) => format!("{} ({} at line {line})", file.path, line_counts(file)),
        (FileAction::Updated, None) => format!("{} ({})", file.path, line_counts(file)),
    };
    let moved = file.patch.moved_to.map(|_| format!(", moved from {}", file.patch.path)).unwrap_or_default();
    let mut sentence = match parts.as_slice() {
        [] => format!("Changed {place}{moved}."),
        _ => format!("Change to {place}{moved} {}.", parts.join(", ")),
    };
    if let Some(text) = file.document_text() {
        let body = text.trim_start().split_once('\n').map_or("", |(_, body)| body);
        let gist = prose::gist(body, 300);
        if !gist.is_empty() {
            sentence.push_str(&format!(" It says: \"{}\".", gist.trim_end_matches('.')));
        }
    } else if let Some(replaced) = &file.replaced {
        sentence.push_str(&format!(" Replaces {}.", replaced.in_words(file_name(&file.path))));
    } else if let Some(comment) = reason(file) {
        sentence.push_str(&format!(" Says: \"{comment}\"."));
    }
    sentence
}

/// Returns what a document says, or the longest comment in the new lines of code, which often states the reason, or the
/// first comment of a new file. Consecutive comment lines are one comment.
fn reason(file: &Changed<'_>) -> Option<String> {
    if is_prose(&file.path) {
        let gist = prose::gist(&file.patch.added.join("\n"), 200);
        return Some(gist.trim_end_matches('.').to_owned()).filter(|gist| gist.contains(' '));
    }
    let mut comments: Vec<String> = Vec::new();
    let mut is_open = false;
    for line in file.patch.added.iter().take(400) {
        let comment = line.trim();
        let is_own_line = is_comment(comment);
        let comment = if is_own_line {
            comment.trim_start_matches(['/', '#', '*', '!', ' ', '"', '<', '-'])
        } else {
            comment.split_once(" // ").map_or("", |(_, comment)| comment)
        };
        let comment = comment.trim_end_matches(['-', '=', '*', ' ']);
        let is_directive = starts_with_any(comment, "nolint|eslint|noqa|go:|type:");
        let was_there = || file.patch.removed.iter().take(MAX_REMOVED).any(|line| line.contains(comment));
        let is_new = !comment.is_empty() && !is_directive && !was_there();
        match comments.last_mut().filter(|_| is_open && is_own_line && is_new) {
            Some(last) => {
                last.push(' ');
                last.push_str(comment);
            }
            None if is_new => comments.push(comment.to_owned()),
            None => {}
        }
        is_open = is_own_line && is_new;
    }
    // A comment that begins in the middle of a sentence continues an unchanged one. A lower-case name is not
    // such a beginning.
    let is_whole = |comment: &&String| {
        let first = comment.split_whitespace().next().unwrap_or_default();
        let is_continuation = first.starts_with(|letter: char| letter.is_lowercase()) && !is_name(first);
        comment.split_whitespace().count() >= 4 && !is_continuation
    };
    let is_notice = |comment: &str| starts_with_any(comment, "Copyright|SPDX|Licensed|License");
    let mut whole = comments.iter().filter(|comment| is_whole(comment) && !is_notice(comment));
    // The first comment of a new file states its purpose.
    let best = match file.patch.file_action {
        FileAction::Created => whole.next(),
        _ => whole.max_by_key(|comment| comment.len()),
    };
    Some(first_sentence(best?, 200).trim_end_matches('.').to_owned())
}

/// Adds the files of a diff with the definitions that the changed lines are in, then the changed lines.
pub(super) fn fill_diff(call: &Call<'_>, files: &[FilePatch<'_>], detail: &mut Detail) {
    let head = |file: &FilePatch<'_>| {
        let names: Vec<&str> =
            unique(file.places.iter().filter_map(|place| git::place_name(place))).collect();
        let places =
            if names.is_empty() { String::new() } else { format!(", in {}", join_within(&names, 150)) };
        format!("{} +{} -{}{places}", call.path(file.path), file.added.len(), file.removed.len())
    };
    let heads: Vec<String> = files.iter().map(head).collect();
    let heads_size: usize = heads.iter().map(|line| line.len() + 1).sum();
    let changed = files.iter().flat_map(|file| patch::changed_lines(&file.removed, &file.added));
    if heads_size + changed.map(|line| line.len() + 1).sum::<usize>() <= detail.left() {
        for (file, head) in files.iter().zip(heads) {
            detail.line(&head);
            fill_changed(file, detail);
        }
        return;
    }
    detail.counted_lines(&heads);
    for (index, file) in files.iter().enumerate() {
        // Each file gets an equal share of the room, but at least 400 bytes: fewer would show only a line or two.
        let share = (detail.left() / (files.len() - index)).max(400);
        if detail.left() < share {
            break;
        }
        detail.reserving(detail.left() - share, |detail| {
            detail.line(&format!("{}:", call.path(file.path)));
            fill_changed(file, detail);
        });
    }
}

/// Adds the changed lines. For a large change, adds as many lines of both sides as fit, definitions first,
/// and the number of omitted lines.
pub(super) fn fill_changed(patch: &FilePatch<'_>, detail: &mut Detail) {
    let changed = patch::changed_lines(&patch.removed, &patch.added);
    if changed.iter().map(|line| line.len() + 1).sum::<usize>() <= detail.left() {
        return detail.lines(changed);
    }
    let lines: Vec<String> = changed.iter().map(|line| one_line(line, 110)).collect();
    // Lines on both sides are left out, because one of the two could be omitted below.
    let texts =
        |mark: char| -> HashSet<&str> { lines.iter().filter_map(|line| line.strip_prefix(mark)).collect() };
    let (old, new) = (texts('-'), texts('+'));
    let of = |mark: char, others: &HashSet<&str>| -> Vec<usize> {
        let is_own = |line: &String| line.strip_prefix(mark).is_some_and(|text| !others.contains(text));
        (0..lines.len()).filter(|index| lines.get(*index).is_some_and(is_own)).collect()
    };
    let (removed, added) = (of('-', &new), of('+', &old));
    let size = |side: &[usize]| {
        side.iter().filter_map(|index| lines.get(*index)).map(|line| line.len() + 1).sum::<usize>()
    };
    let room = (detail.left() * 3 / 4).saturating_sub(40);
    let first = size(&removed).min((room / 2).max(room.saturating_sub(size(&added))));
    let mut chosen = choose(&lines, &removed, first);
    chosen.extend(choose(&lines, &added, room - first));
    detail.lines(chosen.iter().filter_map(|index| lines.get(*index)));
    let all = patch.removed.len() + patch.added.len();
    detail.line(&format!("[{} of {all} changed lines left out]", all.saturating_sub(chosen.len())));
    // The names in the other lines make the change searchable.
    detail.top_names("Names", &names(&lines.join("\n")));
}

/// Returns the lines of one side that fit into `room`, in their order: the most informative ones.
fn choose(lines: &[String], side: &[usize], room: usize) -> Vec<usize> {
    let texts = side.iter().filter_map(|index| lines.get(*index)).map(String::as_str);
    let ranked: Vec<(Relevance, &str)> =
        texts.map(|line| (relevance(line.get(2..).unwrap_or_default()), line)).collect();
    select(&ranked, room).into_iter().filter_map(|at| side.get(at)).copied().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn additions_and_removals_need_a_changed_line() {
        let patch = FilePatch {
            added: vec!["func (s *Store) Save() {"],
            removed: vec!["func load() {"],
            ..FilePatch::default()
        };
        let change = |name: &str, action| Change { kind: Kind::Function, name: name.to_owned(), action };
        let changes = vec![
            change("Store.Save", FunctionAction::New),
            change("Store.Close", FunctionAction::New),
            change("load", FunctionAction::Deleted),
            change("store", FunctionAction::Deleted),
            change("main", FunctionAction::Modified),
        ];
        let names: Vec<String> = confirmed(changes, &patch).into_iter().map(|change| change.name).collect();
        assert_eq!(names, ["Store.Save", "load", "main"]);
    }
}
