//! The files of one task, read and written. Files that the context refers to are written first and the context last, so
//! that at every moment the context is the old or the new one, and the files it refers to exist.
//!
//! Two locks: a verb holds the lock of its task from beginning to end, and the store lock over everything below
//! `.agent-output/` only while it writes. Reading a large working tree therefore does not block other tasks. The order is
//! always task, then store.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use baton_core::task::{
    Artifact, Encoding, GitBase, MANIFEST_FILE, Manifest, Revision, Role, Source, TaskContext, TaskId,
    derive, export_edges, export_file,
};
use baton_core::{ErrorCode, Fault, Sha256Hash, Timestamp};

use crate::artifact::{Compress, encode};
use crate::content_scan::ContentScan;
use crate::durable::{Batch, failed, make_folder, remove_temporaries, require_folder};
use crate::lock::StoreLock;
use crate::place::{CONTEXT_FILE, OUTPUT_FOLDER, TaskPlace};
use crate::secrets::{Insisting, SecretScan};
use crate::shelf::{KEPT, archived};
use crate::worktree::left_unsaved;

/// The file that says what git ignores.
const IGNORE_FILE: &str = ".gitignore";

/// The folder of the locks of tasks.
const LOCKS_FOLDER: &str = ".locks";

/// Reads a task's context; `None` when there is none.
pub(crate) fn read_context(place: &TaskPlace, id: &TaskId) -> Result<Option<TaskContext>, Fault> {
    let path = place.folder(id).join(CONTEXT_FILE);
    match fs::read(&path) {
        Ok(bytes) => {
            let context =
                TaskContext::from_document(&bytes, &format!("{OUTPUT_FOLDER}/{id}/{CONTEXT_FILE}"))?;
            if context.task_id == *id {
                return Ok(Some(context));
            }
            let message =
                format!("{OUTPUT_FOLDER}/{id}/{CONTEXT_FILE} is the context of {}", context.task_id);
            Err(Fault::new(ErrorCode::TaskCorrupt, message).hint("put the folder back where it belongs"))
        }
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(failed("read", &path, error)),
    }
}

/// Reads a task's context, which must be there.
pub(crate) fn require_context(place: &TaskPlace, id: &TaskId) -> Result<TaskContext, Fault> {
    read_context(place, id)?.ok_or_else(|| no_context(place, id))
}

pub(crate) fn no_context(place: &TaskPlace, id: &TaskId) -> Fault {
    let archived = archived(place).into_iter().rev().find(|archived| archived.task_id == *id);
    if let Some(archived) = archived {
        let folder = archived.folder.strip_prefix(place.root()).unwrap_or(&archived.folder).to_owned();
        let (at, until) = (archived.archived_at, archived.archived_at.plus(KEPT));
        let message =
            format!("{id} was archived at {at}; its files are in {} until {until}", folder.display());
        return Fault::new(ErrorCode::TaskNotFound, message)
            .hint(format!("read them there, or begin again with baton task init-context {id}"));
    }
    Fault::new(ErrorCode::TaskNotFound, format!("{id} has no context here"))
        .hint(format!("make one with baton task init-context {id}; baton task list shows what there is"))
}

/// Takes the store lock, creating the folder if it is missing.
pub(crate) fn lock_store(place: &TaskPlace) -> Result<StoreLock, Fault> {
    let folder = place.output();
    make_folder(&folder)?;
    let lock = StoreLock::take(&folder, place.lock_timeout)?;
    remove_temporaries(&folder);
    ignore(&folder)?;
    Ok(lock)
}

/// Takes the store lock; `None` when the folder does not exist.
pub(crate) fn lock_existing_store(place: &TaskPlace) -> Result<Option<StoreLock>, Fault> {
    match fs::symlink_metadata(place.output()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => lock_store(place).map(Some),
    }
}

/// Takes the lock of a task, which need not exist. The files of these locks are never deleted: two processes would lock two
/// files.
pub(crate) fn lock_task(place: &TaskPlace, id: &TaskId) -> Result<StoreLock, Fault> {
    let folder = task_lock_folder(place, id)?;
    StoreLock::take(&folder, place.lock_timeout)
}

/// Takes the lock of a task if no verb is working on it.
pub(crate) fn try_lock_task(place: &TaskPlace, id: &TaskId) -> Result<Option<StoreLock>, Fault> {
    let folder = task_lock_folder(place, id)?;
    StoreLock::try_take(&folder)
}

fn task_lock_folder(place: &TaskPlace, id: &TaskId) -> Result<PathBuf, Fault> {
    if place.output().join(IGNORE_FILE).symlink_metadata().is_err() {
        drop(lock_store(place)?);
    }
    let locks = place.output().join(LOCKS_FOLDER);
    let folder = locks.join(id.as_str());
    make_folder(&locks)?;
    make_folder(&folder)?;
    Ok(folder)
}

