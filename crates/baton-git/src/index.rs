//! The index of a repository, which is read but never written.
//!
//! Versions 2 to 4 are parsed here. A split or sparse index is first rewritten as a plain one by git, in the object store.

use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::NamedTempFile;

use crate::error::GitError;
use crate::object::{FileMode, ObjectFormat, ObjectId};
use crate::repository::Repository;
use crate::stat_time::StatTime;

/// Stat information that git keeps for a file, truncated to 32 bits each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct IndexStat {
    pub(crate) ctime: (u32, u32),
    pub(crate) mtime: (u32, u32),
    pub(crate) inode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) size: u32,
}

/// Bit of the assume-unchanged mark in the first byte of the flags.
const ASSUME_UNCHANGED: u8 = 0x80;

/// One path of the index.
#[derive(Debug, Clone)]
pub(crate) struct IndexEntry {
    path: Range<usize>,
    /// Offset of the flags in the bytes of the index.
    flags_at: usize,
    pub(crate) mode: FileMode,
    pub(crate) id: ObjectId,
    pub(crate) stat: IndexStat,
    /// Zero, or the side of a conflict.
    pub(crate) stage: u8,
    pub(crate) assume_unchanged: bool,
    pub(crate) skip_worktree: bool,
    pub(crate) intent_to_add: bool,
}

/// All tracked paths, in byte order.
#[derive(Debug)]
pub(crate) struct Index {
    bytes: Vec<u8>,
    paths: Vec<u8>,
    entries: Vec<IndexEntry>,
    /// When the index was written; `None` if there is no index yet.
    pub(crate) written_at: Option<StatTime>,
    pub(crate) stamp: IndexStamp,
}

/// Identifies a version of the index file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct IndexStamp(Option<(u64, u64, i64, i64)>);

impl IndexStamp {
    pub(crate) fn of(repository: &Repository) -> Self {
        let meta = std::fs::metadata(repository.git_dir().join("index"));
        Self(meta.ok().map(|meta| (meta.ino(), meta.size(), meta.mtime(), meta.mtime_nsec())))
    }
}

impl Index {
    /// Reads the index of a checkout. `scratch` is a folder in which git may write a plain copy of a special index.
    pub(crate) fn read(repository: &Repository, scratch: &Path) -> Result<Self, GitError> {
        let stamp = IndexStamp::of(repository);
        let path = repository.git_dir().join("index");
        let Some((mut bytes, written_at)) = contents(&path).map_err(GitError::folder(&path))? else {
            let (bytes, paths, entries) = (Vec::new(), Vec::new(), Vec::new());
            return Ok(Self { bytes, paths, entries, written_at: None, stamp });
        };
        let mut parsed = parse(&bytes, repository.object_format())?;
        if matches!(parsed, Parsed::Special) {
            bytes = rewritten(repository, &bytes, scratch)?;
            parsed = parse(&bytes, repository.object_format())?;
        }
        let Parsed::Plain(paths, entries) = parsed else {
            return Err(damaged("git cannot rewrite it without extensions"));
        };
        Ok(Self { bytes, paths, entries, written_at: Some(written_at), stamp })
    }

    /// Creates a copy in which every file is marked as assume-unchanged, so that git does not examine tracked files.
    ///
    /// Returns `None` if that could hide a change: an entry added with intent-to-add may be the new name of a deleted
    /// file, which git detects only if it examines both.
    pub(crate) fn assume_unchanged_copy(&self, folder: &Path) -> Result<Option<NamedTempFile>, GitError> {
        if self.bytes.is_empty() || self.entries.iter().any(|entry| entry.intent_to_add) {
            return Ok(None);
        }
        let mut bytes = self.bytes.clone();
        for entry in self.entries.iter().filter(|entry| entry.mode != FileMode::Nested) {
            bytes[entry.flags_at] |= ASSUME_UNCHANGED;
        }
        write_copy(folder, &bytes).map(Some)
    }

