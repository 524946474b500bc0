//! `context.read`: context for a new session. Not implemented yet: the response has its final fields and is empty.

use baton_core::Fault;
use baton_store::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::operation::{Effect, Operation};

/// Returns the context for a new session.
#[derive(Debug)]
pub struct ReadContext;

/// No parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ReadContextParams {}

/// Context for a new session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadContextOutput {
    /// The context as text.
    pub context: String,
    /// Approximate number of tokens.
    #[schemars(with = "i64")]
    pub tokens: u64,
}

impl Operation for ReadContext {
    const NAME: &'static str = "context.read";
    const SUMMARY: &'static str = "Return the context for a new session. Currently always empty.";
    const EFFECT: Effect = Effect::Read;
    type Params = ReadContextParams;
    type Input = ReadContextParams;
    type Output = ReadContextOutput;

    fn prepare(_: &Context<'_>, params: Self::Params) -> Result<Self::Input, Fault> {
        Ok(params)
    }

    fn run(_: &Context<'_>, _: &mut dyn Tx, _: &Self::Input) -> Result<Self::Output, Fault> {
        Ok(ReadContextOutput { context: String::new(), tokens: 0 })
    }
}
