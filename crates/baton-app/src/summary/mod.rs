//! Texts that Baton derives from the records of a session: its summary, and the automatic content of its handoffs.

mod automatic;
mod material;
mod renew;
mod summarize;
mod view;

pub(crate) use automatic::{add_automatic_content, automatic_content, refresh_handoff};
pub(crate) use material::{SummaryInput, read_summary_input};
pub(crate) use renew::renew_session_texts;
pub use summarize::{SummarizeSession, SummarizeSessionOutput};
pub use view::SummaryView;
