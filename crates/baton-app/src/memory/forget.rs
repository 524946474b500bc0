//! `memory.forget`: deletes one item, or everything of a session, a repository or a period.

use std::collections::BTreeSet;

use baton_core::observation::TurnId;
use baton_core::recall::ItemKind;
use baton_core::{ErrorCode, NoteId, ObservationId, Repo, SessionId, Since, Venture};
use baton_store::ForgetFilter;

use super::mark::{is_quoted, readable_item, remove_mark};
use crate::checkpoint::delete_checkpoint;
use crate::prelude::*;
use crate::recall::{Item, Loader, no_item};
use crate::summary::renew_session_texts;

/// Maximum number of items per call, which keeps transactions short.
const BATCH: u32 = 500;
/// Maximum number of tool uses of a turn that are deleted with it.
const MAX_TURN_OBSERVATIONS: u32 = 10_000;

/// Kinds that are deleted, in this order: texts that quote other items last.
const KINDS: [ItemKind; 6] = [
    ItemKind::Turn,
    ItemKind::Observation,
    ItemKind::Note,
    ItemKind::Handoff,
    ItemKind::Checkpoint,
    ItemKind::Summary,
];

/// What to delete: one item, or everything that matches all filters.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ForgetParams")]
pub struct Forget {
    /// Id of the item to delete, for example `turn_42`. Cannot be combined with filters.
    pub id: Option<String>,
    /// Delete everything recorded in this session (`sess_…`).
    #[serde(default, alias = "session_id")]
    pub session: Option<SessionId>,
    /// Delete everything recorded in this repository, as owner/name, for example acme/webshop.
    pub repo: Option<Repo>,
    /// Delete everything recorded before this time: a timestamp, or a duration before now such as `90d`.
    pub before: Option<Since>,
    /// Venture of the filters; ignored with an id. Defaults to all ventures you have access to.
    pub venture: Option<Venture>,
    /// Count only, delete nothing. Defaults to false.
    #[serde(default)]
    pub dry_run: bool,
}

/// What was deleted, or would be.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgetOutput {
    /// True for a dry run, which deletes nothing.
    pub dry_run: bool,
    /// Number of deleted items of each kind; with `dry_run`, of items that would be deleted.
    pub forgotten: ForgottenItems,
    /// True if more items match. Call again to delete them.
    pub more: bool,
}

/// Numbers of items by kind.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ForgottenItems {
    /// Number of turns.
    #[schemars(with = "i64")]
    pub turns: u64,
    /// Number of observations.
    #[schemars(with = "i64")]
    pub observations: u64,
    /// Number of notes.
    #[schemars(with = "i64")]
    pub notes: u64,
    /// Number of handoffs.
    #[schemars(with = "i64")]
    pub handoffs: u64,
    /// Number of checkpoints.
    #[schemars(with = "i64")]
    pub checkpoints: u64,
    /// Number of deleted summaries. A summary that was recreated from the remaining records does not count.
    #[schemars(with = "i64")]
    pub summaries: u64,
    /// Number of captured tool uses with raw input and output.
    #[schemars(with = "i64")]
    pub raw_outputs: u64,
}

impl ForgottenItems {
    const fn add(&mut self, kind: ItemKind, count: u64) {
        match kind {
            ItemKind::Turn => self.turns += count,
            ItemKind::Observation => self.observations += count,
            ItemKind::Handoff => self.handoffs += count,
            ItemKind::Checkpoint => self.checkpoints += count,
            ItemKind::Summary => self.summaries += count,
            ItemKind::Note => self.notes += count,
            // Tasks are not deleted.
            ItemKind::Task => {}
        }
    }
}

