//! `session.activity`: number of sessions and turns per day.

use std::collections::BTreeMap;

use baton_core::{Timestamp, Venture};

use crate::page::number_within;
use crate::prelude::*;

const DAY_MILLIS: i64 = 86_400_000;
const DEFAULT_DAYS: u32 = 371;
const MAX_DAYS: u32 = 1_000;

/// The period and venture.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct SessionActivity {
    /// Venture. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
    /// Number of days up to today (UTC), 1 to 1,000. Defaults to 371, which is 53 weeks.
    #[schemars(range(min = 1, max = 1_000))]
    pub days: Option<i64>,
}

/// Work per day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SessionActivityOutput {
    /// Days with work, oldest first.
    pub days: Vec<ActiveDay>,
}

/// Work of one day.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ActiveDay {
    /// Day in UTC, for example `2026-11-15`.
    pub day: String,
    /// Number of sessions that started.
    #[schemars(with = "i64")]
    pub sessions: u64,
    /// Number of turns that started.
    #[schemars(with = "i64")]
    pub turns: u64,
}

impl Operation<OnStore> for SessionActivity {
    const NAME: &'static str = "session.activity";
    const SUMMARY: &'static str = "Count the sessions and turns of each day.";
    const EFFECT: Effect = Effect::Read;
    type Output = SessionActivityOutput;
    params_and!(u32, |params| number_within("days", params.days, DEFAULT_DAYS, 1..=MAX_DAYS));

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, days) = input;
        let ventures = context.readable_ventures(params.venture.as_ref())?;
        let today = context.now.as_millis() / DAY_MILLIS * DAY_MILLIS;
        let since = Timestamp::from_millis(today - i64::from(days - 1) * DAY_MILLIS);
        let mut found: BTreeMap<i64, (u64, u64)> = BTreeMap::new();
        for (day, sessions) in tx.sessions_by_day(ventures.as_deref(), since)? {
            found.entry(day).or_default().0 = sessions;
        }
        for (day, turns) in tx.turns_by_day(ventures.as_deref(), since)? {
            found.entry(day).or_default().1 = turns;
        }
        let days = found.into_iter().map(|(day, (sessions, turns))| ActiveDay {
            day: Timestamp::from_millis(day * DAY_MILLIS).day(),
            sessions,
            turns,
        });
        Ok(SessionActivityOutput { days: days.collect() })
    }
}
