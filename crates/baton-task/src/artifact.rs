//! Files that Baton keeps for a task: diffs, logs, excerpts, past revisions. Each is written once under a name of its
//! own, so that no document ever refers to a file that means something else.

use std::fs;
use std::io::{Read, Write};
use std::path::Path;

use baton_core::task::{Artifact, Encoding};
use baton_core::{ErrorCode, Fault, Sha256Hash};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::durable::failed;

/// Logs and excerpts up to this size stay plain, so that they can be read without any tool.
const PLAIN_BYTES: usize = 32 * 1024;

/// Whether a file is compressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compress {
    /// It always is.
    Always,
    /// It is when it is large.
    WhenLarge,
}

/// Gives the bytes to store, and how they are stored.
pub(crate) fn encode(bytes: &[u8], compress: Compress) -> Result<(Vec<u8>, Encoding), Fault> {
    if compress == Compress::WhenLarge && bytes.len() <= PLAIN_BYTES {
        return Ok((bytes.to_vec(), Encoding::Plain));
    }
    // Without a time in the header the same text always makes the same file.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    let stored = encoder.write_all(bytes).and_then(|()| encoder.finish());
    let stored = stored.map_err(|error| {
        Fault::new(ErrorCode::Internal, "an artifact could not be compressed").caused_by(error)
    })?;
    Ok((stored, Encoding::Gzip))
}

/// Checks that an artifact is there.
pub(crate) fn require(root: &Path, artifact: &Artifact) -> Result<(), Fault> {
    if root.join(&artifact.path).is_file() { Ok(()) } else { Err(corrupt(artifact, "is not there")) }
}

/// Reads the plain text of an artifact, and checks that it is what was stored.
pub(crate) fn read(root: &Path, artifact: &Artifact) -> Result<Vec<u8>, Fault> {
    let path = root.join(&artifact.path);
    let stored = fs::read(&path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => corrupt(artifact, "is not there"),
        _ => failed("read", &path, error),
    })?;
    if Sha256Hash::of(&stored) != artifact.stored_sha256 {
        return Err(corrupt(artifact, "is not as it was written"));
    }
    let plain = match artifact.encoding {
        Encoding::Plain => stored,
        Encoding::Gzip => {
            let mut plain = Vec::new();
            // No more than was recorded, whatever the file says of itself.
            let read =
                GzDecoder::new(stored.as_slice()).take(artifact.size_bytes + 1).read_to_end(&mut plain);
            read.map_err(|_| corrupt(artifact, "cannot be decompressed"))?;
            plain
        }
    };
    if Sha256Hash::of(&plain) != artifact.sha256 {
        return Err(corrupt(artifact, "is not as it was written"));
    }
    Ok(plain)
}

fn corrupt(artifact: &Artifact, problem: &str) -> Fault {
    Fault::new(ErrorCode::TaskCorrupt, format!("{} {problem}", artifact.path)).hint(
        "files below .agent-output/ must only be written by baton task; restore it, or take a new snapshot",
    )
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
    fn text_comes_back_and_small_text_stays_plain() {
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
    fn what_was_changed_cut_or_removed_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let artifact = stored(root.path(), &[b'x'; 1000], Compress::Always);
        let path = root.path().join("a");
        fs::write(&path, b"junk").unwrap();
        assert_eq!(read(root.path(), &artifact).unwrap_err().code, ErrorCode::TaskCorrupt);
        fs::remove_file(&path).unwrap();
        assert!(read(root.path(), &artifact).unwrap_err().message.contains("is not there"));
        let mut bomb = stored(root.path(), &[0; 1_000_000], Compress::Always);
        bomb.size_bytes = 10;
        assert_eq!(read(root.path(), &bomb).unwrap_err().code, ErrorCode::TaskCorrupt);
    }
}
