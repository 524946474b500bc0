//! The checkout in which the client of `baton mcp` works: its tools and its repository. The binary passes both in. They
//! do not exist over HTTP, because a server has no checkout.

use std::sync::Arc;

use baton_app::Reply;
use baton_core::{Agent, CorrelationId, ErrorCode, Fault, OperationDescription};
use rmcp::model::{CallToolResult, ContentBlock, Tool};
use serde_json::{Map, Value};

use crate::defaults::{FindRepo, has_integer_text, integers_from_text};
use crate::result::tool_result;
use crate::schema::short_input;
use crate::tools::describe_tool;

/// Function of a local tool. It may block and is called on a blocking thread.
pub type LocalCall = Arc<dyn Fn(Map<String, Value>) -> Result<Value, Fault> + Send + Sync>;

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
    pub operation: OperationDescription,
    /// JSON Schema of the response, which may be less strict than that of the operation.
    pub output_schema: Value,
    /// Function of the tool.
    pub call: LocalCall,
}

impl LocalTool {
    /// Returns the name of the tool, for example `task_get_context`.
    pub(crate) fn name(&self) -> String {
        self.operation.name.replace('.', "_")
    }

    /// Describes the tool to a client.
    pub(crate) fn describe(&self) -> Tool {
        let input = short_input(self.operation.params_schema());
        describe_tool(self.name(), &self.operation, input, self.output_schema.clone())
    }

    /// Runs the tool on a blocking thread.
    pub(crate) async fn run(
        &self,
        mut arguments: Map<String, Value>,
        correlation_id: CorrelationId,
    ) -> CallToolResult {
        if has_integer_text(&arguments) {
            integers_from_text(&self.operation.params_schema(), &mut arguments);
        }
        let call = Arc::clone(&self.call);
        let done = tokio::task::spawn_blocking(move || call(arguments)).await;
        let answer = done.unwrap_or_else(|error| {
            tracing::error!(tool = %self.name(), %error, "a local tool panicked");
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
