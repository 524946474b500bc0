//! The MCP server: tools are operations, results are replies.

use std::sync::Arc;

use baton_app::{App, Call, Face, KeyUse, Reply};
use baton_core::{Actor, ErrorCode, Fault, IdempotencyKey};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler, ServiceExt};
use serde_json::{Map, Value, json};

use crate::mcp::tools::{IDEMPOTENCY_KEY, ToolBinding, tools};

const INSTRUCTIONS: &str = "Baton keeps the context of coding agents alive across chats, agents, crashes and \
    machines. Call session_start when you begin: it tells you what the last agent handed over and who else is at \
    work. Call session_end with a handoff when you stop.";

/// Why the MCP server broke off.
#[derive(Debug, thiserror::Error)]
#[error("the MCP connection broke off: {0}")]
pub struct McpError(String);

/// Serves one client on standard input and output until it goes away.
pub async fn serve_stdio(app: App, version: &str) -> Result<(), McpError> {
    let server = McpServer::new(app, Actor::local(), version);
    let running = match server.serve(rmcp::transport::io::stdio_pipes()).await {
        Ok(running) => running,
        // A client that closes its end before it says anything just changed its mind.
        Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => return Ok(()),
        Err(error) => return Err(McpError(error.to_string())),
    };
    running.waiting().await.map_err(|error| McpError(error.to_string()))?;
    Ok(())
}

#[derive(Clone)]
struct McpServer {
    app: App,
    actor: Actor,
    version: String,
    bindings: Arc<[ToolBinding]>,
    descriptions: Arc<[Tool]>,
}

impl McpServer {
    fn new(app: App, actor: Actor, version: &str) -> Self {
        let bindings = tools();
        let descriptions = bindings.iter().map(ToolBinding::describe).collect();
        Self { app, actor, version: version.to_owned(), bindings: bindings.into(), descriptions }
    }

    async fn call(&self, binding: ToolBinding, mut arguments: Map<String, Value>) -> Result<Reply, Fault> {
        let key = self.idempotency_key(binding, arguments.remove(IDEMPOTENCY_KEY))?;
        let call = Call {
            actor: self.actor.clone(),
            face: Face::Mcp,
            correlation_id: self.app.correlation_id()?,
            idempotency_key: key,
        };
        Ok(self.app.call(binding.operation, call, Value::Object(arguments)).await)
    }

    /// The client's own key; a fresh one where the operation cannot do without.
    fn idempotency_key(
        &self,
        binding: ToolBinding,
        argument: Option<Value>,
    ) -> Result<Option<IdempotencyKey>, Fault> {
        match argument {
            Some(Value::String(text)) => IdempotencyKey::parse(&text).map(Some),
            None | Some(Value::Null) if binding.operation.key() == KeyUse::Required => {
                IdempotencyKey::parse(self.app.correlation_id()?.as_str()).map(Some)
            }
            None | Some(Value::Null) => Ok(None),
            Some(_) => Err(Fault::invalid(IDEMPOTENCY_KEY, "must be a string")),
        }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let mut info = ServerConfig::new(ServerCapabilities::builder().enable_tools().build());
        info.server_info = Implementation::new("baton", self.version.clone());
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        Ok(ListToolsResult::with_all_items(self.descriptions.to_vec()))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.descriptions.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(binding) = self.bindings.iter().find(|binding| binding.tool == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{}`", request.name), None));
        };
        let reply = match self.call(*binding, request.arguments.unwrap_or_default()).await {
            Ok(reply) => reply,
            Err(fault) => match self.app.correlation_id() {
                Ok(correlation_id) => Reply::fault(&fault, correlation_id),
                Err(fault) => return Err(ErrorData::internal_error(fault.message, None)),
            },
        };
        Ok(result_of(&reply).into())
    }
}

/// Writes a reply as a tool result. Failures are results too, so that a model can read them and act.
fn result_of(reply: &Reply) -> CallToolResult {
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    match reply.error {
        None => {
            let mut result = CallToolResult::success(vec![ContentBlock::text(reply.body.clone())]);
            result.structured_content = Some(body);
            result
        }
        Some(code) => {
            let error = json!({
                "code": code,
                "message": body["message"],
                "suggestion": body["hint"],
                "retry": retry(code),
                "details": body["details"],
                "correlation_id": body["correlation_id"],
            });
            let mut result = CallToolResult::error(vec![ContentBlock::text(error.to_string())]);
            result.structured_content = Some(error);
            result
        }
    }
}

/// Whether the same call may succeed later.
fn retry(code: ErrorCode) -> Value {
    match code {
        ErrorCode::Overloaded | ErrorCode::StoreUnavailable | ErrorCode::RateLimited => {
            json!({ "kind": "after", "afterMs": 1_000 })
        }
        ErrorCode::Internal => json!({ "kind": "once", "afterMs": 0 }),
        ErrorCode::InvalidJson
        | ErrorCode::InvalidRequest
        | ErrorCode::UnsupportedSchemaVersion
        | ErrorCode::MissingIdempotencyKey
        | ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::NotFound
        | ErrorCode::SessionNotFound
        | ErrorCode::HandoffNotFound
        | ErrorCode::TaskNotFound
        | ErrorCode::TaskExists
        | ErrorCode::TaskConflict
        | ErrorCode::DriftDetected
        | ErrorCode::TaskBlocked
        | ErrorCode::TaskCorrupt
        | ErrorCode::MethodNotAllowed
        | ErrorCode::SessionEnded
        | ErrorCode::HandoffConflict
        | ErrorCode::PayloadTooLarge
        | ErrorCode::IdempotencyMismatch
        | ErrorCode::SecretFound => json!({ "kind": "never", "afterMs": Value::Null }),
    }
}
