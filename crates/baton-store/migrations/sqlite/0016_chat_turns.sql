-- A turn of a chat: the request of the user and the closing message of the agent. Rows that exist already have only a request.
ALTER TABLE prompts RENAME TO chat_turns;
ALTER TABLE chat_turns RENAME COLUMN text TO prompt;
ALTER TABLE chat_turns RENAME COLUMN created_at TO started_at;
ALTER TABLE chat_turns ADD COLUMN closing TEXT;
ALTER TABLE chat_turns ADD COLUMN status TEXT NOT NULL DEFAULT 'unknown';
ALTER TABLE chat_turns ADD COLUMN failure TEXT;
ALTER TABLE chat_turns ADD COLUMN ended_at INTEGER;
DROP INDEX prompts_by_session;
CREATE INDEX chat_turns_by_session ON chat_turns (session_id, id);
