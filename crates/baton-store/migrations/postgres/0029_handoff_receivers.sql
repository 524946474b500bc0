-- The session that continues the work of a handoff.
ALTER TABLE handoffs ADD COLUMN acknowledged_session_id TEXT;
