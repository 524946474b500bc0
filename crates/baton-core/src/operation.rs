//! The trait of operations on the store and on a checkout: wire name, parameters, output, effect and implementation.

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::Fault;
use crate::schema::{output_schema, params_schema};

/// Effect of an operation on the store or on the files of a checkout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    Read,
    /// Writes. Repeating the call with the same parameters changes nothing more.
    Write,
    /// Writes. Repeating the call with the same parameters adds something again, or fails.
    Create,
    /// Deletes stored data. A second call with the same parameters fails.
    Delete,
    /// Deletes stored data. A second call with the same parameters succeeds, and deletes only what a limit left.
    Purge,
}

impl Effect {
    /// Returns true if the operation changes something.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Returns true if repeating the call with the same parameters changes nothing more. The response may differ, for
    /// example in the number of deleted items.
    pub const fn is_idempotent(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Purge)
    }

    /// Returns true if the operation deletes stored data.
    pub const fn is_destructive(self) -> bool {
        matches!(self, Self::Delete | Self::Purge)
    }
}

/// Use of the idempotency key by an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// A key may be given.
    Optional,
    /// A key must be given.
    Required,
}

/// How secrets in the parameters of a write are handled.
#[derive(Debug, Clone, Copy)]
pub enum Privacy {
    /// The call is rejected, because the caller can remove the secrets.
    Refuse,
    /// This function removes the secrets, because the caller forwards text that it did not write.
    Redact(fn(&mut Value)),
}

/// How a request for an operation is read.
#[derive(Debug, Clone, Copy)]
pub struct RequestFormat {
    /// Maximum size in bytes.
    pub max_bytes: usize,
    /// Parameter that holds a context. It is passed as an attachment, as canonical text.
    pub context_param: Option<&'static str>,
    /// How secrets are handled.
    pub privacy: Privacy,
    /// Boolean parameter that requests redaction of secrets instead of rejection of the request.
    pub redact_param: Option<&'static str>,
    /// Repairs parameters of the wrong type instead of rejecting them, for requests that come from third-party agents.
    pub repair: Option<fn(&mut Value)>,
    /// True if [`Operation::prepare`] may take long, for example because it asks a model.
    pub is_slow: bool,
}

impl RequestFormat {
    /// The format of most operations: up to 1 MiB, secrets and invalid parameters are rejected.
    pub const STRICT: Self = Self {
        max_bytes: 1024 * 1024,
        context_param: None,
        privacy: Privacy::Refuse,
        redact_param: None,
        repair: None,
        is_slow: false,
    };
}

/// How calls of an operation appear in the request log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestLogging {
    /// One record per call.
    EachCall,
    /// Successful calls are counted for up to a minute instead of recorded one by one.
    Counted,
    /// A process that makes a single call, such as a hook, records the call only if it fails: the rows that a successful
    /// call stored describe it. Other processes record each call.
    OnFailure,
}

/// Whether the writes in the outbox are replayed before an operation.
#[derive(Debug, Clone, Copy)]
pub enum ReplayFirst {
    /// The operation neither reads nor follows them.
    Never,
    /// Always. If that fails, a write is not attempted.
    Always,
    /// For at most a few seconds, if the function returns true for the parameters. The operation runs even if that fails.
    /// For responses that show what was recorded recently.
    IfPossible(fn(&Value) -> bool),
}

/// What operations work on: the store, or a checkout.
pub trait Target {
    /// What an operation can use while it checks its parameters and while it runs.
    type Context<'a>;
    /// What an operation reads and writes while it runs.
    type Access<'a>;
    /// An operation without its types: what a route, a tool or a verb refers to.
    type Erased: 'static;
}

/// One thing that Baton can do on a target. Its type has the parameters on the wire as fields.
pub trait Operation<T: Target>: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Wire name: `session.start`.
    const NAME: &'static str;
    /// Purpose in one sentence, by which an agent can choose the operation.
    const SUMMARY: &'static str;
    /// Effect on the target.
    const EFFECT: Effect;
    /// Use of the idempotency key.
    const KEY: KeyUse = KeyUse::Optional;
    /// How a request is read.
    const REQUEST: RequestFormat = RequestFormat::STRICT;
    /// How calls appear in the request log.
    const REQUEST_LOGGING: RequestLogging = RequestLogging::EachCall;
    /// Whether the outbox is replayed before the operation runs.
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Never;
    /// If true, the operation frees at least as much space as it takes when `Context::must_free_space` is set, and is run
    /// once more, with the disk reserve released, after it failed because the disk is full.
    const FREES_SPACE: bool = false;
    /// Parameters after they were checked.
    type Input: Send + Sync + 'static;
    /// Output on the wire.
    type Output: Serialize + DeserializeOwned + JsonSchema + Send + 'static;

    /// Returns the operation without its types. Each operation implements this, so that it is compiled once, in its
    /// own crate, and not in every crate that calls it.
    fn erased() -> &'static T::Erased;

    /// Checks the parameters, and does what must not happen inside a transaction because it takes long.
    ///
    /// # Errors
    ///
    /// `invalid_request` for parameters whose types are right and whose values are not.
    fn prepare(context: &T::Context<'_>, params: Self) -> Result<Self::Input, Fault>;

    /// Reads, decides and writes. On the store this is one transaction, which may be run again from the start.
    ///
    /// # Errors
    ///
    /// As the operation documents. Nothing is then written in part.
    fn run(
        context: &T::Context<'_>,
        access: T::Access<'_>,
        input: &Self::Input,
    ) -> Result<Self::Output, Fault>;

    /// Answers from the outbox while the store is unavailable. Returns `None` if that is not possible.
    fn without_store(_context: &T::Context<'_>, _input: &Self::Input) -> Option<Result<Self::Output, Fault>> {
        None
    }

    /// Returns the part of an output that is stored for its idempotency key when the whole is too large: ids and status.
    fn compact(_output: &Self::Output) -> Value {
        Value::Object(serde_json::Map::new())
    }
}

/// An operation as HTTP, MCP and the documentation describe it.
#[derive(Debug, Clone, Copy)]
pub struct OperationDescription {
    /// Wire name, for example `session.start`.
    pub name: &'static str,
    /// Purpose in one sentence, by which an agent can choose the operation.
    pub summary: &'static str,
    /// Effect of a call.
    pub effect: Effect,
    params_schema: fn() -> Value,
    output_schema: fn() -> Value,
}

impl OperationDescription {
    /// Describes an operation.
    pub const fn of<T: Target, O: Operation<T>>() -> Self {
        let (params_schema, output_schema) = (params_schema::<O>, output_schema::<O::Output>);
        Self { name: O::NAME, summary: O::SUMMARY, effect: O::EFFECT, params_schema, output_schema }
    }

    /// Returns the JSON Schema of the parameters.
    pub fn params_schema(&self) -> Value {
        (self.params_schema)()
    }

    /// Returns the JSON Schema of the output.
    pub fn output_schema(&self) -> Value {
        (self.output_schema)()
    }
}
