-- Model usage of each session. Each writer has its own row, as in token_usage.
CREATE TABLE session_usage (
  session_id TEXT NOT NULL,
  writer     INTEGER NOT NULL,
  tokens     INTEGER NOT NULL,
  micro_usd  INTEGER NOT NULL,
  PRIMARY KEY (session_id, writer)
) STRICT, WITHOUT ROWID;
