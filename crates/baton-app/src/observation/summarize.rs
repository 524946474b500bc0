//! `session.summarize`: what a session came to, said once more and kept with it.

use baton_core::observation::{Provenance, SessionSummary};
use baton_core::{EndReason, ErrorCode, Fault, SessionId, SessionStatus};
use baton_llm::CompressError;
use baton_store::{DailyUsage, Durability, StoredSummary, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::material::{Gathered, gather};
use super::work::{provenance, usage_of};
use crate::operation::{Context, Effect, Operation, store_fault};
use crate::transact::Failed;

/// What a session without observations came to.
const NOTHING: &str = "No observations captured.";

/// Sums a session up.
#[derive(Debug)]
pub struct SummarizeSession;

/// Which session.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct SummarizeSessionParams {
    /// The session.
    pub session_id: SessionId,
    /// Whether it is over with that; it is when this is left out.
    #[serde(default)]
    pub close: Option<bool>,
    /// What was made of it before the transaction.
    #[serde(skip)]
    pub(crate) made: Option<StoredSummary>,
}

/// What the session came to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummarizeSessionOutput {
    /// The session.
    pub session_id: SessionId,
    /// What was accomplished.
    pub summary: String,
    /// How many tokens the summary cost, prompt and answer; 0 without a model.
    #[schemars(with = "i64")]
    pub tokens: u64,
    /// The most important files that were changed.
    pub key_files: Vec<String>,
    /// Significant technical decisions.
    pub key_decisions: Vec<String>,
    /// How many observations it covers.
    #[schemars(with = "i64")]
    pub observations: u64,
    /// Who made it.
    pub provenance: Provenance,
    /// How the session stands now.
    pub session_status: SessionStatus,
}

impl Operation for SummarizeSession {
    const NAME: &'static str = "session.summarize";
    const SUMMARY: &'static str =
        "Sum up what a session came to, keep that with the session, and close it unless told otherwise.";
    const EFFECT: Effect = Effect::Write;
    const BLOCKS: bool = true;
    type Params = SummarizeSessionParams;
    type Output = SummarizeSessionOutput;

    fn ready(context: &Context<'_>, params: &mut Self::Params) -> Result<(), Fault> {
        let id = params.session_id;
        let Some(store) = context.store else {
            return Err(Fault::new(ErrorCode::Internal, "a summary needs the store"));
        };
        let known = store.read(move |tx| Ok(tx.session(id)?)).wait().map_err(|Failed(fault)| fault)?;
        // Whoever may not see the session learns nothing of it, and no model is asked.
        let Some(_) = known.filter(|session| context.actor.reaches(&session.tuple.venture)) else {
            return Ok(());
        };
        let price = context.settings.observations.price;
        let day = context.now.day();
        loop {
            let day = day.clone();
            let read =
                store.read(move |tx| Ok((gather(tx, id).map_err(Failed)?, tx.spent_on(&day)?.tokens))).wait();
            let (gathered, tokens_today) = read.map_err(|Failed(fault)| fault)?;
            let SummedUp { stored, in_vain } = sum_up(context, &gathered, tokens_today)?;
            if let Some(usage) = in_vain {
                let counted = store.write_blocking(Durability::Full, move |tx| Ok(tx.add_usage(&usage)?));
                counted.map_err(|Failed(fault)| fault)?;
            }
            if !gathered.more {
                params.made = Some(stored);
                return Ok(());
            }
            // A long session is summed up in steps, each on top of the one before.
            let kept = store.write_blocking(Durability::Full, move |tx| {
                usage_of(&stored.provenance, stored.made_at, price)
                    .iter()
                    .try_for_each(|usage| tx.add_usage(usage))?;
                Ok(tx.keep_summary(id, &stored, None)?)
            });
            kept.map_err(|Failed(fault)| fault)?;
        }
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let mut session = context.lock_session(tx, params.session_id)?;
        let Some(made) = &params.made else {
            return Err(Fault::new(ErrorCode::Internal, "the summary was not made ready"));
        };
        if let Some(usage) = usage_of(&made.provenance, context.now, context.settings.observations.price) {
            tx.add_usage(&usage).map_err(store_fault)?;
        }
        tx.keep_summary(session.id, made, None).map_err(store_fault)?;
        if params.close != Some(false) && session.status == SessionStatus::Active {
            session.end(context.now, EndReason::Manual)?;
            tx.update_session(&session).map_err(store_fault)?;
        }
        let StoredSummary { summary, provenance, observations, .. } = made.clone();
        Ok(SummarizeSessionOutput {
            session_id: session.id,
            summary: summary.summary,
            tokens: provenance.tokens_in + provenance.tokens_out,
            key_files: summary.key_files,
            key_decisions: summary.key_decisions,
            observations,
            provenance,
            session_status: session.status,
        })
    }
}

/// A summary, and what a model counted that had no part in it.
struct SummedUp {
    stored: StoredSummary,
    in_vain: Option<DailyUsage>,
}

/// Sums up what was gathered: by the model, or without one where there is none, it may not be asked any more today or it
/// cannot be asked now.
fn sum_up(context: &Context<'_>, gathered: &Gathered, tokens_today: u64) -> Result<SummedUp, Fault> {
    if let (true, Some(stored)) = (gathered.is_covered(), &gathered.stored) {
        let provenance = Provenance { tokens_in: 0, tokens_out: 0, ..stored.provenance.clone() };
        return Ok(SummedUp { stored: StoredSummary { provenance, ..stored.clone() }, in_vain: None });
    }
    let settings = &context.settings.observations;
    let mut compressor = settings.compressor_within_budget(|| Ok(tokens_today))?;
    let mut in_vain = None;
    let made = if gathered.is_empty() {
        compressor = &settings.offline;
        None
    } else {
        match compressor.summarize(&gathered.material) {
            Ok(made) => Some(made),
            Err(error) => {
                tracing::warn!(%error, "the model gave no summary; making one without it");
                if let CompressError::Unusable { usage, .. } = error {
                    in_vain =
                        usage_of(&provenance(compressor.as_ref(), "", usage), context.now, settings.price);
                }
                compressor = &settings.offline;
                Some(compressor.summarize(&gathered.material).map_err(unmade)?)
            }
        }
    };
    let (summary, usage, prompt_version) = match made {
        Some(made) => (made.summary, made.usage, made.prompt_version),
        None => {
            let nothing = SessionSummary { summary: NOTHING.to_owned(), ..SessionSummary::default() };
            (nothing, baton_llm::TokenUsage::default(), "none")
        }
    };
    let stored = StoredSummary {
        made_at: context.now,
        summary,
        observations: gathered.observations,
        through: gathered.through,
        provenance: provenance(compressor.as_ref(), prompt_version, usage),
    };
    Ok(SummedUp { stored, in_vain })
}

fn unmade(error: CompressError) -> Fault {
    Fault::new(ErrorCode::Internal, "the session could not be summed up").caused_by(error)
}
