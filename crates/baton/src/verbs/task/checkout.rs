//! The checkout that `baton task` works on, and the actor of its operations.

use std::path::{Component, Path, PathBuf};

use baton_app::{Clock, SystemClock};
use baton_core::ErrorCode;
use baton_task::TaskPlace;

use super::git_tree::GitTree;
use crate::checkout::find_root;
use crate::config::Config;
use crate::exit::Exit;
use crate::output::Failure;

/// The checkout that contains the working folder.
pub(super) struct Checkout {
    pub(super) place: TaskPlace,
    cwd: PathBuf,
}

impl Checkout {
    /// Finds the checkout that contains the working folder.
    pub(super) fn open(config: &Config) -> Result<Self, Failure> {
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Failure, "internal", format!("cannot determine the working folder: {error}"))
        })?;
        let root = find_root(&cwd).ok_or_else(|| {
            Failure::new(
                Exit::NotFound,
                ErrorCode::NotFound.as_str(),
                format!("{} is in no checkout of a git repository", cwd.display()),
            )
            .hint("run the command in the checkout of the task")
        })?;
        Ok(Self { place: place(&root, &actor(config)), cwd })
    }

    /// Resolves a path from the working folder and returns it from the root of the checkout. A path outside of the
    /// checkout is returned as an absolute path.
    pub(super) fn path(&self, given: &str) -> String {
        let mut full = PathBuf::new();
        for part in self.cwd.join(given).components() {
            match part {
                Component::ParentDir => {
                    full.pop();
                }
                Component::CurDir => {}
                part => full.push(part),
            }
        }
        let inside = full.strip_prefix(self.place.root()).ok().and_then(Path::to_str);
        inside.map_or_else(|| full.to_string_lossy().into_owned(), str::to_owned)
    }
}

/// Returns the task folder of a checkout, with git as the working tree backend.
pub(super) fn place(root: &Path, actor: &str) -> TaskPlace {
    TaskPlace::new(root, GitTree::at(root), || SystemClock.now(), actor)
}

/// Returns the default actor: the configured agent, otherwise the user name.
pub(super) fn actor(config: &Config) -> String {
    let user = || ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let named = config.agent.as_ref().map(|agent| agent.as_str().to_owned()).or_else(user);
    named
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".into())
}
