-- Time at which a start of the chat was last answered with context. Two configurations of a host report one start twice.
ALTER TABLE sessions ADD COLUMN context_given_at BIGINT;