impl Operation<OnStore> for Forget {
    const NAME: &'static str = "memory.forget";
    const SUMMARY: &'static str = "Delete an item with its raw output, or everything of a session, a repository or a \
        period. Summaries and automatic handoffs that quote deleted items are recreated. Cannot be undone.";
    const EFFECT: Effect = Effect::Delete;
    const FREES_SPACE: bool = true;
    type Output = ForgetOutput;
    params_as_input!(|params| {
        let has_filter = params.session.is_some() || params.repo.is_some() || params.before.is_some();
        if params.id.is_some() != has_filter {
            return Ok(());
        }
        let message = "cannot forget: give either an id, or a session, a repo or a time (before)";
        Err(Fault::new(ErrorCode::InvalidRequest, message).hint("add dry_run to see what would be deleted"))
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let output = ForgetOutput { dry_run: params.dry_run, ..ForgetOutput::default() };
        let mut forgetting = Forgetting { context, output, sessions: BTreeSet::new() };
        match &params.id {
            Some(id) => {
                let item = readable_item(context, tx, id)?;
                forgetting.delete_item(tx, item)?;
            }
            None => {
                tx.allow_long_statements()?;
                if let Some(session) = params.session {
                    context.session(tx, session)?;
                }
                let filter = ForgetFilter {
                    ventures: context.readable_ventures(params.venture.as_ref())?,
                    repo: params.repo.clone(),
                    session_id: params.session,
                    before: params.before.map(|before| before.resolve(context.now)),
                };
                if params.dry_run {
                    forgetting.count_matching(tx, &filter)?;
                } else {
                    forgetting.delete_matching(tx, &filter)?;
                }
            }
        }
        if !params.dry_run {
            for session in std::mem::take(&mut forgetting.sessions) {
                renew_session_texts(context, tx, session)?;
            }
        }
        Ok(forgetting.output)
    }
}

/// State of one call.
struct Forgetting<'a> {
    context: &'a Context<'a>,
    output: ForgetOutput,
    /// Sessions whose summary and automatic handoffs may quote a deleted item.
    sessions: BTreeSet<SessionId>,
}

