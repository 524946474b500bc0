//! Which tools a client is offered.

use std::str::FromStr;

use baton_app::ToolSet;

/// Tools that are listed to a client. Tools that are not listed can still be called by name: the selection limits the
/// size of the list and is not an access check.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSelection {
    /// True if the small set for every chat is listed.
    pub(crate) default_set: bool,
    /// Sets that are listed completely, each tool under its own name.
    pub(crate) sets: Vec<ToolSet>,
    /// True if all sets and the grouped tools are listed.
    pub(crate) all: bool,
}

/// A name that is not a set of tools.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown set of tools `{0}`: use default, all, sessions, checkpoints, tasks or memory, separated by commas"
)]
pub struct UnknownToolSet(String);

impl Default for ToolSelection {
    fn default() -> Self {
        Self { default_set: true, sets: Vec::new(), all: false }
    }
}

impl FromStr for ToolSelection {
    type Err = UnknownToolSet;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut selection = Self { default_set: false, sets: Vec::new(), all: false };
        for name in text.split(',').map(str::trim) {
            match name {
                "default" => selection.default_set = true,
                "all" => selection.all = true,
                "sessions" => selection.sets.push(ToolSet::Sessions),
                "checkpoints" => selection.sets.push(ToolSet::Checkpoints),
                "tasks" => selection.sets.push(ToolSet::Tasks),
                "memory" => selection.sets.push(ToolSet::Memory),
                other => return Err(UnknownToolSet(other.chars().take(40).collect())),
            }
        }
        Ok(selection)
    }
}

impl ToolSelection {
    /// Returns true if all tools of the set are listed.
    pub(crate) fn lists(&self, set: ToolSet) -> bool {
        self.all || self.sets.contains(&set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_sets_and_rejects_unknown_names() {
        let both: ToolSelection = "default, tasks".parse().unwrap();
        assert!(both.default_set && both.lists(ToolSet::Tasks) && !both.lists(ToolSet::Memory));
        let all: ToolSelection = "all".parse().unwrap();
        assert!(all.lists(ToolSet::Memory) && !all.default_set);
        assert_eq!(
            "sesions".parse::<ToolSelection>().unwrap_err().to_string(),
            "unknown set of tools `sesions`: use default, all, sessions, checkpoints, tasks or memory, separated by commas"
        );
        assert!("".parse::<ToolSelection>().is_err());
    }
}
