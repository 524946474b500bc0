-- Every start and every heartbeat wrote these, and hardly anyone read them: the index that keeps tuples unique begins with
-- the agent, and the sweeper finds who fell silent among the active, once a minute.
DROP INDEX sessions_active_by_agent;
DROP INDEX sessions_active_by_heartbeat;
