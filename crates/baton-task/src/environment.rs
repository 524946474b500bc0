//! Environment of task operations: the checkout, its working tree, a clock and the default actor.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use baton_core::task::TaskId;
use baton_core::{ErrorCode, Fault, Repo, Timestamp};
use baton_secrets::contains_secret;

use crate::rules::TaskContext;
use crate::task_state::{SavedState, TaskState};
use crate::working_tree::WorkingTree;

/// Folder in the checkout that holds Baton's files.
pub const OUTPUT_FOLDER: &str = ".agent-output";

/// Folder below [`OUTPUT_FOLDER`] with the objects of snapshots. It is removed with the last context.
pub const OBJECTS_FOLDER: &str = ".objects";

pub const CONTEXT_FILE: &str = "context.json";

/// Timeout for a lock that another process holds.
const LOCK_TIMEOUT: Duration = Duration::from_secs(10);

/// Environment of task operations: the checkout, its working tree, a clock and the default actor.
pub struct TaskEnvironment {
    root: PathBuf,
    tree: Box<dyn WorkingTree + Send + Sync>,
    clock: Box<dyn Fn() -> Timestamp + Send + Sync>,
    actor: String,
    pub(crate) lock_timeout: Duration,
    /// State of the task that was saved last.
    saved: Mutex<Option<SavedState>>,
}

impl TaskEnvironment {
    /// Creates an environment. `root` is the root of the checkout, `actor` the default actor.
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
            saved: Mutex::new(None),
        }
    }

    /// Sets the lock timeout, for tests.
    #[must_use]
    pub const fn with_lock_timeout(mut self, timeout: Duration) -> Self {
        self.lock_timeout = timeout;
        self
    }

    /// Returns the root of the checkout.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Returns the name of the repository; `None` if it has none or cannot be read.
    pub fn repository_name(&self) -> Option<Repo> {
        self.tree.repository_name()
    }

    /// Remembers the state of a context that was just written. The caller must hold the lock of the task.
    pub(crate) fn set_saved(&self, context: &TaskContext) {
        let state = SavedState::of(context, &self.context_file(&context.task_id));
        *self.saved.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Returns the state of a task if this process saved it last.
    pub(crate) fn saved(&self, id: &TaskId) -> Option<TaskState> {
        let saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        saved.as_ref()?.current(id, &self.context_file(id))
    }

    pub(crate) fn tree(&self) -> &dyn WorkingTree {
        &*self.tree
    }

    pub(crate) fn now(&self) -> Timestamp {
        (self.clock)()
    }

    /// Returns the path of [`OUTPUT_FOLDER`].
    pub(crate) fn output(&self) -> PathBuf {
        self.root.join(OUTPUT_FOLDER)
    }

    /// Returns the folder of a task. It is always inside the output folder, because ids contain no path separators.
    pub(crate) fn folder(&self, id: &TaskId) -> PathBuf {
        self.output().join(id.as_str())
    }

    /// Returns the path of the context of a task.
    pub(crate) fn context_file(&self, id: &TaskId) -> PathBuf {
        self.folder(id).join(CONTEXT_FILE)
    }

    /// Validates the given actor, or returns the default actor.
    pub(crate) fn actor(&self, given: Option<&str>) -> Result<String, Fault> {
        let actor = given.unwrap_or(&self.actor).trim();
        let fits = (1..=128).contains(&actor.chars().count()) && !actor.chars().any(char::is_control);
        if !fits {
            return Err(Fault::invalid("actor", "must be 1 to 128 printable characters"));
        }
        // Not even `force_secrets` accepts a secret in a name.
        if contains_secret(actor) {
            return Err(Fault::new(
                ErrorCode::SecretFound,
                "potential secret detected (actor); nothing was written",
            )
            .hint("use the name of the actor, not a credential"));
        }
        Ok(actor.to_owned())
    }
}

impl fmt::Debug for TaskEnvironment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskEnvironment")
            .field("root", &self.root)
            .field("actor", &self.actor)
            .finish_non_exhaustive()
    }
}
