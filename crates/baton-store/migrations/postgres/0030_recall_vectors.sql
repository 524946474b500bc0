-- Vectors of documents, one signed byte for each dimension. Part of the search index: an archive leaves them out. A
-- document that the model rejects has a vector without dimensions.
CREATE TABLE recall_vectors (
  number    BIGINT PRIMARY KEY NOT NULL REFERENCES recall_documents (number) ON DELETE CASCADE,
  model     TEXT NOT NULL,
  dimension BIGINT NOT NULL,
  vector    BYTEA NOT NULL
);
