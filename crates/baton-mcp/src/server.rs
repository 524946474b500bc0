//! The MCP server: tools, resources and prompts call operations, and replies become results.

use std::borrow::Cow;
use std::sync::Arc;

use baton_app::bundle::ReadContext;
use baton_app::request_params::decode;
use baton_app::{AnyOperation, App, Call, Face, Filled, KeyUse, Operation, Reply, ToolBinding, tools};
use baton_core::{Actor, Fault, IdempotencyKey};
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, GetPromptRequestParams,
    GetPromptResponse, GetPromptResult, Implementation, ListPromptsResult, ListResourceTemplatesResult,
    ListResourcesResult, ListToolsResult, PaginatedRequestParams, PromptMessage, ProtocolVersion,
    ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult, ResourceContents, Role,
    ServerCapabilities, ServerConfig, Tool,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde_json::{Map, Value};

use crate::caller::Caller;
use crate::defaults::{Defaults, Locality, client_of, has_integer_text, integers_from_text};
use crate::group::find_group;
use crate::instructions::INSTRUCTIONS;
use crate::listing::list_tools;
use crate::local::{LocalCheckout, LocalTool};
use crate::prompts::{PromptBinding, PromptInput, prompts};
use crate::resources::{ResourceBinding, find_resource, resources};
use crate::result::{error_of, resource_error, tool_result};
use crate::selection::{ToolSelection, UnknownToolSet};
use crate::tools::IDEMPOTENCY_KEY;

/// Supported protocol versions, oldest first.
const VERSIONS: &[ProtocolVersion] =
    &[ProtocolVersion::V_2025_06_18, ProtocolVersion::V_2025_11_25, ProtocolVersion::V_2026_07_28];

/// Known request methods of all versions. The SDK reports them as custom requests if their parameters are invalid.
const METHODS: [&str; 7] = [
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
];

/// The MCP server, for one client or many. Clones share their data.
#[derive(Clone)]
pub(crate) struct McpServer {
    app: App,
    /// Actor of requests without an attached caller.
    sole_actor: Option<Actor>,
    version: Arc<str>,
    bindings: Arc<[ToolBinding]>,
    /// Local tools; empty over HTTP.
    local: Arc<[LocalTool]>,
    pub(crate) defaults: Defaults,
    locality: Locality,
    /// Definitions of the selected tools.
    listed: Arc<[Tool]>,
}

impl McpServer {
    /// Serves one client on this machine. All its requests have the same actor.
    pub(crate) fn for_one(
        app: App,
        actor: Actor,
        version: &str,
        checkout: LocalCheckout,
        selection: &ToolSelection,
    ) -> Self {
        let LocalCheckout { tools: local, find_repo, agent } = checkout;
        let (bindings, locality) = (tools(), Locality::Local);
        let listed = list_tools(selection, &bindings, &local, locality).into();
        Self {
            app,
            sole_actor: Some(actor),
            version: version.into(),
            bindings: bindings.into(),
            local: local.into(),
            defaults: Defaults { find_repo, agent },
            locality,
            listed,
        }
    }

    /// Serves requests with an attached [`Caller`]. A request without one is rejected.
    pub(crate) fn for_callers(app: App, version: &str) -> Self {
        let (bindings, locality) = (tools(), Locality::Remote);
        let listed = list_tools(&ToolSelection::default(), &bindings, &[], locality).into();
        Self {
            app,
            sole_actor: None,
            version: version.into(),
            bindings: bindings.into(),
            local: Arc::new([]),
            defaults: Defaults::default(),
            locality,
            listed,
        }
    }

    /// Returns the definitions of the tools that the address of a request selects (`/mcp?tools=all`), or those of the
    /// server.
    fn listed(&self, context: &RequestContext<RoleServer>) -> Result<Vec<Tool>, ErrorData> {
        let query = context.extensions.get::<Parts>().and_then(|parts| parts.uri.query()).unwrap_or_default();
        match query.split('&').find_map(|pair| pair.strip_prefix("tools=")) {
            None => Ok(self.listed.to_vec()),
            Some(selection) => {
                let selection: ToolSelection = decode(selection)
                    .map_err(|fault| ErrorData::invalid_params(fault.message, None))?
                    .parse()
                    .map_err(|error: UnknownToolSet| ErrorData::invalid_params(error.to_string(), None))?;
                Ok(list_tools(&selection, &self.bindings, &self.local, self.locality))
            }
        }
    }

