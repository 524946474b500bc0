//! Compression of raw tool output: fast, because an agent waits, and size-limited when decompressed.
//!
//! Large output is compressed and decompressed as a stream, so it is never in memory as a whole.

use std::io::{self, Cursor, Read, Write};

use baton_files::DurableFile;
use zstd::bulk::Compressor;
use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;
use zstd::zstd_safe::CParameter;

use crate::blobs::{BlobFolder, MAX_ROW_BYTES};
use crate::error::StoreError;
use crate::rows::RawOutput;

/// Maximum size of raw output in bytes, before packing.
pub const MAX_RAW_BYTES: usize = 64 * 1024 * 1024;
/// Limit for unpacked output, which is JSON: escaping makes a byte at most six bytes long.
const MAX_UNPACKED_BYTES: u64 = 8 * MAX_RAW_BYTES as u64;
/// Fastest level: the output is unpacked only once.
const ZSTD_LEVEL: i32 = 1;
/// Size of the hash table: two to this power, times four bytes. Clearing the default table of 128 KiB is most of the work
/// for the usual output of a few kilobytes, and makes outputs at most 3 % smaller.
const HASH_LOG: u32 = 13;
/// Output shorter than this is not compressed.
const MIN_PACKED_BYTES: usize = 512;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Packs raw output: one byte that identifies the encoding, then the encoded bytes.
pub fn pack_raw(raw: &[u8]) -> Result<Vec<u8>, StoreError> {
    if raw.len() < MIN_PACKED_BYTES {
        return Ok([&[PLAIN], raw].concat());
    }
    let failed =
        |error: io::Error| StoreError::Encode { action: "compress raw output", source: error.into() };
    let bytes = compress(raw).map_err(failed)?;
    Ok([&[ZSTD], bytes.as_slice()].concat())
}

fn compress(raw: &[u8]) -> io::Result<Vec<u8>> {
    let mut compressor = Compressor::new(ZSTD_LEVEL)?;
    compressor.set_parameter(CParameter::HashLog(HASH_LOG))?;
    compressor.compress(raw)
}

/// Unpacks raw output that was stored in a row.
pub fn unpack_raw(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    let damaged = |problem| StoreError::corrupt("pending_queue", problem);
    match (packed.split_first(), unpacked_size(packed)) {
        (Some((&PLAIN, raw)), _) => Ok(raw.to_vec()),
        (Some((&ZSTD, bytes)), Some(size)) if size <= MAX_RAW_BYTES => {
            zstd::bulk::decompress(bytes, size).map_err(damaged)
        }
        _ => {
            let mut raw = Vec::new();
            RawReader::of(packed).and_then(|mut reader| reader.read_to_end(&mut raw)).map_err(damaged)?;
            Ok(raw)
        }
    }
}

/// Returns the unpacked size of packed output, or `None` if the packed bytes do not record it.
pub fn unpacked_size(packed: &[u8]) -> Option<usize> {
    match packed.split_first()? {
        (&PLAIN, raw) => Some(raw.len()),
        (_, bytes) => {
            let size = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten();
            size.and_then(|size| usize::try_from(size).ok())
        }
    }
}

/// Stores packed output in the row, or in a blob if it is large and there is a blob folder.
pub fn place_raw(packed: Vec<u8>, blobs: Option<&BlobFolder>, name: &str) -> Result<RawOutput, StoreError> {
    match blobs {
        Some(blobs) if packed.len() > MAX_ROW_BYTES => {
            blobs.put(name, &packed)?;
            Ok(RawOutput::Blob(name.to_owned()))
        }
        _ => Ok(RawOutput::Row(packed)),
    }
}

/// Packs raw output as a stream into a row or a blob.
pub struct RawPacker {
    encoder: Encoder<'static, RawDestination>,
}

impl std::fmt::Debug for RawPacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawPacker")
    }
}

/// Destination of packed output.
struct RawDestination {
    row: Vec<u8>,
    /// Blob folder and blob name, used once the output exceeds the size limit of a row.
    blob: Option<(BlobFolder, String)>,
    file: Option<DurableFile>,
}

impl RawPacker {
    /// Creates a packer. If the output becomes a blob, the blob has this name.
    pub fn new(blobs: Option<&BlobFolder>, name: &str) -> io::Result<Self> {
        let blob = blobs.map(|blobs| (blobs.clone(), name.to_owned()));
        let destination = RawDestination { row: vec![ZSTD], blob, file: None };
        Ok(Self { encoder: Encoder::new(destination, ZSTD_LEVEL)? })
    }

    /// Finishes packing. A blob is synced to disk before this returns.
    pub fn finish(self) -> io::Result<RawOutput> {
        let RawDestination { row, blob, file } = self.encoder.finish()?;
        match (file, blob) {
            (Some(file), Some((_, name))) => {
                file.finish()?;
                Ok(RawOutput::Blob(name))
            }
            _ => Ok(RawOutput::Row(row)),
        }
    }
}

impl Write for RawPacker {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.encoder.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.encoder.flush()
    }
}

