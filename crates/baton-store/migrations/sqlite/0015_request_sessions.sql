-- The session that a request names, as the 16 bytes of its ULID. Only filters that match few records have an index: most
-- requests share a few endpoints and credentials, and every index would be written by every request.
ALTER TABLE requests ADD COLUMN session_id BLOB;
CREATE INDEX requests_by_session ON requests (session_id) WHERE session_id IS NOT NULL;
CREATE INDEX requests_failed ON requests (id) WHERE status_code >= 400;

-- For counting sessions by status; the active ones have indexes already, and the others are the rest.
CREATE INDEX sessions_abandoned ON sessions (id) WHERE status = 'abandoned';
