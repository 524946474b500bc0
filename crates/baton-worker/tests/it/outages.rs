//! Model outages: items stay in the queue, the model is not called in vain, and nothing is lost.

use std::time::Duration;

use baton_core::Timestamp;
use baton_core::observation::QueueStatus;
use baton_testkit::model_server::{Behaviour, UNREACHABLE_URL};

use crate::stage::{ATTEMPTS, MINUTE, NOW, SECOND, Stage, done, failed, released, worker};

const MILLISECOND: Duration = Duration::from_millis(1);

/// Outages, and the shortest and longest pause that each causes.
fn outages() -> Vec<(Behaviour, Duration, Duration)> {
    let (shortest, longest) = (4 * SECOND, 6 * SECOND);
    let mut outages: Vec<_> = [500, 502, 503, 504, 529, 408, 404]
        .map(Behaviour::Status)
        .into_iter()
        .chain([
            Behaviour::ServerError,
            Behaviour::Overloaded,
            Behaviour::Unauthorized,
            Behaviour::Forbidden,
            Behaviour::OutOfCredit,
            Behaviour::RateLimited { retry_after: None },
            Behaviour::RateLimited { retry_after: Some("soon".into()) },
            Behaviour::rate_limited(1),
            Behaviour::CloseConnection,
        ])
        .map(|behaviour| (behaviour, shortest, longest))
        .collect();
    let date = Behaviour::RateLimited { retry_after: Some("Sun, 06 Nov 1994 08:50:07 GMT".into()) };
    outages.push((date, 30 * SECOND, 30 * SECOND));
    outages.push((Behaviour::rate_limited(120), 2 * MINUTE, 2 * MINUTE));
    outages
}

#[test]
fn outage_keeps_items_raw_and_pauses_the_queue() {
    for mut stage in Stage::each() {
        for (behaviour, shortest, longest) in outages() {
            stage.restart();
            stage.model.forget();
            let items = [1, 2, 3].map(|number| stage.capture(number));
            stage.model.behave(behaviour.clone());

            assert_eq!(stage.step(), released(1), "{behaviour:?}");
            let asked = stage.model.received();
            assert_eq!(asked, 1, "{behaviour:?}: no other call is made");
            for (place, id) in items.into_iter().enumerate() {
                let item = stage.item(id);
                assert_eq!((item.status, item.attempts), (QueueStatus::Raw, 0), "{behaviour:?} {item:?}");
                assert_eq!(item.last_error.is_some(), place == 0, "{behaviour:?} {item:?}");
                assert!(stage.raw(id).contains(&format!("item-{}", place + 1)), "{behaviour:?}");
            }
            assert_eq!(stage.step(), done(0), "{behaviour:?}");
            assert_eq!(stage.step_after(shortest - MILLISECOND), done(0), "{behaviour:?}");
            assert_eq!(stage.model.received(), asked, "{behaviour:?}: no call is made during the pause");

            stage.model.behave(Behaviour::Good);
            assert_eq!(stage.step_after(longest - shortest + MILLISECOND), done(3), "{behaviour:?}");
            for id in items {
                assert_eq!(stage.item(id).attempts, 1, "{behaviour:?}");
                assert_eq!(stage.item(id).last_error, None, "{behaviour:?}");
                stage.observation(id);
            }
        }
    }
}

#[test]
fn timeout_is_an_outage() {
    for stage in Stage::each() {
        let items = [1, 2, 3].map(|number| stage.capture(number));
        stage.model.behave(Behaviour::Hang);
        let short = worker(&stage.with_short_timeout());
        assert_eq!(short.run_once().unwrap(), released(1));
        for (place, id) in items.into_iter().enumerate() {
            let item = stage.item(id);
            assert_eq!((item.status, item.attempts), (QueueStatus::Raw, 0), "{item:?}");
            assert_eq!(item.last_error.is_some(), place == 0, "{item:?}");
        }
        assert_eq!(short.run_once().unwrap(), done(0));

        stage.model.behave(Behaviour::Good);
        assert_eq!(stage.step_after(6 * SECOND + MILLISECOND), done(3));
    }
}

#[test]
fn refused_connection_is_an_outage() {
    for stage in Stage::each() {
        let app = stage.beside(|settings| settings.compressor = stage.api.client(UNREACHABLE_URL));
        let id = stage.capture(1);
        let unlucky = worker(&app);
        assert_eq!(unlucky.run_once().unwrap(), released(1));
        assert_eq!((stage.item(id).status, stage.item(id).attempts), (QueueStatus::Raw, 0));
        assert_eq!(unlucky.run_once().unwrap(), done(0));
        // A worker with the right address processes the item as soon as it is due.
        assert_eq!(stage.step_after(6 * SECOND), done(1));
        assert_eq!(stage.item(id).attempts, 1);
    }
}

#[test]
fn pauses_double_from_five_seconds_to_five_minutes() {
    for stage in Stage::each() {
        let id = stage.capture(1);
        stage.model.behave(Behaviour::ServerError);
        for expected in [5, 10, 20, 40, 80, 160, 300, 300, 300] {
            assert_eq!(stage.step(), released(1), "after {expected} s");
            let pause = between(stage.clock_now(), stage.item(id).run_at);
            let expected = expected * SECOND;
            assert!(pause >= expected * 4 / 5, "{pause:?} in place of {expected:?}");
            assert!(pause <= (expected * 6 / 5).min(5 * MINUTE), "{pause:?} in place of {expected:?}");
            assert_eq!(stage.step_after(pause - MILLISECOND), done(0));
            stage.clock.advance(MILLISECOND);
        }
        // A failure after a success is a new outage.
        stage.model.behave(Behaviour::Good);
        assert_eq!(stage.step(), done(1));
        let id = stage.capture(2);
        stage.model.behave(Behaviour::ServerError);
        assert_eq!(stage.step(), released(1));
        assert!(between(stage.clock_now(), stage.item(id).run_at) <= 6 * SECOND);
    }
}

