//! `observation.list`: what tool uses taught, newest first.

use baton_core::{Fault, Repo, SessionId, Venture, VentureScope};
use baton_store::{ObservationFilter, Page, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::view::ObservationView;
use crate::operation::{Context, Effect, Operation, store_fault};
use crate::page::{Pagination, cursor_of, limit_of, paginate};

const LIST: &str = "observations";
const DEFAULT_LIMIT: u32 = 50;

/// Lists observations.
#[derive(Debug)]
pub struct ListObservations;

/// Which observations.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListObservationsParams {
    /// Of this undertaking; of all that the caller reaches when left out.
    #[serde(default)]
    pub venture: Option<Venture>,
    /// In this repository.
    #[serde(default)]
    pub repo: Option<Repo>,
    /// Of this session.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Of this tool: `Bash`, `Edit`.
    #[serde(default)]
    pub tool: Option<String>,
    /// That speak of this file: its path, or the end of it (`store.rs`, `src/store.rs`).
    #[serde(default)]
    pub file: Option<String>,
    /// How many at the most: 1 to 200, 50 when left out.
    #[serde(default)]
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[serde(default)]
    pub cursor: Option<String>,
}

/// A page of observations, newest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListObservationsOutput {
    /// The observations.
    pub observations: Vec<ObservationView>,
    /// Where the list goes on.
    pub pagination: Pagination,
}

impl Operation for ListObservations {
    const NAME: &'static str = "observation.list";
    const SUMMARY: &'static str =
        "List what tool uses taught, newest first; by session, repository, file or tool.";
    const EFFECT: Effect = Effect::Read;
    type Params = ListObservationsParams;
    type Output = ListObservationsOutput;

    fn validate(params: &Self::Params) -> Result<(), Fault> {
        limit_of(params.limit, DEFAULT_LIMIT)?;
        cursor_of(params.cursor.as_deref(), LIST)?;
        Ok(())
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault> {
        let limit = limit_of(params.limit, DEFAULT_LIMIT)?;
        let filter = ObservationFilter {
            ventures: ventures_of(context, params.venture.as_ref())?,
            repo: params.repo.clone(),
            session_id: params.session_id,
            tool_name: params.tool.clone(),
            file: params.file.as_ref().map(|file| file.trim_start_matches("./").to_owned()),
        };
        let page = Page { before: cursor_of(params.cursor.as_deref(), LIST)?, limit: limit + 1 };
        let mut found = tx.observations(&filter, page).map_err(store_fault)?;
        let pagination = paginate(&mut found, limit, LIST, |observation| observation.id.ulid());
        Ok(ListObservationsOutput { observations: found.into_iter().map(Into::into).collect(), pagination })
    }
}

/// The ventures that a list is about: the one that was asked for, or all that the caller reaches.
fn ventures_of(context: &Context<'_>, asked: Option<&Venture>) -> Result<Option<Vec<Venture>>, Fault> {
    match asked {
        Some(venture) => {
            context.actor.require_venture(venture)?;
            Ok(Some(vec![venture.clone()]))
        }
        None => Ok(match &context.actor.ventures {
            VentureScope::All => None,
            VentureScope::Only(ventures) => Some(ventures.clone()),
        }),
    }
}
