-- Model usage of each session. Each writer has its own row, as in token_usage.
CREATE TABLE session_usage (
  session_id TEXT NOT NULL,
  writer     BIGINT NOT NULL,
  tokens     BIGINT NOT NULL,
  micro_usd  BIGINT NOT NULL,
  PRIMARY KEY (session_id, writer)
);
