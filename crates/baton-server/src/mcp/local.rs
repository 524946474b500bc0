//! The checkout that the client of `baton mcp` works in: its tools, and its repository. Both are passed in by the binary
//! and do not exist over HTTP, since a server sees no checkout.

use std::sync::Arc;

use baton_app::Reply;
use baton_core::{CorrelationId, ErrorCode, Fault, Repo};
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use serde_json::{Map, Value};

use crate::mcp::result::tool_result;

/// What a local tool does: it may block, and is called from a thread that may.
pub type LocalCall = Arc<dyn Fn(Map<String, Value>) -> Result<Value, Fault> + Send + Sync>;

/// Returns the repository of the checkout, or none if it has no name. It may block.
pub type FindRepo = Arc<dyn Fn() -> Option<Repo> + Send + Sync>;

/// The checkout that a client works in. Outside a checkout it is empty.
#[derive(Clone, Default)]
pub struct LocalCheckout {
    /// Tools that work on the checkout.
    pub tools: Vec<LocalTool>,
    /// Default of `repo` for tools that store something under a repository.
    pub find_repo: Option<FindRepo>,
}

/// A tool that is done where the client is.
#[derive(Clone)]
pub struct LocalTool {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub description: &'static str,
    /// The JSON Schema of its arguments.
    pub input_schema: Value,
    /// The JSON Schema of its answer.
    pub output_schema: Value,
    /// What a client may believe about it.
    pub hints: LocalHints,
    /// What it does.
    pub call: LocalCall,
}

/// What a client may believe about a local tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalHints {
    /// It changes nothing.
    pub reads: bool,
    /// It takes something away.
    pub destructive: bool,
    /// Done twice, it comes to the same as once.
    pub idempotent: bool,
}

impl LocalTool {
    /// Describes the tool to a client.
    pub(super) fn describe(&self) -> Tool {
        let object = |schema: &Value| schema.as_object().cloned().unwrap_or_default();
        let mut annotations = ToolAnnotations::default();
        annotations.read_only_hint = Some(self.hints.reads);
        annotations.destructive_hint = Some(self.hints.destructive);
        annotations.idempotent_hint = Some(self.hints.idempotent);
        annotations.open_world_hint = Some(false);
        let mut tool = Tool::new(self.name.clone(), self.description, Arc::new(object(&self.input_schema)));
        tool.output_schema = Some(Arc::new(object(&self.output_schema)));
        tool.annotations = Some(annotations);
        tool
    }

    /// Does it on a thread of its own, so that everything else goes on meanwhile.
    pub(super) async fn run(
        &self,
        arguments: Map<String, Value>,
        correlation_id: CorrelationId,
    ) -> CallToolResult {
        let call = Arc::clone(&self.call);
        let done = tokio::task::spawn_blocking(move || call(arguments)).await;
        let answer = done.unwrap_or_else(|error| {
            tracing::error!(tool = %self.name, %error, "a local tool broke off");
            Err(Fault::new(ErrorCode::Internal, "the tool broke off"))
        });
        match answer {
            Ok(body) => {
                let mut result = CallToolResult::success(vec![ContentBlock::text(body.to_string())]);
                result.structured_content = Some(body);
                result
            }
            Err(fault) => tool_result(&Reply::fault(&fault, correlation_id), None),
        }
    }
}
