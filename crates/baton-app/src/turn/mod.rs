//! Turns of chats: requests of the user and closing messages of the agent.

mod list;
mod show;

pub use list::{ListTurns, ListTurnsOutput, ListTurnsParams};
pub use show::{ShowTurn, ShowTurnOutput, ShowTurnParams, ToolCount, TurnAction};
