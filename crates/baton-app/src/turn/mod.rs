//! Turns of chats: requests of the user and closing messages of the agent.

mod list;
mod show;
mod view;

pub use list::{ListTurns, ListTurnsOutput, ListTurnsParams};
pub use show::{ShowTurn, ShowTurnOutput, ShowTurnParams};
pub use view::{ToolCount, TurnAction, TurnView};
