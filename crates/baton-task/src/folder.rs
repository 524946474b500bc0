//! Reads and writes the files of one task. Files that the context refers to are written before the context, so that the
//! context is always the old or the new one, and the files that it refers to exist.
//!
//! Two locks: a verb holds the lock of its task from beginning to end, and the store lock over everything below
//! `.agent-output/` only while it writes. Reading a large working tree therefore does not block other tasks. The order
//! is always task, then store.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use baton_core::task::{Role, TaskId};
use baton_core::{ErrorCode, Fault, Sha256Hash, Timestamp};

use crate::archive::{RETENTION, archived};
use crate::artifact::{Compress, choose_encoding, encode, write_file};
use crate::content_scan::ContentScan;
use crate::durable::{Batch, failed, make_folder, remove_temporaries, require_folder};
use crate::environment::{CONTEXT_FILE, OUTPUT_FOLDER, TaskEnvironment};
use crate::lock::FolderLock;
use crate::operation::{OnCheckout, Operation};
use crate::rules::{
    Artifact, Encoding, MANIFEST_FILE, Manifest, RoleState, TaskContext, derive, export_edges, export_file,
};
use crate::secrets::{AuditStamp, SecretScan};
use crate::state::SavedState;
use crate::worktree::describe_unsaved;

const IGNORE_FILE: &str = ".gitignore";

/// Folder of the task locks.
const LOCKS_FOLDER: &str = ".locks";

/// Reads the context of a task; `None` if the task has no context.
pub(crate) fn read_context(environment: &TaskEnvironment, id: &TaskId) -> Result<Option<TaskContext>, Fault> {
    let path = environment.folder(id).join(CONTEXT_FILE);
    match fs::read(&path) {
        Ok(bytes) => {
            let context =
                TaskContext::from_document(&bytes, &format!("{OUTPUT_FOLDER}/{id}/{CONTEXT_FILE}"))?;
            if context.task_id == *id {
                return Ok(Some(context));
            }
            let message =
                format!("{OUTPUT_FOLDER}/{id}/{CONTEXT_FILE} is the context of {}", context.task_id);
            Err(Fault::new(ErrorCode::TaskCorrupt, message)
                .hint("move the folder back to its original place"))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(failed("read", &path, error)),
    }
}

/// Reads the context of a task; a missing context is an error.
pub(crate) fn require_context(environment: &TaskEnvironment, id: &TaskId) -> Result<TaskContext, Fault> {
    read_context(environment, id)?.ok_or_else(|| no_context(environment, id))
}

pub(crate) fn no_context(environment: &TaskEnvironment, id: &TaskId) -> Fault {
    let archived = archived(environment).into_iter().rev().find(|archived| archived.task_id == *id);
    if let Some(archived) = archived {
        let folder = archived.folder.strip_prefix(environment.root()).unwrap_or(&archived.folder).to_owned();
        let (at, until) = (archived.archived_at, archived.archived_at.plus(RETENTION));
        let message =
            format!("{id} was archived at {at}; its files are in {} until {until}", folder.display());
        return Fault::new(ErrorCode::TaskNotFound, message)
            .hint(format!("read them there, or start again with baton task init-context {id}"));
    }
    Fault::new(ErrorCode::TaskNotFound, format!("{id} has no context here")).hint(format!(
        "create one with baton task init-context {id}; baton task list shows the existing tasks"
    ))
}

/// Acquires the store lock and creates the folder if it is missing.
pub(crate) fn lock_store(environment: &TaskEnvironment) -> Result<FolderLock, Fault> {
    let folder = environment.output();
    make_folder(&folder)?;
    let lock = FolderLock::take(&folder, environment.lock_timeout)?;
    remove_temporaries(&folder);
    write_gitignore(&folder)?;
    Ok(lock)
}

/// Acquires the store lock; `None` if the folder does not exist.
pub(crate) fn lock_existing_store(environment: &TaskEnvironment) -> Result<Option<FolderLock>, Fault> {
    match fs::symlink_metadata(environment.output()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => lock_store(environment).map(Some),
    }
}

/// Acquires the lock of a task; the task need not exist. Lock files are never deleted, because two processes could then
/// lock two different files.
pub(crate) fn lock_task(environment: &TaskEnvironment, id: &TaskId) -> Result<FolderLock, Fault> {
    let folder = task_lock_folder(environment, id)?;
    FolderLock::take(&folder, environment.lock_timeout)
}

/// Acquires the lock of a task; `None` if another verb holds it.
pub(crate) fn try_lock_task(environment: &TaskEnvironment, id: &TaskId) -> Result<Option<FolderLock>, Fault> {
    let folder = task_lock_folder(environment, id)?;
    FolderLock::try_take(&folder)
}

fn task_lock_folder(environment: &TaskEnvironment, id: &TaskId) -> Result<PathBuf, Fault> {
    if environment.output().join(IGNORE_FILE).symlink_metadata().is_err() {
        drop(lock_store(environment)?);
    }
    let locks = environment.output().join(LOCKS_FOLDER);
    let folder = locks.join(id.as_str());
    make_folder(&locks)?;
    make_folder(&folder)?;
    Ok(folder)
}

/// Writes a `.gitignore` unless the folder has one, because diffs and logs must not be committed.
fn write_gitignore(folder: &Path) -> Result<(), Fault> {
    if folder.join(IGNORE_FILE).symlink_metadata().is_ok() {
        return Ok(());
    }
    let mut batch = Batch::new(folder);
    batch.add(IGNORE_FILE, b"*\n")?;
    batch.commit()
}

/// A task that is being changed: its lock, the new context, and the files to write with it.
pub(crate) struct Draft<'a> {
    environment: &'a TaskEnvironment,
    folder: PathBuf,
    /// The context that will be written.
    pub(crate) context: TaskContext,
    /// Start time of the verb.
    pub(crate) now: Timestamp,
    /// Actor to record.
    pub(crate) actor: String,
    /// Warnings for the caller.
    pub(crate) warnings: Vec<String>,
    verb: String,
    files: Vec<(String, Vec<u8>)>,
    scan: SecretScan,
    force_secrets: bool,
    task_lock: FolderLock,
}

