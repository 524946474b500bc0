-- The search index. Its content is derived from other tables: an archive leaves it out, and a store without the row
-- 'built' in recall_state is indexed from the beginning.
CREATE TABLE recall_documents (
  number      INTEGER PRIMARY KEY AUTOINCREMENT,
  kind        TEXT NOT NULL,
  item        TEXT NOT NULL,
  external_id TEXT,
  venture     TEXT NOT NULL,
  repo        TEXT,
  session_id  TEXT,
  branch      TEXT,
  agent       TEXT,
  author      TEXT,
  turn        TEXT,
  place       INTEGER,
  created_at  INTEGER NOT NULL,
  length      INTEGER NOT NULL,
  changes_files INTEGER NOT NULL,
  files       TEXT NOT NULL,
  scope       TEXT NOT NULL,
  title       TEXT NOT NULL,
  body        TEXT NOT NULL,
  paths       TEXT NOT NULL
) STRICT;

CREATE UNIQUE INDEX recall_documents_by_item ON recall_documents (kind, item);
CREATE INDEX recall_documents_by_place ON recall_documents (session_id, place) WHERE place IS NOT NULL;
CREATE INDEX recall_documents_by_turn ON recall_documents (turn, number) WHERE turn IS NOT NULL;
CREATE INDEX recall_documents_by_session ON recall_documents (session_id, created_at, number);
CREATE INDEX recall_documents_by_time ON recall_documents (venture, created_at, number);

-- The terms are computed in Rust and separated by spaces, so the tokenizer splits at nothing else.
CREATE VIRTUAL TABLE recall_index USING fts5 (
  scope, title, body, paths,
  content = 'recall_documents', content_rowid = 'number', detail = none, columnsize = 0,
  tokenize = "unicode61 remove_diacritics 0 categories 'L* M* N* P* S* C*'"
);

CREATE TRIGGER recall_documents_added AFTER INSERT ON recall_documents BEGIN
  INSERT INTO recall_index (rowid, scope, title, body, paths)
  VALUES (new.number, new.scope, new.title, new.body, new.paths);
END;
CREATE TRIGGER recall_documents_deleted AFTER DELETE ON recall_documents BEGIN
  INSERT INTO recall_index (recall_index, rowid, scope, title, body, paths)
  VALUES ('delete', old.number, old.scope, old.title, old.body, old.paths);
END;
CREATE TRIGGER recall_documents_changed AFTER UPDATE OF scope, title, body, paths ON recall_documents BEGIN
  INSERT INTO recall_index (recall_index, rowid, scope, title, body, paths)
  VALUES ('delete', old.number, old.scope, old.title, old.body, old.paths);
  INSERT INTO recall_index (rowid, scope, title, body, paths)
  VALUES (new.number, new.scope, new.title, new.body, new.paths);
END;

-- Number of documents of a venture that contain a term.
CREATE TABLE recall_terms (
  venture   TEXT NOT NULL,
  term      TEXT NOT NULL,
  documents INTEGER NOT NULL,
  PRIMARY KEY (venture, term)
) STRICT, WITHOUT ROWID;

-- Number of documents of a venture and the sum of their lengths.
CREATE TABLE recall_totals (
  venture   TEXT PRIMARY KEY NOT NULL,
  documents INTEGER NOT NULL,
  length    INTEGER NOT NULL
) STRICT, WITHOUT ROWID;

-- Items that were added or changed since they were indexed. An item may appear more than once.
CREATE TABLE recall_pending (
  id   INTEGER PRIMARY KEY AUTOINCREMENT,
  kind TEXT NOT NULL,
  item TEXT NOT NULL
) STRICT;

CREATE TABLE recall_state (
  name TEXT PRIMARY KEY NOT NULL
) STRICT, WITHOUT ROWID;
