-- Which tasks there are in which checkouts. An index only: the files in the checkout are the truth.
CREATE TABLE tasks (
  venture     TEXT NOT NULL,
  host        TEXT COLLATE "C" NOT NULL,
  checkout    TEXT COLLATE "C" NOT NULL,
  task_id     TEXT COLLATE "C" NOT NULL,
  repo        TEXT,
  title       TEXT NOT NULL,
  status      TEXT NOT NULL,
  holder      TEXT,
  open_drifts BIGINT NOT NULL,
  updated_at  BIGINT NOT NULL,
  PRIMARY KEY (venture, host, checkout, task_id)
);

CREATE INDEX tasks_by_updated ON tasks (venture, updated_at, host, checkout, task_id);