/// Both locks, held after the context was saved.
#[derive(Debug)]
pub(crate) struct SavedLocks {
    _store: FolderLock,
    _task: FolderLock,
}

/// Options of a change.
pub(crate) struct WriteOptions<'a> {
    /// Verb to record in the audit.
    verb: String,
    /// Actor to record; the default actor if `None`.
    actor: Option<&'a str>,
    /// If true, findings of the secret scan are accepted and recorded.
    force_secrets: bool,
}

impl<'a> WriteOptions<'a> {
    /// Options of a change by an operation. Findings of the secret scan are rejected.
    pub(crate) fn of<O: Operation<OnCheckout>>(actor: &'a Option<String>) -> Self {
        let verb = O::NAME.trim_start_matches("task.").replace('_', "-");
        Self { verb, actor: actor.as_deref(), force_secrets: false }
    }

    /// Sets whether findings of the secret scan are accepted and recorded.
    pub(crate) fn accepting_secrets(self, force_secrets: bool) -> Self {
        Self { force_secrets, ..self }
    }
}

impl<'a> Draft<'a> {
    /// Opens an existing task.
    pub(crate) fn open(
        environment: &'a TaskEnvironment,
        id: &TaskId,
        options: &WriteOptions<'_>,
    ) -> Result<Self, Fault> {
        environment.actor(options.actor)?;
        // A task without a context gets no lock file.
        let folder = environment.folder(id);
        match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(no_context(environment, id)),
            _ => require_folder(&environment.output())?,
        }
        let task_lock = lock_task(environment, id)?;
        environment.tree().prepare();
        let context = require_context(environment, id)?;
        require_folder(&folder)?;
        Self::begin(environment, context, task_lock, options)
    }

    /// Starts to change a task whose lock the caller holds.
    pub(crate) fn begin(
        environment: &'a TaskEnvironment,
        mut context: TaskContext,
        task_lock: FolderLock,
        options: &WriteOptions<'_>,
    ) -> Result<Self, Fault> {
        let folder = environment.folder(&context.task_id);
        // A call that failed can have left files with higher numbers than the context has.
        context.artifact_count = context.artifact_count.max(last_number(&folder));
        Ok(Self {
            environment,
            folder,
            context,
            now: environment.now(),
            actor: environment.actor(options.actor)?,
            warnings: Vec::new(),
            verb: options.verb.clone(),
            files: Vec::new(),
            scan: SecretScan::default(),
            force_secrets: options.force_secrets,
            task_lock,
        })
    }

    pub(crate) const fn environment(&self) -> &'a TaskEnvironment {
        self.environment
    }

    /// Returns the state of a role that this verb works on, and records the actor in it.
    pub(crate) fn role(&mut self, role: &Role) -> Result<&mut RoleState, Fault> {
        let state = self.context.role_mut(role)?;
        state.actor = Some(self.actor.clone());
        Ok(state)
    }

    /// Adds a warning if the role holds the task and the tree has changes that are in no snapshot.
    pub(crate) fn warn_of_unsaved(&mut self, role: &Role) -> Result<(), Fault> {
        if let Some(unsaved) = describe_unsaved(self.environment, &self.context, role)? {
            let id = &self.context.task_id;
            self.warnings.push(format!(
                "{unsaved}; this is drift for the next role; resolve it then with baton task resolve-drift {id} --note TEXT"
            ));
        }
        Ok(())
    }

    /// Returns an error if the role holds the task and the tree has changes that are in no snapshot.
    pub(crate) fn require_saved(&self, role: &Role) -> Result<(), Fault> {
        let Some(unsaved) = describe_unsaved(self.environment, &self.context, role)? else { return Ok(()) };
        let id = &self.context.task_id;
        Err(Fault::new(ErrorCode::TaskConflict, format!("cannot release {id} as {role}: {unsaved}"))
            .hint(format!("take a snapshot first: baton task snapshot-worktree {id} --agent {role}")))
    }

    /// Returns the folder of the task.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Stores content at once, before its original is changed. The caller must have scanned it for secrets.
    pub(crate) fn keep_now(
        &mut self,
        name: &str,
        extension: &str,
        content: &mut dyn Read,
    ) -> Result<Artifact, Fault> {
        let _store = lock_store(self.environment)?;
        let (encoding, content) =
            choose_encoding(content).map_err(|error| failed("write", &self.folder, error))?;
        let (file_name, path) = self.next_file(name, extension, encoding);
        let full = self.folder.join(file_name);
        let written = write_file(&full, encoding, content).map_err(|error| failed("write", &full, error))?;
        Ok(Artifact { path, ..written })
    }

    /// Returns name and path of the next file of the task.
    fn next_file(&mut self, name: &str, extension: &str, encoding: Encoding) -> (String, String) {
        self.context.artifact_count += 1;
        let suffix = if encoding == Encoding::Gzip { ".gz" } else { "" };
        let file = format!("{:04}-{name}.{extension}{suffix}", self.context.artifact_count);
        let path = format!("{OUTPUT_FOLDER}/{}/{file}", self.context.task_id);
        (file, path)
    }

    /// Creates a secret scan for files of the checkout whose content will be stored.
    pub(crate) fn content_scan(&self) -> ContentScan {
        ContentScan::new(&self.context.audit.accepted_secrets, self.force_secrets)
    }

    /// Returns the secret scan of the text that will be written.
    pub(crate) const fn scan(&mut self) -> &mut SecretScan {
        &mut self.scan
    }

    /// Adds a file to write with the context. The caller must have scanned it for secrets.
    pub(crate) fn keep(
        &mut self,
        name: &str,
        extension: &str,
        bytes: &[u8],
        compress: Compress,
    ) -> Result<Artifact, Fault> {
        let (stored, artifact) = encode(bytes, compress)?;
        Ok(self.keep_encoded(name, extension, stored, artifact))
    }

    /// Adds a file that is already encoded.
    pub(crate) fn keep_encoded(
        &mut self,
        name: &str,
        extension: &str,
        stored: Vec<u8>,
        artifact: Artifact,
    ) -> Artifact {
        let (file, path) = self.next_file(name, extension, artifact.encoding);
        self.files.push((file, stored));
        Artifact { path, ..artifact }
    }

    /// Writes the added files, then the derived files if they changed, then the context.
    pub(crate) fn save(self) -> Result<(TaskContext, Vec<String>), Fault> {
        self.save_and_hold().map(|(context, warnings, _)| (context, warnings))
    }

    /// Saves and returns both locks.
    pub(crate) fn save_and_hold(mut self) -> Result<(TaskContext, Vec<String>, SavedLocks), Fault> {
        let stamp = AuditStamp { verb: &self.verb, actor: &self.actor, now: self.now };
        let scan = std::mem::take(&mut self.scan);
        self.warnings.extend(scan.check(&mut self.context, self.force_secrets, &stamp)?);
        let head = self.environment.tree().head()?.commit;
        self.context.stamp(&self.verb, self.now, &self.actor, head);
        let document = self.context.to_document()?;
        let store = lock_store(self.environment)?;
        remove_temporaries(&self.folder);
        let derived = if exports_are_current(&self.folder, &self.context) {
            Vec::new()
        } else {
            derive(&self.context)?
        };
        make_folder(&self.folder)?;
        let mut batch = Batch::new(&self.folder);
        for (name, bytes) in &self.files {
            batch.add(name, bytes)?;
        }
        for (name, text) in &derived {
            batch.add(name, text.as_bytes())?;
        }
        batch.commit()?;
        let mut last = Batch::new(&self.folder);
        last.add(CONTEXT_FILE, document.as_bytes())?;
        last.commit()?;
        self.environment.set_saved(SavedState::of(&self.context, &self.folder));
        if !derived.is_empty() {
            remove_former_exports(&self.folder, &derived);
        }
        let locks = SavedLocks { _store: store, _task: self.task_lock };
        Ok((self.context, self.warnings, locks))
    }
}

