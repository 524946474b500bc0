-- Notes: single facts that an agent records while it works.
CREATE TABLE notes (
  id           TEXT PRIMARY KEY NOT NULL,
  session_id   TEXT,
  venture      TEXT NOT NULL,
  repo         TEXT NOT NULL,
  agent        TEXT,
  kind         TEXT NOT NULL,
  text         TEXT NOT NULL,
  file         TEXT,
  created_at   BIGINT NOT NULL,
  updated_at   BIGINT,
  actor_key_id TEXT NOT NULL
);
CREATE INDEX notes_by_session ON notes (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX notes_by_repo ON notes (venture, repo, id);
