//! Artifacts of a task: diffs, logs, excerpts and past revisions. Each is written once under a unique name, so that a
//! reference never points to another content.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use baton_core::task::{Artifact, Encoding};
use baton_core::{ErrorCode, Fault, Sha256Hash};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::durable::failed;

/// Logs and excerpts up to this size are not compressed, so that they can be read without tools.
const PLAIN_BYTES: usize = 32 * 1024;

/// When to compress a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compress {
    Always,
    /// Only above [`PLAIN_BYTES`].
    WhenLarge,
}

/// Returns the bytes to store and their encoding.
pub(crate) fn encode(bytes: &[u8], compress: Compress) -> Result<(Vec<u8>, Encoding), Fault> {
    if compress == Compress::WhenLarge && bytes.len() <= PLAIN_BYTES {
        return Ok((bytes.to_vec(), Encoding::Plain));
    }
    // The header has no time, so the same content always produces the same file.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let stored = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let stored = stored.map_err(|error| {
        Fault::new(ErrorCode::Internal, "an artifact could not be compressed").caused_by(error)
    })?;
    Ok((stored, Encoding::Gzip))
}

/// Returns an error if the file of an artifact does not exist.
pub(crate) fn require(root: &Path, artifact: &Artifact) -> Result<(), Fault> {
    if root.join(&artifact.path).is_file() { Ok(()) } else { Err(corrupt(artifact, "does not exist")) }
}

/// Reads the decompressed content of an artifact and verifies both hashes.
pub(crate) fn read(root: &Path, artifact: &Artifact) -> Result<Vec<u8>, Fault> {
    let path = root.join(&artifact.path);
    let stored = fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => corrupt(artifact, "does not exist"),
        _ => failed("read", &path, error),
    })?;
    if Sha256Hash::of(&stored) != artifact.stored_sha256 {
        return Err(corrupt(artifact, "was modified"));
    }
    let plain = match artifact.encoding {
        Encoding::Plain => stored,
        Encoding::Gzip => {
            let mut plain = Vec::new();
            // Limited to the recorded size, so that a manipulated file cannot exhaust the memory.
            let read =
                GzDecoder::new(stored.as_slice()).take(artifact.size_bytes + 1).read_to_end(&mut plain);
            read.map_err(|_| corrupt(artifact, "cannot be decompressed"))?;
            plain
        }
    };
    if Sha256Hash::of(&plain) != artifact.sha256 {
        return Err(corrupt(artifact, "was modified"));
    }
    Ok(plain)
}

fn corrupt(artifact: &Artifact, problem: &str) -> Fault {
    Fault::new(ErrorCode::TaskCorrupt, format!("{} {problem}", artifact.path))
        .hint("only baton task may write files below .agent-output/; restore it, or take a new snapshot")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(root: &Path, bytes: &[u8], compress: Compress) -> Artifact {
        let (stored, encoding) = encode(bytes, compress).unwrap();
        fs::write(root.join("a"), &stored).unwrap();
        Artifact {
            path: "a".into(),
            sha256: Sha256Hash::of(bytes),
            stored_sha256: Sha256Hash::of(&stored),
            size_bytes: bytes.len() as u64,
            encoding,
        }
    }

    #[test]
    fn content_reads_back_and_small_content_is_not_compressed() {
        let root = tempfile::tempdir().unwrap();
        for (size, compress, encoding) in [
            (0, Compress::Always, Encoding::Gzip),
            (10, Compress::WhenLarge, Encoding::Plain),
            (100_000, Compress::WhenLarge, Encoding::Gzip),
        ] {
            let bytes = vec![b'x'; size];
            let artifact = stored(root.path(), &bytes, compress);
            assert_eq!(artifact.encoding, encoding);
            assert_eq!(read(root.path(), &artifact).unwrap(), bytes);
        }
    }

    #[test]
    fn changed_truncated_or_removed_artifacts_are_reported_as_corrupt() {
        let root = tempfile::tempdir().unwrap();
        let artifact = stored(root.path(), &[b'x'; 1000], Compress::Always);
        let path = root.path().join("a");
        fs::write(&path, b"junk").unwrap();
        assert_eq!(read(root.path(), &artifact).unwrap_err().code, ErrorCode::TaskCorrupt);
        fs::remove_file(&path).unwrap();
        assert!(read(root.path(), &artifact).unwrap_err().message.contains("does not exist"));
        let mut bomb = stored(root.path(), &[0; 1_000_000], Compress::Always);
        bomb.size_bytes = 10;
        assert_eq!(read(root.path(), &bomb).unwrap_err().code, ErrorCode::TaskCorrupt);
    }
}
