//! Secret scan of files in a checkout, before their content is stored.

use baton_core::Fault;

use crate::rules::AcceptedSecret;
use crate::secrets::SecretScan;
use crate::working_tree::Inspector;

/// Number of bytes that are scanned at once.
const WINDOW: usize = 4 * 1024 * 1024;

/// Number of bytes at the end of a window that are scanned again with the next one. No secret is longer.
const OVERLAP: usize = 128 * 1024;

/// Scans names and contents of files for secrets: text, binary data and UTF-16.
#[derive(Debug)]
pub(crate) struct ContentScan {
    accepted: Vec<AcceptedSecret>,
    force: bool,
    found: SecretScan,
    file: Option<OpenFile>,
}

/// The file that is being scanned.
#[derive(Debug, Default)]
struct OpenFile {
    path: String,
    /// Bytes that were not scanned yet, or are scanned again with the next ones.
    buffer: Vec<u8>,
    /// Line in which `buffer` begins, from 0.
    line: usize,
}

impl ContentScan {
    /// Creates a scan. `accepted` secrets are ignored; with `force` every secret is accepted.
    pub(crate) fn new(accepted: &[AcceptedSecret], force: bool) -> Self {
        Self { accepted: accepted.to_vec(), force, found: SecretScan::default(), file: None }
    }

    /// Ends the scan and returns the findings.
    pub(crate) fn finish(mut self) -> SecretScan {
        self.end_file();
        self.found
    }

    fn end_file(&mut self) {
        if let Some(file) = self.file.take() {
            self.found.content(&file.path, &file.buffer, file.line, file.buffer.len());
        }
    }
}

impl Inspector for ContentScan {
    fn restart(&mut self) {
        self.found = SecretScan::default();
        self.file = None;
    }

    fn inspect(&mut self, path: &str, piece: &[u8]) {
        if piece.is_empty() || self.file.as_ref().is_none_or(|file| file.path != path) {
            self.end_file();
            self.found.name(path);
            self.file = Some(OpenFile { path: path.to_owned(), ..OpenFile::default() });
        }
        let Some(file) = &mut self.file else { return };
        file.buffer.extend_from_slice(piece);
        if file.buffer.len() >= WINDOW {
            let upto = file.buffer.len() - OVERLAP;
            self.found.content(&file.path, &file.buffer, file.line, upto);
            let done = file.buffer.drain(..upto);
            file.line += done.filter(|byte| *byte == b'\n').count();
        }
    }

    fn check(&self) -> Result<(), Fault> {
        if self.force {
            return Ok(());
        }
        let mut found = self.found.clone();
        if let Some(file) = &self.file {
            found.content(&file.path, &file.buffer, file.line, file.buffer.len());
        }
        found.require_accepted(&self.accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds a key at run time, so that this file does not contain one.
    fn key() -> String {
        format!("AKIA{}", "IOSFODNN7EXAMPLQ")
    }

    fn scan_message(pieces: &[(&str, &[u8])]) -> String {
        let mut scan = ContentScan::new(&[], false);
        scan.restart();
        for (path, piece) in pieces {
            scan.inspect(path, piece);
        }
        scan.check().err().map_or_else(String::new, |fault| fault.message)
    }

    #[test]
    fn text_binary_and_utf_16_are_scanned() {
        let key = key();
        let binary = [b"\0\x01 ".as_slice(), key.as_bytes(), b"\n"].concat();
        let little: Vec<u8> = format!("a\nk={key}\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = format!("k={key}\n").encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (bytes, location) in [
            (key.as_bytes(), "aws-access-key at a.rs:1)"),
            (&binary, "aws-access-key at a.rs)"),
            (&little, "aws-access-key at a.rs)"),
            (&big, "aws-access-key at a.rs)"),
        ] {
            let message = scan_message(&[("a.rs", bytes)]);
            assert!(message.contains(location) && !message.contains(&key), "{message}");
        }
        assert_eq!(scan_message(&[("a.rs", b"\0\x01 nothing here")]), "");
    }

    #[test]
    fn a_secret_across_pieces_is_found_once() {
        let key = key();
        let mut text = vec![b'\n'; WINDOW - 7];
        text.extend_from_slice(key.as_bytes());
        text.resize(2 * WINDOW, b'\n');
        for size in [1_000, 65_536, 2 * WINDOW] {
            let mut scan = ContentScan::new(&[], false);
            text.chunks(size).for_each(|piece| scan.inspect("a", piece));
            let message = scan.check().unwrap_err().message;
            assert!(message.contains(&format!("(aws-access-key at a:{})", WINDOW - 6)), "{message}");
        }
    }

    #[test]
    fn file_names_are_scanned_and_secrets_in_them_are_redacted() {
        let key = key();
        let message = scan_message(&[(&format!("src/{key}.rs"), b""), ("b", b"")]);
        assert!(message.contains("aws-access-key in the name src/[redacted:aws-access-key].rs"), "{message}");
        assert!(!message.contains(&key), "{message}");
    }

    #[test]
    fn restart_discards_the_findings() {
        let mut scan = ContentScan::new(&[], false);
        scan.inspect("a", key().as_bytes());
        assert!(scan.check().is_err());
        scan.restart();
        scan.inspect("a", b"clean now");
        assert!(scan.check().is_ok());
    }
}
