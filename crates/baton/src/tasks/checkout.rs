//! The checkout that `baton task` works on, and the actor of its operations.

use std::path::{Path, PathBuf};

use baton_app::{Clock, SystemClock};
use baton_core::ErrorCode;
use baton_task::TaskEnvironment;

use super::git_tree::GitTree;
use crate::checkout::{find_root, normalize};
use crate::config::Config;
use crate::exit::Exit;
use crate::output::Failure;

/// The checkout that contains the working folder.
pub(crate) struct Checkout {
    pub(crate) environment: TaskEnvironment,
    cwd: PathBuf,
}

impl Checkout {
    /// Finds the checkout that contains the working folder.
    pub(crate) fn open(config: &Config) -> Result<Self, Failure> {
        let cwd = std::env::current_dir()
            .map_err(|error| Failure::internal(format!("cannot determine the working folder: {error}")))?;
        let root = find_root(&cwd).ok_or_else(|| {
            Failure::new(
                Exit::NotFound,
                ErrorCode::NotFound.as_str(),
                format!("{} is not in a checkout of a git repository", cwd.display()),
            )
            .hint("run the command in the checkout of the task")
        })?;
        Ok(Self { environment: task_environment(&root, &actor(config)), cwd })
    }

    /// Resolves a path from the working folder and returns it from the root of the checkout. A path outside of the
    /// checkout is returned as an absolute path.
    pub(crate) fn path(&self, given: &str) -> String {
        let full = normalize(&self.cwd.join(given));
        let inside = full.strip_prefix(self.environment.root()).ok().and_then(Path::to_str);
        inside.map_or_else(|| full.to_string_lossy().into_owned(), str::to_owned)
    }
}

/// Returns the environment for task operations on a checkout, with git as the working tree.
pub(crate) fn task_environment(root: &Path, actor: &str) -> TaskEnvironment {
    TaskEnvironment::new(root, GitTree::at(root), || SystemClock.now(), actor)
}

/// Returns the default actor: the configured agent, otherwise the user name.
pub(crate) fn actor(config: &Config) -> String {
    let agent = config.agent.as_ref().map(|agent| agent.as_str().to_owned());
    agent.unwrap_or_else(user_name)
}

/// Returns the name of the user. Jobs and containers often run without the variables, so the user database is asked
/// too.
fn user_name() -> String {
    let given = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
    let user_id = rustix::process::geteuid().as_raw();
    let listed = || name_in(&std::fs::read_to_string("/etc/passwd").ok()?, user_id);
    let named = given.map(|name| name.trim().to_owned()).find(|name| !name.is_empty());
    named.or_else(listed).unwrap_or_else(|| format!("uid-{user_id}"))
}

/// Finds the name of a user in the lines of `/etc/passwd`: `name:password:user id:…`.
fn name_in(passwd: &str, user_id: u32) -> Option<String> {
    let id = user_id.to_string();
    let fields = |line: &str| Some((line.split(':').next()?.to_owned(), line.split(':').nth(2)?.to_owned()));
    let mut users = passwd.lines().filter_map(fields);
    users.find(|(name, listed)| *listed == id && !name.is_empty()).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn user_name_is_found_in_passwd_by_id() {
        let passwd =
            "root:x:0:0:root:/root:/bin/sh\n# a comment\n:x:7::\nada:x:1000:1000::/home/ada:/bin/sh\n";
        assert_eq!(name_in(passwd, 1000).as_deref(), Some("ada"));
        assert_eq!(name_in(passwd, 0).as_deref(), Some("root"));
        assert_eq!((name_in(passwd, 7), name_in(passwd, 100)), (None, None));
    }
}