/// Has git ignore the folder unless it has a `.gitignore`: diffs and logs belong into no commit.
fn ignore(folder: &Path) -> Result<(), Fault> {
    if folder.join(IGNORE_FILE).symlink_metadata().is_ok() {
        return Ok(());
    }
    let mut batch = Batch::new(folder);
    batch.add(IGNORE_FILE, b"*\n")?;
    batch.commit()
}

/// A task that is being written: its lock, the context, and the files that go with the next version of it.
pub(crate) struct Draft<'a> {
    place: &'a TaskPlace,
    folder: PathBuf,
    /// What will be written.
    pub(crate) context: TaskContext,
    /// When the verb began.
    pub(crate) now: Timestamp,
    /// Who acts.
    pub(crate) actor: String,
    /// What a person should know.
    pub(crate) warnings: Vec<String>,
    verb: &'static str,
    files: Vec<(String, Vec<u8>)>,
    scan: SecretScan,
    force_secrets: bool,
    /// What the exports on disk were derived from; `None` for a new task.
    derived_from: Option<DerivedFrom>,
    task_lock: StoreLock,
}

/// The parts of a context that exports and manifest are derived from.
#[derive(Debug, PartialEq, Eq)]
struct DerivedFrom {
    revision: Revision,
    git: GitBase,
    pipeline: Vec<Role>,
    sources: Vec<Source>,
}

impl DerivedFrom {
    fn of(context: &TaskContext) -> Self {
        Self {
            revision: context.immutable_revision.clone(),
            git: context.git.clone(),
            pipeline: context.pipeline.clone(),
            sources: context.sources.clone(),
        }
    }
}

/// Both locks, held after the context was saved.
#[derive(Debug)]
pub(crate) struct SavedLocks {
    _store: StoreLock,
    _task: StoreLock,
}

/// Who writes, and how.
pub(crate) struct Writing<'a> {
    /// The verb, for the audit.
    pub(crate) verb: &'static str,
    /// Who acts, when somebody is named.
    pub(crate) actor: Option<&'a str>,
    /// Whether findings of the secret scan are overruled.
    pub(crate) force_secrets: bool,
}

impl<'a> Draft<'a> {
    /// Opens an existing task.
    pub(crate) fn open(place: &'a TaskPlace, id: &TaskId, writing: &Writing<'_>) -> Result<Self, Fault> {
        let actor = place.actor(writing.actor)?;
        // A task without a context gets no lock file.
        let folder = place.folder(id);
        match fs::symlink_metadata(&folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Err(no_context(place, id)),
            _ => require_folder(&place.output())?,
        }
        let task_lock = lock_task(place, id)?;
        let context = require_context(place, id)?;
        require_folder(&folder)?;
        let derived_from = Some(DerivedFrom::of(&context));
        Ok(Self { derived_from, ..Self::of(place, folder, context, task_lock, actor, writing) })
    }

    /// Begins a new task whose lock is held.
    pub(crate) fn begin(
        place: &'a TaskPlace,
        context: TaskContext,
        task_lock: StoreLock,
        writing: &Writing<'_>,
    ) -> Result<Self, Fault> {
        let actor = place.actor(writing.actor)?;
        let folder = place.folder(&context.task_id);
        Ok(Self::of(place, folder, context, task_lock, actor, writing))
    }

    fn of(
        place: &'a TaskPlace,
        folder: PathBuf,
        context: TaskContext,
        task_lock: StoreLock,
        actor: String,
        writing: &Writing<'_>,
    ) -> Self {
        Self {
            place,
            folder,
            context,
            now: place.now(),
            actor,
            warnings: Vec::new(),
            verb: writing.verb,
            files: Vec::new(),
            scan: SecretScan::default(),
            force_secrets: writing.force_secrets,
            derived_from: None,
            task_lock,
        }
    }

