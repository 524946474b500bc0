//! Task operations: a typed trait to implement, and a type-erased trait for the CLI and MCP.

use std::marker::PhantomData;

use baton_core::{ErrorCode, Fault, output_schema, params_schema, read_params, require_plain_text};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::environment::TaskEnvironment;
use crate::operations as op;

/// Effect of an operation on the files of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// Reads files.
    Read,
    /// Writes files.
    Write,
}

/// Next command after a verb that removed the files of a task.
pub(crate) const LIST: &str = "baton task list";

/// An operation on tasks.
pub trait TaskOperation: Send + Sync + 'static {
    /// Wire name, for example `task.init_context`.
    const NAME: &'static str;
    /// Description that models read to choose a tool.
    const SUMMARY: &'static str;
    /// Effect on the files of a task.
    const EFFECT: Effect;
    /// True if repeating the operation with the same parameters has no further effect.
    const IDEMPOTENT: bool;
    /// Parameters.
    type Params: DeserializeOwned + JsonSchema;
    /// Output.
    type Output: Serialize + DeserializeOwned + JsonSchema;

    /// Runs the operation.
    ///
    /// # Errors
    ///
    /// Depend on the operation. After an error no file is partially written.
    fn run(environment: &TaskEnvironment, params: &Self::Params) -> Result<Self::Output, Fault>;
}

/// A task operation with JSON parameters and output.
pub trait AnyTaskOperation: Send + Sync {
    /// Returns the wire name.
    fn name(&self) -> &'static str;
    /// Returns the description.
    fn summary(&self) -> &'static str;
    /// Returns the effect on the files of a task.
    fn effect(&self) -> Effect;
    /// Returns true if repeating the operation has no further effect.
    fn idempotent(&self) -> bool;
    /// Returns the JSON Schema of the parameters.
    fn params_schema(&self) -> Value;
    /// Returns the JSON Schema of the output.
    fn output_schema(&self) -> Value;
    /// Parses the parameters, runs the operation and serializes the output.
    ///
    /// # Errors
    ///
    /// `invalid_request` if the parameters are invalid, and the errors of the operation.
    fn call(&self, environment: &TaskEnvironment, params: Value) -> Result<Value, Fault>;
}

struct Erased<O>(PhantomData<O>);

impl<O: TaskOperation> AnyTaskOperation for Erased<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }
    fn summary(&self) -> &'static str {
        O::SUMMARY
    }
    fn effect(&self) -> Effect {
        O::EFFECT
    }
    fn idempotent(&self) -> bool {
        O::IDEMPOTENT
    }
    fn params_schema(&self) -> Value {
        params_schema::<O::Params>()
    }
    fn output_schema(&self) -> Value {
        output_schema::<O::Output>()
    }
    fn call(&self, environment: &TaskEnvironment, params: Value) -> Result<Value, Fault> {
        match &params {
            Value::Object(members) => require_plain_text("", members)?,
            _ => return Err(Fault::invalid("params", "must be an object")),
        }
        let params: O::Params = read_params(params, None)?;
        let output = O::run(environment, &params)?;
        serde_json::to_value(output).map_err(|error| {
            Fault::new(ErrorCode::Internal, "cannot serialize the response").caused_by(error)
        })
    }
}

/// Returns a type-erased operation.
pub fn operation<O: TaskOperation>() -> &'static dyn AnyTaskOperation {
    &Erased::<O>(PhantomData)
}

/// Returns all task operations.
pub fn catalog() -> [&'static dyn AnyTaskOperation; 17] {
    [
        operation::<op::InitContext>(),
        operation::<op::GetContext>(),
        operation::<op::UpdateAgent>(),
        operation::<op::MarkBlocked>(),
        operation::<op::SnapshotWorktree>(),
        operation::<op::VerifyWorktree>(),
        operation::<op::GetDiff>(),
        operation::<op::RunQa>(),
        operation::<op::RecordQa>(),
        operation::<op::WriteNote>(),
        operation::<op::AttachEvidence>(),
        operation::<op::RebuildContext>(),
        operation::<op::ResolveDrift>(),
        operation::<op::CompleteTask>(),
        operation::<op::PurgeContext>(),
        operation::<op::SweepContexts>(),
        operation::<op::ListTasks>(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_has_a_summary_and_object_schemas_with_descriptions() {
        let mut names: Vec<&str> = catalog().iter().map(|operation| operation.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), 17);
        for operation in catalog() {
            let name = operation.name();
            assert!(name.starts_with("task.") && operation.summary().len() > 20, "{name}");
            for schema in [operation.params_schema(), operation.output_schema()] {
                assert_eq!(schema["type"], "object", "{name}");
                assert!(!schema.to_string().contains("uint"), "{name}");
            }
            let params = operation.params_schema();
            let properties = params["properties"].as_object();
            let described = |(_, property): (&String, &Value)| property["description"].is_string();
            assert!(properties.is_none_or(|properties| properties.iter().all(described)), "{name}: {params}");
        }
    }
}
