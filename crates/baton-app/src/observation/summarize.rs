//! `session.summarize`: what a session came to, said once more and kept with it.

use baton_core::observation::{Provenance, SessionSummary};
use baton_core::{EndReason, ErrorCode, Fault, SessionId, SessionStatus};
use baton_llm::{CompressError, Summarization, TokenUsage};
use baton_store::{DailyUsage, Durability, NewSummary, StoredSummary, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::material::{Gathered, gather};
use super::work::{provenance, usage_of};
use crate::context::Context;
use crate::operation::{Effect, Operation, RequestFormat};

/// What a session without observations came to.
const NOTHING: &str = "No observations captured.";

/// Sums a session up.
#[derive(Debug)]
pub struct SummarizeSession;

/// The session to summarize.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SummarizeSessionParams {
    /// Session id.
    pub session_id: SessionId,
    /// End the session after summarizing it. Defaults to true.
    #[serde(default)]
    pub close: Option<bool>,
}

/// Summary of a session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummarizeSessionOutput {
    /// Session id.
    pub session_id: SessionId,
    /// What was accomplished.
    pub summary: String,
    /// Tokens used for this summary, prompt and response; 0 without a model.
    #[schemars(with = "i64")]
    pub tokens: u64,
    /// Most important changed files.
    pub key_files: Vec<String>,
    /// Significant technical decisions.
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

impl Operation for SummarizeSession {
    const NAME: &'static str = "session.summarize";
    const SUMMARY: &'static str = "Summarize a session from its observations, store the summary and end the \
        session. Set close to false to keep the session active.";
    const EFFECT: Effect = Effect::Write;
    const REQUEST: RequestFormat = RequestFormat { is_slow: true, ..RequestFormat::STRICT };
    type Params = SummarizeSessionParams;
    type Input = (SummarizeSessionParams, Option<SummedUp>);
    type Output = SummarizeSessionOutput;

    fn prepare(context: &Context<'_>, params: Self::Params) -> Result<Self::Input, Fault> {
        let id = params.session_id;
        let Some(store) = context.store else {
            return Err(Fault::new(ErrorCode::Internal, "a summary needs the store"));
        };
        let known = store.read::<_, Fault, _>(move |tx| Ok(tx.session(id)?)).wait()?;
        // A caller that may not see the session learns nothing about it, and no model is asked.
        let Some(_) = known.filter(|session| context.actor.reaches(&session.tuple.venture)) else {
            return Ok((params, None));
        };
        let day = context.now.day();
        loop {
            let day = day.clone();
            let read = move |tx: &mut dyn Tx| Ok((gather(tx, id)?, tx.spent_on(&day)?.tokens));
            let (mut gathered, tokens_today) = store.read::<_, Fault, _>(read).wait()?;
            let made = sum_up(context, &mut gathered, tokens_today)?;
            if !gathered.more {
                return Ok((params, Some(made)));
            }
            // A long session is summarized in steps, each based on the one before.
            store.write_blocking::<_, Fault, _>(Durability::Full, move |tx| {
                made.spent.iter().try_for_each(|usage| tx.add_usage(usage))?;
                Ok(tx.keep_summary(id, &made.new, None)?)
            })?;
        }
    }

    fn run(
        context: &Context<'_>,
        tx: &mut dyn Tx,
        (params, made): &Self::Input,
    ) -> Result<Self::Output, Fault> {
        let mut session = context.lock_session(tx, params.session_id)?;
        let Some(made) = made else {
            return Err(Fault::new(ErrorCode::Internal, "the summary was not made ready"));
        };
        made.spent.iter().try_for_each(|usage| tx.add_usage(usage))?;
        let stored = keep(context, tx, session.id, made)?;
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
            waiting: made.waiting,
            provenance,
            session_status: session.status,
        })
    }
}

/// A summary that was made.
#[derive(Debug, Clone)]
pub struct SummedUp {
    new: NewSummary,
    /// What models counted for it, or in vain.
    spent: Vec<DailyUsage>,
    /// How many tool uses of the session still wait to be understood.
    waiting: u64,
}

/// Keeps a summary and gives what is then stored.
fn keep(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: SessionId,
    made: &SummedUp,
) -> Result<StoredSummary, Fault> {
    let mut kept = made.new.clone();
    let is_too_early = made.waiting > 0 && kept.stored.observations == 0;
    if !is_too_early && !kept.says_nothing_new() && !tx.keep_summary(session, &kept, None)? {
        // Somebody else made one meanwhile: what is new beside that is added without asking a model once more.
        let gathered = gather(tx, session)?;
        kept = without_model(context, &gathered)?;
        tx.keep_summary(session, &kept, None)?;
    }
    if made.waiting > 0 {
        // What still waits is summed up when it is understood.
        tx.request_summary(session, context.now, context.now)?;
    }
    Ok(kept.stored)
}

/// Sums up what was gathered without asking anybody.
fn without_model(context: &Context<'_>, gathered: &Gathered) -> Result<NewSummary, Fault> {
    let offline = &context.settings.observations.offline;
    // A summary by a model says more than one without.
    let by_model = gathered.stored.as_ref().filter(|stored| stored.provenance.model.is_some());
    if let (true, Some(stored)) = (gathered.is_covered(), by_model) {
        let provenance = Provenance { tokens_in: 0, tokens_out: 0, ..stored.provenance.clone() };
        return Ok(gathered.summed_up(stored.summary.clone(), provenance, context.now));
    }
    if gathered.is_empty() {
        let summary = match gathered.waiting.len() {
            0 => NOTHING.to_owned(),
            1 => "Nothing is understood yet: one tool use waits.".to_owned(),
            waiting => format!("Nothing is understood yet: {waiting} tool uses wait."),
        };
        let nothing = SessionSummary { summary, ..SessionSummary::default() };
        let nobody = provenance(offline.as_ref(), "none", TokenUsage::default());
        return Ok(gathered.summed_up(nothing, nobody, context.now));
    }
    let Summarization { summary, usage, prompt_version } =
        offline.summarize(&gathered.session).map_err(|error| {
            Fault::new(ErrorCode::Internal, "the session could not be summed up").caused_by(error)
        })?;
    Ok(gathered.summed_up(summary, provenance(offline.as_ref(), prompt_version, usage), context.now))
}

/// Sums up what was gathered: by the model, or without one where there is none, it may not be asked any more today or it
/// cannot be asked now.
fn sum_up(context: &Context<'_>, gathered: &mut Gathered, tokens_today: u64) -> Result<SummedUp, Fault> {
    let waiting = gathered.waiting.len() as u64;
    let settings = &context.settings.observations;
    let compressor = settings.compressor_within_budget(|| Ok(tokens_today))?;
    let mut spent = Vec::new();
    if !gathered.material.digests.is_empty() && compressor.model().is_some() {
        gathered.fit_prompt();
        let mut count =
            |provenance: &Provenance| spent.extend(usage_of(provenance, context.now, settings.price));
        match compressor.summarize(&gathered.material) {
            Ok(Summarization { summary, usage, prompt_version }) => {
                let provenance = provenance(compressor.as_ref(), prompt_version, usage);
                count(&provenance);
                let new = gathered.summed_up(summary, provenance, context.now);
                return Ok(SummedUp { new, spent, waiting });
            }
            Err(error) => {
                tracing::warn!(%error, "the model gave no summary; making one without it");
                if let CompressError::Unusable { usage, .. } = error {
                    count(&provenance(compressor.as_ref(), "", usage));
                }
            }
        }
    }
    Ok(SummedUp { new: without_model(context, gathered)?, spent, waiting })
}
