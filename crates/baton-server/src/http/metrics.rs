//! Counters and timings for `/metrics`, in the Prometheus text format.
//!
//! Written by hand: the format is a few lines, and the libraries for it take longer to compile than most of Baton's crates.

use std::collections::BTreeMap;
use std::fmt::{Display, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_app::observation::WorkerActivity;
use baton_app::{CachedCounts, StoreCounts};

/// Upper bounds of the buckets for durations, in seconds.
const BUCKETS: [f64; 10] = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 2.5];

/// Values of one metric by their labels, as `{name="value"}`; without labels the key is empty.
type Series<T> = BTreeMap<String, T>;

/// All metrics of a server.
#[derive(Debug, Default)]
pub(super) struct Metrics {
    values: Mutex<Values>,
}

#[derive(Debug, Default)]
struct Values {
    counters: BTreeMap<&'static str, Series<u64>>,
    gauges: BTreeMap<&'static str, Series<f64>>,
    /// Number of requests by endpoint and status.
    requests: BTreeMap<(&'static str, u16), u64>,
    /// Durations of requests by endpoint.
    durations: BTreeMap<&'static str, Durations>,
}

#[derive(Debug, Default)]
struct Durations {
    /// Number of durations in each bucket and not in a smaller one.
    buckets: [u64; BUCKETS.len()],
    count: u64,
    sum_seconds: f64,
}

impl Metrics {
    /// Counts an exchange and records its duration.
    pub(super) fn record(&self, path: &'static str, status: u16, took: Duration) {
        let mut values = self.values();
        *values.requests.entry((path, status)).or_default() += 1;
        let durations = values.durations.entry(path).or_default();
        let seconds = took.as_secs_f64();
        if let Some(bucket) = durations.buckets.get_mut(BUCKETS.partition_point(|bound| *bound < seconds)) {
            *bucket += 1;
        }
        durations.count += 1;
        durations.sum_seconds += seconds;
    }

    /// Counts an event that has no endpoint, such as a closed connection.
    pub(super) fn count(&self, name: &'static str, reason: &'static str) {
        *self.values().counter(name, label("reason", reason)) += 1;
    }

    /// Sets a counter whose value is kept elsewhere.
    pub(super) fn set(&self, name: &'static str, value: u64) {
        *self.values().counter(name, String::new()) = value;
    }

    /// Sets the counters of store errors, whose values are kept elsewhere.
    pub(super) fn set_store_errors(&self, errors: &[(&'static str, u64)]) {
        for (kind, number) in errors {
            *self.values().counter("baton_store_errors_total", label("kind", kind)) = *number;
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

    fn gauge(&self, name: &'static str, labels: Option<(&'static str, &'static str)>, value: f64) {
        let labels = labels.map(|(name, value)| label(name, value)).unwrap_or_default();
        self.values().gauges.entry(name).or_default().insert(labels, value);
    }

    fn values(&self) -> MutexGuard<'_, Values> {
        self.values.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Renders all metrics.
    pub(super) fn render(&self) -> String {
        self.values().render()
    }
}

impl Values {
    fn counter(&mut self, name: &'static str, labels: String) -> &mut u64 {
        self.counters.entry(name).or_default().entry(labels).or_default()
    }

    fn render(&self) -> String {
        let mut text = String::new();
        for (name, series) in &self.counters {
            add_metric(&mut text, name, "counter", series);
        }
        for (name, series) in &self.gauges {
            add_metric(&mut text, name, "gauge", series);
        }
        let labels = |path: &str, status: &u16| format!("{{endpoint=\"{path}\",status=\"{status}\"}}");
        let requests = self.requests.iter().map(|((path, status), number)| (labels(path, status), *number));
        add_metric(&mut text, "baton_requests_total", "counter", &requests.collect());
        if !self.durations.is_empty() {
            add_line(&mut text, format_args!("# TYPE baton_request_duration_seconds histogram"));
        }
        for (endpoint, durations) in &self.durations {
            durations.add_lines(&mut text, endpoint);
        }
        text
    }
}

impl Durations {
    fn add_lines(&self, text: &mut String, endpoint: &str) {
        let name = "baton_request_duration_seconds";
        let mut up_to = 0;
        for (bound, number) in BUCKETS.iter().zip(self.buckets) {
            up_to += number;
            add_line(text, format_args!("{name}_bucket{{endpoint=\"{endpoint}\",le=\"{bound}\"}} {up_to}"));
        }
        let (sum, count) = (self.sum_seconds, self.count);
        add_line(text, format_args!("{name}_bucket{{endpoint=\"{endpoint}\",le=\"+Inf\"}} {count}"));
        add_line(text, format_args!("{name}_sum{{endpoint=\"{endpoint}\"}} {sum}"));
        add_line(text, format_args!("{name}_count{{endpoint=\"{endpoint}\"}} {count}"));
    }
}

fn add_metric(text: &mut String, name: &str, kind: &str, series: &Series<impl Display>) {
    if series.is_empty() {
        return;
    }
    add_line(text, format_args!("# TYPE {name} {kind}"));
    for (labels, value) in series {
        add_line(text, format_args!("{name}{labels} {value}"));
    }
}

fn add_line(text: &mut String, line: std::fmt::Arguments<'_>) {
    // Writing to a text cannot fail.
    let _ = writeln!(text, "{line}");
}

/// Returns the labels of a value with one label. Names and values are constants that need no escapes.
fn label(name: &str, value: &str) -> String {
    format!("{{{name}=\"{value}\"}}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn renders_counters_gauges_and_cumulative_buckets() {
        let metrics = Metrics::default();
        for millis in [1, 2, 2, 9_000] {
            metrics.record("/sod", 200, Duration::from_millis(millis));
        }
        metrics.record("/sod", 401, Duration::ZERO);
        metrics.count("baton_connections_closed_total", "limit");
        metrics.set("baton_request_log_dropped_total", 7);
        metrics.gauge("baton_sessions", Some(("status", "active")), 2.0);
        metrics.gauge("baton_sessions", Some(("status", "active")), 3.0);
        let expected = r#"# TYPE baton_connections_closed_total counter
baton_connections_closed_total{reason="limit"} 1
# TYPE baton_request_log_dropped_total counter
baton_request_log_dropped_total 7
# TYPE baton_sessions gauge
baton_sessions{status="active"} 3
# TYPE baton_requests_total counter
baton_requests_total{endpoint="/sod",status="200"} 4
baton_requests_total{endpoint="/sod",status="401"} 1
# TYPE baton_request_duration_seconds histogram
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.0005"} 1
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.001"} 2
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.0025"} 4
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.005"} 4
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.01"} 4
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.025"} 4
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.05"} 4
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.1"} 4
baton_request_duration_seconds_bucket{endpoint="/sod",le="0.5"} 4
baton_request_duration_seconds_bucket{endpoint="/sod",le="2.5"} 4
baton_request_duration_seconds_bucket{endpoint="/sod",le="+Inf"} 5
baton_request_duration_seconds_sum{endpoint="/sod"} 9.005
baton_request_duration_seconds_count{endpoint="/sod"} 5
"#;
        assert_eq!(metrics.render(), expected);
    }
}
