//! `session.heartbeat`: a sign of life.

use std::time::Duration;

use baton_core::{Fault, SessionId, Timestamp};
use baton_store::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::operation::{Context, Effect, Operation, store_fault};

/// Keeps a session alive.
#[derive(Debug)]
pub struct Heartbeat;

/// Whose sign of life it is.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatParams {
    /// The version of this shape: `1.0`.
    #[serde(default)]
    pub schema_version: Option<String>,
    /// The session.
    pub session_id: SessionId,
}

/// When to come back.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatOutput {
    /// The session.
    pub session_id: SessionId,
    /// Its last sign of life, now.
    pub last_heartbeat_at: Timestamp,
    /// When to send the next one.
    pub next_heartbeat_at: Timestamp,
    /// The seconds until then.
    pub heartbeat_interval_seconds: u32,
}

impl Operation for Heartbeat {
    const NAME: &'static str = "session.heartbeat";
    const SUMMARY: &'static str =
        "Keep your session alive while you work; the answer says when to come back.";
    const EFFECT: Effect = Effect::Write;
    type Params = HeartbeatParams;
    type Output = HeartbeatOutput;

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let mut session = context.lock_session(tx, params.session_id)?;
        session.beat(context.now)?;
        tx.beat_session(session.id, session.last_heartbeat_at).map_err(store_fault)?;
        let interval = context.settings.heartbeat.interval(context.random()?);
        Ok(HeartbeatOutput {
            session_id: session.id,
            last_heartbeat_at: session.last_heartbeat_at,
            next_heartbeat_at: context.now.plus(Duration::from_secs(u64::from(interval))),
            heartbeat_interval_seconds: interval,
        })
    }
}
