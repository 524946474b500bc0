-- One run of one agent. Times are milliseconds since the Unix epoch.
CREATE TABLE sessions (
  id                      TEXT PRIMARY KEY NOT NULL,
  agent                   TEXT NOT NULL,
  client                  TEXT,
  client_version          TEXT,
  client_session_id       TEXT,
  host                    TEXT,
  venture                 TEXT NOT NULL,
  repo                    TEXT NOT NULL,
  track                   INTEGER,
  issue_number            INTEGER,
  branch                  TEXT,
  commit_sha              TEXT,
  status                  TEXT NOT NULL CHECK (status IN ('active', 'ended', 'abandoned')),
  created_at              INTEGER NOT NULL,
  last_heartbeat_at       INTEGER NOT NULL,
  ended_at                INTEGER,
  end_reason              TEXT CHECK (end_reason IN ('manual', 'stale', 'superseded', 'error')),
  schema_version          TEXT NOT NULL,
  actor_key_id            TEXT NOT NULL,
  creation_correlation_id TEXT NOT NULL,
  meta_json               TEXT
) STRICT;

-- At most one active session of a tuple; an absent track or client session is a value of its own.
CREATE UNIQUE INDEX sessions_one_active ON sessions (
  agent, venture, repo, coalesce(track, -1), coalesce(client_session_id, '')
) WHERE status = 'active';

-- Lists go by id, which never changes, so that heartbeats move no row and touch no list index.
CREATE INDEX sessions_active_by_venture ON sessions (venture, id) WHERE status = 'active';
CREATE INDEX sessions_active_by_repo ON sessions (repo, id) WHERE status = 'active';
CREATE INDEX sessions_active_by_agent ON sessions (agent, id) WHERE status = 'active';

-- What the sweeper asks: who has been silent for longest?
CREATE INDEX sessions_active_by_heartbeat ON sessions (last_heartbeat_at) WHERE status = 'active';
