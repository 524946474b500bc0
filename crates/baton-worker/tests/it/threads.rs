//! The running worker: dispatcher and threads, woken and stopped from outside.

use std::thread::JoinHandle;

use baton_core::observation::QueueStatus;
use baton_testkit::model_server::Behaviour;
use baton_testkit::processes::wait_until;
use baton_worker::{Worker, WorkerHandle};
use serde_json::json;

use crate::stage::{MINUTE, SECOND, Stage, worker, worker_with};

/// A worker on its own threads, stopped on drop.
pub(crate) struct Running {
    handle: WorkerHandle,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    fn on(stage: &Stage) -> Self {
        Self::start(worker(&stage.app))
    }

    fn with_threads(stage: &Stage, threads: usize) -> Self {
        Self::start(worker_with(&stage.app, threads))
    }

    pub(crate) fn start(worker: Worker) -> Self {
        let handle = worker.handle();
        let thread = std::thread::spawn(move || worker.run().unwrap());
        Self { handle, thread: Some(thread) }
    }

    /// Stops the worker; it must not take long.
    #[track_caller]
    pub(crate) fn stop(mut self) {
        self.handle.stop();
        let thread = self.thread.take().unwrap();
        wait_until("the worker ends", || thread.is_finished());
        thread.join().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.handle.stop();
    }
}

#[test]
fn worker_processes_items_when_woken() {
    for stage in Stage::each() {
        let running = Running::on(&stage);
        for round in 1..=3 {
            let first = stage.capture(round * 10);
            let second = stage.capture(round * 10 + 1);
            running.handle.wake();
            wait_until("both are done", || stage.stats().done == u64::from(round) * 2);
            stage.observation(first);
            stage.observation(second);
        }
        stage.hook("stop", json!({}));
        running.handle.wake();
        let session = stage.session();
        wait_until("the session is summed up", || stage.summary(session).is_some());
        running.stop();
    }
}

#[test]
fn pause_applies_to_claimed_items() {
    for stage in Stage::each() {
        let items: Vec<i64> = (1..=6).map(|number| stage.capture(number)).collect();
        stage.model.behave(Behaviour::rate_limited(60));
        let running = Running::on(&stage);
        stage.model.wait_for_requests(1);
        wait_until("everything waits", || stage.stats().raw == 6);
        for id in &items {
            assert_eq!((stage.item(*id).status, stage.item(*id).attempts), (QueueStatus::Raw, 0));
        }
        stage.clock.advance(59 * SECOND);
        running.handle.wake();
        // All threads are finished after the stop.
        running.stop();
        assert_eq!(stage.model.received(), 1, "only one call was made");

        stage.model.behave(Behaviour::Good);
        stage.clock.advance(MINUTE);
        let running = Running::on(&stage);
        wait_until("all are done", || stage.stats().done == 6);
        running.stop();
    }
}

#[test]
fn only_one_job_is_claimed_while_the_model_is_probed() {
    for stage in Stage::each() {
        for number in 1..=3 {
            stage.capture(number);
        }
        stage.model.behave(Behaviour::rate_limited(60));
        let running = Running::with_threads(&stage, 1);
        stage.model.wait_for_requests(1);
        wait_until("everything waits", || stage.stats().raw == 3);
        stage.model.behave(Behaviour::Hang);
        stage.clock.advance(2 * MINUTE);
        running.handle.wake();
        stage.model.wait_for_requests(2);
        // Between two records of activity, the dispatcher tries to claim more.
        for _ in 0..2 {
            stage.clock.advance(SECOND);
            running.handle.wake();
            wait_until("the dispatcher was active", || running.handle.last_activity() == stage.clock_now());
        }
        assert_eq!(stage.stats().processing, 1);
        running.stop();
    }
}

#[test]
fn stop_releases_items_of_a_hanging_model() {
    for stage in Stage::each() {
        let items: Vec<i64> = (1..=6).map(|number| stage.capture(number)).collect();
        stage.model.behave(Behaviour::Hang);
        let running = Running::with_threads(&stage, 1);
        stage.model.wait_for_requests(1);
        running.stop();
        for id in items {
            let item = stage.item(id);
            assert_eq!((item.status, item.attempts, item.last_error), (QueueStatus::Raw, 0, None));
        }
        stage.finish();
    }
}

#[test]
fn hanging_summary_does_not_block_items_and_is_released_on_stop() {
    for stage in Stage::each() {
        stage.capture(1);
        stage.step();
        let session = stage.session();
        stage.hook("stop", json!({}));
        stage.model.forget();
        stage.model.behave(Behaviour::Hang);
        let running = Running::with_threads(&stage, 2);
        stage.model.wait_for_requests(1);
        stage.capture(2);
        running.handle.wake();
        stage.model.wait_for_requests(2);
        running.stop();

        stage.model.behave(Behaviour::Good);
        let drained = stage.step();
        assert_eq!((drained.done, drained.summaries), (1, 1), "the next worker finds both");
        assert_eq!(stage.summary(session).unwrap().observations, 2);
    }
}

#[test]
fn worker_is_idle_without_work_or_pauses() {
    let idle = 30 * MINUTE;
    for stage in Stage::each() {
        let running = Running::on(&stage);
        let is_idle = || running.handle.is_idle(stage.clock_now(), idle);
        stage.clock.advance(idle - SECOND);
        assert!(!is_idle());
        stage.clock.advance(SECOND);
        assert!(is_idle());

        // A request counts as activity.
        running.handle.touch(stage.clock_now());
        assert!(!is_idle());
        // So does work.
        stage.clock.advance(idle);
        assert!(is_idle());
        stage.capture(1);
        running.handle.wake();
        wait_until("it is done", || stage.stats().done == 1);
        wait_until("that is work", || !is_idle());

        // So does waiting, even longer than the idle time.
        stage.model.behave(Behaviour::rate_limited(3_600));
        let id = stage.capture(2);
        running.handle.wake();
        wait_until("it waits again", || stage.item(id).failed_at.is_some());
        stage.clock.advance(idle + 10 * MINUTE);
        running.handle.wake();
        wait_until("it stays", || !is_idle());
        stage.model.behave(Behaviour::Good);
        stage.clock.advance(20 * MINUTE);
        running.handle.wake();
        wait_until("it is done as well", || stage.stats().done == 2);
        running.stop();
    }
}

#[test]
fn worker_waiting_for_an_answer_is_not_idle() {
    for stage in Stage::each() {
        stage.model.behave(Behaviour::Hang);
        stage.capture(1);
        let running = Running::with_threads(&stage, 1);
        stage.model.wait_for_requests(1);
        stage.clock.advance(30 * MINUTE);
        running.handle.wake();
        wait_until("it stays", || !running.handle.is_idle(stage.clock_now(), 30 * MINUTE));
        running.stop();
    }
}
