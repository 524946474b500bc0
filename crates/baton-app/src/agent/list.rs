//! `agent.list`: lists the agents that are connected on the server's machine.

use baton_core::ErrorCode;

use crate::machine::ListAgentsOutput;
use crate::prelude::*;

/// What to check.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListAgents {
    /// Also start the MCP server as agents do, and ask Codex whether it trusts the hooks. Takes a few seconds.
    /// Defaults to false.
    pub probe: Option<bool>,
}

impl Operation<OnStore> for ListAgents {
    const NAME: &'static str = "agent.list";
    const SUMMARY: &'static str = "List the agents that are set up on the server's machine, with the last \
        event and what is wrong with the connection.";
    const EFFECT: Effect = Effect::Read;
    const REQUEST: RequestFormat = RequestFormat { is_slow: true, ..RequestFormat::STRICT };
    type Input = ListAgentsOutput;
    type Output = ListAgentsOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        context.actor.require_every_venture()?;
        let machine = context.settings.machine.as_ref().ok_or_else(|| {
            Fault::new(
                ErrorCode::NotFound,
                "cannot list agents: this process has no access to the agent configurations of a machine",
            )
        })?;
        machine.agents(params.probe.unwrap_or(false))
    }

    fn run(_: &Context<'_>, _: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        Ok(input.clone())
    }
}
