-- The summary that an agent writes when its context is compacted, stored with the turn.
ALTER TABLE chat_turns ADD COLUMN compact_summary TEXT;
