//! `id.find`: complete ids that start with a text, so that people can type short ids.

use baton_core::{ErrorCode, PartialId};

use crate::page::cut;
use crate::prelude::*;

/// Maximum number of ids in a response.
const MAX_IDS: u32 = 10;

/// Beginning of the ids.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FindIds {
    /// Beginning of an id of a session, handoff, checkpoint, note or observation. Example: `sess_01M7H6`.
    pub prefix: String,
}

/// Ids that start with the text.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct FindIdsOutput {
    /// At most ten ids, oldest first.
    pub ids: Vec<String>,
    /// True if more than ten ids match.
    pub more: bool,
}

impl Operation<OnStore> for FindIds {
    const NAME: &'static str = "id.find";
    const SUMMARY: &'static str = "Find the complete ids that start with a prefix.";
    const EFFECT: Effect = Effect::Read;
    type Input = PartialId;
    type Output = FindIdsOutput;
    erased!();

    fn prepare(_: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        PartialId::parse(&params.prefix).ok_or_else(|| {
            Fault::new(ErrorCode::InvalidRequest, "prefix is not the beginning of an id")
                .hint("use sess_, ho_, ckpt_, note_ or obs_ and 4 to 25 characters of the id")
        })
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, prefix: &Self::Input) -> Result<Self::Output, Fault> {
        let ventures = context.readable_ventures(None)?;
        let mut ids = tx.ids_with_prefix(prefix, ventures.as_deref(), MAX_IDS + 1)?;
        let more = cut(&mut ids, MAX_IDS, |_| ()).is_some();
        Ok(FindIdsOutput { ids, more })
    }
}
