-- Content of files as agents saw it, by SHA-256: one row for each change.
CREATE TABLE file_versions (
  venture TEXT NOT NULL,
  repo    TEXT NOT NULL,
  path    TEXT NOT NULL,
  seen_at BIGINT NOT NULL,
  hash    TEXT NOT NULL,
  PRIMARY KEY (venture, repo, path, seen_at)
);
