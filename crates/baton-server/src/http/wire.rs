//! The byte stream of a connection, below the HTTP library.
//!
//! Detects requests with two lengths, and replaces the library's responses to requests that it cannot parse,
//! which have neither a body nor a correlation id.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};

use baton_app::Reply;
use baton_core::{CorrelationId, ErrorCode, Fault};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::http::framing::Framing;

/// Generates correlation ids.
pub(super) type CorrelationIds = Arc<dyn Fn() -> Option<CorrelationId> + Send + Sync>;

/// Marks a request that has both `Content-Length` and `Transfer-Encoding`.
#[derive(Debug, Clone, Copy)]
pub(super) struct HasTwoLengths;

/// Numbers the requests of a connection, from 1, to find the one with two lengths.
#[derive(Debug, Default)]
pub(super) struct RequestNumbers {
    received: AtomicU64,
    /// Number of the request with two lengths; 0 if there is none.
    with_two_lengths: AtomicU64,
}

impl RequestNumbers {
    /// Counts a request. Returns true if it has two lengths.
    pub(super) fn count(&self) -> bool {
        let number = self.received.fetch_add(1, Ordering::Relaxed) + 1;
        self.with_two_lengths.load(Ordering::Relaxed) == number
    }
}

/// The stream of a connection.
pub(super) struct Wire<S> {
    stream: S,
    framing: Framing,
    numbers: Arc<RequestNumbers>,
    correlation_ids: CorrelationIds,
    /// Unsent rest of a response that replaces one of the library.
    replacement: Vec<u8>,
    is_replacing: bool,
}

impl<S> Wire<S> {
    pub(super) fn new(stream: S, numbers: Arc<RequestNumbers>, correlation_ids: CorrelationIds) -> Self {
        Self {
            stream,
            framing: Framing::default(),
            numbers,
            correlation_ids,
            replacement: Vec::new(),
            is_replacing: false,
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Wire<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(cx, buffer))?;
        let read = buffer.filled().get(before..).unwrap_or_default();
        if let Some(number) = self.framing.read(read) {
            self.numbers.with_two_lengths.store(number, Ordering::Relaxed);
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Wire<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = &mut *self;
        if !this.is_replacing {
            match automatic_answer(bytes) {
                Some((0, status)) => {
                    this.replacement = answer(status, (this.correlation_ids)());
                    this.is_replacing = true;
                }
                // The previous response is sent first.
                Some((start, _)) => {
                    let before = bytes.get(..start).unwrap_or(bytes);
                    return Pin::new(&mut this.stream).poll_write(cx, before);
                }
                None => return Pin::new(&mut this.stream).poll_write(cx, bytes),
            }
        }
        while !this.replacement.is_empty() {
            let written = ready!(Pin::new(&mut this.stream).poll_write(cx, &this.replacement))?;
            if written == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            this.replacement.drain(..written);
        }
        this.is_replacing = false;
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let mut filled = slices.iter().filter(|slice| !slice.is_empty());
        match (filled.next(), filled.next()) {
            (Some(only), None) => self.poll_write(cx, only),
            _ => Pin::new(&mut self.stream).poll_write_vectored(cx, slices),
        }
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

/// Finds a response of the library at the end of the bytes and returns its start and status. Responses of
/// Baton have a correlation id.
fn automatic_answer(bytes: &[u8]) -> Option<(usize, u16)> {
    const START: &[u8] = b"HTTP/1.";
    const MAX_BYTES: usize = 256;
    if !bytes.ends_with(b"\r\n\r\n") {
        return None;
    }
    let from = bytes.len().saturating_sub(MAX_BYTES);
    let start = from + bytes.get(from..)?.windows(START.len()).rposition(|part| part == START)?;
    let head = std::str::from_utf8(bytes.get(start..)?).ok()?.to_ascii_lowercase();
    let status = head.split(' ').nth(1)?.parse().ok()?;
    let is_automatic = matches!(status, 400 | 414 | 431)
        && head.contains("\r\ncontent-length: 0\r\n")
        && !head.contains("\r\nx-correlation-id:");
    is_automatic.then_some((start, status))
}

/// Formats the response to a request that could not be parsed.
fn answer(status: u16, correlation_id: Option<CorrelationId>) -> Vec<u8> {
    let (reason, fault) = match status {
        414 => (
            "URI Too Long",
            Fault::new(ErrorCode::PayloadTooLarge, "cannot read the request: its address is too long")
                .hint("send long values in the body"),
        ),
        431 => (
            "Request Header Fields Too Large",
            Fault::new(
                ErrorCode::PayloadTooLarge,
                "cannot read the request: its head is larger than 64 KiB or has more than 100 headers",
            )
            .hint("send fewer or shorter headers, and long values in the body"),
        ),
        _ => (
            "Bad Request",
            Fault::new(ErrorCode::InvalidRequest, "cannot read the request: it is not valid HTTP/1.1")
                .hint("check the request line, the headers and the length of the body before it"),
        ),
    };
    let close = "connection: close\r\ncache-control: no-store\r\n";
    let Some(correlation_id) = correlation_id else {
        return format!("HTTP/1.1 {status} {reason}\r\n{close}content-length: 0\r\n\r\n").into_bytes();
    };
    let body = Reply::fault(&fault, correlation_id.clone()).body;
    format!(
        "HTTP/1.1 {status} {reason}\r\n{close}content-type: application/json\r\nx-correlation-id: {correlation_id}\r\n\
         content-length: {}\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const AUTOMATIC: &str = "HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\ncontent-length: 0\r\n\
                       date: Mon, 16 Nov 2026 00:00:00 GMT\r\n\r\n";

    #[test]
    fn automatic_answers_are_recognized() {
        assert_eq!(automatic_answer(AUTOMATIC.as_bytes()), Some((0, 431)));
        let before = "HTTP/1.1 200 OK\r\nx-correlation-id: c\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(automatic_answer(format!("{before}{AUTOMATIC}").as_bytes()), Some((before.len(), 431)));
        let with_id = AUTOMATIC.replace("connection: close", "x-correlation-id: corr_1");
        for other in
            [before, with_id.as_str(), "HTTP/1.1 204 No Content\r\ncontent-length: 0\r\n\r\n", "\r\n\r\n", ""]
        {
            assert_eq!(automatic_answer(other.as_bytes()), None, "{other:?}");
        }
    }
}
