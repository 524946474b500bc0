-- Request records take less space: an integer key in the order of arrival, no other index, ids as bytes. The newest
-- records are copied, so that the migration takes the same time for a log of any size.
CREATE TABLE requests (
  id                    BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  timestamp             BIGINT NOT NULL,
  track                 BIGINT,
  issue_number          BIGINT,
  duration_ms           BIGINT NOT NULL,
  request_count         BIGINT, -- NULL means 1
  status_code           BIGINT NOT NULL,
  idempotency_hit       BOOLEAN NOT NULL,
  endpoint              TEXT NOT NULL,
  method                TEXT NOT NULL,
  correlation_id        BYTEA, -- the UUID of an id that Baton made
  client_correlation_id TEXT, -- any other id
  actor_key_id          BYTEA,
  agent                 TEXT,
  venture               TEXT,
  repo                  TEXT,
  error_message         TEXT,
  idempotency_key       TEXT
);

INSERT INTO requests (timestamp, track, issue_number, duration_ms, status_code, idempotency_hit, endpoint, method,
  client_correlation_id, actor_key_id, agent, venture, repo, error_message, idempotency_key)
SELECT timestamp, track, issue_number, duration_ms, status_code, idempotency_hit, endpoint, method,
  correlation_id, decode(actor_key_id, 'hex'), agent, venture, repo, error_message, idempotency_key
FROM (SELECT * FROM request_log ORDER BY id DESC LIMIT 20000) AS newest ORDER BY id;

DROP TABLE request_log;
