//! Looking through the files of a checkout before anything of them is kept.

use baton_core::Fault;
use baton_core::task::AcceptedSecret;

use crate::secrets::SecretScan;
use crate::tree::Inspector;

/// How much of a file is looked through at once.
const WINDOW: usize = 4 * 1024 * 1024;

/// How much of it is looked through again with what follows. No secret is longer.
const OVERLAP: usize = 128 * 1024;

/// Looks through names and contents of files, whatever they are: text, binary, UTF-16.
#[derive(Debug)]
pub(crate) struct ContentScan {
    accepted: Vec<AcceptedSecret>,
    force: bool,
    found: SecretScan,
    file: Option<OpenFile>,
}

/// The file whose pieces are coming in.
#[derive(Debug, Default)]
struct OpenFile {
    path: String,
    waiting: Vec<u8>,
    /// The line that `waiting` begins in, from 0.
    line: usize,
}

impl ContentScan {
    /// Begins a scan. What was accepted before is no reason to refuse, and nothing is when somebody insists.
    pub(crate) fn new(accepted: &[AcceptedSecret], force: bool) -> Self {
        Self { accepted: accepted.to_vec(), force, found: SecretScan::default(), file: None }
    }

    /// Gives what was found.
    pub(crate) fn finish(mut self) -> SecretScan {
        self.end_file();
        self.found
    }

    fn end_file(&mut self) {
        if let Some(file) = self.file.take() {
            self.found.content(&file.path, &file.waiting, file.line, file.waiting.len());
        }
    }
}

impl Inspector for ContentScan {
    fn begin(&mut self) {
        self.found = SecretScan::default();
        self.file = None;
    }

    fn look(&mut self, path: &str, piece: &[u8]) {
        if piece.is_empty() || self.file.as_ref().is_none_or(|file| file.path != path) {
            self.end_file();
            self.found.name(path);
            self.file = Some(OpenFile { path: path.to_owned(), ..OpenFile::default() });
        }
        let Some(file) = &mut self.file else { return };
        file.waiting.extend_from_slice(piece);
        if file.waiting.len() >= WINDOW {
            let upto = file.waiting.len() - OVERLAP;
            self.found.content(&file.path, &file.waiting, file.line, upto);
            let done = file.waiting.drain(..upto);
            file.line += done.filter(|byte| *byte == b'\n').count();
        }
    }

    fn verdict(&self) -> Result<(), Fault> {
        if self.force {
            return Ok(());
        }
        let mut found = self.found.clone();
        if let Some(file) = &self.file {
            found.content(&file.path, &file.waiting, file.line, file.waiting.len());
        }
        found.refuse_unless(&self.accepted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Put together here, so that this file holds none.
    fn key() -> String {
        format!("AKIA{}", "IOSFODNN7EXAMPLQ")
    }

    fn said(pieces: &[(&str, &[u8])]) -> String {
        let mut scan = ContentScan::new(&[], false);
        scan.begin();
        for (path, piece) in pieces {
            scan.look(path, piece);
        }
        scan.verdict().err().map_or_else(String::new, |fault| fault.message)
    }

    #[test]
    fn text_binary_and_wide_text_are_looked_through() {
        let key = key();
        let binary = [b"\0\x01 ".as_slice(), key.as_bytes(), b"\n"].concat();
        let little: Vec<u8> = format!("a\nk={key}\n").encode_utf16().flat_map(u16::to_le_bytes).collect();
        let big: Vec<u8> = format!("k={key}\n").encode_utf16().flat_map(u16::to_be_bytes).collect();
        for (bytes, place) in [
            (key.as_bytes(), "aws-access-key at a.rs:1)"),
            (&binary, "aws-access-key at a.rs)"),
            (&little, "aws-access-key at a.rs)"),
            (&big, "aws-access-key at a.rs)"),
        ] {
            let message = said(&[("a.rs", bytes)]);
            assert!(message.contains(place) && !message.contains(&key), "{message}");
        }
        assert_eq!(said(&[("a.rs", b"\0\x01 nothing here")]), "");
    }

    #[test]
    fn a_secret_is_found_across_pieces_and_once() {
        let key = key();
        let mut text = vec![b'\n'; WINDOW - 7];
        text.extend_from_slice(key.as_bytes());
        text.resize(2 * WINDOW, b'\n');
        for size in [1_000, 65_536, 2 * WINDOW] {
            let mut scan = ContentScan::new(&[], false);
            text.chunks(size).for_each(|piece| scan.look("a", piece));
            let message = scan.verdict().unwrap_err().message;
            assert!(message.contains(&format!("(aws-access-key at a:{})", WINDOW - 6)), "{message}");
        }
    }

    #[test]
    fn names_are_looked_through_and_not_repeated() {
        let key = key();
        let message = said(&[(&format!("src/{key}.rs"), b""), ("b", b"")]);
        assert!(message.contains("aws-access-key in the name src/[redacted:aws-access-key].rs"), "{message}");
        assert!(!message.contains(&key), "{message}");
    }

    #[test]
    fn another_beginning_forgets_what_was_seen() {
        let mut scan = ContentScan::new(&[], false);
        scan.look("a", key().as_bytes());
        assert!(scan.verdict().is_err());
        scan.begin();
        scan.look("a", b"clean now");
        assert!(scan.verdict().is_ok());
    }
}
