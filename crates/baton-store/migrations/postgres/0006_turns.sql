-- When a job that one process at a time should do was last taken on.
CREATE TABLE turns (
  name     TEXT PRIMARY KEY NOT NULL,
  taken_at BIGINT NOT NULL
);
