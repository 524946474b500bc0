-- Named series of saved contexts, which outlive chats.
CREATE TABLE workflows (
  venture          TEXT NOT NULL,
  id               TEXT COLLATE "C" NOT NULL,
  name             TEXT,
  repo             TEXT,
  created_at       BIGINT NOT NULL,
  last_saved_at    BIGINT NOT NULL,
  last_accessed_at BIGINT NOT NULL,
  checkpoint_count BIGINT NOT NULL,
  unnamed_count    BIGINT NOT NULL,
  stored_bytes     BIGINT NOT NULL,
  critical_keys    TEXT NOT NULL,
  PRIMARY KEY (venture, id)
);

CREATE INDEX workflows_by_saved ON workflows (venture, last_saved_at);
CREATE INDEX workflows_by_name ON workflows (venture, name, last_saved_at) WHERE name IS NOT NULL;

-- Saved contexts. The frame comes last: reading what stands before it does not read the frame's pages.
CREATE TABLE checkpoints (
  id            TEXT COLLATE "C" PRIMARY KEY NOT NULL,
  venture       TEXT NOT NULL,
  workflow_id   TEXT NOT NULL,
  series        BIGINT NOT NULL,
  position      BIGINT NOT NULL,
  status        TEXT NOT NULL CHECK (status IN ('active', 'archived', 'corrupt')),
  name          TEXT,
  tags          TEXT NOT NULL,
  session_id    TEXT,
  agent         TEXT,
  created_at    BIGINT NOT NULL,
  context_bytes BIGINT NOT NULL,
  context_hash  TEXT NOT NULL,
  restores_size BOOLEAN NOT NULL,
  encoding      TEXT NOT NULL CHECK (encoding IN ('plain', 'zstd', 'delta')),
  key_id        TEXT,
  frame_bytes   BIGINT NOT NULL,
  frame_hash    TEXT NOT NULL,
  blob          TEXT,
  frame         BYTEA
);

CREATE UNIQUE INDEX checkpoints_in_order ON checkpoints (venture, workflow_id, series, position);
CREATE INDEX checkpoints_with_blob ON checkpoints (blob) WHERE blob IS NOT NULL;
CREATE INDEX checkpoints_by_key ON checkpoints (key_id) WHERE key_id IS NOT NULL;
