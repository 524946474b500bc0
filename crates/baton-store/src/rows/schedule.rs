//! Rows of periodic jobs that only one process should run at a time.

use baton_core::Timestamp;

use crate::error::StoreError;
use crate::tx::Tx;

impl dyn Tx + '_ {
    /// Claims a job unless another process claimed it after `since`. Returns true if the claim succeeded.
    pub fn claim_run(&mut self, name: &str, now: Timestamp, since: Timestamp) -> Result<bool, StoreError> {
        let changed = self.execute(
            "INSERT INTO turns (name, taken_at) VALUES ($1, $2) \
             ON CONFLICT (name) DO UPDATE SET taken_at = excluded.taken_at WHERE turns.taken_at <= $3",
            &[name.into(), now.into(), since.into()],
        )?;
        Ok(changed == 1)
    }
}
