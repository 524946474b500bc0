//! The table of all task operations: one line each, from which tools are made.

use crate::operation::{AnyTaskOperation, operation};
use crate::operations as op;

/// Returns all operations in the order in which tools and actions are listed.
pub fn catalog() -> Vec<&'static AnyTaskOperation> {
    vec![
        operation::<op::ListTasks>(),
        operation::<op::InitContext>(),
        operation::<op::GetContext>(),
        operation::<op::UpdateAgent>(),
        operation::<op::RunQa>(),
        operation::<op::RecordQa>(),
        operation::<op::SnapshotWorktree>(),
        operation::<op::VerifyWorktree>(),
        operation::<op::GetDiff>(),
        operation::<op::WriteNote>(),
        operation::<op::MarkBlocked>(),
        operation::<op::AttachEvidence>(),
        operation::<op::ResolveDrift>(),
        operation::<op::RebuildContext>(),
        operation::<op::CompleteTask>(),
        operation::<op::PurgeContext>(),
        operation::<op::SweepContexts>(),
    ]
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    #[test]
    fn every_operation_has_a_summary_and_object_schemas_with_descriptions() {
        let names: BTreeSet<&str> = catalog().iter().map(|operation| operation.name).collect();
        assert_eq!(names.len(), catalog().len());
        for operation in catalog() {
            let name = operation.name;
            assert!(name.starts_with("task.") && operation.summary.len() > 20, "{name}");
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
