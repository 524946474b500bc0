//! The files of one task, read and written. Whoever writes holds the lock, writes what is referred to first, and the
//! context last: at every moment it is the old one or the new one, and what it refers to exists.

use std::fs;
use std::io::ErrorKind;
use std::path::PathBuf;

use baton_core::task::{Artifact, Encoding, MANIFEST_FILE, Manifest, TaskContext, TaskId, derive};
use baton_core::{ErrorCode, Fault, Sha256Hash, Timestamp};

use crate::artifact::{Compress, encode};
use crate::content_scan::ContentScan;
use crate::durable::{Batch, failed, make_folder, remove_temporaries, require_folder};
use crate::lock::StoreLock;
use crate::place::{CONTEXT_FILE, OUTPUT_FOLDER, TaskPlace};
use crate::secrets::{Insisting, SecretScan};

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
    read_context(place, id)?.ok_or_else(|| no_context(id))
}

pub(crate) fn no_context(id: &TaskId) -> Fault {
    Fault::new(ErrorCode::TaskNotFound, format!("{id} has no context here"))
        .hint(format!("make one with baton task init-context {id}; baton task list shows what there is"))
}

/// Takes the lock over everything below `.agent-output/`, making that folder if need be. A new one is ignored by git:
/// diffs and logs belong into no commit.
pub(crate) fn lock(place: &TaskPlace) -> Result<StoreLock, Fault> {
    let folder = place.output();
    let is_new = folder.symlink_metadata().is_err();
    make_folder(&folder)?;
    if is_new {
        let mut batch = Batch::new(&folder);
        batch.add(".gitignore", b"*\n")?;
        batch.commit()?;
    }
    StoreLock::take(&place.output(), place.lock_timeout)
}

/// Takes the lock if there is anything to lock.
pub(crate) fn lock_existing(place: &TaskPlace) -> Result<Option<StoreLock>, Fault> {
    match fs::symlink_metadata(place.output()) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        _ => {
            require_folder(&place.output())?;
            StoreLock::take(&place.output(), place.lock_timeout).map(Some)
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
        let lock = lock_existing(place)?.ok_or_else(|| no_context(id))?;
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

    /// Begins to look through files of the checkout that will be kept.
    pub(crate) fn content_scan(&self) -> ContentScan {
        ContentScan::new(&self.context.audit.accepted_secrets, self.force_secrets)
    }

    /// Looks through what will be written.
    pub(crate) const fn scan(&mut self) -> &mut SecretScan {
        &mut self.scan
    }

    /// Keeps a file with the next version of the context. It is looked through for secrets.
    pub(crate) fn keep(
        &mut self,
        name: &str,
        extension: &str,
        bytes: &[u8],
        compress: Compress,
    ) -> Result<Artifact, Fault> {
        self.scan.bytes(&format!("{name}.{extension}"), bytes);
        self.keep_known(name, extension, bytes, compress)
    }

    /// The same for what was looked through already.
    pub(crate) fn keep_known(
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
        let head = self.place.tree().head().ok().and_then(|head| head.commit);
        self.context.stamp(self.verb, self.now, &self.actor, head);
        let document = self.context.to_document()?;
        let derived = if self.is_derived() { Vec::new() } else { derive(&self.context)? };
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
        Ok((self.context, self.warnings, self.lock))
    }

    /// Tells whether exports and manifest are those of this context. After a crash they may be those of one that never
    /// came to be; then they are made again.
    fn is_derived(&self) -> bool {
        let read = fs::read(self.folder.join(MANIFEST_FILE)).ok();
        let manifest: Option<Manifest> = read.and_then(|bytes| serde_json::from_slice(&bytes).ok());
        manifest.is_some_and(|manifest| {
            manifest.immutable_sha256 == self.context.immutable_revision.sha256
                && manifest.immutable_revision == self.context.immutable_revision.number
                && manifest.sources == self.context.sources
                && manifest.derived.iter().all(|(name, sha)| {
                    fs::read(self.folder.join(name)).is_ok_and(|bytes| Sha256Hash::of(&bytes) == *sha)
                })
        })
    }
}
