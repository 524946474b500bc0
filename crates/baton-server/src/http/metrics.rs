//! Counters and timings for `/metrics`, in the Prometheus text format.

use std::time::Duration;

use baton_app::observation::WorkerActivity;
use baton_app::{CachedCounts, StoreCounts};
use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

const BUCKETS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const METADATA: Metadata<'static> = Metadata::new("baton", Level::INFO, None);

/// Recorder of all metrics of a server.
pub(super) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Metrics {
    pub(super) fn new() -> Self {
        // Only an empty list of buckets is rejected.
        let builder = PrometheusBuilder::new().set_buckets(&BUCKETS).unwrap_or_default();
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        Self { recorder, handle }
    }

    /// Counts an exchange and records its duration.
    pub(super) fn record(&self, path: &'static str, status: u16, took: Duration) {
        let endpoint = Label::from_static_parts("endpoint", path);
        let labels = vec![endpoint.clone(), Label::new("status", status.to_string())];
        let count = Key::from_parts("baton_requests_total", labels);
        self.recorder.register_counter(&count, &METADATA).increment(1);
        let time = Key::from_parts("baton_request_duration_seconds", vec![endpoint]);
        self.recorder.register_histogram(&time, &METADATA).record(took.as_secs_f64());
    }

    /// Counts an event that has no endpoint, such as a closed connection.
    pub(super) fn count(&self, name: &'static str, reason: &'static str) {
        let labels = vec![Label::from_static_parts("reason", reason)];
        self.recorder.register_counter(&Key::from_parts(name, labels), &METADATA).increment(1);
    }

    /// Sets a counter whose value is kept elsewhere.
    pub(super) fn set(&self, name: &'static str, value: u64) {
        self.recorder.register_counter(&Key::from_static_name(name), &METADATA).absolute(value);
    }

    /// Sets the counters of store errors, whose values are kept elsewhere.
    pub(super) fn set_store_errors(&self, errors: &[(&'static str, u64)]) {
        for (kind, number) in errors {
            let labels = vec![Label::from_static_parts("kind", kind)];
            let key = Key::from_parts("baton_store_errors_total", labels);
            self.recorder.register_counter(&key, &METADATA).absolute(*number);
        }
    }

    /// Sets the gauges of the workers of this process.
    pub(super) fn set_worker(&self, activity: &WorkerActivity) {
        self.gauge("baton_worker_running", None, f64::from(u8::from(activity.is_running())));
        if let Some(at) = activity.last_at() {
            self.gauge("baton_worker_last_activity_timestamp_seconds", None, at.as_millis() as f64 / 1e3);
        }
    }

    /// Sets the gauges of stored rows.
    pub(super) fn set_store_counts(&self, cached: &CachedCounts) {
        let CachedCounts { counts: StoreCounts { sessions, queue, idempotency_keys, blobs }, age } = cached;
        for (status, number) in
            [("active", sessions.active), ("ended", sessions.ended), ("abandoned", sessions.abandoned)]
        {
            self.gauge("baton_sessions", Some(("status", status)), number as f64);
        }
        for (state, number) in [
            ("raw", queue.raw),
            ("processing", queue.processing),
            ("done", queue.done),
            ("error", queue.error),
        ] {
            self.gauge("baton_queue_items", Some(("state", state)), number as f64);
        }
        self.gauge("baton_idempotency_keys", None, *idempotency_keys as f64);
        if let Some(blobs) = blobs {
            self.gauge("baton_blobs", None, blobs.count as f64);
            self.gauge("baton_blob_bytes", None, blobs.size_bytes as f64);
        }
        self.gauge("baton_store_counts_age_seconds", None, age.as_secs_f64());
    }

    fn gauge(&self, name: &'static str, label: Option<(&'static str, &'static str)>, value: f64) {
        let labels = label.map(|(name, value)| Label::from_static_parts(name, value));
        let key = Key::from_parts(name, labels.into_iter().collect::<Vec<_>>());
        self.recorder.register_gauge(&key, &METADATA).set(value);
    }

    /// Renders all metrics.
    pub(super) fn render(&self) -> String {
        self.handle.run_upkeep();
        self.handle.render()
    }
}
