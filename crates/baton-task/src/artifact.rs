//! Artifacts of a task: diffs, logs, excerpts and past revisions. Each is written once under a unique name, so that a
//! reference never points to another content.

use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use baton_core::{ErrorCode, Fault, Sha256Hash};
use baton_files::DurableFile;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

use crate::durable::failed;
use crate::rules::{Artifact, Encoding};

/// Logs and excerpts up to this size are not compressed, so that they can be read without tools.
const PLAIN_BYTES: usize = 32 * 1024;

/// When to compress a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compress {
    Always,
    /// Only above [`PLAIN_BYTES`].
    WhenLarge,
}

/// Returns the bytes to store and their description. The path of the returned artifact is empty.
pub(crate) fn encode(bytes: &[u8], compress: Compress) -> Result<(Vec<u8>, Artifact), Fault> {
    let (stored, encoding) = if compress == Compress::WhenLarge && bytes.len() <= PLAIN_BYTES {
        (bytes.to_vec(), Encoding::Plain)
    } else {
        (compressed(bytes)?, Encoding::Gzip)
    };
    let artifact = Artifact {
        path: String::new(),
        sha256: Sha256Hash::of(bytes),
        stored_sha256: Sha256Hash::of(&stored),
        size_bytes: bytes.len() as u64,
        encoding,
    };
    Ok((stored, artifact))
}

fn compressed(bytes: &[u8]) -> Result<Vec<u8>, Fault> {
    // The header has no time, so the same content always produces the same file.
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let stored = encoder.write_all(bytes).and_then(|()| encoder.finish());
    stored.map_err(|error| {
        Fault::new(ErrorCode::Internal, "cannot compress a file of the task").caused_by(error)
    })
}

/// Returns how to store content of any size, compressed above [`PLAIN_BYTES`], and the content.
pub(crate) fn choose_encoding(content: &mut dyn Read) -> io::Result<(Encoding, impl Read)> {
    let mut beginning = Vec::new();
    (&mut *content).take(PLAIN_BYTES as u64 + 1).read_to_end(&mut beginning)?;
    let encoding = if beginning.len() > PLAIN_BYTES { Encoding::Gzip } else { Encoding::Plain };
    Ok((encoding, io::Cursor::new(beginning).chain(content)))
}

/// Writes content to a new file durably. The path of the returned artifact is empty.
pub(crate) fn write_file(path: &Path, encoding: Encoding, content: impl Read) -> io::Result<Artifact> {
    let mut file = DurableFile::create(path)?;
    let (sha256, size_bytes) = match encoding {
        Encoding::Plain => copy(content, &mut file)?,
        Encoding::Gzip => {
            let mut encoder = GzEncoder::new(&mut file, Compression::default());
            let copied = copy(content, &mut encoder)?;
            encoder.finish()?;
            copied
        }
    };
    let stored_sha256 = Sha256Hash::of_all(File::open(file.temporary())?)?;
    file.finish_new()?;
    Ok(Artifact { path: String::new(), sha256, stored_sha256, size_bytes, encoding })
}

/// Copies everything and returns its hash and size.
fn copy(source: impl Read, target: impl Write) -> io::Result<(Sha256Hash, u64)> {
    let mut tee = Tee { source, target, size_bytes: 0 };
    let sha256 = Sha256Hash::of_all(&mut tee)?;
    Ok((sha256, tee.size_bytes))
}

/// A reader that writes everything it reads to `target`.
struct Tee<R, W> {
    source: R,
    target: W,
    size_bytes: u64,
}

impl<R: Read, W: Write> Read for Tee<R, W> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.source.read(buffer)?;
        self.target.write_all(&buffer[..count])?;
        self.size_bytes += count as u64;
        Ok(count)
    }
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
    Fault::new(ErrorCode::TaskCorrupt, format!("{} {problem}", artifact.path)).hint(
        "restore the file, or take a new snapshot; only baton task may write files below .agent-output/",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored(root: &Path, bytes: &[u8], compress: Compress) -> Artifact {
        let (stored, artifact) = encode(bytes, compress).unwrap();
        fs::write(root.join("a"), &stored).unwrap();
        Artifact { path: "a".into(), ..artifact }
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
    fn streamed_content_reads_back_and_large_content_is_compressed() {
        let root = tempfile::tempdir().unwrap();
        for (size, encoding) in
            [(0, Encoding::Plain), (PLAIN_BYTES, Encoding::Plain), (200_000, Encoding::Gzip)]
        {
            let bytes = vec![b'x'; size];
            let mut content = bytes.as_slice();
            let (chosen, content) = choose_encoding(&mut content).unwrap();
            assert_eq!(chosen, encoding);
            let written = write_file(&root.path().join(size.to_string()), encoding, content).unwrap();
            let artifact = Artifact { path: size.to_string(), ..written };
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
