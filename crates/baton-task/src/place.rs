//! Where tasks live: a checkout, the clock, and who asks.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use baton_core::secrets::contains_secret;
use baton_core::task::TaskId;
use baton_core::{ErrorCode, Fault, Timestamp};

use crate::tree::WorkingTree;

/// The folder in the checkout that is Baton's own.
pub const OUTPUT_FOLDER: &str = ".agent-output";

/// The folder below it where whoever answers for the tree keeps what snapshots are made of. It goes with the last context.
pub const OBJECTS_FOLDER: &str = ".objects";

/// The file that holds a task's context.
pub const CONTEXT_FILE: &str = "context.json";

/// How long a verb waits for another process.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// A checkout, the clock, and who asks.
pub struct TaskPlace {
    root: PathBuf,
    tree: Box<dyn WorkingTree + Send + Sync>,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    actor: String,
    pub(crate) lock_timeout: Duration,
}

impl TaskPlace {
    /// Makes a place of the root of a checkout, what answers for its tree, a clock, and who asks when nobody is named.
    pub fn new(
        root: impl Into<PathBuf>,
        tree: impl WorkingTree + Send + Sync + 'static,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
        actor: impl Into<String>,
    ) -> Self {
        Self {
            root: root.into(),
            tree: Box::new(tree),
            clock: Box::new(clock),
            actor: actor.into(),
            lock_timeout: LOCK_TIMEOUT,
        }
    }

    /// Waits for another process no longer than this.
    #[must_use]
    pub const fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Gives the root of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn tree(&self) -> &dyn WorkingTree {
        &*self.tree
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// The folder in the checkout that is Baton's own.
    pub(crate) fn output(&self) -> PathBuf {
        self.root.join(OUTPUT_FOLDER)
    }

    /// The folder of a task. An id cannot lead out of it.
    pub(crate) fn folder(&self, id: &TaskId) -> PathBuf {
        self.output().join(id.as_str())
    }

    /// Checks who acts, or takes who asks.
    pub(crate) fn actor(&self, given: Option<&str>) -> Result<String, Fault> {
        let actor = given.unwrap_or(&self.actor).trim();
        let fits = (1..=128).contains(&actor.chars().count()) && !actor.chars().any(char::is_control);
        if !fits {
            return Err(Fault::invalid("actor", "must be 1 to 128 printable characters"));
        }
        // A name is no place for a secret, so nobody can insist on one.
        if contains_secret(actor) {
            return Err(Fault::new(
                ErrorCode::SecretFound,
                "potential secret detected (actor); nothing was written",
            )
            .hint("name who acts, not how they sign in"));
        }
        Ok(actor.to_owned())
    }
}

impl fmt::Debug for TaskPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskPlace")
            .field("root", &self.root)
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}