/// Returns the highest number of an artifact in a folder.
pub(crate) fn last_number(folder: &Path) -> u64 {
    let names = fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let number =
        |name: std::ffi::OsString| name.to_str()?.split_once('-')?.0.parse::<u32>().ok().map(u64::from);
    names.filter_map(number).max().unwrap_or(0)
}

/// Lists exports and manifests that do not match the context, with the problem. A crash can leave the files of a
/// context that was never written, and users can edit or remove them.
pub(crate) fn derived_problems(
    environment: &TaskEnvironment,
    context: &TaskContext,
) -> Result<Vec<String>, Fault> {
    if exports_are_current(&environment.folder(&context.task_id), context) {
        return Ok(Vec::new());
    }
    let folder = format!("{OUTPUT_FOLDER}/{}", context.task_id);
    let derived = derive(context)?;
    let stale = stale_files(&environment.folder(&context.task_id), &derived);
    Ok(stale.into_iter().map(|(name, problem)| format!("{folder}/{name} {problem}")).collect())
}

/// Returns true if the manifest matches the context, and every export has the hash of the manifest and the beginning
/// and end derived from the context. The frozen part in between is covered by the hash.
fn exports_are_current(folder: &Path, context: &TaskContext) -> bool {
    let manifest = fs::read(folder.join(MANIFEST_FILE)).ok();
    let Some(manifest) = manifest.and_then(|bytes| serde_json::from_slice::<Manifest>(&bytes).ok()) else {
        return false;
    };
    let is_current = |role: &Role| {
        let name = export_file(role);
        let (Ok(bytes), Ok((before, after))) = (fs::read(folder.join(&name)), export_edges(context, role))
        else {
            return false;
        };
        manifest.derived.get(&name) == Some(&Sha256Hash::of(&bytes))
            && bytes.starts_with(before.as_bytes())
            && bytes.ends_with(after.as_bytes())
    };
    manifest.immutable_sha256 == context.immutable_revision.sha256
        && manifest.immutable_revision == context.immutable_revision.number
        && manifest.sources == context.sources
        && manifest.derived.len() == context.pipeline.len()
        && context.pipeline.iter().all(is_current)
}

fn stale_files<'a>(folder: &Path, derived: &'a [(String, String)]) -> Vec<(&'a str, &'static str)> {
    let problem = |(name, text): &'a (String, String)| match fs::read(folder.join(name)) {
        Ok(bytes) if bytes == text.as_bytes() => None,
        Ok(_) => Some((name.as_str(), "was modified")),
        Err(_) => Some((name.as_str(), "is missing")),
    };
    derived.iter().filter_map(problem).collect()
}

/// Removes exports of roles that the context no longer has. A file that cannot be removed is not in the manifest.
fn remove_former_exports(folder: &Path, derived: &[(String, String)]) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let is_export =
            name.to_str().is_some_and(|name| name.starts_with("context-") && name.ends_with(".json"));
        if is_export && !derived.iter().any(|(known, _)| name.to_str() == Some(known)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}