    /// Creates a copy in which no file is marked as assume-unchanged, so that git examines every file. Returns `None` if
    /// no file is marked.
    pub(crate) fn examined_copy(&self, folder: &Path) -> Result<Option<NamedTempFile>, GitError> {
        if !self.entries.iter().any(|entry| entry.assume_unchanged) {
            return Ok(None);
        }
        let mut bytes = self.bytes.clone();
        for entry in &self.entries {
            bytes[entry.flags_at] &= !ASSUME_UNCHANGED;
        }
        write_copy(folder, &bytes).map(Some)
    }

    pub(crate) fn entries(&self) -> &[IndexEntry] {
        &self.entries
    }

    pub(crate) fn path(&self, entry: &IndexEntry) -> &[u8] {
        &self.paths[entry.path.clone()]
    }
}

fn write_copy(folder: &Path, bytes: &[u8]) -> Result<NamedTempFile, GitError> {
    let write = || {
        let mut file = NamedTempFile::new_in(folder)?;
        file.write_all(bytes)?;
        Ok(file)
    };
    write().map_err(GitError::folder(folder))
}

fn damaged(problem: &'static str) -> GitError {
    GitError::DamagedIndex { problem }
}

fn contents(path: &Path) -> io::Result<Option<(Vec<u8>, StatTime)>> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    let mut bytes = Vec::with_capacity(usize::try_from(meta.len()).unwrap_or(0) + 1);
    file.read_to_end(&mut bytes)?;
    Ok(Some((bytes, StatTime::new(meta.mtime(), meta.mtime_nsec()))))
}

/// Lets git write a copy of a split or sparse index as a plain one.
fn rewritten(repository: &Repository, bytes: &[u8], scratch: &Path) -> Result<Vec<u8>, GitError> {
    let folder = tempfile::tempdir_in(scratch).map_err(GitError::folder(scratch))?;
    let path = folder.path().join("index");
    std::fs::write(&path, bytes).map_err(GitError::folder(&path))?;
    let (call, _objects) = repository.index_call("update-index")?;
    call.arguments(["--no-split-index", "--force-write-index"])
        .variable("GIT_INDEX_FILE", &path)
        .setting("index.sparse", "false")
        .setting("core.splitIndex", "false")
        .setting("index.version", "2")
        .output()?;
    std::fs::read(&path).map_err(GitError::folder(&path))
}

enum Parsed {
    Plain(Vec<u8>, Vec<IndexEntry>),
    Special,
}

/// Reads from the front of a byte slice.
struct Reader<'a> {
    left: &'a [u8],
    total: usize,
}

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], GitError> {
        let (taken, rest) = self.left.split_at_checked(count).ok_or_else(|| damaged("it is cut off"))?;
        self.left = rest;
        Ok(taken)
    }

    fn u16(&mut self) -> Result<u16, GitError> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }

    fn u32(&mut self) -> Result<u32, GitError> {
        self.take(4).map(|bytes| u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn until_nul(&mut self) -> Result<&'a [u8], GitError> {
        let end = self.left.iter().position(|byte| *byte == 0).ok_or_else(|| damaged("it is cut off"))?;
        let name = self.take(end)?;
        self.take(1)?;
        Ok(name)
    }

    /// Reads a number in seven-bit groups, as in packs and in index version 4.
    fn offset(&mut self) -> Result<usize, GitError> {
        let mut byte = self.take(1)?[0];
        let mut value = usize::from(byte & 0x7f);
        while byte & 0x80 != 0 {
            byte = self.take(1)?[0];
            value = value
                .checked_add(1)
                .and_then(|value| value.checked_mul(128))
                .ok_or_else(|| damaged("a number is too large"))?
                + usize::from(byte & 0x7f);
        }
        Ok(value)
    }
}

