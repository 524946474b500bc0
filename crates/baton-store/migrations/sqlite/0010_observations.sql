-- Captured tool output that waits to become an observation, and, for some time, what became one. Nothing was captured
-- before this version. The raw output comes last: reading what stands before it does not read its pages.
DROP TABLE pending_queue;
CREATE TABLE pending_queue (
  id            INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id    TEXT NOT NULL,
  venture       TEXT NOT NULL,
  repo          TEXT NOT NULL,
  tool_name     TEXT NOT NULL,
  tool_use_id   TEXT,
  files_touched TEXT NOT NULL,
  status        TEXT NOT NULL CHECK (status IN ('raw', 'processing', 'done', 'error')),
  attempts      INTEGER NOT NULL DEFAULT 0,
  run_at        INTEGER NOT NULL,
  lease_until   INTEGER,
  fence         INTEGER NOT NULL DEFAULT 0,
  failed_at     INTEGER,
  last_error    TEXT,
  created_at    INTEGER NOT NULL,
  settled_at    INTEGER,
  raw_bytes     INTEGER NOT NULL,
  blob          TEXT,
  raw_output    BLOB NOT NULL
) STRICT;

CREATE INDEX pending_queue_ready ON pending_queue (run_at, id) WHERE status = 'raw';
CREATE INDEX pending_queue_leased ON pending_queue (lease_until, id) WHERE status = 'processing';
CREATE INDEX pending_queue_done ON pending_queue (settled_at, id) WHERE status = 'done';
CREATE INDEX pending_queue_failed ON pending_queue (settled_at, id) WHERE status = 'error';
CREATE INDEX pending_queue_open ON pending_queue (session_id, id) WHERE status IN ('raw', 'processing');
CREATE INDEX pending_queue_with_blob ON pending_queue (blob) WHERE blob IS NOT NULL;

-- A tool use that is reported twice is queued once.
CREATE UNIQUE INDEX pending_queue_once ON pending_queue (session_id, tool_use_id) WHERE tool_use_id IS NOT NULL;

-- What tool uses taught. An id tells when the tool was used, not when that was understood.
CREATE TABLE observations (
  id                TEXT PRIMARY KEY NOT NULL,
  queue_id          INTEGER NOT NULL,
  session_id        TEXT NOT NULL,
  venture           TEXT NOT NULL,
  repo              TEXT NOT NULL,
  tool_name         TEXT NOT NULL,
  tool_use_id       TEXT,
  title             TEXT NOT NULL,
  summary           TEXT NOT NULL,
  detail            TEXT,
  files             TEXT NOT NULL,
  files_touched     TEXT NOT NULL,
  functions_changed TEXT NOT NULL,
  compressor        TEXT NOT NULL,
  model             TEXT,
  prompt_version    TEXT NOT NULL,
  tokens_in         INTEGER NOT NULL,
  tokens_out        INTEGER NOT NULL,
  raw_bytes         INTEGER NOT NULL,
  captured_at       INTEGER NOT NULL,
  compressed_at     INTEGER NOT NULL
) STRICT;

-- A captured tool use becomes one observation, whoever works on it and how often.
CREATE UNIQUE INDEX observations_once ON observations (queue_id);
CREATE INDEX observations_by_session ON observations (session_id, id);
CREATE INDEX observations_by_venture ON observations (venture, id);
CREATE INDEX observations_by_repo ON observations (venture, repo, id);
CREATE INDEX observations_by_tool ON observations (venture, tool_name, id);

-- Finds observations by the files that they speak of. `name` is the last part of `path`.
CREATE TABLE observation_files (
  name           TEXT NOT NULL,
  venture        TEXT NOT NULL,
  observation_id TEXT NOT NULL,
  path           TEXT NOT NULL,
  PRIMARY KEY (name, venture, observation_id, path)
) STRICT, WITHOUT ROWID;

-- What the user of a session asked for.
CREATE TABLE prompts (
  id         INTEGER PRIMARY KEY AUTOINCREMENT,
  session_id TEXT NOT NULL,
  text       TEXT NOT NULL,
  created_at INTEGER NOT NULL
) STRICT;

CREATE INDEX prompts_by_session ON prompts (session_id, id);

-- What sessions came to. A row without `made_at` waits for its first summary; one whose `requested_at` is later than that
-- waits for a new one.
CREATE TABLE summaries (
  session_id     TEXT PRIMARY KEY NOT NULL,
  requested_at   INTEGER,
  run_at         INTEGER,
  lease_until    INTEGER,
  fence          INTEGER NOT NULL DEFAULT 0,
  attempts       INTEGER NOT NULL DEFAULT 0,
  last_error     TEXT,
  made_at        INTEGER,
  summary        TEXT,
  key_files      TEXT,
  key_decisions  TEXT,
  observations   INTEGER NOT NULL DEFAULT 0,
  through        TEXT,
  compressor     TEXT,
  model          TEXT,
  prompt_version TEXT,
  tokens_in      INTEGER NOT NULL DEFAULT 0,
  tokens_out     INTEGER NOT NULL DEFAULT 0
) STRICT, WITHOUT ROWID;

CREATE INDEX summaries_due ON summaries (run_at) WHERE run_at IS NOT NULL;

-- What models counted, a row a day, model and writer: whoever is held up while it counts holds nobody else up.
CREATE TABLE token_usage (
  day        TEXT NOT NULL,
  compressor TEXT NOT NULL,
  model      TEXT NOT NULL,
  writer     INTEGER NOT NULL,
  calls      INTEGER NOT NULL,
  tokens_in  INTEGER NOT NULL,
  tokens_out INTEGER NOT NULL,
  micro_usd  INTEGER NOT NULL,
  PRIMARY KEY (day, compressor, model, writer)
) STRICT, WITHOUT ROWID;
