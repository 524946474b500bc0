//! Model test: after any sequence of saves and deletions, the listed checkpoints are the expected ones and round trip.

use baton_testkit::contract::fixture::Dice;
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::saving::{context, edit, id, text};
use crate::stage::{Stage, ok, refused};

const QUOTA: usize = 24;

#[derive(Debug, Clone)]
enum Step {
    /// Saves the context with a small change.
    Edit,
    /// Saves another context.
    Rewrite { bytes: usize },
    /// Saves the same context under a name.
    Name,
    /// Saves the same context again.
    Repeat,
    /// Deletes a listed checkpoint.
    Delete(prop::sample::Index),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => Just(Step::Edit),
        2 => prop_oneof![0..2_000_usize, 2_000..12_000_usize].prop_map(|bytes| Step::Rewrite { bytes }),
        1 => Just(Step::Name),
        1 => Just(Step::Repeat),
        3 => any::<prop::sample::Index>().prop_map(Step::Delete),
    ]
}

/// Expected checkpoints, oldest first.
#[derive(Default)]
struct Model(Vec<Expected>);

struct Expected {
    id: String,
    text: String,
    name: Option<String>,
}

impl Model {
    /// Removes the oldest unnamed checkpoint if the count limit is reached.
    fn enforce_count_limit(&mut self) {
        if self.0.len() >= QUOTA {
            let oldest = self.0.iter().position(|checkpoint| checkpoint.name.is_none()).unwrap();
            self.0.remove(oldest);
        }
    }
}

fn play(stage: &Stage, seed: u64, steps: &[Step]) {
    let mut dice = Dice::new(seed);
    let mut model = Model::default();
    let mut current = context(&mut dice, 8_000);
    for (number, step) in steps.iter().enumerate() {
        let mut name = None;
        match step {
            Step::Edit => edit(&mut dice, &mut current),
            Step::Rewrite { bytes } => current = context(&mut dice, bytes + 1),
            // Leave enough unnamed checkpoints to delete.
            Step::Name
                if model.0.iter().filter(|checkpoint| checkpoint.name.is_some()).count() < QUOTA / 2 =>
            {
                name = Some(format!("name {number}"));
            }
            Step::Name | Step::Repeat => {}
            Step::Delete(which) => {
                if !model.0.is_empty() {
                    let gone = model.0.remove(which.index(model.0.len()));
                    ok(&stage.call("checkpoint.delete", json!({ "checkpointId": gone.id })));
                    refused(
                        &stage.call("checkpoint.load", json!({ "checkpointId": gone.id })),
                        "checkpoint_not_found",
                    );
                }
                continue;
            }
        }
        let params = json!({ "sessionId": "w", "context": current, "metadata": { "name": name } });
        let saved = ok(&stage.call("checkpoint.save", params));
        let text = text(&current);
        let is_same = model.0.last().is_some_and(|last| (&last.text, &last.name) == (&text, &name));
        assert_eq!(saved["status"], if is_same { "SKIPPED_UNCHANGED" } else { "SAVED" }, "step {number}");
        if !is_same {
            model.enforce_count_limit();
            model.0.push(Expected { id: id(&saved), text, name });
        }
    }
    compare(stage, &model);
}

fn compare(stage: &Stage, model: &Model) {
    let expected: Vec<&String> = model.0.iter().rev().map(|checkpoint| &checkpoint.id).collect();
    let is_known = model.0.is_empty()
        && ok(&stage.call("checkpoint.workflows", json!({})))["workflows"] == Value::Array(vec![]);
    if !is_known {
        assert_eq!(stage.ids("w").iter().collect::<Vec<_>>(), expected);
        stage.check_sums("w");
    }
    for checkpoint in &model.0 {
        assert_eq!(text(&stage.load(&checkpoint.id)), checkpoint.text);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 6, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn listed_checkpoints_round_trip(seed: u64, steps in prop::collection::vec(step(), 1..80)) {
        for stage in Stage::each_with(|settings| settings.checkpoints.max_checkpoints = QUOTA as u64) {
            play(&stage, seed, &steps);
        }
    }
}