impl Write for RawDestination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        self.row.extend_from_slice(bytes);
        if self.row.len() > MAX_ROW_BYTES
            && let Some((blobs, name)) = &self.blob
        {
            match blobs.create(name) {
                Ok(file) => {
                    self.file.insert(file).write_all(&self.row)?;
                    self.row = Vec::new();
                }
                Err(error) => {
                    // The output exists nowhere else: storing it in the row is better than losing it.
                    tracing::warn!(%error, "cannot create a blob; storing the output in the row");
                    self.blob = None;
                }
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Unpacks raw output while it is read.
pub struct RawReader<'a> {
    reader: Box<dyn Read + Send + 'a>,
    room: u64,
}

impl std::fmt::Debug for RawReader<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawReader")
    }
}

impl<'a> RawReader<'a> {
    /// Opens raw output from its row or blob.
    pub fn open(raw: RawOutput, blobs: Option<&BlobFolder>) -> Result<RawReader<'static>, StoreError> {
        let opened = match raw {
            RawOutput::Row(bytes) => RawReader::of(Cursor::new(bytes)),
            RawOutput::Blob(name) => {
                let file = blobs.map_or(Ok(None), |blobs| blobs.open(&name))?;
                let missing = || StoreError::BlobMissing { name: name.clone() };
                RawReader::of(file.ok_or_else(missing)?)
            }
        };
        opened.map_err(|problem| StoreError::corrupt("pending_queue", problem))
    }

    fn of(mut packed: impl Read + Send + 'a) -> io::Result<Self> {
        let mut kind = [0];
        packed.read_exact(&mut kind)?;
        let reader: Box<dyn Read + Send + 'a> = match kind {
            [PLAIN] => Box::new(packed),
            [ZSTD] => Box::new(Decoder::new(packed)?),
            _ => return Err(io::Error::other("raw output has an unknown encoding")),
        };
        Ok(Self { reader, room: MAX_UNPACKED_BYTES })
    }
}

impl Read for RawReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let room = self.room.checked_sub(read as u64);
        self.room = room.ok_or_else(|| io::Error::other("raw output exceeds the size limit"))?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(bytes: usize) -> Vec<u8> {
        let mut state = 1_u32;
        let next = || {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        };
        std::iter::repeat_with(next).take(bytes).collect()
    }

    fn packed_in_chunks(raw: &[u8], blobs: Option<&BlobFolder>) -> RawOutput {
        let mut packer = RawPacker::new(blobs, "raw-1").unwrap();
        raw.chunks(9_999).for_each(|part| packer.write_all(part).unwrap());
        packer.finish().unwrap()
    }

    #[test]
    fn packed_output_unpacks_to_the_original() {
        for raw in
            [Vec::new(), b"short".to_vec(), b"abc".repeat(100_000), (0..=255).cycle().take(9_999).collect()]
        {
            let packed = pack_raw(&raw).unwrap();
            assert_eq!(
                (unpacked_size(&packed), unpack_raw(&packed).unwrap()),
                (Some(raw.len()), raw.clone())
            );
            let RawOutput::Row(packed) = packed_in_chunks(&raw, None) else {
                panic!("no blob folder is configured")
            };
            assert_eq!(unpack_raw(&packed).unwrap(), raw);
        }
        assert!(pack_raw(&b"abc".repeat(100_000)).unwrap().len() < 1_000);
    }

    #[test]
    fn large_packed_output_becomes_a_blob() {
        let home = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::at(home.path().join("blobs"));
        for (raw, expected) in [
            (b"abc".repeat(1_000_000), None),
            (noise(MAX_ROW_BYTES + 50_000), Some("raw-1")),
            (noise(3_000_000), Some("raw-1")),
        ] {
            let placed = place_raw(pack_raw(&raw).unwrap(), Some(&blobs), "raw-1").unwrap();
            let streamed = packed_in_chunks(&raw, Some(&blobs));
            for output in [placed, streamed] {
                let blob = matches!(&output, RawOutput::Blob(name) if Some(name.as_str()) == expected);
                assert_eq!(blob, expected.is_some());
                let mut back = Vec::new();
                RawReader::open(output, Some(&blobs)).unwrap().read_to_end(&mut back).unwrap();
                assert!(back == raw);
            }
        }
        // If no blob can be created, the output is stored in the row.
        let nowhere = BlobFolder::at("/proc/nonexistent/blobs");
        assert!(matches!(packed_in_chunks(&noise(3_000_000), Some(&nowhere)), RawOutput::Row(_)));
        // Dropping an unfinished packer leaves no file behind.
        let mut packer = RawPacker::new(Some(&blobs), "raw-2").unwrap();
        packer.write_all(&noise(1_000_000)).unwrap();
        drop(packer);
        assert_eq!(std::fs::read_dir(home.path().join("blobs")).unwrap().count(), 1);
    }

    #[test]
    fn damaged_output_is_reported_as_corrupt() {
        let packed = pack_raw(&b"abc".repeat(1_000)).unwrap();
        let RawOutput::Row(streamed) = packed_in_chunks(&b"abc".repeat(1_000), None) else { panic!() };
        for bytes in
            [&[][..], &[7, 1], &packed[..packed.len() - 1], &packed[..3], &streamed[..streamed.len() - 1]]
        {
            assert!(matches!(unpack_raw(bytes), Err(StoreError::Corrupt { .. })), "{bytes:?}");
        }
        let missing = RawReader::open(RawOutput::Blob("raw-9".into()), Some(&BlobFolder::at("/nonexistent")));
        assert!(matches!(missing, Err(StoreError::BlobMissing { .. })));
    }
}
