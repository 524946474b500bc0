-- The answers of keyed requests, written in the transaction of their effect.
CREATE TABLE idempotency_keys (
  actor_key_id        TEXT NOT NULL,
  endpoint            TEXT NOT NULL,
  key                 TEXT NOT NULL,
  request_hash        TEXT NOT NULL,
  response_status     INTEGER NOT NULL,
  response_code       TEXT,
  response_hash       TEXT NOT NULL,
  response_body       TEXT NOT NULL,
  response_size_bytes INTEGER NOT NULL,
  response_truncated  INTEGER NOT NULL,
  created_at          INTEGER NOT NULL,
  expires_at          INTEGER NOT NULL,
  correlation_id      TEXT NOT NULL,
  PRIMARY KEY (actor_key_id, endpoint, key)
) STRICT;

CREATE INDEX idempotency_keys_by_expiry ON idempotency_keys (expires_at);
