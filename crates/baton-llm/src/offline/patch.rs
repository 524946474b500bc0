//! File changes as text: Claude Code's structured patches, Codex's `*** Begin Patch`, and unified diffs.

use std::collections::HashMap;

use baton_core::is_any;
use serde_json::Value;

/// Maximum number of changed lines per file that are examined.
const MAX_LINES: usize = 20_000;

/// What happened to a file as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum FileAction {
    #[default]
    Updated,
    Created,
    Deleted,
}

/// The change of one file.
#[derive(Debug, Default)]
pub(super) struct FilePatch<'a> {
    pub(super) path: &'a str,
    /// New path of a moved file.
    pub(super) moved_to: Option<&'a str>,
    pub(super) file_action: FileAction,
    pub(super) removed: Vec<&'a str>,
    pub(super) added: Vec<&'a str>,
    /// The part of the file that the patch shows, before the change.
    pub(super) before: String,
    /// The part of the file that the patch shows, after the change.
    pub(super) after: String,
    /// The lines that start the definitions of the changed lines: the nearest one above in the hunk, or `func Save()` of
    /// `@@ … @@ func Save()`.
    pub(super) places: Vec<&'a str>,
}

impl<'a> FilePatch<'a> {
    fn of(path: &'a str, file_action: FileAction) -> Self {
        Self { path: path.trim(), file_action, ..Self::default() }
    }

    /// Adds a line of a hunk: `+new`, `-old` or ` same`.
    fn add_line(&mut self, line: &'a str) {
        if self.added.len() + self.removed.len() >= MAX_LINES {
            return;
        }
        let (mark, rest) = line.split_at_checked(1).unwrap_or(("", line));
        match mark {
            "+" => {
                self.added.push(rest);
                push_line(&mut self.after, rest);
            }
            "-" => {
                self.removed.push(rest);
                push_line(&mut self.before, rest);
            }
            _ => {
                push_line(&mut self.before, rest);
                push_line(&mut self.after, rest);
            }
        }
    }

    fn add_place(&mut self, place: &'a str) {
        if !self.places.contains(&place) {
            self.places.push(place);
        }
    }
}

/// Finds the definition that a line of a hunk is in.
#[derive(Default)]
struct Definition<'a> {
    /// The defining line and its indentation.
    line: Option<(&'a str, usize)>,
}

impl<'a> Definition<'a> {
    /// Starts a hunk with the definition in its header.
    fn start(header: &'a str) -> Self {
        Self { line: (!header.is_empty()).then_some((header, 0)) }
    }

