//! Reads lines of limited length, so that memory use is bounded for any file.

use std::io::{self, BufRead, Seek};

/// Maximum length of a line in bytes. Longer lines are skipped.
pub(super) const MAX_LINE_BYTES: usize = 32 * 1024 * 1024;

/// Reader of lines with their numbers and positions.
pub(super) struct Lines<R> {
    reader: R,
    buffer: Vec<u8>,
    number: u64,
    position: u64,
}

pub(super) struct Line<'a> {
    /// Number, starting with 1.
    pub(super) number: u64,
    /// Position of its first byte.
    pub(super) start: u64,
    /// Content without the line end; `None` if it is too long.
    pub(super) content: Option<&'a [u8]>,
    /// False if the file ends without a line end, for example because it is still being written.
    pub(super) is_complete: bool,
}

impl<R: BufRead + Seek> Lines<R> {
    /// Continues with the first line.
    pub(super) fn rewind(&mut self) -> io::Result<()> {
        (self.number, self.position) = (0, 0);
        self.reader.rewind()
    }
}

impl<R: BufRead> Lines<R> {
    pub(super) const fn new(reader: R) -> Self {
        Self { reader, buffer: Vec::new(), number: 0, position: 0 }
    }

    /// Returns the position after the last line that was read.
    pub(super) const fn position(&self) -> u64 {
        self.position
    }

    /// Reads the next line; `None` at the end.
    pub(super) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        let start = self.position;
        let (mut is_complete, mut is_too_long) = (false, false);
        self.buffer.clear();
        while !is_complete {
            let available = match self.reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if available.is_empty() {
                break;
            }
            let end = available.iter().position(|byte| *byte == b'\n');
            let part = available.get(..end.unwrap_or(available.len())).unwrap_or_default();
            is_too_long |= self.buffer.len() + part.len() > MAX_LINE_BYTES;
            if !is_too_long {
                self.buffer.extend_from_slice(part);
            }
            let read = part.len() + usize::from(end.is_some());
            is_complete = end.is_some();
            self.reader.consume(read);
            self.position += read as u64;
        }
        if self.position == start {
            return Ok(None);
        }
        if is_too_long {
            self.buffer = Vec::new();
        }
        self.number += 1;
        let content = (!is_too_long).then(|| self.buffer.trim_ascii());
        Ok(Some(Line { number: self.number, start, content, is_complete }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_numbers_and_positions_and_long_ones_have_no_content() {
        let text = [b"a\r\n".as_slice(), &vec![b'x'; MAX_LINE_BYTES + 1], b"\n\nlast"].concat();
        let mut lines = Lines::new(io::BufReader::with_capacity(4_096, text.as_slice()));
        let mut seen = Vec::new();
        while let Some(line) = lines.next().unwrap() {
            seen.push((line.number, line.start, line.content.map(<[u8]>::to_vec), line.is_complete));
        }
        let after = 3 + MAX_LINE_BYTES as u64 + 2;
        assert_eq!(
            seen,
            [
                (1, 0, Some(b"a".to_vec()), true),
                (2, 3, None, true),
                (3, after, Some(Vec::new()), true),
                (4, after + 1, Some(b"last".to_vec()), false),
            ]
        );
        assert_eq!(lines.position(), text.len() as u64);
    }
}
