//! The checkout in which the client of `baton mcp` works: its tools and its repository. The binary passes both in. They
//! do not exist over HTTP, because a server has no checkout.

use std::sync::Arc;

use baton_app::Reply;
use baton_core::{Agent, CorrelationId, ErrorCode, Fault, Repo};
use rmcp::model::{CallToolResult, ContentBlock, Tool, ToolAnnotations};
use serde_json::{Map, Value};

use crate::mcp::defaults::integers_from_text;
use crate::mcp::result::tool_result;
use crate::mcp::schema::short_input;

/// Function of a local tool. It may block and is called on a blocking thread.
pub type LocalCall = Arc<dyn Fn(Map<String, Value>) -> Result<Value, Fault> + Send + Sync>;

/// Returns the repository of the checkout, or `None` if it has no name. May block.
pub type FindRepo = Arc<dyn Fn() -> Option<Repo> + Send + Sync>;

/// The checkout in which a client works. Empty outside a checkout.
#[derive(Clone, Default)]
pub struct LocalCheckout {
    /// Tools that work on the checkout.
    pub tools: Vec<LocalTool>,
    /// Returns the default of `repo`.
    pub find_repo: Option<FindRepo>,
    /// The configured agent.
    pub agent: Option<Agent>,
}

/// A tool that runs in the process of the client's MCP server.
#[derive(Clone)]
pub struct LocalTool {
    /// Name of the tool.
    pub name: String,
    /// Description for models.
    pub description: &'static str,
    /// JSON Schema of the arguments.
    pub input_schema: Value,
    /// JSON Schema of the response.
    pub output_schema: Value,
    /// Hints about the effects of the tool.
    pub hints: LocalHints,
    /// Function of the tool.
    pub call: LocalCall,
}

/// Hints about the effects of a local tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LocalHints {
    /// The tool changes nothing.
    pub reads: bool,
    /// The tool deletes something.
    pub destructive: bool,
    /// Calling the tool twice has the same effect as once.
    pub idempotent: bool,
}

impl LocalTool {
    /// Describes the tool to a client.
    pub(super) fn describe(&self) -> Tool {
        let output = self.output_schema.as_object().cloned().unwrap_or_default();
        let input = short_input(self.input_schema.clone());
        let mut annotations = ToolAnnotations::default();
        annotations.read_only_hint = Some(self.hints.reads);
        annotations.destructive_hint = Some(self.hints.destructive);
        annotations.idempotent_hint = Some(self.hints.idempotent);
        annotations.open_world_hint = Some(false);
        let mut tool = Tool::new(self.name.clone(), self.description, Arc::new(input));
        tool.output_schema = Some(Arc::new(output));
        tool.annotations = Some(annotations);
        tool
    }

    /// Runs the tool on a blocking thread.
    pub(super) async fn run(
        &self,
        mut arguments: Map<String, Value>,
        correlation_id: CorrelationId,
    ) -> CallToolResult {
        integers_from_text(&self.input_schema, &mut arguments);
        let call = Arc::clone(&self.call);
        let done = tokio::task::spawn_blocking(move || call(arguments)).await;
        let answer = done.unwrap_or_else(|error| {
            tracing::error!(tool = %self.name, %error, "a local tool panicked");
            Err(Fault::new(ErrorCode::Internal, "the tool stopped unexpectedly"))
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
