//! The diff of two trees as reported by git: paths, line counts, patch.

use crate::error::GitError;
use crate::object::{FileMode, ObjectId};
use crate::object_store::ObjectStore;
use crate::path::RepoPath;
use crate::status::StatusSide;

/// Whether to include the patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    Paths,
    Patch,
    /// A patch that names files that are or were large but does not contain their content.
    PatchWithoutLarge,
}

#[derive(Debug)]
pub(crate) struct RawDiff {
    pub(crate) files: Vec<DiffFile>,
    /// A complete, applicable patch as written by git (`--binary --full-index`).
    pub(crate) patch: Vec<u8>,
}

/// A path that differs.
#[derive(Debug)]
pub(crate) struct DiffFile {
    pub(crate) path: RepoPath,
    /// Previous path of a renamed file.
    pub(crate) previous_path: Option<RepoPath>,
    pub(crate) before: Option<StatusSide>,
    pub(crate) after: Option<StatusSide>,
    /// Added and deleted lines; `None` for a binary file.
    pub(crate) lines: Option<(u64, u64)>,
}

/// Runs `git diff-tree` for two trees or commits that are in the object store or in the repository it borrows from.
pub(crate) fn diff_trees(
    object_store: &ObjectStore,
    from: ObjectId,
    to: ObjectId,
    detail: Detail,
) -> Result<RawDiff, GitError> {
    if detail != Detail::PatchWithoutLarge {
        return run_diff_tree(object_store, from, to, detail, &[]);
    }
    let mut diff = run_diff_tree(object_store, from, to, Detail::Paths, &[])?;
    let large = large_files(object_store, &diff.files)?;
    let left_out: Vec<&RepoPath> =
        large.iter().flat_map(|file| [Some(&file.path), file.previous_path.as_ref()]).flatten().collect();
    let mut patch = run_diff_tree(object_store, from, to, Detail::Patch, &left_out)?.patch;
    for file in large {
        let path = &file.path;
        let previous = file.previous_path.as_ref().unwrap_or(path);
        let text =
            format!("diff --git a/{previous} b/{path}\nBinary files a/{previous} and b/{path} differ\n");
        patch.extend_from_slice(text.as_bytes());
    }
    diff.patch = patch;
    Ok(diff)
}

/// Returns the files with changed content that are too large for a patch before or after the change.
fn large_files<'a>(object_store: &ObjectStore, files: &'a [DiffFile]) -> Result<Vec<&'a DiffFile>, GitError> {
    let ids = |file: &DiffFile| {
        let sides = [file.before, file.after].into_iter().flatten();
        sides.filter(|side| side.mode != FileMode::Nested).map(|side| side.id)
    };
    let digests = object_store.digests(&files.iter().flat_map(ids).collect())?;
    let least = object_store.call("diff-tree").limits().large_file_bytes;
    let is_large = |id| digests.get(&id).is_some_and(|(size, _)| *size >= least);
    let is_changed = |file: &DiffFile| file.before.map(|side| side.id) != file.after.map(|side| side.id);
    Ok(files.iter().filter(|file| is_changed(file) && ids(file).any(is_large)).collect())
}

fn run_diff_tree(
    object_store: &ObjectStore,
    from: ObjectId,
    to: ObjectId,
    detail: Detail,
    left_out: &[&RepoPath],
) -> Result<RawDiff, GitError> {
    if from == to {
        return Ok(RawDiff { files: Vec::new(), patch: Vec::new() });
    }
    let mut call = object_store.call("diff-tree").arguments([
        "-r",
        "-z",
        "--raw",
        "--numstat",
        "--no-abbrev",
        "--find-renames=50%",
        "-l1000",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--diff-algorithm=myers",
        "--ignore-submodules=none",
        "--submodule=short",
    ]);
    if detail == Detail::Patch {
        // `--unified` alone would also produce a patch.
        call = call.arguments(["--patch", "--unified=3", "--binary", "--full-index"]);
        call = call.arguments(["--src-prefix=a/", "--dst-prefix=b/"]);
    }
    call = call.arguments([from.to_string(), to.to_string(), "--".into()]);
    for path in object_store.excluded().iter().chain(left_out.iter().copied()) {
        use std::os::unix::ffi::OsStringExt;
        let pathspec = [b":(top,exclude,literal)".as_slice(), path.as_bytes()].concat();
        call = call.arguments([std::ffi::OsString::from_vec(pathspec)]);
    }
    let output = call.output()?;
    parse(&output).ok_or_else(|| GitError::unexpected("diff-tree", "the format is unknown"))
}

fn parse(output: &[u8]) -> Option<RawDiff> {
    let mut reader = Records(output);
    let mut files = Vec::new();
    while reader.0.starts_with(b":") {
        let record = reader.next()?;
        let fields: Vec<&[u8]> = record.get(1..)?.split(|byte| *byte == b' ').collect();
        let [before_mode, after_mode, before_id, after_id, status] = fields[..] else { return None };
        let side = |mode: &[u8], id: &[u8]| {
            Some(StatusSide { mode: FileMode::from_digits(mode)?, id: ObjectId::from_hex(id)? })
        };
        let first = RepoPath::new(reader.next()?);
        let renamed = matches!(status.first()?, b'R' | b'C');
        let second = if renamed { Some(RepoPath::new(reader.next()?)) } else { None };
        let (path, previous_path) = match second {
            Some(path) => (path, Some(first)),
            None => (first, None),
        };
        let (before, after) = (side(before_mode, before_id), side(after_mode, after_id));
        files.push(DiffFile { path, previous_path, before, after, lines: None });
    }
    for file in &mut files {
        let record = reader.next()?;
        let mut fields = record.splitn(3, |byte| *byte == b'\t');
        let mut number = || -> Option<Option<u64>> {
            match fields.next()? {
                b"-" => Some(None),
                digits => std::str::from_utf8(digits).ok()?.parse().ok().map(Some),
            }
        };
        let (added, deleted) = (number()?, number()?);
        file.lines = added.zip(deleted);
        if file.previous_path.is_some() {
            // The two paths follow.
            reader.next()?;
            reader.next()?;
        }
    }
    let patch = reader.0.strip_prefix(b"\0").unwrap_or(reader.0);
    Some(RawDiff { files, patch: patch.to_vec() })
}

/// Iterates over NUL-terminated records.
struct Records<'a>(&'a [u8]);

impl<'a> Records<'a> {
    fn next(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let (record, rest) = self.0.split_at(end);
        self.0 = &rest[1..];
        Some(record)
    }
}
