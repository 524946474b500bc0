//! `session.summarize`: summarizes a session and stores the summary.

use baton_core::observation::{Provenance, SessionSummary};
use baton_core::{EndReason, ErrorCode, SessionId, SessionStatus};
use baton_llm::{CompressError, Summarization, TokenUsage};
use baton_store::{DailyUsage, NewSummary, StoredSummary};

use super::automatic::refresh_handoff;
use super::material::{SummaryInput, read_summary_input};
use crate::model_usage::{provenance, record_usage, usage_of};
use crate::prelude::*;

/// Summary of a session without content.
const NO_OBSERVATIONS: &str = "No observations captured.";

/// The session to summarize.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "SummarizeSessionParams")]
pub struct SummarizeSession {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// End the session after summarizing it. Defaults to true.
    pub close: Option<bool>,
}

/// Summary of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummarizeSessionOutput {
    /// Session id (`sess_…`).
    pub session_id: SessionId,
    /// What the session accomplished, in a few sentences.
    pub summary: String,
    /// Tokens used for this summary, prompt and response; 0 without a model.
    #[schemars(with = "i64")]
    pub tokens: u64,
    /// Most important changed files.
    pub key_files: Vec<String>,
    /// Technical decisions, for example `Store dates in UTC.`
    pub key_decisions: Vec<String>,
    /// Number of observations covered by the summary.
    #[schemars(with = "i64")]
    pub observations: u64,
    /// Number of tool uses not yet processed, at most 50. They are added to the summary later.
    #[schemars(with = "i64")]
    pub waiting: u64,
    /// Compressor that created the summary.
    pub provenance: Provenance,
    /// Status of the session after the call.
    pub session_status: SessionStatus,
}

impl Operation<OnStore> for SummarizeSession {
    const NAME: &'static str = "session.summarize";
    const SUMMARY: &'static str = "Summarize a session from its observations, store the summary and end the \
        session. Set close to false to keep the session active.";
    const EFFECT: Effect = Effect::Write;
    const REQUEST: RequestFormat = RequestFormat { is_slow: true, ..RequestFormat::STRICT };
    type Input = (Self, Option<PreparedSummary>);
    type Output = SummarizeSessionOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        let id = params.session_id;
        let Some(store) = context.store else {
            return Err(Fault::new(ErrorCode::Internal, "cannot summarize without a store"));
        };
        let known = store.read::<_, Fault, _>(move |tx| Ok(tx.session(id)?)).wait()?;
        // A caller without access to the session gets the same error as for an unknown session, and no model is called.
        let Some(_) = known.filter(|session| context.actor.may_access(&session.tuple.venture)) else {
            return Ok((params, None));
        };
        let day = context.now.day();
        let read = move |tx: &mut dyn Tx| Ok((read_summary_input(tx, id)?, tx.spent_on(&day)?.tokens));
        let (input, tokens_today) = store.read::<_, Fault, _>(read).wait()?;
        let made = summarize(context, &input, tokens_today)?;
        Ok((params, Some(made)))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, made) = input;
        let mut session = context.lock_session(tx, params.session_id)?;
        let Some(made) = made else {
            return Err(Fault::new(ErrorCode::Internal, "the summary was not prepared"));
        };
        made.spent.iter().try_for_each(|usage| record_usage(tx, session.id, Some(usage)))?;
        let stored = store_summary(context, tx, session.id, made)?;
        if params.close != Some(false) && session.status == SessionStatus::Active {
            session.end(context.now, EndReason::Manual)?;
            tx.update_session(&session)?;
        }
        let StoredSummary { summary, provenance, observations, .. } = stored;
        Ok(SummarizeSessionOutput {
            session_id: session.id,
            summary: summary.summary,
            tokens: provenance.tokens_in + provenance.tokens_out,
            key_files: summary.key_files,
            key_decisions: summary.key_decisions,
            observations,
            waiting: made.pending,
            provenance,
            session_status: session.status,
        })
    }
}

