//! The files of one task, read and written. Whoever writes holds the lock, writes what is referred to first, and the
//! context last: at every moment it is the old one or the new one, and what it refers to exists.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use baton_core::task::{Artifact, Encoding, Role, TaskContext, TaskId, derive};
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

/// Takes the lock over everything below `.agent-output/`, making that folder if need be.
pub(crate) fn lock(place: &TaskPlace) -> Result<StoreLock, Fault> {
    let folder = place.output();
    make_folder(&folder)?;
    let lock = StoreLock::take(&folder, place.lock_timeout)?;
    remove_temporaries(&folder);
    ignore(&folder)?;
    Ok(lock)
}

/// Has git ignore the folder, unless somebody wrote what it ignores there: diffs and logs belong into no commit.
fn ignore(folder: &Path) -> Result<(), Fault> {
    if folder.join(IGNORE_FILE).symlink_metadata().is_ok() {
        return Ok(());
    }
    let mut batch = Batch::new(folder);
    batch.add(IGNORE_FILE, b"*\n")?;
    batch.commit()
}

/// Takes the lock if there is anything to lock.
pub(crate) fn lock_existing(place: &TaskPlace) -> Result<Option<StoreLock>, Fault> {
    match fs::symlink_metadata(place.output()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => {
            let folder = place.output();
            require_folder(&folder)?;
            let lock = StoreLock::take(&folder, place.lock_timeout)?;
            remove_temporaries(&folder);
            ignore(&folder)?;
            Ok(Some(lock))
        }
    }
}

/// A task that is being written: the lock, the context, and the files that go with the next version of it.
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
    lock: StoreLock,
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
        // Who asks for a task that is not there leaves no trace.
        let lock = lock_existing(place)?.ok_or_else(|| no_context(place, id))?;
        let context = require_context(place, id)?;
        let folder = place.folder(id);
        require_folder(&folder)?;
        remove_temporaries(&folder);
        Ok(Self::of(place, folder, context, lock, actor, writing))
    }

    /// Begins a new task. `lock` proves that nobody else does.
    pub(crate) fn begin(
        place: &'a TaskPlace,
        context: TaskContext,
        lock: StoreLock,
        writing: &Writing<'_>,
    ) -> Result<Self, Fault> {
        let actor = place.actor(writing.actor)?;
        let folder = place.folder(&context.task_id);
        Ok(Self::of(place, folder, context, lock, actor, writing))
    }

    fn of(
        place: &'a TaskPlace,
        folder: PathBuf,
        context: TaskContext,
        lock: StoreLock,
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
            lock,
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

    /// The same, and goes on holding the lock.
    pub(crate) fn save_and_hold(mut self) -> Result<(TaskContext, Vec<String>, StoreLock), Fault> {
        let by = Insisting { verb: self.verb, actor: &self.actor, now: self.now };
        let scan = std::mem::take(&mut self.scan);
        self.warnings.extend(scan.settle(&mut self.context, self.force_secrets, &by)?);
        let head = self.place.tree().head()?.commit;
        self.context.stamp(self.verb, self.now, &self.actor, head);
        let document = self.context.to_document()?;
        let derived = derive(&self.context)?;
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
        Ok((self.context, self.warnings, self.lock))
    }
}

/// Says which exports and which manifest are not those of a context, and why. A crash may leave those of one that never
/// came to be, and anybody may edit or remove them.
pub(crate) fn derived_problems(place: &TaskPlace, context: &TaskContext) -> Result<Vec<String>, Fault> {
    let folder = format!("{OUTPUT_FOLDER}/{}", context.task_id);
    let derived = derive(context)?;
    let stale = stale_files(&place.folder(&context.task_id), &derived);
    Ok(stale.into_iter().map(|(name, problem)| format!("{folder}/{name} {problem}")).collect())
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
