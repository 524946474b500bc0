//! Status of a task, which follows from the states of its roles.

use baton_core::task::{Role, TaskStatus};

use super::context::TaskContext;
use super::role_state::RoleStatus;

impl TaskContext {
    pub fn status(&self) -> TaskStatus {
        let is = |wanted: RoleStatus| {
            move |role: &Role| self.coordination.get(role).is_some_and(|state| state.status == wanted)
        };
        if self.holder().is_some() {
            TaskStatus::InProgress
        } else if self.pipeline.iter().any(is(RoleStatus::Blocked)) {
            TaskStatus::Blocked
        } else if self.pipeline.iter().all(is(RoleStatus::Done)) {
            TaskStatus::Done
        } else if self.pipeline.iter().all(is(RoleStatus::Pending)) {
            TaskStatus::Pending
        } else {
            TaskStatus::Waiting
        }
    }
}

#[cfg(test)]
mod tests {
    use baton_core::Timestamp;

    use super::*;
    use crate::rules::context::tests::sample;

    #[test]
    fn task_status_follows_from_the_roles() {
        let mut context = sample();
        let [implementer, reviewer, validator] =
            ["implementer", "reviewer", "validator"].map(|name| name.parse::<Role>().unwrap());
        let now = Timestamp::EPOCH;
        assert_eq!(context.status(), TaskStatus::Pending);
        context.acquire(&implementer, now).unwrap();
        assert_eq!(context.status(), TaskStatus::InProgress);
        context.finish(&implementer, now).unwrap();
        assert_eq!(context.status(), TaskStatus::Waiting);
        context.block(&reviewer, Some("x")).unwrap();
        assert_eq!(context.status(), TaskStatus::Blocked);
        for role in [&reviewer, &validator] {
            context.acquire(role, now).unwrap();
            context.finish(role, now).unwrap();
        }
        assert_eq!(context.status(), TaskStatus::Done);
    }
}
