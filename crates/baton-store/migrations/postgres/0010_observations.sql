-- Captured tool output that waits to become an observation, and, for some time, what became one. Nothing was captured
-- before this version. The raw output comes last: reading what stands before it does not read its pages.
DROP TABLE pending_queue;
CREATE TABLE pending_queue (
  id            BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id    TEXT NOT NULL,
  venture       TEXT NOT NULL,
  repo          TEXT NOT NULL,
  tool_name     TEXT NOT NULL,
  tool_use_id   TEXT,
  files_touched TEXT NOT NULL,
  status        TEXT NOT NULL CHECK (status IN ('raw', 'processing', 'done', 'error')),
  attempts      BIGINT NOT NULL DEFAULT 0,
  run_at        BIGINT NOT NULL,
  lease_until   BIGINT,
  fence         BIGINT NOT NULL DEFAULT 0,
  failed_at     BIGINT,
  last_error    TEXT,
  created_at    BIGINT NOT NULL,
  settled_at    BIGINT,
  raw_bytes     BIGINT NOT NULL,
  blob          TEXT,
  raw_output    BYTEA NOT NULL
);

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
  id                TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  queue_id          BIGINT NOT NULL,
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
  tokens_in         BIGINT NOT NULL,
  tokens_out        BIGINT NOT NULL,
  raw_bytes         BIGINT NOT NULL,
  captured_at       BIGINT NOT NULL,
  compressed_at     BIGINT NOT NULL
);

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
);

-- What the user of a session asked for.
CREATE TABLE prompts (
  id         BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  session_id TEXT NOT NULL,
  text       TEXT NOT NULL,
  created_at BIGINT NOT NULL
);

CREATE INDEX prompts_by_session ON prompts (session_id, id);

-- What sessions came to. A row without `made_at` waits for its first summary; one whose `requested_at` is later than that
-- waits for a new one.
CREATE TABLE summaries (
  session_id     TEXT PRIMARY KEY NOT NULL,
  requested_at   BIGINT,
  run_at         BIGINT,
  lease_until    BIGINT,
  fence          BIGINT NOT NULL DEFAULT 0,
  attempts       BIGINT NOT NULL DEFAULT 0,
  last_error     TEXT,
  made_at        BIGINT,
  summary        TEXT,
  key_files      TEXT,
  key_decisions  TEXT,
  observations   BIGINT NOT NULL DEFAULT 0,
  through        TEXT,
  compressor     TEXT,
  model          TEXT,
  prompt_version TEXT,
  tokens_in      BIGINT NOT NULL DEFAULT 0,
  tokens_out     BIGINT NOT NULL DEFAULT 0
);

CREATE INDEX summaries_due ON summaries (run_at) WHERE run_at IS NOT NULL;

-- What models counted, a row a day, model and writer: whoever is held up while it counts holds nobody else up.
CREATE TABLE token_usage (
  day        TEXT NOT NULL,
  compressor TEXT NOT NULL,
  model      TEXT NOT NULL,
  writer     BIGINT NOT NULL,
  calls      BIGINT NOT NULL,
  tokens_in  BIGINT NOT NULL,
  tokens_out BIGINT NOT NULL,
  micro_usd  BIGINT NOT NULL,
  PRIMARY KEY (day, compressor, model, writer)
);
