-- Each observation says whether its session's summary covers it: some are understood late, after others that were used
-- after them.
ALTER TABLE observations ADD COLUMN summed_up INTEGER NOT NULL DEFAULT 0;
UPDATE observations SET summed_up = 1 WHERE EXISTS (
  SELECT 1 FROM summaries WHERE summaries.session_id = observations.session_id AND summaries.through >= observations.id
);
CREATE INDEX observations_to_sum_up ON observations (session_id, id) WHERE NOT summed_up;
ALTER TABLE summaries DROP COLUMN through;
