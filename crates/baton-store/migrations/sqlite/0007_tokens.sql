-- Credentials of single agents. The secret itself is kept nowhere.
CREATE TABLE tokens (
  id          TEXT PRIMARY KEY NOT NULL,
  name        TEXT NOT NULL,
  secret_hash TEXT NOT NULL,
  access      TEXT NOT NULL CHECK (access IN ('read', 'write')),
  ventures    TEXT,
  created_at  INTEGER NOT NULL,
  expires_at  INTEGER,
  revoked_at  INTEGER
) STRICT;
