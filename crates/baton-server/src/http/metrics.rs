//! Counters and timings for `/metrics`, in the Prometheus text format.

use std::time::Duration;

use metrics::{Key, Label, Level, Metadata, Recorder};
use metrics_exporter_prometheus::{PrometheusBuilder, PrometheusHandle, PrometheusRecorder};

const BUCKETS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];
const METADATA: Metadata<'static> = Metadata::new("baton", Level::INFO, None);

/// What is counted.
pub(super) struct Metrics {
    recorder: PrometheusRecorder,
    handle: PrometheusHandle,
}

impl Metrics {
    pub(super) fn new() -> Self {
        // Only an empty list of buckets is refused.
        let builder = PrometheusBuilder::new().set_buckets(&BUCKETS).unwrap_or_default();
        let recorder = builder.build_recorder();
        let handle = recorder.handle();
        Self { recorder, handle }
    }

    /// Counts an exchange on a path.
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

    /// Sets a counter that is kept elsewhere.
    pub(super) fn set(&self, name: &'static str, value: u64) {
        self.recorder.register_counter(&Key::from_static_name(name), &METADATA).absolute(value);
    }

    /// Writes everything counted so far.
    pub(super) fn render(&self) -> String {
        self.handle.run_upkeep();
        self.handle.render()
    }
}
