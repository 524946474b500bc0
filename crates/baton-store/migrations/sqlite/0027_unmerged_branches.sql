-- Branches that are not merged into the main branch, as last reported for their repository.
CREATE TABLE unmerged_branches (
  venture TEXT NOT NULL,
  repo    TEXT NOT NULL,
  branch  TEXT NOT NULL,
  PRIMARY KEY (venture, repo, branch)
) STRICT, WITHOUT ROWID;
