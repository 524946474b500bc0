//! What an operation on tasks is, typed for those who write one and erased for those who point to one.

use std::marker::PhantomData;

use baton_core::{ErrorCode, Fault, output_schema, params_schema, read_params, require_plain_text};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::operations as op;
use crate::place::TaskPlace;

/// What an operation does to the files of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// Command that follows a verb after which the task has no files any more.
pub(crate) const LIST: &str = "baton task list";

/// One thing that can be done with tasks.
pub trait TaskOperation: Send + Sync + 'static {
    /// Its wire name: `task.init_context`.
    const NAME: &'static str;
    /// What it is for, in one sentence that an agent can choose by.
    const SUMMARY: &'static str;
    /// What it does to the files of a task.
    const EFFECT: Effect;
    /// Whether doing it twice with the same parameters comes to the same as doing it once.
    const IDEMPOTENT: bool;
    /// What it is told.
    type Params: DeserializeOwned + JsonSchema;
    /// What it answers.
    type Output: Serialize + DeserializeOwned + JsonSchema;

    /// Does it.
    ///
    /// # Errors
    ///
    /// As the operation says; nothing is half written.
    fn run(place: &TaskPlace, params: &Self::Params) -> Result<Self::Output, Fault>;
}

/// An operation whose types are erased: what a tool or a verb points to.
pub trait AnyTaskOperation: Send + Sync {
    /// Its wire name.
    fn name(&self) -> &'static str;
    /// What it is for.
    fn summary(&self) -> &'static str;
    /// What it does to the files of a task.
    fn effect(&self) -> Effect;
    /// Whether doing it twice comes to the same as doing it once.
    fn idempotent(&self) -> bool;
    /// The JSON Schema of its parameters.
    fn params_schema(&self) -> Value;
    /// The JSON Schema of its output.
    fn output_schema(&self) -> Value;
    /// Reads the parameters, does it, writes the answer.
    ///
    /// # Errors
    ///
    /// `invalid_request` when the parameters do not fit, and as the operation says.
    fn call(&self, place: &TaskPlace, params: Value) -> Result<Value, Fault>;
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
    fn call(&self, place: &TaskPlace, params: Value) -> Result<Value, Fault> {
        match &params {
            Value::Object(members) => require_plain_text("", members)?,
            _ => return Err(Fault::invalid("params", "must be an object")),
        }
        let params: O::Params = read_params(params)?;
        let output = O::run(place, &params)?;
        serde_json::to_value(output).map_err(|error| {
            Fault::new(ErrorCode::Internal, "the answer could not be written").caused_by(error)
        })
    }
}

/// Gives an operation with its types erased.
pub fn operation<O: TaskOperation>() -> &'static dyn AnyTaskOperation {
    &Erased::<O>(PhantomData)
}

/// Lists every operation on tasks.
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
    fn every_operation_says_what_it_takes_and_gives() {
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
