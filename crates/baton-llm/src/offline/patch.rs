//! File changes as text: Claude Code's structured patches, Codex's `*** Begin Patch`, and unified diffs.

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
    /// The part of the file that the patch shows, before and after.
    pub(super) before: String,
    pub(super) after: String,
    /// Context of the hunks: `@@ … @@ func (s *Store) Save()`.
    pub(super) places: Vec<&'a str>,
}

impl<'a> FilePatch<'a> {
    fn of(path: &'a str, file_action: FileAction) -> Self {
        Self { path: path.trim(), file_action, ..Self::default() }
    }

    /// Adds a line of a hunk: `+new`, `-old` or ` same`.
    fn take(&mut self, line: &'a str) {
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
        let lines = hunk.get("lines").and_then(Value::as_array);
        let mut same = 0;
        for line in lines.into_iter().flatten().filter_map(Value::as_str) {
            if first.is_none() && !line.starts_with(['+', '-']) {
                same += 1;
            } else if first.is_none() {
                first = hunk.get("newStart").and_then(Value::as_u64).map(|start| start.saturating_add(same));
            }
            file.take(line);
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
                file.take(line);
            }
        }
    }
    files
}

/// Parses unified diffs of `git diff` and `git show`. Text before the first diff is skipped.
pub(super) fn read_unified(text: &str) -> Vec<FilePatch<'_>> {
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    let mut in_hunk = false;
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
            let place = rest.split_once(" @@").map_or("", |(_, place)| place.trim());
            if !place.is_empty() && file.places.last() != Some(&place) {
                file.places.push(place);
            }
        } else if in_hunk {
            file.take(line);
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
        let text = "commit 1\n\ndiff --git a/x.go b/x.go\nindex 1..2 100644\n--- a/x.go\n+++ b/x.go\n@@ -1,2 +1,3 @@ func main() {\n same\n-old\n+new\ndiff --git a/n b/n\nnew file mode 100644\n--- /dev/null\n+++ b/n\n@@ -0,0 +1 @@\n+x\n";
        let files = read_unified(text);
        assert_eq!((files[0].path, files[0].places.as_slice()), ("x.go", ["func main() {"].as_slice()));
        assert_eq!(
            (files[0].added.as_slice(), files[0].removed.as_slice()),
            (["new"].as_slice(), ["old"].as_slice())
        );
        assert_eq!((files[1].path, files[1].file_action), ("n", FileAction::Created));
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
