//! Helpers for saving and loading contexts.

use baton_core::checkpoint::{Checkpoint, Workflow};
use baton_core::{CheckpointId, canonicalize};
use baton_testkit::contract::fixture::Dice;
use baton_testkit::contract::read;
use serde_json::{Map, Value, json};

use crate::stage::{Stage, ok};

impl Stage {
    /// Saves a context to a workflow and returns the output.
    #[track_caller]
    pub(crate) fn save(&self, workflow: &str, context: &Value) -> Value {
        ok(&self.call("checkpoint.save", json!({ "sessionId": workflow, "context": context })))
    }

    /// Saves a context under a name and returns the id of the checkpoint.
    #[track_caller]
    pub(crate) fn save_named(&self, workflow: &str, name: &str, context: &Value) -> String {
        let params = json!({ "sessionId": workflow, "context": context, "metadata": { "name": name } });
        id(&ok(&self.call("checkpoint.save", params)))
    }

    /// Loads a checkpoint and returns its context.
    #[track_caller]
    pub(crate) fn load(&self, checkpoint: &str) -> Value {
        ok(&self.call("checkpoint.load", json!({ "checkpointId": checkpoint })))["context"].clone()
    }

    /// Loads the latest checkpoint of a workflow and returns the output.
    #[track_caller]
    pub(crate) fn latest(&self, workflow: &str) -> Value {
        ok(&self.call("checkpoint.load", json!({ "sessionId": workflow })))
    }

    /// Lists the ids of the checkpoints of a workflow, latest first.
    #[track_caller]
    pub(crate) fn ids(&self, workflow: &str) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            let window = json!({ "sessionId": workflow, "limit": 100, "offset": found.len() });
            let listed = ok(&self.call("checkpoint.list", window));
            let listed = listed["checkpoints"].as_array().unwrap();
            found.extend(listed.iter().map(id));
            if listed.len() < 100 {
                return found;
            }
        }
    }

    /// Returns the stored workflow of the configured venture.
    #[track_caller]
    pub(crate) fn workflow(&self, id: &str) -> Workflow {
        let (venture, id) = ("local".parse().unwrap(), id.parse().unwrap());
        read(&self.store, move |tx| tx.workflow(&venture, &id)).unwrap()
    }

    /// Returns the stored checkpoint, if its row exists.
    pub(crate) fn row(&self, id: &str) -> Option<Checkpoint> {
        let id: CheckpointId = id.parse().unwrap();
        read(&self.store, move |tx| tx.checkpoint(id))
    }

    /// Checks that the counts of a workflow match its checkpoints.
    #[track_caller]
    pub(crate) fn check_sums(&self, id: &str) {
        let workflow = self.workflow(id);
        let (venture, name) = (workflow.venture.clone(), workflow.id.clone());
        let (listed, bytes) = read(&self.store, move |tx| {
            let listed = tx.checkpoints(&venture, &name, 0, 10_000)?;
            let last = tx.last_place(&venture, &name)?.map_or(0, |last| last.series + 1);
            let mut bytes = 0;
            for number in 0..last {
                bytes += tx.series(&venture, &name, number)?.iter().map(|one| one.stored_bytes).sum::<u64>();
            }
            Ok((listed, bytes))
        });
        let unnamed = listed.iter().filter(|one| one.labels.name.is_none()).count() as u64;
        let counted = (workflow.checkpoint_count, workflow.unnamed_count, workflow.stored_bytes);
        assert_eq!(counted, (listed.len() as u64, unnamed, bytes));
    }
}

/// Returns the checkpoint id of an output.
#[track_caller]
pub(crate) fn id(answer: &Value) -> String {
    answer["checkpointId"].as_str().unwrap().to_owned()
}

/// Returns the canonical text of a context, for comparison.
pub(crate) fn text(context: &Value) -> String {
    canonicalize(context).unwrap()
}

/// Returns random text that compresses like prose.
pub(crate) fn prose(dice: &mut Dice, bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 12);
    while text.len() < bytes {
        for _ in 0..2 + dice.below(8) {
            text.push(char::from(b'a' + u8::try_from(dice.below(26)).unwrap()));
        }
        text.push(' ');
    }
    text.truncate(bytes);
    text
}

/// Returns a context of at least this size, with about a kilobyte per key.
pub(crate) fn context(dice: &mut Dice, bytes: usize) -> Value {
    let keys = bytes.div_ceil(1_000);
    let members = (0..keys).map(|number| (format!("key-{number}"), prose(dice, bytes / keys).into()));
    Value::Object(members.collect::<Map<String, Value>>())
}

/// Changes a few words of one value.
pub(crate) fn edit(dice: &mut Dice, context: &mut Value) {
    let members = context.as_object_mut().unwrap();
    let number = usize::try_from(dice.below(members.len() as u64)).unwrap();
    let value = members.values_mut().nth(number).unwrap();
    *value = format!("{} {}", prose(dice, 12), value.as_str().unwrap_or_default()).into();
}
