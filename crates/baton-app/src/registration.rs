//! How an operation can be called: its routes over HTTP and its tool over MCP.

use crate::any_operation::AnyOperation;
use crate::operation::{OnStore, Operation, operation};

/// Method of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Parameters are in the query and the path.
    Get,
    /// Parameters are in a JSON body and the path.
    Post,
    /// Parameters are in the query and the path.
    Delete,
}

impl Method {
    /// Returns the name of the method.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Delete => "DELETE",
        }
    }

    /// Returns true if parameters are in a body.
    pub const fn has_body(self) -> bool {
        matches!(self, Self::Post)
    }
}

/// A route of an operation.
#[derive(Clone, Copy)]
pub struct Route {
    pub method: Method,
    /// Path; `{name}` is the parameter of that name.
    pub path: &'static str,
    pub operation: &'static AnyOperation,
}

/// Set of tools that `baton mcp --tools` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolSet {
    /// Sessions and handoffs.
    Sessions,
    Checkpoints,
    Tasks,
    /// Search, notes, turns and observations.
    Memory,
}

/// Parameters of a tool that are filled in if the call omits them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filled {
    /// `repo`: the repository of the checkout.
    Repo,
    /// `agent`: the configured agent, or the name of the client.
    Agent,
    /// `client` and `client_version`, as the client reports them.
    Client,
    /// `venture`: the configured venture.
    Venture,
    /// `session_id`: the live session of the client in the repository of the checkout. The call fails without one.
    Session,
    /// The parameter of this name: the session of [`Session`](Self::Session), if there is one.
    RecordedSession(&'static str),
    /// `agent`, `track` and `client_session_id`: the values of that session, so that it is resumed.
    /// `checkout_repo`: the repository of the checkout.
    LiveSession,
    /// `repo`, or `venture` where no repository is known. Only if the call has no filter at all.
    Scope,
}

/// A tool and its operation.
#[derive(Clone, Copy)]
pub struct ToolBinding {
    pub name: &'static str,
    pub operation: &'static AnyOperation,
    /// Set of the tool in `baton mcp --tools`.
    pub set: ToolSet,
    /// Whether the tool is part of the default set.
    pub in_default_set: bool,
    /// Parameters that the default set does not list for this tool.
    pub rare_params: &'static [&'static str],
    /// Field of the response that is shown as text; `None` shows the whole response.
    pub text: Option<&'static str>,
    /// Parameters that are filled in if the call omits them.
    pub filled: &'static [Filled],
}

/// An operation with its routes and its tool. Methods that describe the tool follow `tool`.
pub struct Registration {
    pub operation: &'static AnyOperation,
    /// The first route is canonical, the others are aliases.
    pub(crate) routes: Vec<Route>,
    pub(crate) tool: Option<ToolBinding>,
}

impl Registration {
    pub(crate) fn of<O: Operation<OnStore>>() -> Self {
        Self { operation: operation::<O>(), routes: Vec::new(), tool: None }
    }

    fn route(mut self, method: Method, path: &'static str) -> Self {
        self.routes.push(Route { method, path, operation: self.operation });
        self
    }

    pub(crate) fn get(self, path: &'static str) -> Self {
        self.route(Method::Get, path)
    }

    pub(crate) fn post(self, path: &'static str) -> Self {
        self.route(Method::Post, path)
    }

    pub(crate) fn delete(self, path: &'static str) -> Self {
        self.route(Method::Delete, path)
    }

    pub(crate) fn tool(mut self, set: ToolSet, name: &'static str) -> Self {
        let operation = self.operation;
        let (in_default_set, rare_params, text, filled) = (false, &[], None, &[]);
        self.tool = Some(ToolBinding { name, operation, set, in_default_set, rare_params, text, filled });
        self
    }

    fn with(self, change: impl FnOnce(ToolBinding) -> ToolBinding) -> Self {
        Self { tool: self.tool.map(change), ..self }
    }

    /// Lists the tool in the default set, without these parameters.
    pub(crate) fn in_default_set(self, rare_params: &'static [&'static str]) -> Self {
        self.with(|tool| ToolBinding { in_default_set: true, rare_params, ..tool })
    }

    /// Shows one field of the response as text. The structured response is complete.
    pub(crate) fn text_from(self, field: &'static str) -> Self {
        self.with(|tool| ToolBinding { text: Some(field), ..tool })
    }

    /// Fills in parameters that a call of the tool omits.
    pub(crate) fn filling(self, filled: &'static [Filled]) -> Self {
        self.with(|tool| ToolBinding { filled, ..tool })
    }
}
