-- What was called, by whom and how it went; never what was sent.
CREATE TABLE request_log (
  id              TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  timestamp       BIGINT NOT NULL,
  correlation_id  TEXT NOT NULL,
  endpoint        TEXT NOT NULL,
  method          TEXT NOT NULL,
  actor_key_id    TEXT,
  agent           TEXT,
  venture         TEXT,
  repo            TEXT,
  track           BIGINT,
  issue_number    BIGINT,
  status_code     BIGINT NOT NULL,
  duration_ms     BIGINT NOT NULL,
  error_message   TEXT,
  idempotency_key TEXT,
  idempotency_hit BOOLEAN NOT NULL
);

CREATE INDEX request_log_by_time ON request_log (timestamp);
CREATE INDEX request_log_by_correlation ON request_log (correlation_id);
CREATE INDEX request_log_errors ON request_log (status_code, timestamp) WHERE status_code >= 400;
