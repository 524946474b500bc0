-- Which tasks there are in which checkouts. An index only: the files in the checkout are the truth.
CREATE TABLE tasks (
  venture     TEXT NOT NULL,
  host        TEXT NOT NULL,
  checkout    TEXT NOT NULL,
  task_id     TEXT NOT NULL,
  repo        TEXT,
  title       TEXT NOT NULL,
  status      TEXT NOT NULL,
  holder      TEXT,
  open_drifts INTEGER NOT NULL,
  updated_at  INTEGER NOT NULL,
  PRIMARY KEY (venture, host, checkout, task_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX tasks_by_updated ON tasks (venture, updated_at, host, checkout, task_id);
