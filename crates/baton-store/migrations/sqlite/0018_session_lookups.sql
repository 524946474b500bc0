-- Finds the sessions of a chat by the id that its client assigned.
CREATE INDEX sessions_by_chat ON sessions (client_session_id, id) WHERE client_session_id IS NOT NULL;

-- Lists the latest sessions of a repository, whatever their status.
CREATE INDEX sessions_by_repo ON sessions (venture, repo, id);
