//! Rows of token usage, per day and model.

use baton_core::SessionId;

use crate::error::StoreError;
use crate::record::{Record, record};
use crate::tx::Tx;

/// Token usage of one model on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DailyUsage {
    /// The day in UTC: `2026-11-15`.
    pub day: String,
    /// `anthropic`, `openai` or `embedding`.
    pub compressor: String,
    pub model: String,
    pub calls: u64,
    /// Tokens of the prompts.
    pub tokens_in: u64,
    /// Tokens of the answers.
    pub tokens_out: u64,
    /// Cost in millionths of a US dollar; 0 if the price is unknown.
    pub micro_usd: u64,
}

impl DailyUsage {
    /// Returns the tokens and the cost.
    pub const fn spent(&self) -> Spent {
        Spent { tokens: self.tokens_in + self.tokens_out, micro_usd: self.micro_usd }
    }
}

/// Total spent on models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Spent {
    /// Number of tokens in prompts and answers.
    pub tokens: u64,
    /// Cost in millionths of a US dollar.
    pub micro_usd: u64,
}

record! {
    "token_usage", DailyUsage { day, compressor, model, calls, tokens_in, tokens_out, micro_usd }
}

record! {
    "session_usage", Spent { tokens, micro_usd }
}

impl dyn Tx + '_ {
    /// Adds to the usage of a model on a day.
    pub fn add_usage(&mut self, usage: &DailyUsage) -> Result<(), StoreError> {
        // One row per connection: a process that is suspended inside a transaction blocks only its own row.
        let writer = self.pick("0", "pg_backend_pid()");
        let sql = format!(
            "INSERT INTO token_usage (day, compressor, model, calls, tokens_in, tokens_out, micro_usd, writer) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, {writer}) ON CONFLICT (day, compressor, model, writer) \
             DO UPDATE SET calls = token_usage.calls + $4, tokens_in = token_usage.tokens_in + $5, \
             tokens_out = token_usage.tokens_out + $6, micro_usd = token_usage.micro_usd + $7"
        );
        let params: Vec<_> = usage.values()?.into_iter().map(|(_, param)| param).collect();
        self.run(&sql, &params)
    }

    pub fn add_session_usage(&mut self, session: SessionId, spent: Spent) -> Result<(), StoreError> {
        let writer = self.pick("0", "pg_backend_pid()");
        let sql = format!(
            "INSERT INTO session_usage (session_id, tokens, micro_usd, writer) VALUES ($1, $2, $3, {writer}) \
             ON CONFLICT (session_id, writer) DO UPDATE SET tokens = session_usage.tokens + $2, \
             micro_usd = session_usage.micro_usd + $3"
        );
        self.run(&sql, &[session.into(), spent.tokens.into(), spent.micro_usd.into()])
    }

    /// Lists the usage of sessions, newest session first.
    pub fn session_usage(&mut self, limit: u32) -> Result<Vec<(SessionId, Spent)>, StoreError> {
        self.query(
            "SELECT session_id, CAST(sum(tokens) AS BIGINT), CAST(sum(micro_usd) AS BIGINT) FROM session_usage \
             GROUP BY session_id ORDER BY session_id DESC LIMIT $1",
            &[limit.into()],
        )
    }

    /// Lists usage per day and model, newest day first.
    pub fn usage(&mut self, limit: u32) -> Result<Vec<DailyUsage>, StoreError> {
        self.query(
            "SELECT day, compressor, model, CAST(sum(calls) AS BIGINT), CAST(sum(tokens_in) AS BIGINT), \
             CAST(sum(tokens_out) AS BIGINT), CAST(sum(micro_usd) AS BIGINT) FROM token_usage \
             GROUP BY day, compressor, model ORDER BY day DESC, compressor, model LIMIT $1",
            &[limit.into()],
        )
    }

    /// Returns the total tokens and cost of a day.
    pub fn spent_on(&mut self, day: &str) -> Result<Spent, StoreError> {
        let found: Option<Spent> = self.query_one(
            "SELECT CAST(coalesce(sum(tokens_in + tokens_out), 0) AS BIGINT), \
             CAST(coalesce(sum(micro_usd), 0) AS BIGINT) FROM token_usage WHERE day = $1",
            &[day.into()],
        )?;
        Ok(found.unwrap_or_default())
    }
}
