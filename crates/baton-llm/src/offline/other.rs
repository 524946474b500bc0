//! Unknown tools, described by their name, their input and the structure of their answer.

use super::call::Call;
use super::draft::Draft;
use super::mcp::describe;
use super::text::{clean, one_line};

/// Describes the use of any tool.
pub(super) fn read(call: &Call<'_>) -> Draft {
    let name = one_line(&clean(call.tool), 60);
    let name = if name.is_empty() { "unnamed tool".to_owned() } else { name };
    describe(call, &format!("Use {}", words_of(&name)), None)
}

/// Appends `tool` to a single word: `EnterPlanMode tool`.
fn words_of(name: &str) -> String {
    if name.contains(' ') { name.to_owned() } else { format!("{name} tool") }
}