impl Forgetting<'_> {
    fn count_matching(&mut self, tx: &mut dyn Tx, filter: &ForgetFilter) -> Result<(), Fault> {
        for kind in KINDS {
            self.output.forgotten.add(kind, tx.count_forgettable(kind, filter)?);
        }
        self.output.forgotten.raw_outputs = tx.count_raw(filter)?;
        Ok(())
    }

    /// Deletes up to a batch of the items that match.
    fn delete_matching(&mut self, tx: &mut dyn Tx, filter: &ForgetFilter) -> Result<(), Fault> {
        let purged = self.context.effects.purged(tx.forget_raw(filter, BATCH)?);
        let mut left = BATCH.saturating_sub(u32::try_from(purged).unwrap_or(BATCH));
        self.output.forgotten.raw_outputs += purged;
        for kind in KINDS {
            let mut loader = Loader::default();
            for id in tx.forgettable(kind, filter, left)? {
                left -= 1;
                let item = match kind {
                    // A damaged handoff can be deleted by its id.
                    ItemKind::Handoff => loader.load_intact(tx, kind, &id)?,
                    _ => loader.load(tx, kind, &id)?,
                };
                match item {
                    Some(item) => self.delete_item(tx, item)?,
                    None => self.delete_unsearchable(tx, kind, &id)?,
                }
            }
        }
        self.output.more = left == 0;
        if !self.output.more {
            tx.forget_file_versions(filter)?;
        }
        Ok(())
    }

    /// Deletes one item. With `dry_run`, only counts it.
    fn delete_item(&mut self, tx: &mut dyn Tx, item: Item) -> Result<(), Fault> {
        self.output.forgotten.add(item.kind, 1);
        if is_quoted(item.kind) || item.kind == ItemKind::Summary {
            self.sessions.extend(item.session_id);
        }
        match item.kind {
            ItemKind::Turn => {
                if let Some(turn) = item.turn {
                    self.delete_turn(tx, turn)?;
                }
            }
            ItemKind::Observation => self.delete_observation(tx, parse(&item.id)?)?,
            ItemKind::Task => {
                return Err(Fault::new(
                    ErrorCode::InvalidRequest,
                    format!("cannot forget {}: the files of a task are in its checkout", item.id),
                )
                .hint("delete its folder below .agent-output in the checkout"));
            }
            _ if self.output.dry_run => {}
            ItemKind::Note => _ = tx.delete_note(parse::<NoteId>(&item.id)?)?,
            ItemKind::Handoff => tx.delete_handoff(parse(&item.id)?)?,
            ItemKind::Summary => tx.delete_summary(parse(&item.id)?)?,
            ItemKind::Checkpoint => {
                let reference = item.id.clone().try_into().map_err(|_| no_item(&item.id))?;
                delete_checkpoint(self.context, tx, &reference)?;
            }
        }
        if !self.output.dry_run {
            self.delete_marks(tx, &item.id)?;
        }
        Ok(())
    }

    /// Deletes the mark of a deleted item. The items that it replaced are no longer superseded.
    fn delete_marks(&self, tx: &mut dyn Tx, id: &str) -> Result<(), Fault> {
        tx.delete_mark(id)?;
        for mark in tx.marks_replaced_by(id)? {
            remove_mark(self.context, tx, &mark.item)?;
        }
        Ok(())
    }

    /// Deletes an item that search does not find, for example a withdrawn handoff.
    fn delete_unsearchable(&mut self, tx: &mut dyn Tx, kind: ItemKind, id: &str) -> Result<(), Fault> {
        match kind {
            ItemKind::Handoff => tx.delete_handoff(parse(id)?)?,
            ItemKind::Turn => tx.delete_turn(parse(id)?)?,
            ItemKind::Summary => tx.delete_summary(parse(id)?)?,
            // Search finds every item of these kinds.
            ItemKind::Observation | ItemKind::Note | ItemKind::Checkpoint | ItemKind::Task => return Ok(()),
        }
        self.output.forgotten.add(kind, 1);
        self.delete_marks(tx, id)
    }

    /// Deletes a turn and the tool uses in it.
    fn delete_turn(&mut self, tx: &mut dyn Tx, id: TurnId) -> Result<(), Fault> {
        let Some(turn) = tx.turn(id)? else { return Ok(()) };
        let until = tx.next_turn(&turn)?.map(|next| next.started_at);
        let observations =
            tx.observations_between(turn.session_id, turn.started_at, until, MAX_TURN_OBSERVATIONS)?;
        for observation in observations {
            self.output.forgotten.observations += 1;
            self.delete_observation(tx, observation.id)?;
        }
        for pending in tx.open_queue_items(turn.session_id, MAX_TURN_OBSERVATIONS)? {
            if pending.created_at >= turn.started_at && until.is_none_or(|until| pending.created_at < until) {
                self.delete_raw_output(tx, pending.id)?;
            }
        }
        if !self.output.dry_run {
            tx.delete_turn(id)?;
        }
        Ok(())
    }

    /// Deletes an observation and its raw output.
    fn delete_observation(&mut self, tx: &mut dyn Tx, id: ObservationId) -> Result<(), Fault> {
        let Some(observation) = tx.observation(id)? else { return Ok(()) };
        self.delete_raw_output(tx, observation.queue_id)?;
        if !self.output.dry_run {
            tx.delete_observations(&[id])?;
            self.delete_marks(tx, &id.to_string())?;
        }
        Ok(())
    }

    fn delete_raw_output(&mut self, tx: &mut dyn Tx, queue_id: i64) -> Result<(), Fault> {
        self.output.forgotten.raw_outputs += if self.output.dry_run {
            u64::from(tx.queue_raw(queue_id)?.is_some())
        } else {
            self.context.effects.purged(tx.forget_queue_item(queue_id)?)
        };
        Ok(())
    }
}

fn parse<T: std::str::FromStr>(id: &str) -> Result<T, Fault> {
    id.parse().map_err(|_| no_item(id))
}
