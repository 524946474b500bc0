//! Names of tasks, roles, areas and kinds of evidence. They are used in file names, so path separators are rejected.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::name::{NameError, name};

const ID_PREFIX: &str = "TASK-";

fn is_task_id(text: &str) -> bool {
    text.strip_prefix(ID_PREFIX).is_some_and(|rest| {
        (1..=32).contains(&rest.len()) && rest.bytes().all(|byte| byte.is_ascii_alphanumeric())
    })
}

fn is_slug(text: &str, max: usize) -> bool {
    text.len() <= max
        && text.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_' | b'-'))
        && text.bytes().next().is_some_and(|first| first.is_ascii_lowercase())
}

name!(
    /// Id of a task, for example `TASK-0824`.
    TaskId,
    pattern r"^TASK-[A-Za-z0-9]{1,32}$",
    max 37,
    is_task_id,
    "must be `TASK-` and 1 to 32 letters or digits, like TASK-0824"
);

name!(
    /// Role in the pipeline of a task, for example `implementer`.
    Role,
    pattern r"^[a-z][a-z0-9_-]{0,31}$",
    max 32,
    |text| is_slug(text, 32),
    "must be 1 to 32 lowercase letters, digits, `_` or `-`, starting with a letter"
);

name!(
    /// Kind of evidence, for example `plan`, `design` or `excerpt`.
    EvidenceKind,
    pattern r"^[a-z][a-z0-9_-]{0,31}$",
    max 32,
    |text| is_slug(text, 32),
    "must be 1 to 32 lowercase letters, digits, `_` or `-`, starting with a letter"
);

name!(
    /// Area of the code base that a task belongs to, for example `backend`.
    Area,
    pattern r"^[a-z][a-z0-9_-]{0,31}$",
    max 32,
    |text| is_slug(text, 32),
    "must be 1 to 32 lowercase letters, digits, `_` or `-`, starting with a letter"
);

impl Area {
    /// Area of a task without an area.
    pub fn unspecified() -> Self {
        Self("unspecified".to_owned())
    }
}

impl TaskId {
    /// Returns true if this is a file name of the task: `TASK-0824.task.yaml`, `TASK-0824-title.task.yaml`.
    pub fn names_file(&self, file_name: &str) -> bool {
        let rest = file_name.strip_prefix(self.as_str()).and_then(|rest| rest.strip_suffix(".task.yaml"));
        rest.is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_alphanumeric()))
    }
}

/// Default roles of a task.
pub fn default_pipeline() -> Vec<Role> {
    ["implementer", "reviewer", "validator"].map(|name| Role(name.to_owned())).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_are_unsafe_in_paths_are_rejected() {
        for bad in [
            "",
            "TASK-",
            "TASK-..",
            "TASK-../x",
            "TASK-1/2",
            "task-1",
            "TASK-1\0",
            "TASK-1 ",
            "/TASK-1",
            "TASK-ä",
        ] {
            assert!(bad.parse::<TaskId>().is_err(), "{bad:?}");
        }
        for bad in ["", ".", "..", "a/b", "Reviewer", "-x", "a b", "a\n", &"a".repeat(33)] {
            assert!(bad.parse::<Role>().is_err(), "{bad:?}");
        }
        assert!("TASK-0824".parse::<TaskId>().is_ok() && "security_review-2".parse::<Role>().is_ok());
    }

    #[test]
    fn file_name_must_contain_the_complete_task_id() {
        let id: TaskId = "TASK-082".parse().unwrap();
        for name in ["TASK-082.task.yaml", "TASK-082-fix-it.task.yaml", "TASK-082_x.task.yaml"] {
            assert!(id.names_file(name), "{name}");
        }
        for name in ["TASK-0824.task.yaml", "TASK-082.yaml", "TASK-08.task.yaml", "xTASK-082.task.yaml"] {
            assert!(!id.names_file(name), "{name}");
        }
    }
}
