-- Captured tool output that waits to become an observation.
CREATE TABLE pending_queue (
  id          BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id  TEXT NOT NULL,
  tool_name   TEXT NOT NULL,
  raw_output  BYTEA NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('raw', 'processing', 'done', 'error')),
  attempts    BIGINT NOT NULL DEFAULT 0,
  run_at      BIGINT NOT NULL,
  lease_until BIGINT,
  fence       BIGINT NOT NULL DEFAULT 0,
  last_error  TEXT,
  created_at  BIGINT NOT NULL
);

CREATE INDEX pending_queue_ready ON pending_queue (run_at, id) WHERE status = 'raw';
CREATE INDEX pending_queue_leased ON pending_queue (lease_until) WHERE status = 'processing';