fn parse(bytes: &[u8], format: ObjectFormat) -> Result<Parsed, GitError> {
    let body = bytes.len().checked_sub(format.id_length()).ok_or_else(|| damaged("it is cut off"))?;
    let mut reader = Reader { left: &bytes[..body], total: body };
    if reader.take(4)? != b"DIRC" {
        return Err(damaged("it has no DIRC signature"));
    }
    let version = reader.u32()?;
    if !(2..=4).contains(&version) {
        return Err(damaged("its version is not known"));
    }
    let count = reader.u32()? as usize;
    let mut paths = Vec::with_capacity(body.min(count.saturating_mul(48)));
    let mut entries = Vec::with_capacity(count.min(body / 62));
    let mut previous = 0..0;
    for _ in 0..count {
        let Some(entry) = parse_entry(&mut reader, version, format, &mut paths, previous)? else {
            return Ok(Parsed::Special);
        };
        previous = entry.path.clone();
        entries.push(entry);
    }
    while reader.left.len() >= 8 {
        let name = reader.take(4)?;
        let size = reader.u32()? as usize;
        // A lower-case extension is required for interpreting the entries.
        if name[0].is_ascii_lowercase() {
            return Ok(Parsed::Special);
        }
        reader.take(size)?;
    }
    Ok(Parsed::Plain(paths, entries))
}

/// Parses one entry; `None` for a folder entry of a sparse index.
fn parse_entry(
    reader: &mut Reader<'_>,
    version: u32,
    format: ObjectFormat,
    paths: &mut Vec<u8>,
    previous: Range<usize>,
) -> Result<Option<IndexEntry>, GitError> {
    let before = reader.left.len();
    let ctime = (reader.u32()?, reader.u32()?);
    let mtime = (reader.u32()?, reader.u32()?);
    let (_device, inode, bits) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let (user, group, size) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let id = ObjectId::from_bytes(format, reader.take(format.id_length())?);
    let id = id.ok_or_else(|| damaged("it is cut off"))?;
    let flags_at = reader.total - reader.left.len();
    let flags = reader.u16()?;
    let extended = if flags & 0x4000 != 0 { reader.u16()? } else { 0 };
    let start = paths.len();
    if version == 4 {
        let dropped = reader.offset()?;
        let kept = previous.len().checked_sub(dropped).ok_or_else(|| damaged("a path is too short"))?;
        paths.extend_from_within(previous.start..previous.start + kept);
        paths.extend_from_slice(reader.until_nul()?);
    } else {
        paths.extend_from_slice(reader.until_nul()?);
        // Entries are padded with one to eight NUL bytes to a multiple of eight.
        let length = before - reader.left.len();
        reader.take(length.next_multiple_of(8) - length)?;
    }
    let Some(mode) = FileMode::from_bits(bits) else { return Ok(None) };
    Ok(Some(IndexEntry {
        path: start..paths.len(),
        flags_at,
        mode,
        id,
        stat: IndexStat { ctime, mtime, inode, user, group, size },
        stage: u8::from(flags & 0x2000 != 0) * 2 + u8::from(flags & 0x1000 != 0),
        assume_unchanged: flags & 0x8000 != 0,
        skip_worktree: extended & 0x4000 != 0,
        intent_to_add: extended & 0x2000 != 0,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_bytes_are_an_error() {
        for bytes in [
            &b""[..],
            b"DIRC",
            &[b"DIRC\0\0\0\x02\0\0\0\x01".as_slice(), &[0; 20]].concat(),
            &[b"DIRC\0\0\0\x09\0\0\0\0".as_slice(), &[0; 20]].concat(),
            &[b"DIRC\0\0\0\x02\xff\xff\xff\xff".as_slice(), &[7; 200]].concat(),
            &[b"DIRC\0\0\0\x04\0\0\0\x02".as_slice(), &[0xff; 300]].concat(),
        ] {
            assert!(!matches!(parse(bytes, ObjectFormat::Sha1), Ok(Parsed::Plain(..))), "{bytes:?}");
        }
        let empty = [b"DIRC\0\0\0\x02\0\0\0\0".as_slice(), &[0; 20]].concat();
        assert!(
            matches!(parse(&empty, ObjectFormat::Sha1), Ok(Parsed::Plain(_, entries)) if entries.is_empty())
        );
    }
}