    /// Reads a line of the hunk, without its mark. Returns the definition that the line is in.
    fn read(&mut self, line: &'a str) -> Option<&'a str> {
        let bare = line.trim_start();
        let indent = line.len() - bare.len();
        let current = self.line.map(|(definition, _)| definition);
        if bare.is_empty() {
            return current;
        }
        if is_definition(bare) {
            self.line = Some((bare, indent));
            return Some(bare);
        }
        // A line that is not deeper than the definition ends it, except for the rest of its head.
        let is_head = bare.starts_with([')', '{', ']']) || bare.starts_with("where");
        if !is_head && self.line.is_some_and(|(_, own)| indent <= own) {
            self.line = None;
            return current.filter(|_| bare.starts_with('}'));
        }
        current
    }
}

/// Returns true for a line that defines a function or a type in one of the usual languages.
fn is_definition(line: &str) -> bool {
    const WORDS: &str = "fn|func|def|function|class|struct|interface|trait|impl|enum";
    const BEFORE: &str = "pub|pub(crate)|pub(super)|async|export|default|static|unsafe|const|public|private|\
        protected|final|abstract|type";
    let mut words = line.split_whitespace().skip_while(|word| is_any(word, BEFORE));
    words.next().is_some_and(|word| is_any(word, WORDS) || word.starts_with("impl<"))
        || line.starts_with("type ") && line.ends_with('{')
}

/// Returns the lines of a change, marked `-` and `+`. A line that is on both sides equally often was moved or indented
/// and is left out, and so are lines without words, unless nothing else was changed.
pub(super) fn changed_lines(removed: &[&str], added: &[&str]) -> Vec<String> {
    let key = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut counts: HashMap<String, (usize, usize)> = HashMap::new();
    removed.iter().for_each(|line| counts.entry(key(line)).or_default().0 += 1);
    added.iter().for_each(|line| counts.entry(key(line)).or_default().1 += 1);
    let has_words = |line: &str| line.chars().any(char::is_alphanumeric);
    let is_changed =
        |line: &str| has_words(line) && counts.get(&key(line)).is_some_and(|(old, new)| old != new);
    let marked = |is_shown: &dyn Fn(&str) -> bool| -> Vec<String> {
        let sides = [('-', removed), ('+', added)];
        let lines = sides.iter().flat_map(|(mark, lines)| lines.iter().map(move |line| (mark, line.trim())));
        lines.filter(|(_, line)| is_shown(line)).map(|(mark, line)| format!("{mark} {line}")).collect()
    };
    let changed = marked(&is_changed);
    if changed.is_empty() { marked(&|line| !line.is_empty()) } else { changed }
}

fn push_line(text: &mut String, line: &str) {
    text.push_str(line);
    text.push('\n');
}

/// Parses the `structuredPatch` of Claude Code. Also returns the number of the first changed line.
pub(super) fn read_structured<'a>(path: &'a str, patch: &'a Value) -> Option<(FilePatch<'a>, Option<u64>)> {
    let hunks = patch.as_array().filter(|hunks| !hunks.is_empty())?;
    let mut file = FilePatch::of(path, FileAction::Updated);
    let mut first = None;
    for hunk in hunks {
        let lines = hunk["lines"].as_array();
        let mut same = 0;
        for line in lines.into_iter().flatten().filter_map(Value::as_str) {
            if first.is_none() && !line.starts_with(['+', '-']) {
                same += 1;
            } else if first.is_none() {
                first = hunk["newStart"].as_u64().map(|start| start.saturating_add(same));
            }
            file.add_line(line);
        }
    }
    Some((file, first))
}

/// Parses the patch of Codex's `apply_patch`.
pub(super) fn read_codex(text: &str) -> Vec<FilePatch<'_>> {
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    let Some(at) = text.find("*** Begin Patch") else { return files };
    for line in text.get(at..).unwrap_or_default().lines().skip(1) {
        let header = [
            ("*** Add File: ", FileAction::Created),
            ("*** Update File: ", FileAction::Updated),
            ("*** Delete File: ", FileAction::Deleted),
        ];
        if let Some((path, file_action)) = header
            .iter()
            .find_map(|(mark, file_action)| line.strip_prefix(mark).map(|path| (path, *file_action)))
        {
            files.push(FilePatch::of(path, file_action));
        } else if line.starts_with("*** End Patch") {
            break;
        } else if let Some(file) = files.last_mut() {
            if let Some(path) = line.strip_prefix("*** Move to: ") {
                file.moved_to = Some(path.trim());
            } else if let Some(place) = line.strip_prefix("@@") {
                file.places.push(place.trim());
            } else if !line.starts_with("*** ") {
                file.add_line(line);
            }
        }
    }
    files
}

/// Parses unified diffs of `git diff` and `git show`. Text before the first diff is skipped.
pub(super) fn read_unified(text: &str) -> Vec<FilePatch<'_>> {
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    let mut in_hunk = false;
    let mut definition = Definition::default();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("diff --git ") {
            let path = rest.rsplit_once(" b/").map_or(rest, |(_, path)| path);
            files.push(FilePatch::of(path, FileAction::Updated));
            in_hunk = false;
            continue;
        }
        let Some(file) = files.last_mut() else { continue };
        if let Some(rest) = line.strip_prefix("@@ ") {
            in_hunk = true;
            definition = Definition::start(rest.split_once(" @@").map_or("", |(_, place)| place.trim()));
        } else if in_hunk {
            let place = definition.read(line.get(1..).unwrap_or_default());
            if let Some(place) = place.filter(|_| line.starts_with(['+', '-'])) {
                file.add_place(place);
            }
            file.add_line(line);
        } else if line.starts_with("new file mode") {
            file.file_action = FileAction::Created;
        } else if line.starts_with("deleted file mode") {
            file.file_action = FileAction::Deleted;
        } else if let Some(path) = line.strip_prefix("rename to ") {
            file.moved_to = Some(path);
        }
    }
    files
}

