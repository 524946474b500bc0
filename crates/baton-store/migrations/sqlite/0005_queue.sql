-- Captured tool output that waits to become an observation.
CREATE TABLE pending_queue (
  id          INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id  TEXT NOT NULL,
  tool_name   TEXT NOT NULL,
  raw_output  BLOB NOT NULL,
  status      TEXT NOT NULL CHECK (status IN ('raw', 'processing', 'done', 'error')),
  attempts    INTEGER NOT NULL DEFAULT 0,
  run_at      INTEGER NOT NULL,
  lease_until INTEGER,
  fence       INTEGER NOT NULL DEFAULT 0,
  last_error  TEXT,
  created_at  INTEGER NOT NULL
) STRICT;

CREATE INDEX pending_queue_ready ON pending_queue (run_at, id) WHERE status = 'raw';
CREATE INDEX pending_queue_leased ON pending_queue (lease_until) WHERE status = 'processing';
