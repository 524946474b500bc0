//! Operations on tasks, and their type-erased form for the CLI and MCP.

use std::ops::Deref;

pub(crate) use baton_core::{Effect, Operation};
use baton_core::{ErrorCode, Fault, OperationDescription, Target, read_params, require_plain_text};
use serde_json::Value;

use crate::environment::TaskEnvironment;

/// Maximum length of a finding or note, in bytes.
const MAX_TEXT_BYTES: usize = 4_096;

/// Next command after a verb that removed the files of a task.
pub(crate) const LIST: &str = "baton task list";

/// Target of the operations that read and write the files of tasks in a checkout.
#[derive(Debug)]
pub enum OnCheckout {}

impl Target for OnCheckout {
    type Context<'a> = ();
    type Access<'a> = &'a TaskEnvironment;
    type Erased = AnyTaskOperation;
}

/// Implements `Input = Self` and `prepare`, and instantiates the type-erased operation here, so that dependent crates do
/// not compile it again.
macro_rules! params_as_input {
    () => {
        type Input = Self;

        #[inline(never)]
        fn erased() -> &'static $crate::AnyTaskOperation {
            const { &$crate::AnyTaskOperation::of::<Self>() }
        }

        fn prepare((): &(), params: Self) -> Result<Self, Fault> {
            Ok(params)
        }
    };
}
pub(crate) use params_as_input;

/// A task operation with JSON parameters and output. It dereferences to its description.
pub struct AnyTaskOperation {
    description: OperationDescription,
    call: fn(&TaskEnvironment, Value) -> Result<Value, Fault>,
}

impl AnyTaskOperation {
    pub(crate) const fn of<O: Operation<OnCheckout>>() -> Self {
        Self { description: OperationDescription::of::<OnCheckout, O>(), call: call::<O> }
    }

    /// Parses the parameters, runs the operation and serializes the output.
    ///
    /// # Errors
    ///
    /// `invalid_request` if the parameters are invalid, and the errors of the operation.
    pub fn call(&self, environment: &TaskEnvironment, params: Value) -> Result<Value, Fault> {
        (self.call)(environment, params)
    }
}

impl Deref for AnyTaskOperation {
    type Target = OperationDescription;

    fn deref(&self) -> &OperationDescription {
        &self.description
    }
}

fn call<O: Operation<OnCheckout>>(environment: &TaskEnvironment, params: Value) -> Result<Value, Fault> {
    match &params {
        Value::Object(members) => require_plain_text("", members)?,
        _ => return Err(Fault::invalid("params", "must be an object")),
    }
    let output = run::<O>(environment, read_params(params, None, Ok(()))?)?;
    serde_json::to_value(output)
        .map_err(|error| Fault::new(ErrorCode::Internal, "cannot serialize the response").caused_by(error))
}

/// Checks the parameters of an operation and runs it.
///
/// # Errors
///
/// `invalid_request` if a parameter is invalid, and the errors of the operation.
pub fn run<O: Operation<OnCheckout>>(environment: &TaskEnvironment, params: O) -> Result<O::Output, Fault> {
    O::run(&(), environment, &O::prepare(&(), params)?)
}

/// Returns a type-erased operation.
pub fn operation<O: Operation<OnCheckout>>() -> &'static AnyTaskOperation {
    O::erased()
}

/// Trims a text. Rejects an empty text and a text that is too long.
pub(crate) fn require_text<'a>(field: &str, text: &'a str) -> Result<&'a str, Fault> {
    let text = text.trim();
    if text.is_empty() {
        return Err(Fault::invalid(field, "is empty"));
    }
    if text.len() > MAX_TEXT_BYTES {
        let problem = format!("has {} bytes, at most {MAX_TEXT_BYTES} are allowed", text.len());
        return Err(Fault::invalid(field, problem)
            .hint("attach a file with baton task attach-evidence and refer to it"));
    }
    Ok(text)
}
