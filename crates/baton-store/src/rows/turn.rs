//! Rows of turns: jobs that one process at a time should do.

use baton_core::Timestamp;

use crate::error::StoreError;
use crate::sql::Sql;

/// What a transaction can do with turns.
pub trait TurnRows {
    /// Takes a job on, unless somebody took it on after `since`; tells whether it is ours.
    fn take_turn(&mut self, name: &str, now: Timestamp, since: Timestamp) -> Result<bool, StoreError>;
}

impl<S: Sql> TurnRows for S {
    fn take_turn(&mut self, name: &str, now: Timestamp, since: Timestamp) -> Result<bool, StoreError> {
        let changed = self.execute(
            "INSERT INTO turns (name, taken_at) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET taken_at = excluded.taken_at WHERE turns.taken_at <= $3",
            &[name.into(), now.into(), since.into()],
        )?;
        Ok(changed == 1)
    }
}