    /// Returns the names of all tools that can be called, except groups.
    fn tool_names(&self) -> Vec<String> {
        let of_store = self.bindings.iter().map(|binding| binding.name.to_owned());
        of_store.chain(self.local.iter().map(LocalTool::name)).collect()
    }

    fn caller(&self, context: &RequestContext<RoleServer>) -> Result<Caller, ErrorData> {
        let from_http =
            context.extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Caller>()).cloned();
        match (from_http, &self.sole_actor) {
            (Some(caller), _) => Ok(caller),
            (None, Some(actor)) => Ok(Caller {
                actor: actor.clone(),
                correlation_id: self.app.correlation_id().map_err(internal)?,
            }),
            (None, None) => Err(ErrorData::internal_error("the request has no caller", None)),
        }
    }

    pub(crate) async fn call(
        &self,
        caller: Caller,
        operation: &'static AnyOperation,
        mut arguments: Map<String, Value>,
    ) -> Reply {
        let Caller { actor, correlation_id } = caller;
        match self.idempotency_key(operation, arguments.remove(IDEMPOTENCY_KEY)) {
            Ok(idempotency_key) => {
                let call = Call { actor, face: Face::Mcp, correlation_id, idempotency_key, attachment: None };
                self.app.call(operation, call, Value::Object(arguments)).await
            }
            Err(fault) => Reply::fault(&fault, correlation_id),
        }
    }

    /// Reads a resource. The context is for the checkout and the live session of the client.
    async fn read(
        &self,
        uri: &str,
        caller: Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<Reply, Fault> {
        let venture = caller.actor.only_venture().unwrap_or(&self.app.settings().default_venture);
        let (binding, mut params) = find_resource(uri, venture)?;
        if binding.operation.name == ReadContext::NAME {
            let (own, client) = ([Filled::RecordedSession("session_id")], client_of(context));
            self.fill_session(&own, &mut params, client.as_ref(), &caller, venture).await?;
            self.defaults.fill(&[Filled::Repo], &mut params, None, venture).await;
        }
        Ok(self.call(caller, binding.operation, params).await)
    }

    /// Completes the arguments of a tool: adds what the client may omit, and reads integers that were sent as text.
    async fn complete(
        &self,
        binding: &ToolBinding,
        arguments: &mut Map<String, Value>,
        caller: &Caller,
        context: &RequestContext<RoleServer>,
    ) -> Result<(), Fault> {
        if !binding.filled.is_empty() {
            let venture = caller.actor.only_venture().unwrap_or(&self.app.settings().default_venture);
            let client = client_of(context);
            self.fill_session(binding.filled, arguments, client.as_ref(), caller, venture).await?;
            self.defaults.fill(binding.filled, arguments, client.as_ref(), venture).await;
        }
        if has_integer_text(arguments) {
            integers_from_text(&binding.operation.params_schema(), arguments);
        }
        Ok(())
    }

    /// Returns the client's key, or a new one if the operation requires a key.
    fn idempotency_key(
        &self,
        operation: &AnyOperation,
        argument: Option<Value>,
    ) -> Result<Option<IdempotencyKey>, Fault> {
        match argument {
            Some(Value::String(text)) => IdempotencyKey::parse(&text).map(Some),
            None | Some(Value::Null) if operation.key == KeyUse::Required => {
                IdempotencyKey::parse(self.app.correlation_id()?.as_str()).map(Some)
            }
            None | Some(Value::Null) => Ok(None),
            Some(_) => Err(Fault::invalid(IDEMPOTENCY_KEY, "must be a string")),
        }
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let offers = ServerCapabilities::builder().enable_tools().enable_resources().enable_prompts().build();
        let mut info = ServerConfig::new(offers);
        info.server_info = Implementation::new("baton", &*self.version);
        info.instructions = Some(INSTRUCTIONS.to_owned());
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(VERSIONS)
    }

    async fn list_tools(
        &self,
        request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        first_page(request)?;
        Ok(ListToolsResult::with_all_items(self.listed(&context)?))
    }

    fn get_tool(&self, name: &str) -> Option<Tool> {
        self.listed.iter().find(|tool| tool.name == name).cloned()
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let mut arguments = request.arguments.unwrap_or_default();
        let mut name = request.name.into_owned();
        let tools = self.tool_names();
        if let Some(group) = find_group(&name, &tools) {
            match group.tool_of(&mut arguments, &tools) {
                Ok(tool) => name = tool,
                Err(fault) => {
                    let reply = Reply::fault(&fault, caller.correlation_id);
                    return Ok(tool_result(&reply, None).into());
                }
            }
        }
        if let Some(tool) = self.local.iter().find(|tool| tool.name() == name) {
            return Ok(tool.run(arguments, caller.correlation_id).await.into());
        }
        let Some(binding) = self.bindings.iter().find(|binding| binding.name == name) else {
            return Err(ErrorData::invalid_params(format!("there is no tool `{name}`"), None));
        };
        let reply = match self.complete(binding, &mut arguments, &caller, &context).await {
            Ok(()) => self.call(caller, binding.operation, arguments).await,
            Err(fault) => Reply::fault(&fault, caller.correlation_id),
        };
        Ok(tool_result(&reply, binding.text).into())
    }

    async fn list_resources(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        first_page(request)?;
        let items = resources().iter().filter_map(ResourceBinding::describe).collect();
        Ok(ListResourcesResult::with_all_items(items))
    }

    async fn list_resource_templates(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        first_page(request)?;
        let items = resources().iter().map(ResourceBinding::describe_template).collect();
        Ok(ListResourceTemplatesResult::with_all_items(items))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let caller = self.caller(&context)?;
        let correlation_id = caller.correlation_id.clone();
        let reply = self
            .read(&request.uri, caller, &context)
            .await
            .unwrap_or_else(|fault| Reply::fault(&fault, correlation_id));
        if let (Some(code), Some(error)) = (reply.error, error_of(&reply)) {
            return Err(resource_error(&request.uri, code, &error));
        }
        let contents = ResourceContents::text(reply.body, request.uri).with_mime_type("application/json");
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn list_prompts(
        &self,
        request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        first_page(request)?;
        Ok(ListPromptsResult::with_all_items(prompts().iter().map(PromptBinding::describe).collect()))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let Some(binding) = prompts().into_iter().find(|binding| binding.name == request.name) else {
            return Err(ErrorData::invalid_params(format!("there is no prompt `{}`", request.name), None));
        };
        let caller = self.caller(&context)?;
        let correlation_id = caller.correlation_id.clone();
        let input =
            PromptInput { app: self.app.clone(), caller, given: request.arguments.unwrap_or_default() };
        let text = (binding.write)(&input).await.map_err(|fault| {
            let error = error_of(&Reply::fault(&fault, correlation_id))
                .and_then(|error| serde_json::to_value(error).ok());
            match fault.code.status() {
                status if status < 500 => ErrorData::invalid_params(fault.message, error),
                _ => ErrorData::internal_error(fault.message, error),
            }
        })?;
        let message = PromptMessage::new_text(Role::User, text);
        Ok(GetPromptResult::new(vec![message]).with_description(binding.description).into())
    }

    /// The SDK calls this for unknown methods, and for known methods with invalid parameters.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        // Requests that state their protocol version have no handshake.
        let is_handshake = request.method == "initialize" && context.meta.protocol_version().is_none();
        if is_handshake || METHODS.contains(&request.method.as_str()) {
            let message = format!("the parameters of {} are invalid", request.method);
            return Err(ErrorData::invalid_params(message, None));
        }
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, request.method, None))
    }
}

/// Every list is a single page, so no valid cursor exists.
fn first_page(request: Option<PaginatedRequestParams>) -> Result<(), ErrorData> {
    match request.and_then(|request| request.cursor) {
        None => Ok(()),
        Some(_) => Err(ErrorData::invalid_params("unknown cursor", None)),
    }
}

fn internal(fault: Fault) -> ErrorData {
    ErrorData::internal_error(fault.message, None)
}
