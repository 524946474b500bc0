-- Corrections of single items: rejected, superseded or pinned. The id of an item is unique across kinds.
CREATE TABLE item_marks (
  item         TEXT PRIMARY KEY NOT NULL,
  venture      TEXT NOT NULL,
  repo         TEXT,
  kind         TEXT NOT NULL,
  replaced_by  TEXT,
  created_at   INTEGER NOT NULL,
  actor_key_id TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX item_marks_by_venture ON item_marks (venture, created_at, item);

ALTER TABLE recall_documents ADD COLUMN is_pinned INTEGER NOT NULL DEFAULT 0;
