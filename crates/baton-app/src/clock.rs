//! Injected sources of time and random bits.

use std::time::{SystemTime, UNIX_EPOCH};

use baton_core::{ErrorCode, Fault, Timestamp};

/// Source of the current time.
pub trait Clock: Send + Sync {
    /// Returns the current time.
    fn now(&self) -> Timestamp;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
    }
}

/// Source of random bits.
pub trait Entropy: Send + Sync {
    /// Returns 128 random bits.
    fn bits(&self) -> Result<u128, Fault>;
}

/// Random bits of the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    fn bits(&self) -> Result<u128, Fault> {
        let mut bytes = [0; 16];
        getrandom::fill(&mut bytes).map_err(|error| {
            Fault::new(ErrorCode::Internal, "the system returns no random bits").caused_by(error.to_string())
        })?;
        Ok(u128::from_le_bytes(bytes))
    }
}
