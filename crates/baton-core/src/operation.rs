//! What every operation has, whether it works on the store or on a checkout: a wire name, a purpose, an effect, and the
//! schemas of its parameters and its output.

use schemars::JsonSchema;
use serde_json::Value;

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
    /// Deletes stored data. A second call with the same parameters succeeds and changes nothing.
    Purge,
}

impl Effect {
    /// Returns true if the operation changes something.
    pub const fn is_write(self) -> bool {
        !matches!(self, Self::Read)
    }

    /// Returns true if repeating the call with the same parameters changes nothing more and gives the same
    /// response.
    pub const fn is_idempotent(self) -> bool {
        matches!(self, Self::Read | Self::Write | Self::Purge)
    }

    /// Returns true if the operation deletes stored data.
    pub const fn is_destructive(self) -> bool {
        matches!(self, Self::Delete | Self::Purge)
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
    /// Describes an operation with the given types of parameters and output.
    pub const fn of<Params: JsonSchema, Output: JsonSchema>(
        name: &'static str,
        summary: &'static str,
        effect: Effect,
    ) -> Self {
        let (params_schema, output_schema) = (params_schema::<Params>, output_schema::<Output>);
        Self { name, summary, effect, params_schema, output_schema }
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