#[test]
fn half_hour_outage_loses_no_item() {
    for mut stage in Stage::each() {
        let mut items: Vec<i64> = (1..=12).map(|number| stage.capture(number)).collect();
        let over = NOW.plus(30 * MINUTE);
        let mut kinds = [
            Behaviour::ServerError,
            Behaviour::CloseConnection,
            Behaviour::RateLimited { retry_after: None },
            Behaviour::Unauthorized,
        ]
        .into_iter()
        .cycle();
        let mut number = 12;
        while stage.clock_now() < over {
            stage.model.behave(kinds.next().unwrap());
            let drained = stage.step();
            assert_eq!((drained.done, drained.failed), (0, 0), "{drained:?}");
            number += 1;
            items.push(stage.capture(number));
            // The worker is restarted once during the outage.
            if number == 20 {
                stage.restart();
            }
            stage.clock.advance(30 * SECOND);
        }
        let stats = stage.stats();
        assert_eq!((stats.raw, stats.processing, stats.error), (items.len() as u64, 0, 0), "{stats:?}");
        let asked = stage.model.received();
        assert!(asked < 30, "{asked} calls during the outage");

        stage.model.behave(Behaviour::Good);
        stage.step_after(6 * MINUTE);
        assert_eq!(stage.stats().done, items.len() as u64);
        for (place, id) in items.into_iter().enumerate() {
            assert_eq!(stage.item(id).attempts, 1);
            assert_eq!(
                stage.observation(id).compressed.title,
                format!("Compressed item-{}", place + 1),
                "each has its own"
            );
        }
    }
}

#[test]
fn item_that_fails_alone_does_not_block_others() {
    for stage in Stage::each() {
        let items = [1, 2, 3, 4].map(|number| stage.capture(number));
        let poison = items[1];
        stage.model.behave(Behaviour::StatusOn(500, "item-2 ".into()));
        // The first failure may be an outage, so all items wait.
        let drained = stage.step();
        assert_eq!((drained.done, drained.released), (1, 1));
        assert_eq!(stage.item(poison).attempts, 0);

        // Other items succeeded since, so the item is the cause: only it waits from now on, and its attempts count.
        for attempt in 1..i64::from(ATTEMPTS) {
            stage.clock.advance(MINUTE);
            let late = stage.capture(10 + u32::try_from(attempt).unwrap());
            let drained = stage.step();
            assert_eq!((drained.released, drained.failed), (1, 0), "attempt {attempt}: {drained:?}");
            assert_eq!(stage.item(late).status, QueueStatus::Done, "attempt {attempt} blocked another item");
            let item = stage.item(poison);
            assert_eq!((item.status, item.attempts), (QueueStatus::Raw, attempt));
            // Other items are processed while it waits.
            stage.clock.advance(SECOND);
            stage.capture(20 + u32::try_from(attempt).unwrap());
            assert_eq!(stage.step(), done(1));
        }
        let drained = stage.step_after(MINUTE);
        assert_eq!(drained, failed(1));

        let item = stage.item(poison);
        assert_eq!((item.status, item.attempts), (QueueStatus::Error, i64::from(ATTEMPTS)));
        assert!(item.last_error.as_ref().unwrap().contains("500"), "{item:?}");
        assert!(stage.raw(poison).contains("item-2 "));
        let stats = stage.stats();
        assert_eq!(
            (stats.done, stats.error, stats.raw),
            (3 + 2 * (u64::from(ATTEMPTS) - 1), 1, 0),
            "{stats:?}"
        );
        let asked_for_it =
            stage.model.requests().iter().filter(|one| one.prompt().contains("item-2 ")).count();
        assert_eq!(asked_for_it, ATTEMPTS as usize + 1);

        // A failed item can be retried once the model can handle it.
        stage.model.behave(Behaviour::Good);
        stage.ok("queue.retry", serde_json::json!({ "id": poison }));
        assert_eq!(stage.step(), done(1));
        stage.observation(poison);
    }
}

#[test]
fn rate_limits_and_rejections_do_not_count_as_attempts() {
    for stage in Stage::each() {
        for status in [429, 529, 401] {
            let unlucky = stage.capture(1);
            stage.model.behave(Behaviour::StatusOn(status, "item-1 ".into()));
            for round in 10..10 + 2 * ATTEMPTS {
                stage.step();
                // Other items succeed in between, every time.
                stage.capture(round);
                stage.step_after(MINUTE);
                let item = stage.item(unlucky);
                assert_eq!((item.status, item.attempts), (QueueStatus::Raw, 0), "{status} in {round}");
                stage.clock.advance(MINUTE);
            }
            stage.finish();
            assert_eq!(stage.item(unlucky).attempts, 1, "{status}");
        }
    }
}

fn between(earlier: Timestamp, later: Timestamp) -> Duration {
    Duration::from_millis(u64::try_from(later.as_millis() - earlier.as_millis()).unwrap())
}
