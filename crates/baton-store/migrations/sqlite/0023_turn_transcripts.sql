-- The transcript from which the worker reads the closing message of a turn, if the host did not send one.
ALTER TABLE chat_turns ADD COLUMN transcript_path TEXT;
