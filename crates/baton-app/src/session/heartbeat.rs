//! `session.heartbeat`: keeps a session active.

use std::time::Duration;

use baton_core::{SessionId, Timestamp};

use crate::prelude::*;

/// The session to keep active.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "HeartbeatParams")]
pub struct Heartbeat {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// Session id returned by `session_start`.
    pub session_id: SessionId,
}

/// Time of the next heartbeat.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct HeartbeatOutput {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// Time of this heartbeat.
    pub last_heartbeat_at: Timestamp,
    /// Time by which to send the next heartbeat.
    pub next_heartbeat_at: Timestamp,
    /// Seconds until the next heartbeat.
    pub heartbeat_interval_seconds: u32,
}

impl Operation<OnStore> for Heartbeat {
    const NAME: &'static str = "session.heartbeat";
    const SUMMARY: &'static str =
        "Keep your session active while you work. Call it again before the returned next_heartbeat_at.";
    const EFFECT: Effect = Effect::Write;
    type Output = HeartbeatOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let mut session = context.lock_session(tx, params.session_id)?;
        session.beat(context.now)?;
        tx.beat_session(session.id, session.last_heartbeat_at)?;
        let interval = context.settings.heartbeat.interval(context.random()?);
        Ok(HeartbeatOutput {
            session_id: session.id,
            last_heartbeat_at: session.last_heartbeat_at,
            next_heartbeat_at: context.now.plus(Duration::from_secs(u64::from(interval))),
            heartbeat_interval_seconds: interval,
        })
    }
}
