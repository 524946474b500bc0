//! Turns of chats: requests of the user and closing messages of the agent.

mod list;
mod show;

pub use list::{ListTurns, ListTurnsOutput};
pub use show::{ShowTurn, ShowTurnOutput, ToolCount, TurnAction};
