-- Handoffs: author, linked checkpoint, content that Baton adds, and withdrawal. Sessions: the repository that hooks report after
-- the repository of a session was corrected.
ALTER TABLE handoffs ADD COLUMN written_by TEXT NOT NULL DEFAULT 'agent';
ALTER TABLE handoffs ADD COLUMN workflow_id TEXT;
ALTER TABLE handoffs ADD COLUMN checkpoint_id TEXT;
ALTER TABLE handoffs ADD COLUMN automatic_json TEXT;
ALTER TABLE handoffs ADD COLUMN incomplete BOOLEAN NOT NULL DEFAULT FALSE;
ALTER TABLE handoffs ADD COLUMN withdrawn_at BIGINT;
ALTER TABLE sessions ADD COLUMN corrected_from TEXT;
UPDATE handoffs SET written_by = 'hook' WHERE payload_json LIKE '%"written_by":"session-end hook"%';
DROP INDEX handoffs_one_ending;
CREATE UNIQUE INDEX handoffs_one_ending ON handoffs (session_id) WHERE ends_session AND withdrawn_at IS NULL;
CREATE INDEX handoffs_by_session ON handoffs (session_id, id);
CREATE INDEX checkpoints_by_session ON checkpoints (session_id, id) WHERE session_id IS NOT NULL;
CREATE INDEX sessions_corrected ON sessions (corrected_from, id) WHERE corrected_from IS NOT NULL;
