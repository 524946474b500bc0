-- Items that recall added to a chat while it ran.
CREATE TABLE shown_items (
  session_id TEXT NOT NULL,
  item       TEXT NOT NULL,
  PRIMARY KEY (session_id, item)
) STRICT, WITHOUT ROWID;
