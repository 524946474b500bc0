//! Packing of raw tool output: compressed quickly, because an agent waits, and bounded on the way back.
//!
//! What is large is packed as it comes and read as it is unpacked, so that it is never there as a whole.

use std::io::{self, Cursor, Read, Write};

use zstd::stream::read::Decoder;
use zstd::stream::write::Encoder;

use crate::blobs::BlobFolder;
use crate::error::StoreError;
use crate::files::DurableFile;
use crate::rows::RawOutput;

/// The longest raw output that is taken, in bytes, as it comes.
pub const MAX_RAW_BYTES: usize = 64 * 1024 * 1024;
/// Packed output that is larger is a blob, where there is a folder for them.
const MAX_ROW_BYTES: usize = 256 * 1024;
/// No output is longer before it is packed: as JSON a byte takes up six at most.
const MAX_UNPACKED_BYTES: u64 = 8 * MAX_RAW_BYTES as u64;
/// Quick rather than good: what is packed here is unpacked once.
const LEVEL: i32 = 1;
/// Shorter output is left as it is.
const MIN_PACKED_BYTES: usize = 512;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Packs raw output: a byte that says how, then the rest.
pub fn pack_raw(raw: &[u8]) -> Result<Vec<u8>, StoreError> {
    if raw.len() >= MIN_PACKED_BYTES {
        let room = zstd::zstd_safe::compress_bound(raw.len());
        let mut packed = Vec::with_capacity(room + 1);
        packed.push(ZSTD);
        let bytes = zstd::bulk::compress(raw, LEVEL)
            .map_err(|problem| StoreError::corrupt("pending_queue", problem))?;
        packed.extend_from_slice(&bytes);
        return Ok(packed);
    }
    let mut plain = Vec::with_capacity(raw.len() + 1);
    plain.push(PLAIN);
    plain.extend_from_slice(raw);
    Ok(plain)
}

/// Unpacks raw output that is in a row.
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

/// Tells how long packed output is when it is unpacked, where it says so.
pub fn unpacked_size(packed: &[u8]) -> Option<usize> {
    match packed.split_first()? {
        (&PLAIN, raw) => Some(raw.len()),
        (_, bytes) => {
            let size = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten();
            size.and_then(|size| usize::try_from(size).ok())
        }
    }
}

/// Puts packed output where it belongs: into the row, or into a blob where it is large and there is a folder for them.
pub fn place_raw(packed: Vec<u8>, blobs: Option<&BlobFolder>, name: &str) -> Result<RawOutput, StoreError> {
    match blobs {
        Some(blobs) if packed.len() > MAX_ROW_BYTES => {
            blobs.put(name, &packed)?;
            Ok(RawOutput::Blob(name.to_owned()))
        }
        _ => Ok(RawOutput::Row(packed)),
    }
}

/// Packs raw output as it comes, and puts it where it belongs.
pub struct RawPacker {
    encoder: Encoder<'static, Place>,
}

impl std::fmt::Debug for RawPacker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RawPacker")
    }
}

/// Where packed output goes to.
struct Place {
    row: Vec<u8>,
    /// Where it goes on when the row is full.
    blob: Option<(BlobFolder, String)>,
    file: Option<DurableFile>,
}

impl RawPacker {
    /// Begins; the blob, if it comes to one, gets this name.
    pub fn new(blobs: Option<&BlobFolder>, name: &str) -> io::Result<Self> {
        let blob = blobs.map(|blobs| (blobs.clone(), name.to_owned()));
        let place = Place { row: vec![ZSTD], blob, file: None };
        Ok(Self { encoder: Encoder::new(place, LEVEL)? })
    }

