//! Workers that died, are slow or cannot store: their items are processed by others, exactly once.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use baton_core::observation::{QueueStatus, SessionMaterial};
use baton_llm::{CompressError, Compression, Compressor, Offline, Summarization};
use baton_observation::ToolUse;
use baton_testkit::model_server::Behaviour;
use crossbeam_channel::{Receiver, Sender, bounded};

use crate::stage::{ATTEMPTS, LEASE, SECOND, Stage, done, failed, worker};

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn items_of_a_dead_worker_are_processed_after_the_lease() {
    for stage in Stage::each() {
        let items = [1, 2, 3].map(|number| stage.capture(number));
        let gone = stage.beside(|_| {}).work_queue();
        assert_eq!(gone.claim(2).unwrap().len(), 2);
        assert_eq!(stage.step(), done(1), "unclaimed items are processed immediately");
        assert_eq!(stage.item(items[0]).status, QueueStatus::Processing);
        assert_eq!(stage.step_after(LEASE - MILLISECOND), done(0), "the items are still claimed");
        assert_eq!(stage.step_after(MILLISECOND), done(2));
        for (number, id) in (1..).zip(items) {
            assert_eq!(stage.observation(id).compressed.title, format!("Compressed item-{number}"));
        }
        assert_eq!(items.map(|id| stage.item(id).attempts), [2, 2, 1]);
    }
}

#[test]
fn item_that_kills_workers_fails_and_keeps_its_raw_output() {
    for stage in Stage::each() {
        let deadly = stage.capture(1);
        for attempt in 1..=i64::from(ATTEMPTS) {
            let gone = stage.beside(|_| {}).work_queue();
            let claimed = gone.claim(10).unwrap();
            assert_eq!(claimed.iter().map(|item| item.attempts()).collect::<Vec<_>>(), [attempt]);
            stage.clock.advance(LEASE);
        }
        let harmless = stage.capture(2);
        assert_eq!(stage.step(), done(1));
        stage.observation(harmless);
        let item = stage.item(deadly);
        assert_eq!(item.status, QueueStatus::Error);
        assert!(item.last_error.as_ref().unwrap().contains("workers died"), "{item:?}");
        assert!(stage.raw(deadly).contains("what item-1 said"));
        assert_eq!(stage.model.received(), 1, "the item is not processed again");

        assert_eq!(stage.ok("queue.retry", serde_json::json!({}))["retried"], 1);
        assert_eq!(stage.step(), done(1));
        stage.observation(deadly);
    }
}

/// A compressor that signals when it is called and waits for permission to answer.
struct Gate {
    asked: Sender<()>,
    may_answer: Mutex<Receiver<()>>,
    panics: bool,
}

impl Compressor for Gate {
    fn name(&self) -> &'static str {
        "anthropic"
    }

    fn model(&self) -> Option<&str> {
        Some("slow-model")
    }

    fn compress(&self, tool_use: &ToolUse) -> Result<Compression, CompressError> {
        assert!(!self.panics, "requested by the test");
        self.asked.send(()).unwrap();
        self.may_answer.lock().unwrap().recv().unwrap();
        Offline.compress(tool_use)
    }

    fn summarize(&self, material: &SessionMaterial) -> Result<Summarization, CompressError> {
        Offline.summarize(material)
    }
}

#[test]
fn result_after_a_lost_lease_is_discarded() {
    for stage in Stage::each() {
        let id = stage.capture(1);
        let (asked, was_asked) = bounded(1);
        let (answer, may_answer) = bounded(1);
        let gate: Arc<dyn Compressor> =
            Arc::new(Gate { asked, may_answer: Mutex::new(may_answer), panics: false });
        let slow = worker(&stage.beside(|settings| settings.compressor = gate.clone()));
        std::thread::scope(|scope| {
            let slow = scope.spawn(|| slow.run_once().unwrap());
            was_asked.recv().unwrap();
            assert_eq!(stage.step(), done(0), "the item is claimed");
            assert_eq!(stage.step_after(LEASE), done(1), "its lease expired");
            answer.send(()).unwrap();
            assert_eq!(slow.join().unwrap(), done(0), "its result is discarded");
        });
        let observation = stage.observation(id);
        assert_eq!(observation.compressed.title, "Compressed item-1", "the result of the last claim");
        assert_ne!(observation.provenance.model.as_deref(), Some("slow-model"));
        let item = stage.item(id);
        assert_eq!((item.status, item.attempts), (QueueStatus::Done, 2));
        assert_eq!(stage.observations().len(), 1);
    }
}

