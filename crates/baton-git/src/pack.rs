//! Pack files: one file for all objects of a snapshot, synced to disk once.

use std::collections::HashSet;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use baton_files::sync_folder;
use flate2::{Compress, Compression, Crc, FlushCompress, Status};
use tempfile::NamedTempFile;

use crate::error::GitError;
use crate::object::{ObjectFormat, ObjectHasher, ObjectId};

/// Writes the content of an object to a sink in pieces.
pub(crate) type WriteContent<'a> = Box<dyn Fn(&mut dyn FnMut(&[u8])) -> Result<(), GitError> + 'a>;

/// An object to be stored.
pub(crate) struct NewObject<'a> {
    pub(crate) id: ObjectId,
    pub(crate) kind: ObjectKind,
    pub(crate) size: u64,
    pub(crate) write_content: WriteContent<'a>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ObjectKind {
    Tree,
    Blob,
}

impl ObjectKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Tree => "tree",
            Self::Blob => "blob",
        }
    }

    const fn number(self) -> u8 {
        match self {
            Self::Tree => 2,
            Self::Blob => 3,
        }
    }
}

/// Why objects were not stored.
pub(crate) enum PackError {
    /// The content does not match the id of the object.
    OtherContent,
    Failed(GitError),
}

/// Writes objects into a new pack in `folder` and syncs it to disk.
pub(crate) fn write_pack(
    folder: &Path,
    format: ObjectFormat,
    objects: &[NewObject<'_>],
) -> Result<(), PackError> {
    let io = |error| PackError::Failed(GitError::folder(folder)(error));
    let temporary = NamedTempFile::new_in(folder).map_err(io)?;
    let mut pack = PackFile {
        file: BufWriter::with_capacity(256 * 1_024, temporary),
        hasher: ObjectHasher::plain(format),
        sum: Crc::new(),
        offset: 0,
    };
    let count = u32::try_from(objects.len()).map_err(|_| io(io::Error::other("too many objects")))?;
    pack.write_all(&[b"PACK".as_slice(), &2_u32.to_be_bytes(), &count.to_be_bytes()].concat()).map_err(io)?;
    let mut entries = Vec::with_capacity(objects.len());
    let mut deflater = Deflater::new();
    for object in objects {
        let offset = pack.offset;
        pack.sum.reset();
        let id = write_object(&mut pack, &mut deflater, format, object, &io)?;
        if id != object.id {
            return Err(PackError::OtherContent);
        }
        entries.push((object.id, pack.sum.sum(), offset));
    }
    let PackFile { mut file, hasher, .. } = pack;
    let checksum = hasher.finish();
    file.write_all(checksum.as_bytes()).map_err(io)?;
    let temporary = file.into_inner().map_err(|error| io(error.into_error()))?;
    let index = index_bytes(format, entries, checksum);
    publish(folder, checksum, temporary, &index).map_err(io)
}

/// Moves pack and index into place. The index is last, after the pack is on disk, because git finds a pack by its
/// index.
///
/// Not with `DurableFile`: each file is renamed before it is synced, so that syncing also makes its name durable. An index that a crash leaves
/// empty is ignored by git and by [`packed_ids`], and the next pack of the same objects replaces it.
fn publish(folder: &Path, checksum: ObjectId, pack: NamedTempFile, index: &[u8]) -> io::Result<()> {
    let place = |file: NamedTempFile, ending: &str| {
        file.as_file().set_permissions(fs::Permissions::from_mode(0o400))?;
        let file =
            file.persist(folder.join(format!("pack-{checksum}.{ending}"))).map_err(|error| error.error)?;
        file.sync_all()
    };
    let mut index_file = NamedTempFile::new_in(folder)?;
    index_file.write_all(index)?;
    place(pack, "pack")?;
    place(index_file, "idx")?;
    sync_folder(folder)
}

fn write_object(
    pack: &mut PackFile,
    deflater: &mut Deflater,
    format: ObjectFormat,
    object: &NewObject<'_>,
    io: &dyn Fn(io::Error) -> PackError,
) -> Result<ObjectId, PackError> {
    let mut header = Vec::with_capacity(10);
    let mut size = object.size;
    let mut byte = object.kind.number() << 4 | (size & 0x0f) as u8;
    size >>= 4;
    while size > 0 {
        header.push(byte | 0x80);
        byte = (size & 0x7f) as u8;
        size >>= 7;
    }
    header.push(byte);
    pack.write_all(&header).map_err(io)?;
    let mut hasher = ObjectHasher::new(format, object.kind.name(), object.size);
    let mut written = Ok(());
    (object.write_content)(&mut |piece| {
        hasher.update(piece);
        if written.is_ok() {
            written = deflater.write(piece, pack);
        }
    })
    .map_err(PackError::Failed)?;
    written.and_then(|()| deflater.finish(pack)).map_err(io)?;
    Ok(hasher.finish())
}

/// Compresses objects one after the other. The tables of a compressor take hundreds of kilobytes, so one is used for all.
struct Deflater {
    compress: Compress,
    buffer: Vec<u8>,
}

impl Deflater {
    fn new() -> Self {
        Self { compress: Compress::new(Compression::fast(), true), buffer: Vec::with_capacity(32 * 1_024) }
    }

    fn write(&mut self, mut piece: &[u8], pack: &mut PackFile) -> io::Result<()> {
        while !piece.is_empty() {
            let (consumed, _) = self.step(piece, FlushCompress::None, pack)?;
            piece = piece.get(consumed..).unwrap_or_default();
        }
        Ok(())
    }

    /// Ends the stream of an object.
    fn finish(&mut self, pack: &mut PackFile) -> io::Result<()> {
        while self.step(&[], FlushCompress::Finish, pack)?.1 != Status::StreamEnd {}
        self.compress.reset();
        Ok(())
    }

    /// Compresses into the buffer and writes it. Returns the number of consumed bytes.
    fn step(
        &mut self,
        piece: &[u8],
        flush: FlushCompress,
        pack: &mut PackFile,
    ) -> io::Result<(usize, Status)> {
        self.buffer.clear();
        let before = self.compress.total_in();
        let status = self.compress.compress_vec(piece, &mut self.buffer, flush)?;
        let consumed = usize::try_from(self.compress.total_in() - before).unwrap_or(piece.len());
        if consumed == 0 && self.buffer.is_empty() && status != Status::StreamEnd {
            return Err(io::Error::other("compression made no progress"));
        }
        pack.write_all(&self.buffer)?;
        Ok((consumed, status))
    }
}

/// A pack that is being written. Counts and hashes the written bytes.
struct PackFile {
    file: BufWriter<NamedTempFile>,
    hasher: ObjectHasher,
    /// Checksum of the current object.
    sum: Crc,
    offset: u64,
}

impl Write for PackFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.file.write(bytes)?;
        self.hasher.update(&bytes[..count]);
        self.sum.update(&bytes[..count]);
        self.offset += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Creates the index of a pack, version 2.
fn index_bytes(format: ObjectFormat, mut entries: Vec<(ObjectId, u32, u64)>, checksum: ObjectId) -> Vec<u8> {
    entries.sort_unstable_by_key(|(id, _, _)| *id);
    let mut bytes = b"\xfftOc\0\0\0\x02".to_vec();
    for first in 0..=u8::MAX {
        let upto = entries.partition_point(|(id, _, _)| id.as_bytes()[0] <= first);
        bytes.extend_from_slice(&(upto as u32).to_be_bytes());
    }
    entries.iter().for_each(|(id, _, _)| bytes.extend_from_slice(id.as_bytes()));
    entries.iter().for_each(|(_, sum, _)| bytes.extend_from_slice(&sum.to_be_bytes()));
    let mut large = Vec::new();
    for (_, _, offset) in &entries {
        let field = match u32::try_from(*offset) {
            Ok(offset) if offset < 1 << 31 => offset,
            _ => {
                large.push(*offset);
                1 << 31 | (large.len() as u32 - 1)
            }
        };
        bytes.extend_from_slice(&field.to_be_bytes());
    }
    large.iter().for_each(|offset| bytes.extend_from_slice(&offset.to_be_bytes()));
    bytes.extend_from_slice(checksum.as_bytes());
    let mut hasher = ObjectHasher::plain(format);
    hasher.update(&bytes);
    bytes.extend_from_slice(hasher.finish().as_bytes());
    bytes
}

/// Returns the ids of all objects in the packs of a folder. An unreadable index counts as empty.
pub(crate) fn packed_ids(folder: &Path, format: ObjectFormat) -> io::Result<HashSet<ObjectId>> {
    let mut ids = HashSet::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.extension().is_some_and(|ending| ending == "idx") && path.with_extension("pack").exists() {
            ids.extend(index_ids(&fs::read(&path)?, format).unwrap_or_default());
        }
    }
    Ok(ids)
}

/// Returns the ids in the index of a pack; `None` if it is invalid.
pub(crate) fn index_ids(bytes: &[u8], format: ObjectFormat) -> Option<Vec<ObjectId>> {
    let names = bytes.strip_prefix(b"\xfftOc\0\0\0\x02")?.get(256 * 4..)?;
    let count = u32::from_be_bytes(*bytes.get(8 + 255 * 4..)?.first_chunk::<4>()?) as usize;
    let names = names.get(..count.checked_mul(format.id_length())?)?;
    names.chunks(format.id_length()).map(|bytes| ObjectId::from_bytes(format, bytes)).collect()
}
