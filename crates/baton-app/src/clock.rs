//! The two things from outside that operations need: what time it is, and random bits.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_core::{ErrorCode, Fault, Timestamp};

/// Tells the time.
pub trait Clock: Send + Sync {
    /// Gives the present.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Gives random bits.
pub trait Entropy: Send + Sync {
    /// Gives 128 of them.
    fn bits(&self) -> Result<u128, Fault>;
}

/// The machine's own source.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bits(&self) -> Result<u128, Fault> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            Fault::new(ErrorCode::Internal, "the system gives no random bits").caused_by(error.to_string())
        })?;
        Ok(u128::from_le_bytes(bytes))
    }
}
