//! MCP on standard input and output: one message per line and one client, until the client closes the streams.
//!
//! Owns the line protocol. An invalid line is answered with an error and reading continues: only the end of the input
//! ends the connection.

use std::io;
use std::sync::Arc;

use baton_app::App;
use baton_core::Actor;
use futures_util::future::BoxFuture;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcError, ServerJsonRpcMessage};
use rmcp::service::ServerInitializeError;
use rmcp::transport::Transport;
use rmcp::{RoleServer, ServiceExt};
use serde::Serialize;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;

use crate::local::LocalCheckout;
use crate::message::{MAX_MESSAGE_BYTES, read_message};
use crate::selection::ToolSelection;
use crate::server::McpServer;

/// Size of the read buffer: the capacity of a pipe.
const BUFFER_BYTES: usize = 64 * 1024;

/// Why the MCP server failed.
#[derive(Debug, thiserror::Error)]
#[error("the MCP connection failed: {0}")]
pub struct McpError(String);

/// Serves one client on standard input and output until it closes them. `checkout` is the checkout in which the client
/// works, `selection` the tools that are listed.
pub fn serve_stdio(
    app: App,
    version: &str,
    checkout: LocalCheckout,
    selection: &ToolSelection,
) -> BoxFuture<'static, Result<(), McpError>> {
    Box::pin(serve(McpServer::for_one(app, Actor::local(), version, checkout, selection)))
}

async fn serve(server: McpServer) -> Result<(), McpError> {
    let (input, output) = rmcp::transport::io::stdio_pipes();
    let running = match server.serve(Lines::new(input, output)).await {
        Ok(running) => running,
        // A client may close the connection before its first request.
        Err(ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpError(error.to_string())),
    };
    running.waiting().await.map_err(|error| McpError(error.to_string()))?;
    Ok(())
}

/// JSON-RPC messages as lines of two streams.
struct Lines<R, W> {
    input: BufReader<R>,
    /// The current line so far, at most one byte longer than allowed.
    line: Vec<u8>,
    /// Whether the client has sent a request.
    has_request: bool,
    /// Locked while a line is written, so that lines are not interleaved.
    output: Arc<Mutex<W>>,
    /// The task that writes the response to an invalid line.
    answering: Option<JoinHandle<io::Result<()>>>,
}

impl<R, W> Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    fn new(input: R, output: W) -> Self {
        Self {
            input: BufReader::with_capacity(BUFFER_BYTES, input),
            line: Vec::new(),
            has_request: false,
            output: Arc::new(Mutex::new(output)),
            answering: None,
        }
    }

    /// Reads until a line is complete. Returns false at the end of the input. Cancel-safe: a partial line is kept.
    async fn fill_line(&mut self) -> io::Result<bool> {
        loop {
            let available = self.input.fill_buf().await?;
            let closed = available.is_empty();
            let end = available.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(available.len());
            let room = (MAX_MESSAGE_BYTES + 1).saturating_sub(self.line.len());
            self.line.extend_from_slice(&available[..taken.min(room)]);
            self.input.consume(taken + usize::from(end.is_some()));
            if end.is_some() || closed {
                return Ok(end.is_some() || !self.line.is_empty());
            }
        }
    }

    /// Starts to write a response. Writing continues if the caller is cancelled.
    fn answer(&mut self, error: JsonRpcError) {
        let output = self.output.clone();
        self.answering = Some(tokio::spawn(async move { write_line(&output, &error).await }));
    }

    /// Waits until the response to an invalid line is written, so that a client that sends invalid lines must read the
    /// responses.
    async fn answered(&mut self) -> io::Result<()> {
        if let Some(writing) = &mut self.answering {
            let written = writing.await;
            self.answering = None;
            written.map_err(io::Error::other)??;
        }
        Ok(())
    }

    async fn next(&mut self) -> io::Result<Option<ClientJsonRpcMessage>> {
        loop {
            self.answered().await?;
            if !self.fill_line().await? {
                return Ok(None);
            }
            let line = std::mem::take(&mut self.line);
            if line.trim_ascii().is_empty() {
                continue;
            }
            match read_message(&line) {
                Ok(message) => {
                    self.has_request |= matches!(message, ClientJsonRpcMessage::Request(_));
                    // Notifications before the first request are ignored.
                    if self.has_request {
                        return Ok(Some(message));
                    }
                }
                Err(refusal) => self.answer(refusal.error),
            }
        }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let output = self.output.clone();
        async move { write_line(&output, &message).await }
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        self.next().await.unwrap_or_else(|error| {
            tracing::error!(%error, "cannot read from or write to the client");
            None
        })
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.answered().await
    }
}

async fn write_line<W: AsyncWrite + Unpin>(output: &Mutex<W>, message: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(message)?;
    line.push(b'\n');
    let mut output = output.lock().await;
    output.write_all(&line).await?;
    output.flush().await
}