#[test]
fn lost_lease_neither_releases_nor_fails_the_item() {
    for stage in Stage::each() {
        let id = stage.capture(1);
        let slow = stage.beside(|_| {}).work_queue();
        let claimed = slow.claim(1).unwrap().remove(0);
        assert_eq!(stage.step_after(LEASE), done(1));
        let now = stage.clock_now();
        let release = baton_store::QueueRelease { run_at: now, counts: false, failed_at: None, error: None };
        assert!(!slow.release(&claimed, release).unwrap());
        assert!(!slow.fail(&claimed, "late", baton_llm::TokenUsage::default(), &Offline).unwrap());
        let item = stage.item(id);
        assert_eq!((item.status, item.last_error), (QueueStatus::Done, None));
        assert_eq!(stage.step_after(2 * LEASE), done(0));
        stage.observation(id);
    }
}

#[test]
fn panicking_compressor_fails_its_item_but_not_the_worker() {
    for stage in Stage::each() {
        let id = stage.capture(1);
        let (asked, _) = bounded(1);
        let (_, may_answer) = bounded(1);
        let gate: Arc<dyn Compressor> =
            Arc::new(Gate { asked, may_answer: Mutex::new(may_answer), panics: true });
        let clumsy = worker(&stage.beside(|settings| settings.compressor = gate.clone()));
        assert_eq!(clumsy.run_once().unwrap(), failed(1));
        assert_eq!(stage.item(id).status, QueueStatus::Error);
        assert!(stage.raw(id).contains("item-1"));
        stage.capture(2);
        assert_eq!(clumsy.run_once().unwrap(), failed(1), "the worker continues");
    }
}

#[test]
fn unstored_result_stays_in_the_queue_and_is_stored_later() {
    for stage in Stage::each() {
        let id = stage.capture(1);
        stage.store.place().execute(
            "CREATE TRIGGER no_room BEFORE INSERT ON observations BEGIN SELECT RAISE(ABORT, 'no room'); END",
            "CREATE FUNCTION no_room() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'no room' USING ERRCODE = '53100'; END $$; \
             CREATE TRIGGER no_room BEFORE INSERT ON observations EXECUTE FUNCTION no_room()",
        );
        assert!(stage.worker.run_once().is_err());
        assert_eq!(stage.observations(), []);
        let item = stage.item(id);
        assert_eq!(
            (item.status, item.settled_at),
            (QueueStatus::Processing, None),
            "the transaction was rolled back"
        );
        assert_eq!(stage.usage(), [], "no usage was stored");
        stage
            .store
            .place()
            .execute("DROP TRIGGER no_room", "DROP TRIGGER no_room ON observations; DROP FUNCTION no_room()");
        assert_eq!(stage.step_after(LEASE), done(1));
        stage.observation(id);
    }
}

#[test]
fn two_workers_process_each_item_once() {
    for stage in Stage::each() {
        let items: Vec<i64> = (1..=40).map(|number| stage.capture(number)).collect();
        stage.model.behave(Behaviour::SlowUpTo(Duration::from_millis(3)));
        let other = worker(&stage.beside(|_| {}));
        let shares = std::thread::scope(|scope| {
            let other = scope.spawn(|| other.run_once().unwrap());
            [stage.step().done, other.join().unwrap().done]
        });
        assert_eq!(shares.iter().sum::<u64>(), 40, "{shares:?}");
        for id in items {
            assert_eq!(stage.item(id).attempts, 1);
            stage.observation(id);
        }
        assert_eq!(stage.model.received(), 40);
        assert_eq!(stage.step_after(LEASE + SECOND), done(0));
    }
}
