-- What one session leaves for the next.
CREATE TABLE handoffs (
  id                      TEXT PRIMARY KEY NOT NULL,
  session_id              TEXT NOT NULL,
  venture                 TEXT NOT NULL,
  repo                    TEXT NOT NULL,
  track                   INTEGER,
  issue_number            INTEGER,
  branch                  TEXT,
  commit_sha              TEXT,
  from_agent              TEXT NOT NULL,
  to_agent                TEXT,
  status_label            TEXT,
  summary                 TEXT NOT NULL,
  payload_json            TEXT NOT NULL,
  payload_hash            TEXT NOT NULL,
  payload_size_bytes      INTEGER NOT NULL,
  schema_version          TEXT NOT NULL,
  ends_session            INTEGER NOT NULL,
  late                    INTEGER NOT NULL,
  acknowledged_at         INTEGER,
  acknowledged_by         TEXT,
  created_at              INTEGER NOT NULL,
  actor_key_id            TEXT NOT NULL,
  creation_correlation_id TEXT NOT NULL
) STRICT;

-- A session is ended once, with one handoff; it may leave others on its way.
CREATE UNIQUE INDEX handoffs_one_ending ON handoffs (session_id) WHERE ends_session = 1;
CREATE INDEX handoffs_by_venture ON handoffs (venture, id);
CREATE INDEX handoffs_by_repo ON handoffs (venture, repo, id);
CREATE INDEX handoffs_by_track ON handoffs (venture, repo, track, id);
CREATE INDEX handoffs_by_issue ON handoffs (venture, repo, issue_number, id) WHERE issue_number IS NOT NULL;
CREATE INDEX handoffs_by_author ON handoffs (venture, from_agent, id);
CREATE INDEX handoffs_by_recipient ON handoffs (venture, to_agent, id) WHERE to_agent IS NOT NULL;
