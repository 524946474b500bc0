//! The list of tools that a client is offered.

use baton_app::{ToolBinding, ToolSet};
use rmcp::model::Tool;
use serde_json::Value;
use std::sync::Arc;

use super::defaults::Locality;
use super::group::GROUPS;
use super::local::LocalTool;
use super::selection::ToolSelection;
use super::tools::{RARE_PARAMS, describe};

/// Returns the definitions of the selected tools.
pub(crate) fn list_tools(
    selection: &ToolSelection,
    operations: &[ToolBinding],
    local: &[LocalTool],
    locality: Locality,
) -> Vec<Tool> {
    let described: Vec<(ToolSet, bool, Vec<&str>, Tool)> = operations
        .iter()
        .map(|tool| (tool.set, tool.in_default_set, tool.rare_params.to_vec(), describe(tool, locality)))
        .chain(local.iter().map(|tool| (ToolSet::Tasks, false, Vec::new(), tool.describe())))
        .collect();
    let mut listed: Vec<Tool> = described
        .iter()
        .filter_map(|(set, in_default_set, rare_params, tool)| {
            if selection.lists(*set) {
                Some(tool.clone())
            } else if selection.default_set && *in_default_set {
                Some(without_rare_params(tool.clone(), rare_params))
            } else {
                None
            }
        })
        .collect();
    if selection.default_set || selection.all {
        let all: Vec<Tool> = described.into_iter().map(|(.., tool)| tool).collect();
        listed.extend(GROUPS.iter().filter_map(|group| group.describe(&all)));
    }
    listed
}

fn without_rare_params(mut tool: Tool, rare_params: &[&str]) -> Tool {
    let input = Arc::make_mut(&mut tool.input_schema);
    if let Some(Value::Object(properties)) = input.get_mut("properties") {
        properties
            .retain(|name, _| !RARE_PARAMS.contains(&name.as_str()) && !rare_params.contains(&name.as_str()));
    }
    tool
}