/// Creates the change between two versions of a text, without the lines that both start and end with.
pub(super) fn between<'a>(path: &'a str, before: &'a str, after: &'a str) -> FilePatch<'a> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let start = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
    let longest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(longest).take_while(|(a, b)| a == b).count();
    let inner = |lines: &[&'a str]| {
        lines
            .get(start..lines.len().saturating_sub(end))
            .unwrap_or_default()
            .iter()
            .take(MAX_LINES)
            .copied()
            .collect()
    };
    FilePatch { path, removed: inner(&old), added: inner(&new), ..FilePatch::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn codex_patch_is_parsed() {
        let text = "*** Begin Patch\n*** Update File: src/a.rs\n*** Move to: src/b.rs\n@@ fn one()\n let x;\n-old\n+new\n+more\n*** Add File: c.txt\n+hello\n*** Delete File: d.txt\n*** End Patch\nnoise";
        let files = read_codex(text);
        assert_eq!(files.len(), 3);
        assert_eq!((files[0].path, files[0].moved_to), ("src/a.rs", Some("src/b.rs")));
        assert_eq!((files[0].removed.len(), files[0].added.len()), (1, 2));
        assert_eq!(files[0].before, "let x;\nold\n");
        assert_eq!(files[1].file_action, FileAction::Created);
        assert_eq!(files[2].file_action, FileAction::Deleted);
        assert!(read_codex("no patch").is_empty());
    }

    #[test]
    fn unified_diff_is_parsed() {
        let text = "commit 1\n\ndiff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,3 @@ func main() {\n \tsame\n-\told\n+\tnew\ndiff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
        let files = read_unified(text);
        assert_eq!((files[0].path, files[0].places.as_slice()), ("x.go", ["func main() {"].as_slice()));
        assert_eq!(
            (files[0].added.as_slice(), files[0].removed.as_slice()),
            (["\tnew"].as_slice(), ["\told"].as_slice())
        );
        assert_eq!((files[1].path, files[1].file_action), ("n", FileAction::Created));
    }

    #[test]
    fn changed_lines_of_a_diff_are_in_the_nearest_definition() {
        let hunk = "diff --git a/x.go b/x.go\n@@ -10,9 +10,10 @@ func before() {\n \treturn nil\n }\n \n+// Save saves.\n func (s *Store) Save() {\n-\told()\n+\tnew()\n }\n \n+var limit = 3\n";
        assert_eq!(read_unified(hunk)[0].places, ["func (s *Store) Save() {"]);
        let python = "diff --git a/x.py b/x.py\n@@ -1,4 +1,4 @@ class A:\n     def one(self):\n         pass\n     def two(self):\n-        return 1\n+        return 2\n";
        assert_eq!(read_unified(python)[0].places, ["def two(self):"]);
    }

    #[test]
    fn a_line_on_both_sides_is_shown_on_both_or_on_none() {
        let moved = changed_lines(&["a()", "keep()", "b()"], &["keep()", "a(1)", "b()"]);
        assert_eq!(moved, ["- a()", "+ a(1)"]);
        let more = changed_lines(&["x()"], &["x()", "x()"]);
        assert_eq!(more, ["- x()", "+ x()", "+ x()"]);
        assert_eq!(changed_lines(&["  a()"], &["a()"]), ["- a()", "+ a()"]);
        assert_eq!(changed_lines(&[], &["}"]), ["+ }"]);
    }

    #[test]
    fn structured_patch_is_parsed_with_its_first_line() {
        let patch = json!([{ "oldStart": 10, "newStart": 10, "lines": [" a", " b", "-c", "+d"] }]);
        let (file, line) = read_structured("x", &patch).unwrap();
        assert_eq!(
            (file.removed.as_slice(), file.added.as_slice(), line),
            (["c"].as_slice(), ["d"].as_slice(), Some(12))
        );
        assert!(read_structured("x", &json!([])).is_none());
    }

    #[test]
    fn common_start_and_end_are_not_part_of_the_change() {
        let file = between("x", "a\nb\nc\n", "a\nB\nB2\nc\n");
        assert_eq!(
            (file.removed.as_slice(), file.added.as_slice()),
            (["b"].as_slice(), ["B", "B2"].as_slice())
        );
    }
}
