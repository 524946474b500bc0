-- Request records take less space: an integer key in the order of arrival, no other index, ids as bytes. The newest
-- records are copied, so that the migration takes the same time for a log of any size.
CREATE TABLE requests (
  id                    INTEGER PRIMARY KEY AUTOINCREMENT,
  timestamp             INTEGER NOT NULL,
  track                 INTEGER,
  issue_number          INTEGER,
  duration_ms           INTEGER NOT NULL,
  request_count         INTEGER, -- NULL means 1
  status_code           INTEGER NOT NULL,
  idempotency_hit       INTEGER NOT NULL,
  endpoint              TEXT NOT NULL,
  method                TEXT NOT NULL,
  correlation_id        BLOB, -- the UUID of an id that Baton made
  client_correlation_id TEXT, -- any other id
  actor_key_id          BLOB,
  agent                 TEXT,
  venture               TEXT,
  repo                  TEXT,
  error_message         TEXT,
  idempotency_key       TEXT
) STRICT;

INSERT INTO requests (timestamp, track, issue_number, duration_ms, status_code, idempotency_hit, endpoint, method,
  client_correlation_id, actor_key_id, agent, venture, repo, error_message, idempotency_key)
SELECT timestamp, track, issue_number, duration_ms, status_code, idempotency_hit, endpoint, method,
  correlation_id, unhex(actor_key_id), agent, venture, repo, error_message, idempotency_key
FROM (SELECT * FROM request_log ORDER BY id DESC LIMIT 20000) ORDER BY id;

DROP TABLE request_log;
