//! Rows of items that were added to a chat while it ran.

use baton_core::SessionId;

use crate::error::StoreError;
use crate::tx::Tx;

impl dyn Tx + '_ {
    /// Records that an item is added to a chat. Returns false if it was added before.
    pub fn record_shown_item(&mut self, session: SessionId, item: &str) -> Result<bool, StoreError> {
        let added = self.execute(
            "INSERT INTO shown_items (session_id, item) VALUES ($1, $2) ON CONFLICT DO NOTHING",
            &[session.into(), item.into()],
        )?;
        Ok(added == 1)
    }
}
