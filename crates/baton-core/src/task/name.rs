//! The names of tasks, roles and kinds of evidence. They become parts of file names, so nothing that could leave a
//! folder is one of them.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
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
    /// A task: `TASK-0824`.
    TaskId,
    pattern r"^TASK-[A-Za-z0-9]{1,32}$",
    max 37,
    is_task_id,
    "must be `TASK-` and 1 to 32 letters or digits, like TASK-0824"
);

name!(
    /// A role in the pipeline of a task: `implementer`.
    Role,
    pattern r"^[a-z][a-z0-9_-]{0,31}$",
    max 32,
    |text| is_slug(text, 32),
    "must be 1 to 32 lowercase letters, digits, `_` or `-`, starting with a letter"
);

name!(
    /// A kind of evidence: `plan`, `design`, `excerpt`.
    EvidenceKind,
    pattern r"^[a-z][a-z0-9_-]{0,31}$",
    max 32,
    |text| is_slug(text, 32),
    "must be 1 to 32 lowercase letters, digits, `_` or `-`, starting with a letter"
);

name!(
    /// The part of a code base that a task belongs to: `backend`.
    Area,
    pattern r"^[a-z][a-z0-9_-]{0,31}$",
    max 32,
    |text| is_slug(text, 32),
    "must be 1 to 32 lowercase letters, digits, `_` or `-`, starting with a letter"
);

impl Area {
    /// Area of a task whose file names none.
    pub fn unspecified() -> Self {
        Self("unspecified".to_owned())
    }
}

impl TaskId {
    /// Tells whether a file of this name describes this task: `TASK-0824.task.yaml`, `TASK-0824-title.task.yaml`.
    pub fn names_file(&self, file_name: &str) -> bool {
        let rest = file_name.strip_prefix(self.as_str()).and_then(|rest| rest.strip_suffix(".task.yaml"));
        rest.is_some_and(|rest| !rest.starts_with(|first: char| first.is_ascii_alphanumeric()))
    }
}

/// The roles of a task whose file and configuration name none.
pub fn default_pipeline() -> Vec<Role> {
    ["implementer", "reviewer", "validator"].map(|name| Role(name.to_owned())).to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_leave_a_folder_is_no_name() {
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
    fn a_file_belongs_to_the_task_whose_whole_number_it_names() {
        let id: TaskId = "TASK-082".parse().unwrap();
        for name in ["TASK-082.task.yaml", "TASK-082-fix-it.task.yaml", "TASK-082_x.task.yaml"] {
            assert!(id.names_file(name), "{name}");
        }
        for name in ["TASK-0824.task.yaml", "TASK-082.yaml", "TASK-08.task.yaml", "xTASK-082.task.yaml"] {
            assert!(!id.names_file(name), "{name}");
        }
    }
}