/// A summary to be stored, and the token usage of creating it.
#[derive(Debug, Clone)]
pub struct PreparedSummary {
    new: NewSummary,
    /// Token usage, including the usage of unusable responses.
    spent: Vec<DailyUsage>,
    /// Number of tool uses of the session that are not processed yet.
    pending: u64,
}

/// Stores a summary and returns it. Nothing is stored if the summary adds nothing, or if it covers no observations
/// while tool uses are pending.
fn store_summary(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: SessionId,
    made: &PreparedSummary,
) -> Result<StoredSummary, Fault> {
    let mut kept = made.new.clone();
    let is_too_early = made.pending > 0 && kept.stored.observations == 0;
    if !is_too_early && !kept.is_unchanged() && !tx.keep_summary(session, &kept, None)? {
        // Another summary was stored in the meantime. The summary is recreated, without calling a model.
        let input = read_summary_input(tx, session)?;
        kept = without_model(context, &input)?;
        tx.keep_summary(session, &kept, None)?;
    }
    if made.pending > 0 {
        // Pending tool uses are summarized after they are processed.
        tx.request_summary(session, context.now, context.now)?;
    }
    refresh_handoff(context.settings, tx, session)?;
    Ok(kept.stored)
}

/// Summarizes a session without calling a model.
pub(super) fn without_model(context: &Context<'_>, input: &SummaryInput) -> Result<NewSummary, Fault> {
    let offline = &context.settings.observations.offline;
    // A model's summary that covers everything is better than one made offline.
    let by_model = input.stored.as_ref().filter(|stored| stored.provenance.model.is_some());
    if input.is_up_to_date()
        && let Some(stored) = by_model
    {
        let provenance = Provenance { tokens_in: 0, tokens_out: 0, ..stored.provenance.clone() };
        return Ok(input.new_summary(stored.summary.clone(), provenance, context.now));
    }
    if input.session.is_empty() {
        let summary = match input.pending.len() {
            0 => NO_OBSERVATIONS.to_owned(),
            1 => "No tool use was processed yet; 1 is pending.".to_owned(),
            pending => format!("No tool use was processed yet; {pending} are pending."),
        };
        let nothing = SessionSummary { summary, ..SessionSummary::default() };
        let origin = provenance(offline.as_ref(), "none", TokenUsage::default());
        return Ok(input.new_summary(nothing, origin, context.now));
    }
    let Summarization { summary, usage, prompt_version } = offline
        .summarize(&input.session)
        .map_err(|error| Fault::new(ErrorCode::Internal, "cannot summarize the session").caused_by(error))?;
    Ok(input.new_summary(summary, provenance(offline.as_ref(), prompt_version, usage), context.now))
}

/// Summarizes a session with the model, or without one if none is configured, the daily budget is used up or the call
/// fails.
fn summarize(
    context: &Context<'_>,
    input: &SummaryInput,
    tokens_today: u64,
) -> Result<PreparedSummary, Fault> {
    let pending = input.pending.len() as u64;
    let settings = &context.settings.observations;
    let compressor = settings.compressor_within_budget(|| Ok(tokens_today))?;
    let mut spent = Vec::new();
    if compressor.model().is_some() && !input.session.is_empty() && !input.is_up_to_date() {
        let mut count =
            |provenance: &Provenance| spent.extend(usage_of(provenance, context.now, settings.price));
        match compressor.summarize(&input.session) {
            Ok(Summarization { summary, usage, prompt_version }) => {
                let provenance = provenance(compressor.as_ref(), prompt_version, usage);
                count(&provenance);
                let new = input.new_summary(summary, provenance, context.now);
                return Ok(PreparedSummary { new, spent, pending });
            }
            Err(error) => {
                tracing::warn!(%error, "the model returned no summary; creating one without a model");
                if let CompressError::Unusable { usage, .. } = error {
                    count(&provenance(compressor.as_ref(), "", usage));
                }
            }
        }
    }
    Ok(PreparedSummary { new: without_model(context, input)?, spent, pending })
}
