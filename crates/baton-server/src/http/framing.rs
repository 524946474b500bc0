//! Locates request heads in the bytes of a connection.
//!
//! The HTTP library drops `Content-Length` if a head also has `Transfer-Encoding`. Such a request must be rejected,
//! because a proxy in front may have used the other header and may see a different end of the request. So the bytes are
//! also scanned here, only as far as needed to find such heads. Does not own parsing: malformed requests are left to
//! the library.

/// Maximum number of bytes kept of a line: enough for the relevant header names and a number.
const MAX_LINE: usize = 64;

/// Scanner for the requests of one connection.
#[derive(Debug, Default)]
pub(super) struct Framing {
    state: State,
    line: Vec<u8>,
    has_started: bool,
    length: Option<u64>,
    has_transfer_encoding: bool,
    /// Number of complete heads.
    heads: u64,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    /// In the lines of a head.
    #[default]
    Head,
    /// In a body, with this many bytes left.
    Body(u64),
    /// In the line that has the size of a chunk.
    ChunkSize,
    /// In a chunk, with this many bytes left.
    Chunk(u64),
    /// In the line end after a chunk.
    ChunkEnd,
    /// In the lines after the last chunk.
    Trailers,
    /// After bytes that cannot be interpreted.
    Unknown,
}

impl Framing {
    /// Scans the next bytes. Returns the number of the head, counted from 1, that has both `Content-Length` and
    /// `Transfer-Encoding`. After such a head, scanning stops.
    pub(super) fn read(&mut self, mut bytes: &[u8]) -> Option<u64> {
        while !bytes.is_empty() {
            match self.state {
                State::Unknown => return None,
                State::Body(left) | State::Chunk(left) => {
                    let skipped = usize::try_from(left).unwrap_or(usize::MAX).min(bytes.len());
                    let left = left - skipped as u64;
                    bytes = bytes.get(skipped..).unwrap_or_default();
                    self.state = match self.state {
                        State::Chunk(_) if left == 0 => State::ChunkEnd,
                        State::Chunk(_) => State::Chunk(left),
                        _ if left == 0 => State::Head,
                        _ => State::Body(left),
                    };
                }
                State::Head | State::ChunkSize | State::ChunkEnd | State::Trailers => {
                    let end = memchr::memchr(b'\n', bytes);
                    let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
                    let kept = part.len().min(MAX_LINE - self.line.len());
                    self.line.extend_from_slice(part.get(..kept).unwrap_or_default());
                    bytes = rest.get(1..).unwrap_or_default();
                    if end.is_some() && self.end_line() {
                        return Some(self.heads);
                    }
                }
            }
        }
        None
    }

    /// Handles the end of a line. Returns true if it ends a head with both lengths.
    fn end_line(&mut self) -> bool {
        if self.line.last() == Some(&b'\r') {
            self.line.pop();
        }
        match self.state {
            State::Head if self.line.is_empty() => return self.has_started && self.end_head(),
            State::Head if self.has_started => self.read_header(),
            State::Head => self.has_started = true,
            State::ChunkSize => self.state = chunk_state(&self.line),
            State::ChunkEnd => self.state = State::ChunkSize,
            State::Trailers if self.line.is_empty() => self.state = State::Head,
            State::Trailers | State::Body(_) | State::Chunk(_) | State::Unknown => {}
        }
        self.line.clear();
        false
    }

    fn read_header(&mut self) {
        let Some(colon) = self.line.iter().position(|byte| *byte == b':') else { return };
        let (name, value) = self.line.split_at(colon);
        if name.eq_ignore_ascii_case(b"transfer-encoding") {
            self.has_transfer_encoding = true;
        } else if name.eq_ignore_ascii_case(b"content-length") {
            let value = value.get(1..).unwrap_or_default().trim_ascii();
            let length = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
            // The library rejects a value that is not a number.
            self.length = Some(length.unwrap_or_default());
        }
    }

    fn end_head(&mut self) -> bool {
        self.heads += 1;
        let (length, has_transfer_encoding) = (self.length.take(), self.has_transfer_encoding);
        (self.has_started, self.has_transfer_encoding) = (false, false);
        self.state = match length {
            Some(_) if has_transfer_encoding => State::Unknown,
            None if has_transfer_encoding => State::ChunkSize,
            Some(length) if length > 0 => State::Body(length),
            _ => State::Head,
        };
        length.is_some() && has_transfer_encoding
    }
}

/// Parses the size line of a chunk, ignoring extensions.
fn chunk_state(line: &[u8]) -> State {
    let digits = line.iter().take_while(|byte| byte.is_ascii_hexdigit()).count();
    let size = line.get(..digits).and_then(|digits| std::str::from_utf8(digits).ok());
    match size.and_then(|size| u64::from_str_radix(size, 16).ok()) {
        Some(0) => State::Trailers,
        Some(size) => State::Chunk(size),
        None => State::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: &str = "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\nContent-Length: 4\r\n\r\n";

    /// Scans bytes in parts of this size.
    fn found(bytes: &str, part: usize) -> Option<u64> {
        let mut framing = Framing::default();
        bytes.as_bytes().chunks(part).find_map(|part| framing.read(part))
    }

    #[test]
    fn head_with_both_lengths_is_found_after_every_kind_of_body() {
        let before = [
            "",
            "\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            "POST / HTTP/1.1\r\nContent-Length: 9\r\n\r\n0\r\n\r\nGET ",
            "POST / HTTP/1.1\r\nContent-Length: 0\r\n\r\n",
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;x=y\r\nabc\r\n\r\nA\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n",
        ];
        for start in before {
            let heads = u64::from(start.len() > 2);
            for part in [1, 3, 7, 10_000] {
                assert_eq!(found(&format!("{start}{BOTH}"), part), Some(heads + 1), "{start:?}");
                assert_eq!(found(start, part), None, "{start:?}");
            }
        }
    }

    #[test]
    fn body_that_looks_like_a_head_is_ignored() {
        let body = format!("POST / HTTP/1.1\r\nContent-Length: {}\r\n\r\n{BOTH}", BOTH.len());
        let chunk = format!(
            "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n{:x}\r\n{BOTH}\r\n0\r\n\r\n",
            BOTH.len()
        );
        let address = "GET /transfer-encoding:content-length: HTTP/1.1\r\n\r\n";
        for bytes in [body, chunk, address.to_owned()] {
            assert_eq!(found(&bytes, 5), None, "{bytes:?}");
        }
    }
}
