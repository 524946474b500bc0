-- Vectors of documents, one signed byte for each dimension. Part of the search index: an archive leaves them out. A
-- document that the model rejects has a vector without dimensions.
CREATE TABLE recall_vectors (
  number    BIGINT PRIMARY KEY NOT NULL REFERENCES recall_documents (number) ON DELETE CASCADE,
  model     TEXT NOT NULL,
  dimension BIGINT NOT NULL,
  vector    BYTEA NOT NULL
);

-- A search reads hundreds of documents: their rows stay in one piece and are not compressed.
ALTER TABLE recall_documents SET (toast_tuple_target = 8160);
