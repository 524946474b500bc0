//! `worker.health`: uptime, queue depth, model usage and model problems.

use std::time::Duration;

use baton_core::{SessionId, Timestamp};
use baton_store::Spent;

use crate::model_trouble::ModelTrouble;

use crate::prelude::*;

const DAY_MILLIS: i64 = 86_400_000;
const HOUR_MILLIS: i64 = 3_600_000;
/// Number of days whose usage is shown.
const MAX_DAYS: usize = 7;
/// Number of sessions whose usage is shown.
const MAX_SESSIONS: u32 = 10;
/// Number of rows that are read for the usage per day. A day has one row for each compressor and model.
const MAX_USAGE_ROWS: u32 = 100;

/// No parameters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct WorkerHealth {}

/// State of the server process and the queue.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkerHealthOutput {
    /// `ok`, or `degraded` while the model is unavailable.
    pub status: String,
    /// Uptime of the process in seconds.
    #[schemars(with = "i64")]
    pub uptime_s: u64,
    /// Number of queue items that are pending or in progress.
    #[schemars(with = "i64")]
    pub queue_depth: u64,
    /// Number of observations of tool uses captured today (UTC).
    #[schemars(with = "i64")]
    pub observations_today: u64,
    /// Observations of tool uses captured in each of the last 24 hours, oldest hour first. Hours without observations are omitted.
    pub observations_by_hour: Vec<HourCount>,
    /// Number of tool uses whose processing failed.
    #[schemars(with = "i64")]
    pub errors: u64,
    /// Configured compressor: `anthropic`, `openai` or `offline`.
    pub compressor: String,
    /// Configured model, or null.
    pub model: Option<String>,
    /// Number of model tokens used today (UTC).
    #[schemars(with = "i64")]
    pub tokens_today: u64,
    /// Cost of the model tokens used today (UTC) in US dollars, as far as prices are known.
    pub cost_today_usd: f64,
    /// Model usage of the last 7 days with usage, newest first.
    pub cost_by_day: Vec<DayCost>,
    /// Model usage of the 10 newest sessions with usage.
    pub cost_by_session: Vec<SessionCost>,
    /// Daily token budget, or null for no limit.
    #[schemars(with = "Option<i64>")]
    pub daily_token_budget: Option<u64>,
    /// True if the daily budget is used up. Observations are then created by the offline rules, without a model, until the next day (UTC).
    pub budget_used_up: bool,
    /// Problem with the model or the embedding endpoint, as last reported by the worker of this process, or null.
    pub model_trouble: Option<ModelTrouble>,
}

/// Observations of an hour.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct HourCount {
    /// Start of the hour.
    pub hour: Timestamp,
    /// Number of observations of tool uses captured in this hour.
    #[schemars(with = "i64")]
    pub observations: u64,
}

/// Model usage of a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct DayCost {
    /// Day in UTC, for example `2026-11-15`.
    pub day: String,
    /// Number of model tokens.
    #[schemars(with = "i64")]
    pub tokens: u64,
    /// Cost in US dollars, as far as prices are known.
    pub cost_usd: f64,
    /// Usage of each model on this day.
    pub models: Vec<ModelCost>,
}

/// Usage of one model on a day.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct ModelCost {
    /// Name of the model.
    pub model: String,
    /// Number of model tokens.
    #[schemars(with = "i64")]
    pub tokens: u64,
    /// Cost in US dollars, as far as prices are known.
    pub cost_usd: f64,
}

/// Model usage of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct SessionCost {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// Number of model tokens.
    #[schemars(with = "i64")]
    pub tokens: u64,
    /// Cost in US dollars, as far as prices are known.
    pub cost_usd: f64,
}

impl Operation<OnStore> for WorkerHealth {
    const NAME: &'static str = "worker.health";
    const SUMMARY: &'static str = "Show uptime, queue depth, model usage and model problems.";
    const EFFECT: Effect = Effect::Read;
    type Output = WorkerHealthOutput;
    params_as_input!();

    fn run(context: &Context<'_>, tx: &mut dyn Tx, _: &Self::Input) -> Result<Self::Output, Fault> {
        context.actor.require_every_venture()?;
        let now = context.now.as_millis();
        let midnight = Timestamp::from_millis(now - now % DAY_MILLIS);
        let spent = tx.spent_on(&context.now.day())?;
        let stats = tx.queue_stats()?;
        let settings = &context.settings.observations;
        let active_compressor = settings.compressor_within_budget(|| Ok(spent.tokens))?;
        let model_trouble = settings.troubles.current().or_else(|| settings.embedding_troubles.current());
        Ok(WorkerHealthOutput {
            status: if model_trouble.is_none() { "ok" } else { "degraded" }.to_owned(),
            budget_used_up: active_compressor.model() != settings.compressor.model(),
            model_trouble,
            uptime_s: u64::try_from(now - context.settings.started_at.as_millis()).unwrap_or(0) / 1_000,
            queue_depth: stats.raw + stats.processing,
            observations_today: tx.count_observations_since(midnight)?,
            observations_by_hour: observations_by_hour(context.now, tx)?,
            errors: stats.error,
            compressor: settings.compressor.name().to_owned(),
            model: settings.compressor.model().map(str::to_owned),
            tokens_today: spent.tokens,
            cost_today_usd: spent.micro_usd as f64 / 1e6,
            cost_by_day: cost_by_day(tx)?,
            cost_by_session: tx
                .session_usage(MAX_SESSIONS)?
                .into_iter()
                .map(|(session_id, Spent { tokens, micro_usd })| SessionCost {
                    session_id,
                    tokens,
                    cost_usd: micro_usd as f64 / 1e6,
                })
                .collect(),
            daily_token_budget: settings.daily_token_budget,
        })
    }
}

fn observations_by_hour(now: Timestamp, tx: &mut dyn Tx) -> Result<Vec<HourCount>, Fault> {
    let hours = tx.observations_by_hour(now.minus(Duration::from_secs(24 * 60 * 60)))?;
    let hours = hours.into_iter().map(|(hour, observations)| HourCount {
        hour: Timestamp::from_millis(hour * HOUR_MILLIS),
        observations,
    });
    Ok(hours.collect())
}

/// Returns the usage of the latest days, newest first.
fn cost_by_day(tx: &mut dyn Tx) -> Result<Vec<DayCost>, Fault> {
    let mut days: Vec<DayCost> = Vec::new();
    for usage in tx.usage(MAX_USAGE_ROWS)? {
        let Spent { tokens, micro_usd } = usage.spent();
        let cost_usd = micro_usd as f64 / 1e6;
        if days.last().is_none_or(|day| day.day != usage.day) {
            if days.len() == MAX_DAYS {
                break;
            }
            days.push(DayCost { day: usage.day, tokens: 0, cost_usd: 0.0, models: Vec::new() });
        }
        if let Some(day) = days.last_mut() {
            day.tokens += tokens;
            day.cost_usd += cost_usd;
            day.models.push(ModelCost { model: usage.model, tokens, cost_usd });
        }
    }
    Ok(days)
}