    pub(crate) const fn place(&self) -> &'a TaskPlace {
        self.place
    }

    /// Warns when a role that holds the task gives it up and left work that is in no snapshot.
    pub(crate) fn warn_of_unsaved(&mut self, role: &Role) -> Result<(), Fault> {
        if let Some(unsaved) = left_unsaved(self.place, &self.context, role)? {
            let id = &self.context.task_id;
            self.warnings.push(format!(
                "{unsaved}; that is drift for the next role, to be settled with baton task resolve-drift {id} --note TEXT"
            ));
        }
        Ok(())
    }

    /// Refuses to give the task up while the role that holds it has work that is in no snapshot.
    pub(crate) fn require_saved(&self, role: &Role) -> Result<(), Fault> {
        let Some(unsaved) = left_unsaved(self.place, &self.context, role)? else { return Ok(()) };
        let id = &self.context.task_id;
        Err(Fault::new(ErrorCode::TaskConflict, format!("cannot give up {id} as {role}: {unsaved}"))
            .hint(format!("take a snapshot first: baton task snapshot-worktree {id} --agent {role}")))
    }

    /// Writes the files that were kept so far, before anything that they are a copy of changes.
    pub(crate) fn write_kept(&mut self) -> Result<(), Fault> {
        let _store = lock_store(self.place)?;
        let mut batch = Batch::new(&self.folder);
        for (name, bytes) in self.files.drain(..) {
            batch.add(&name, &bytes)?;
        }
        batch.commit()
    }

    /// Begins to look through files of the checkout that will be kept.
    pub(crate) fn content_scan(&self) -> ContentScan {
        ContentScan::new(&self.context.audit.accepted_secrets, self.force_secrets)
    }

    /// Looks through what will be written.
    pub(crate) const fn scan(&mut self) -> &mut SecretScan {
        &mut self.scan
    }

    /// Keeps a file with the next version of the context. Whoever asks has looked through it for secrets.
    pub(crate) fn keep(
        &mut self,
        name: &str,
        extension: &str,
        bytes: &[u8],
        compress: Compress,
    ) -> Result<Artifact, Fault> {
        self.context.artifact_count += 1;
        let (stored, encoding) = encode(bytes, compress)?;
        let suffix = if encoding == Encoding::Gzip { ".gz" } else { "" };
        let file = format!("{:04}-{name}.{extension}{suffix}", self.context.artifact_count);
        let artifact = Artifact {
            path: format!("{OUTPUT_FOLDER}/{}/{file}", self.context.task_id),
            sha256: Sha256Hash::of(bytes),
            stored_sha256: Sha256Hash::of(&stored),
            size_bytes: bytes.len() as u64,
            encoding,
        };
        self.files.push((file, stored));
        Ok(artifact)
    }

    /// Writes the files, then what is derived from the context if that changed, then the context.
    pub(crate) fn save(self) -> Result<(TaskContext, Vec<String>), Fault> {
        self.save_and_hold().map(|(context, warnings, _)| (context, warnings))
    }

    /// Saves and returns both locks.
    pub(crate) fn save_and_hold(mut self) -> Result<(TaskContext, Vec<String>, SavedLocks), Fault> {
        let by = Insisting { verb: self.verb, actor: &self.actor, now: self.now };
        let scan = std::mem::take(&mut self.scan);
        self.warnings.extend(scan.settle(&mut self.context, self.force_secrets, &by)?);
        let head = self.place.tree().head()?.commit;
        self.context.stamp(self.verb, self.now, &self.actor, head);
        let document = self.context.to_document()?;
        let store = lock_store(self.place)?;
        remove_temporaries(&self.folder);
        let same = self.derived_from.as_ref() == Some(&DerivedFrom::of(&self.context));
        let derived = if same && exports_are_current(&self.folder, &self.context) {
            Vec::new()
        } else {
            derive(&self.context)?
        };
        let derived = if stale_files(&self.folder, &derived).is_empty() { Vec::new() } else { derived };
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
        if !derived.is_empty() {
            remove_former_exports(&self.folder, &derived);
        }
        let locks = SavedLocks { _store: store, _task: self.task_lock };
        Ok((self.context, self.warnings, locks))
    }
}

/// Says which exports and which manifest are not those of a context, and why. A crash may leave those of one that never
/// came to be, and anybody may edit or remove them.
pub(crate) fn derived_problems(place: &TaskPlace, context: &TaskContext) -> Result<Vec<String>, Fault> {
    if exports_are_current(&place.folder(&context.task_id), context) {
        return Ok(Vec::new());
    }
    let folder = format!("{OUTPUT_FOLDER}/{}", context.task_id);
    let derived = derive(context)?;
    let stale = stale_files(&place.folder(&context.task_id), &derived);
    Ok(stale.into_iter().map(|(name, problem)| format!("{folder}/{name} {problem}")).collect())
}

/// Returns true if the manifest is that of the context, and every export has the hash that the manifest says and begins and
/// ends as the context says. The frozen part between is covered by the hash in the manifest.
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
        Ok(_) => Some((name.as_str(), "is not as it was written")),
        Err(_) => Some((name.as_str(), "is missing")),
    };
    derived.iter().filter_map(problem).collect()
}

/// Removes the exports of roles that a context had and has no more. One that cannot be removed is in no manifest.
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