    /// Ends; a blob is on disk then.
    pub fn finish(self) -> io::Result<RawOutput> {
        let Place { row, blob, file } = self.encoder.finish()?;
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

impl Write for Place {
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
                    // It is there only once: better in a row than lost.
                    tracing::warn!(%error, "no blob could be made");
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

/// Raw output that is unpacked as it is read.
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
    /// Opens raw output where it is.
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
            _ => return Err(io::Error::other("raw output that is packed in no known way")),
        };
        Ok(Self { reader, room: MAX_UNPACKED_BYTES })
    }
}

impl Read for RawReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.reader.read(buffer)?;
        let room = self.room.checked_sub(read as u64);
        self.room = room.ok_or_else(|| io::Error::other("raw output that is longer than any"))?;
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

    fn packed_bit_by_bit(raw: &[u8], blobs: Option<&BlobFolder>) -> RawOutput {
        let mut packer = RawPacker::new(blobs, "raw-1").unwrap();
        raw.chunks(9_999).for_each(|part| packer.write_all(part).unwrap());
        packer.finish().unwrap()
    }

    #[test]
    fn raw_output_comes_back() {
        for raw in
            [Vec::new(), b"short".to_vec(), b"abc".repeat(100_000), (0..=255).cycle().take(9_999).collect()]
        {
            let packed = pack_raw(&raw).unwrap();
            assert_eq!(
                (unpacked_size(&packed), unpack_raw(&packed).unwrap()),
                (Some(raw.len()), raw.clone())
            );
            let RawOutput::Row(packed) = packed_bit_by_bit(&raw, None) else { panic!("there is no folder") };
            assert_eq!(unpack_raw(&packed).unwrap(), raw);
        }
        assert!(pack_raw(&b"abc".repeat(100_000)).unwrap().len() < 1_000);
    }

    #[test]
    fn what_is_large_when_packed_becomes_a_blob() {
        let home = tempfile::tempdir().unwrap();
        let blobs = BlobFolder::at(home.path().join("blobs"));
        for (raw, expected) in [
            (b"abc".repeat(1_000_000), None),
            (noise(MAX_ROW_BYTES + 50_000), Some("raw-1")),
            (noise(3_000_000), Some("raw-1")),
        ] {
            let placed = place_raw(pack_raw(&raw).unwrap(), Some(&blobs), "raw-1").unwrap();
            let streamed = packed_bit_by_bit(&raw, Some(&blobs));
            for output in [placed, streamed] {
                let blob = matches!(&output, RawOutput::Blob(name) if Some(name.as_str()) == expected);
                assert_eq!(blob, expected.is_some());
                let mut back = Vec::new();
                RawReader::open(output, Some(&blobs)).unwrap().read_to_end(&mut back).unwrap();
                assert!(back == raw);
            }
        }
        // Where no blob can be made, the row takes it.
        let nowhere = BlobFolder::at("/proc/nonexistent/blobs");
        assert!(matches!(packed_bit_by_bit(&noise(3_000_000), Some(&nowhere)), RawOutput::Row(_)));
        // One that is given up leaves nothing behind.
        let mut packer = RawPacker::new(Some(&blobs), "raw-2").unwrap();
        packer.write_all(&noise(1_000_000)).unwrap();
        drop(packer);
        assert_eq!(std::fs::read_dir(home.path().join("blobs")).unwrap().count(), 1);
    }

    #[test]
    fn damage_is_told() {
        let packed = pack_raw(&b"abc".repeat(1_000)).unwrap();
        let RawOutput::Row(streamed) = packed_bit_by_bit(&b"abc".repeat(1_000), None) else { panic!() };
        for bytes in
            [&[][..], &[7, 1], &packed[..packed.len() - 1], &packed[..3], &streamed[..streamed.len() - 1]]
        {
            assert!(matches!(unpack_raw(bytes), Err(StoreError::Corrupt { .. })), "{bytes:?}");
        }
        let missing = RawReader::open(RawOutput::Blob("raw-9".into()), Some(&BlobFolder::at("/nonexistent")));
        assert!(matches!(missing, Err(StoreError::BlobMissing { .. })));
    }
}
