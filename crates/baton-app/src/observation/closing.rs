//! Closing messages that the host did not send: the worker reads them from the transcript of the chat.

use std::path::Path;

use baton_core::observation::{Turn, closing_message};
use baton_core::{Fault, SessionId};
use baton_observation::make_private;
use serde_json::Value;

use super::work::WorkQueue;
use crate::settings::TurnPeriod;

/// Maximum number of turns per session that are completed at once.
const MAX_TURNS: u32 = 5;

impl WorkQueue {
    /// Reads the closing messages that are missing in a session.
    pub(super) fn complete_turns(&self, session: SessionId) -> Result<(), Fault> {
        let Some(read) = self.settings().observations.read_closing.clone() else { return Ok(()) };
        for (turn, path) in self.read(move |tx| Ok(tx.turns_to_complete(session, MAX_TURNS)?))? {
            let next = turn.clone();
            let until = self.read(move |tx| Ok(tx.next_turn(&next)?.map(|next| next.started_at)))?;
            let Turn { id, started_at, .. } = turn;
            let found =
                read(Path::new(&path), TurnPeriod { from: started_at, until }).unwrap_or_else(|reason| {
                    tracing::warn!(turn = %id, reason, "cannot read the closing message of a turn");
                    None
                });
            let closing = found.as_deref().and_then(redacted_closing);
            self.write(move |tx| Ok(tx.complete_turn(id, closing.as_deref())?))?;
        }
        Ok(())
    }
}

/// Removes secrets and private parts from a closing message, as hook reports are redacted.
fn redacted_closing(text: &str) -> Option<String> {
    let mut value = Value::from(text);
    make_private(&mut value);
    closing_message(value.as_str()?)
}
