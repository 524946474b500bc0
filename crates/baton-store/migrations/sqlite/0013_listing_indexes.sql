-- Lists whose cost grew with the number of rows that they do not show.
CREATE INDEX workflows_by_repo ON workflows (venture, repo, last_saved_at, id) WHERE repo IS NOT NULL;
CREATE INDEX observations_by_repo_and_tool ON observations (venture, repo, tool_name, id);
CREATE INDEX handoffs_by_issue_number ON handoffs (venture, issue_number, id) WHERE issue_number IS NOT NULL;
DROP INDEX handoffs_by_issue;
