//! The trait of an operation: its wire name, parameters, output, effect and implementation.

pub use baton_core::Effect;
use baton_core::Fault;
use baton_store::Tx;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::context::Context;

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
    /// The call is rejected, because its caller can remove them.
    Refuse,
    /// They are removed by this function, because the caller forwards text that it did not write.
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
    /// A process that does nothing else records no successful call, because the stored row describes it.
    OnFailure,
}

/// One thing that Baton can do. Its type has the parameters on the wire as fields.
pub trait Operation: DeserializeOwned + JsonSchema + Send + Sync + 'static {
    /// Wire name: `session.start`.
    const NAME: &'static str;
    /// Purpose in one sentence, by which an agent can choose the operation.
    const SUMMARY: &'static str;
    /// Effect on the store.
    const EFFECT: Effect;
    /// Use of the idempotency key.
    const KEY: KeyUse = KeyUse::Optional;
    /// How a request is read.
    const REQUEST: RequestFormat = RequestFormat::STRICT;
    /// How calls appear in the request log.
    const REQUEST_LOGGING: RequestLogging = RequestLogging::EachCall;
    /// If true, the writes in the outbox are replayed before the operation runs. If that fails, a write is not attempted.
    const AFTER_OUTBOX: bool = false;
    /// If true, the operation frees at least as much space as it takes when `Context::must_free_space` is set, and is run
    /// once more, with the disk reserve released, after it failed because the disk is full.
    const FREES_SPACE: bool = false;
    /// Parameters after they were checked.
    type Input: Send + Sync + 'static;
    /// Output on the wire.
    type Output: Serialize + DeserializeOwned + JsonSchema + Send + 'static;

    /// Checks the parameters, and does what must not happen inside a transaction because it takes long.
    ///
    /// # Errors
    ///
    /// `invalid_request` for parameters whose types are right and whose values are not.
    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault>;

    /// Reads, decides and writes in one transaction. May be run again from the start.
    ///
    /// # Errors
    ///
    /// As the operation documents. The transaction is then rolled back.
    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault>;

    /// Answers from the outbox while the store is unavailable. Returns `None` if that is not possible.
    fn without_store(_context: &Context<'_>, _input: &Self::Input) -> Option<Result<Self::Output, Fault>> {
        None
    }

    /// Returns the part of an output that is stored for its idempotency key when the whole is too large: ids and status.
    fn compact(_output: &Self::Output) -> Value {
        Value::Object(serde_json::Map::new())
    }
}

/// Declares that an operation runs on its parameters. If a function is given, it checks them first.
macro_rules! params_as_input {
    () => {
        $crate::operation::params_as_input!(|_| Ok(()));
    };
    ($check:expr) => {
        type Input = Self;

        fn prepare(_: &$crate::context::Context<'_>, params: Self) -> Result<Self::Input, baton_core::Fault> {
            let check: fn(&Self) -> Result<(), baton_core::Fault> = $check;
            check(&params)?;
            Ok(params)
        }
    };
}
pub(crate) use params_as_input;

/// Declares that an operation runs on its parameters and on a value that a function computes from them. The function fails
/// if they are invalid.
macro_rules! params_and {
    ($value:ty, $check:expr) => {
        type Input = (Self, $value);

        fn prepare(_: &$crate::context::Context<'_>, params: Self) -> Result<Self::Input, baton_core::Fault> {
            let check: fn(&Self) -> Result<$value, baton_core::Fault> = $check;
            let value = check(&params)?;
            Ok((params, value))
        }
    };
}
pub(crate) use params_and;
