//! Grouped tools: one tool with an `action` in place of several tools, to keep the list of tools short.
//!
//! A group is a presentation. Its action `show` is the tool `<group>_show`, which can also be called directly.

use std::sync::Arc;

use baton_core::Fault;
use rmcp::model::{Tool, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::tools::RARE_PARAMS;

/// Argument that names the action.
const ACTION: &str = "action";

/// Tools that are not actions: they remove tasks and are called by users rather than by roles.
const NOT_ACTIONS: [&str; 2] = ["task_purge_context", "task_sweep_contexts"];

/// Its actions are the tools `<name>_<action>`, in the order of their registration.
pub(crate) struct ToolGroup {
    name: &'static str,
    /// Purpose. The parameters of each action are appended.
    description: &'static str,
}

pub(crate) const GROUPS: [ToolGroup; 2] = [
    ToolGroup {
        name: "handoff",
        description: "Read and write handoffs between agents. `ack` a handoff before you continue its work. `create` \
            stores one and keeps your session active; its `handoff` has the fields of session_end.",
    },
    ToolGroup {
        name: "task",
        description: "Work on a task that passes from role to role (implementer, reviewer, validator) in this \
            checkout. `agent` is your role. Order: get_context; update_agent with status in_progress; work; run_qa; \
            snapshot_worktree; note; update_agent with status done.",
    },
];

/// Returns the group of a name; `None` if none of its tools exists.
pub(crate) fn find_group(name: &str, tools: &[String]) -> Option<&'static ToolGroup> {
    let has_actions = |group: &&ToolGroup| tools.iter().any(|tool| group.action_of(tool).is_some());
    GROUPS.iter().find(|group| group.name == name).filter(has_actions)
}

impl ToolGroup {
    /// Returns the action that calls a tool, for example `create` for `handoff_create`.
    fn action_of<'a>(&self, tool: &'a str) -> Option<&'a str> {
        let action = tool.strip_prefix(self.name)?.strip_prefix('_')?;
        (!NOT_ACTIONS.contains(&tool)).then_some(action)
    }

    /// Takes the action from the arguments and returns the name of its tool.
    pub(crate) fn tool_of(
        &self,
        arguments: &mut Map<String, Value>,
        tools: &[String],
    ) -> Result<String, Fault> {
        let actions: Vec<&str> = tools.iter().filter_map(|tool| self.action_of(tool)).collect();
        match arguments.remove(ACTION) {
            Some(Value::String(action)) if actions.contains(&action.as_str()) => {
                Ok(format!("{}_{action}", self.name))
            }
            given => {
                let hint = match (given, actions.first()) {
                    (None | Some(Value::Null), Some(first)) => {
                        format!("add action, for example \"action\": \"{first}\"")
                    }
                    _ => "set action to one of the listed values".to_owned(),
                };
                Err(Fault::invalid(ACTION, format!("must be one of {}", actions.join(", "))).hint(hint))
            }
        }
    }

    /// Describes the group to a client. Returns `None` if no tool of the group exists.
    pub(crate) fn describe(&self, tools: &[Tool]) -> Option<Tool> {
        let members: Vec<(&str, &Tool)> =
            tools.iter().filter_map(|tool| Some((self.action_of(&tool.name)?, tool))).collect();
        if members.is_empty() {
            return None;
        }
        let actions: Vec<&str> = members.iter().map(|(action, _)| *action).collect();
        let mut properties = Map::new();
        properties.insert(ACTION.into(), json!({ "type": "string", "enum": actions }));
        for (name, schema) in members.iter().flat_map(|(_, tool)| listed_properties(tool)) {
            let property = bare(schema);
            let merged = match properties.get(name) {
                Some(other) if *other != property => common(other, &property),
                _ => property,
            };
            properties.insert(name.clone(), merged);
        }
        let input = json!({ "type": "object", "properties": properties, "required": [ACTION] });
        let usages: Vec<String> = members.iter().map(|(action, tool)| usage(action, tool)).collect();
        let description = format!("{} Actions: {}.", self.description, usages.join("; "));
        let mut tool =
            Tool::new(self.name, description, Arc::new(input.as_object().cloned().unwrap_or_default()));
        let hint = |of: fn(&ToolAnnotations) -> Option<bool>| {
            members.iter().map(move |(_, tool)| tool.annotations.as_ref().and_then(of) == Some(true))
        };
        let mut annotations = ToolAnnotations::default();
        annotations.read_only_hint = Some(hint(|member| member.read_only_hint).all(|is_set| is_set));
        annotations.destructive_hint = Some(hint(|member| member.destructive_hint).any(|is_set| is_set));
        annotations.idempotent_hint = Some(hint(|member| member.idempotent_hint).all(|is_set| is_set));
        annotations.open_world_hint = Some(false);
        tool.annotations = Some(annotations);
        Some(tool)
    }
}

/// Returns the parameters of a tool that are worth listing.
fn listed_properties(tool: &Tool) -> impl Iterator<Item = (&String, &Value)> {
    let properties = tool.input_schema.get("properties").and_then(Value::as_object);
    properties.into_iter().flatten().filter(|(name, _)| !RARE_PARAMS.contains(&name.as_str()))
}

/// Returns an action with its parameters, for example `get_context(task_id, role?)`.
fn usage(action: &str, tool: &Tool) -> String {
    let required = |name: &str| {
        let required = tool.input_schema.get("required").and_then(Value::as_array);
        required.into_iter().flatten().any(|one| one == name)
    };
    let mut params: Vec<String> = listed_properties(tool)
        .map(|(name, _)| if required(name) { name.clone() } else { format!("{name}?") })
        .collect();
    params.sort_by_key(|name| name.ends_with('?'));
    format!("{action}({})", params.join(", "))
}

/// Keeps the type and the allowed values of a property.
fn bare(schema: &Value) -> Value {
    let kept = |name: &str| schema.get(name).map(|value| (name.to_owned(), value.clone()));
    ["type", "enum", "items"].into_iter().filter_map(kept).collect::<Map<String, Value>>().into()
}

/// Returns the type that two properties share, without the allowed values.
fn common(one: &Value, other: &Value) -> Value {
    match (&one["type"], &other["type"]) {
        (kind, same) if kind == same => json!({ "type": kind }),
        _ => json!({}),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_the_tool_of_an_action_and_lists_the_actions_otherwise() {
        let tools = ["handoff_list", "task_list", "handoff_show", "handoffs", "task_purge_context"];
        let tools = tools.map(str::to_owned);
        let group = find_group("handoff", &tools).unwrap();
        let mut arguments = json!({ "action": "show", "handoff_id": "ho_1" }).as_object().cloned().unwrap();
        assert_eq!(group.tool_of(&mut arguments, &tools).unwrap(), "handoff_show");
        assert_eq!(Value::Object(arguments), json!({ "handoff_id": "ho_1" }));
        for wrong in [json!({}), json!({ "action": "delete" }), json!({ "action": 1 })] {
            let fault = group.tool_of(&mut wrong.as_object().cloned().unwrap(), &tools).unwrap_err();
            assert_eq!(fault.message, "action: must be one of list, show");
        }
        let mut purge = json!({ "action": "purge_context" }).as_object().cloned().unwrap();
        let fault = find_group("task", &tools).unwrap().tool_of(&mut purge, &tools).unwrap_err();
        assert_eq!(fault.message, "action: must be one of list");
        assert!(find_group("task", &tools[..1]).is_none(), "a group without tools does not exist");
    }
}
