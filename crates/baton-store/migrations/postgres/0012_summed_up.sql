-- Each observation says whether its session's summary covers it: some are understood late, after others that were used
-- after them.
ALTER TABLE observations ADD COLUMN summed_up BOOLEAN NOT NULL DEFAULT FALSE;
UPDATE observations SET summed_up = TRUE WHERE EXISTS (
  SELECT 1 FROM summaries WHERE summaries.session_id = observations.session_id
  AND summaries.through COLLATE "C" >= observations.id
);
CREATE INDEX observations_to_sum_up ON observations (session_id, id) WHERE NOT summed_up;
ALTER TABLE summaries DROP COLUMN through;
