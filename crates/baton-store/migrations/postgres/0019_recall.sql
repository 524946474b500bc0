-- The search index. Its content is derived from other tables: an archive leaves it out, and a store without the row
-- 'built' in recall_state is indexed from the beginning.
CREATE TABLE recall_documents (
  number      BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind        TEXT NOT NULL,
  item        TEXT COLLATE "C" NOT NULL,
  external_id TEXT,
  venture     TEXT NOT NULL,
  repo        TEXT,
  session_id  TEXT,
  branch      TEXT,
  agent       TEXT,
  author      TEXT,
  turn        TEXT,
  place       BIGINT,
  created_at  BIGINT NOT NULL,
  length      BIGINT NOT NULL,
  changes_files BOOLEAN NOT NULL,
  files       TEXT NOT NULL,
  scope       TEXT NOT NULL,
  title       TEXT NOT NULL,
  body        TEXT NOT NULL,
  paths       TEXT NOT NULL,
  -- The terms are computed in Rust and separated by spaces, so they are not parsed again.
  terms       TSVECTOR GENERATED ALWAYS AS (array_to_tsvector(array_remove(
                string_to_array(scope || ' ' || title || ' ' || body || ' ' || paths, ' '), ''))) STORED
);

CREATE UNIQUE INDEX recall_documents_by_item ON recall_documents (kind, item);
CREATE INDEX recall_documents_by_place ON recall_documents (session_id, place) WHERE place IS NOT NULL;
CREATE INDEX recall_documents_by_turn ON recall_documents (turn, number) WHERE turn IS NOT NULL;
CREATE INDEX recall_documents_by_session ON recall_documents (session_id, created_at, number);
CREATE INDEX recall_documents_by_time ON recall_documents (venture, created_at, number);
CREATE INDEX recall_index ON recall_documents USING gin (terms);

-- Number of documents of a venture that contain a term.
CREATE TABLE recall_terms (
  venture   TEXT NOT NULL,
  term      TEXT COLLATE "C" NOT NULL,
  documents BIGINT NOT NULL,
  PRIMARY KEY (venture, term)
);

-- Number of documents of a venture and the sum of their lengths.
CREATE TABLE recall_totals (
  venture   TEXT PRIMARY KEY NOT NULL,
  documents BIGINT NOT NULL,
  length    BIGINT NOT NULL
);

-- Items that were added or changed since they were indexed. An item may appear more than once.
CREATE TABLE recall_pending (
  id   BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  kind TEXT NOT NULL,
  item TEXT NOT NULL
);

CREATE TABLE recall_state (
  name TEXT PRIMARY KEY NOT NULL
);
