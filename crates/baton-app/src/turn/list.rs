//! `turn.list`: the turns of a session, newest first.

use baton_core::SessionId;
use baton_core::observation::{Turn, TurnId};

use crate::page::{cut, limit_of};
use crate::prelude::*;

/// The session and the page to list.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListTurns {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// Maximum number of turns, 1 to 200. Defaults to 20.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// List only turns before this one: `next_before` of the previous page, for example `turn_42`.
    pub before: Option<TurnId>,
}

/// One page of turns.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListTurnsOutput {
    /// Turns, newest first.
    pub turns: Vec<Turn>,
    /// Value of `before` for the next page, or null on the last page.
    pub next_before: Option<TurnId>,
}

impl Operation<OnStore> for ListTurns {
    const NAME: &'static str = "turn.list";
    const SUMMARY: &'static str = "List the turns of a session, newest first: the request of the user and the closing \
        message of the agent. Call it to learn what happened in a session.";
    const EFFECT: Effect = Effect::Read;
    type Output = ListTurnsOutput;
    params_and!(u32, |params| limit_of(params.limit, 20));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, limit) = input;
        let session = context.session(tx, params.session_id)?;
        let mut found = tx.turns(session.id, params.before, limit + 1)?;
        let next_before = cut(&mut found, *limit, |turn| turn.id);
        Ok(ListTurnsOutput { turns: found, next_before })
    }
}
