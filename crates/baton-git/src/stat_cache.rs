//! Cache of file ids, so that unchanged files need not be read again.
//!
//! An optimization: a missing, truncated or damaged cache counts as empty. It holds the files whose content the index
//! does not identify: changed, untracked and converted files.

use std::io::Write as _;
use std::ops::Range;
use std::path::Path;

use baton_files::DurableFile;
use flate2::Crc;

use crate::object::{ObjectFormat, ObjectId};
use crate::stat_time::StatTime;

const MAGIC: &[u8; 8] = b"batonst2";
const FIXED: usize = 4 + 8 * 3 + 12 * 2 + 4 * 3 + 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileStat {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    pub(crate) changed_at: StatTime,
    pub(crate) modified_at: StatTime,
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
}

/// Known facts about the content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct KnownContent {
    /// Id of the raw bytes.
    pub(crate) id: ObjectId,
    /// True if the file is known to contain no carriage return.
    pub(crate) without_returns: bool,
}

/// Content of files by path and stat information, sorted by path.
#[derive(Debug, Default)]
pub(crate) struct StatCache {
    bytes: Vec<u8>,
    entries: Vec<(Range<usize>, FileStat, KnownContent)>,
}

impl StatCache {
    /// Loads the cache; empty if it is missing or invalid.
    pub(crate) fn load(file: &Path, format: ObjectFormat) -> Self {
        std::fs::read(file).ok().and_then(|bytes| Self::parse(bytes, format)).unwrap_or_default()
    }

    fn parse(bytes: Vec<u8>, format: ObjectFormat) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        if checksum(body) != u32::from_le_bytes(*sum) {
            return None;
        }
        let end = body.len();
        let mut at = MAGIC.len() + 1;
        if body.get(..at)? != [MAGIC.as_slice(), &[format.id_length() as u8]].concat() {
            return None;
        }
        let mut entries = Vec::new();
        while at < end {
            let mut fields = body.get(at..at + FIXED)?;
            let mut take = |count: usize| {
                let (field, rest) = fields.split_at(count);
                fields = rest;
                field.iter().rev().fold(0_u64, |value, byte| value << 8 | u64::from(*byte))
            };
            let length = take(4) as usize;
            let (device, inode, size) = (take(8), take(8), take(8));
            let mut stat_time = || StatTime { seconds: take(8).cast_signed(), nanoseconds: take(4) as u32 };
            let (changed_at, modified_at) = (stat_time(), stat_time());
            let (mode, user, group) = (take(4) as u32, take(4) as u32, take(4) as u32);
            let without_returns = take(1) == 1;
            let id_at = at + FIXED;
            let path_at = id_at + format.id_length();
            let id = ObjectId::from_bytes(format, body.get(id_at..path_at)?)?;
            body.get(path_at..path_at + length)?;
            let stat = FileStat { device, inode, size, changed_at, modified_at, mode, user, group };
            at = path_at + length;
            entries.push((path_at..at, stat, KnownContent { id, without_returns }));
        }
        Some(Self { bytes, entries })
    }

    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Returns a cursor for looking up paths in sorted order.
    pub(crate) fn cursor(&self) -> CacheCursor<'_> {
        CacheCursor { cache: self, at: 0, started: false }
    }

    /// Replaces the cache. A failure only costs time later.
    pub(crate) fn save<'a>(
        file: &Path,
        format: ObjectFormat,
        entries: impl Iterator<Item = (&'a [u8], FileStat, KnownContent)>,
    ) {
        let mut bytes = [MAGIC.as_slice(), &[format.id_length() as u8]].concat();
        for (path, stat, known) in entries {
            bytes.extend_from_slice(&(path.len() as u32).to_le_bytes());
            for value in [stat.device, stat.inode, stat.size] {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            for stat_time in [stat.changed_at, stat.modified_at] {
                bytes.extend_from_slice(&stat_time.seconds.to_le_bytes());
                bytes.extend_from_slice(&stat_time.nanoseconds.to_le_bytes());
            }
            for value in [stat.mode, stat.user, stat.group] {
                bytes.extend_from_slice(&value.to_le_bytes());
            }
            bytes.push(u8::from(known.without_returns));
            bytes.extend_from_slice(known.id.as_bytes());
            bytes.extend_from_slice(path);
        }
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        // Not synced: a lost cache costs only time.
        let _ = DurableFile::create(file).and_then(|mut temporary| {
            temporary.write_all(&bytes)?;
            temporary.rename()
        });
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let mut sum = Crc::new();
    sum.update(bytes);
    sum.sum()
}

/// A position in the cache that moves forward.
pub(crate) struct CacheCursor<'a> {
    cache: &'a StatCache,
    at: usize,
    started: bool,
}

impl CacheCursor<'_> {
    /// Returns the content of a file if it was cached with the same stat information. Paths must be passed in sorted
    /// order.
    pub(crate) fn find(&mut self, path: &[u8], stat: &FileStat) -> Option<KnownContent> {
        let StatCache { bytes, entries } = self.cache;
        if !self.started {
            self.at = entries.partition_point(|(range, _, _)| bytes[range.clone()] < *path);
            self.started = true;
        }
        while entries.get(self.at).is_some_and(|(range, _, _)| bytes[range.clone()] < *path) {
            self.at += 1;
        }
        let (range, then, known) = entries.get(self.at)?;
        (bytes[range.clone()] == *path && then == stat).then_some(*known)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stat(size: u64) -> FileStat {
        let stat_time = StatTime::new(-1, 5);
        FileStat {
            device: 1,
            inode: u64::MAX,
            size,
            changed_at: stat_time,
            modified_at: stat_time,
            mode: 0o100_644,
            user: 7,
            group: u32::MAX,
        }
    }

    #[test]
    fn saved_entries_are_found_and_a_damaged_cache_is_empty() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("cache");
        let format = ObjectFormat::Sha1;
        let id = |text: &str| KnownContent {
            id: format.id_of("blob", text.as_bytes()),
            without_returns: text == "a",
        };
        let entries: [(&[u8], _, _); 3] =
            [(b"a", stat(1), id("a")), (b"b/c", stat(2), id("c")), (b"z\xff", stat(3), id("z"))];
        StatCache::save(&file, format, entries.into_iter());
        let cache = StatCache::load(&file, format);
        let mut cursor = cache.cursor();
        assert_eq!(cursor.find(b"a", &stat(1)), Some(id("a")));
        assert_eq!(cursor.find(b"aa", &stat(1)), None);
        assert_eq!(cursor.find(b"b/c", &stat(9)), None);
        assert_eq!(cursor.find(b"b/c", &stat(2)), Some(id("c")));
        assert_eq!(cursor.find(b"z\xff", &stat(3)), Some(id("z")));
        assert_eq!(cursor.find(b"zz", &stat(3)), None);
        assert_eq!(StatCache::load(&file, ObjectFormat::Sha256).len(), 0);
        let mut bytes = std::fs::read(&file).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, &bytes).unwrap();
        assert_eq!(StatCache::load(&file, format).len(), 0);
        std::fs::write(&file, &bytes[..middle]).unwrap();
        assert_eq!(StatCache::load(&file, format).len(), 0);
    }
}
