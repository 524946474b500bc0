//! The checkout that `baton task` works on, and who answers for its working tree.

use std::path::{Component, Path, PathBuf};

use baton_app::{Clock, SystemClock};
use baton_core::task::{Head, TreeDiff, TreeState, WorktreeSnapshot};
use baton_core::{ErrorCode, Fault};
use baton_task::{TaskPlace, WorkingTree};

use crate::config::Config;
use crate::exit::Exit;
use crate::output::Failure;

/// The checkout around the working folder.
pub(super) struct Checkout {
    pub(super) place: TaskPlace,
    cwd: PathBuf,
}

impl Checkout {
    /// Finds the checkout around the working folder.
    pub(super) fn open(config: &Config) -> Result<Self, Failure> {
        let cwd = std::env::current_dir().map_err(|error| {
            Failure::new(Exit::Failure, "internal", format!("the working folder: {error}"))
        })?;
        let root = cwd.ancestors().find(|folder| folder.join(".git").symlink_metadata().is_ok());
        let root = root.map(Path::to_owned).ok_or_else(|| {
            Failure::new(
                Exit::NotFound,
                ErrorCode::NotFound.as_str(),
                format!("{} is in no repository", cwd.display()),
            )
            .hint("go to the checkout of the task, then try again")
        })?;
        let place = TaskPlace::new(root, NoTree, || SystemClock.now(), actor(config));
        Ok(Self { place, cwd })
    }

    /// Takes a path as people mean it, from the working folder, and gives it from the root of the checkout. One that
    /// leads out is left as it is, to be refused by name.
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
        inside.unwrap_or(given).to_owned()
    }
}

/// Who acts when nobody is named: the configured agent, else the user.
fn actor(config: &Config) -> String {
    let user = || ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let named = config.agent.as_ref().map(|agent| agent.as_str().to_owned()).or_else(user);
    named
        .map(|name| name.trim().to_owned())
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| "unknown".into())
}

/// Stands in for the part that runs git.
struct NoTree;

fn missing<T>() -> Result<T, Fault> {
    Err(Fault::new(ErrorCode::Internal, "this verb needs the git part, which this build does not have")
        .hint("use a build that has it"))
}

impl WorkingTree for NoTree {
    fn head(&self) -> Result<Head, Fault> {
        missing()
    }
    fn resolve_commit(&self, _revision: &str) -> Result<String, Fault> {
        missing()
    }
    fn is_dirty(&self) -> Result<bool, Fault> {
        missing()
    }
    fn files(&self) -> Result<Vec<String>, Fault> {
        missing()
    }
    fn snapshot(&self) -> Result<TreeState, Fault> {
        missing()
    }
    fn changes_since(&self, _commit: Option<&str>, _to: &TreeState) -> Result<TreeDiff, Fault> {
        missing()
    }
    fn changes_between(&self, _from: &WorktreeSnapshot, _to: &TreeState) -> Result<TreeDiff, Fault> {
        missing()
    }
}
