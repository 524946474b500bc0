//! A change of a task. Files that the context refers to are written before the context, so that the context is always
//! the old or the new one, and the files that it refers to exist.

use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use baton_core::task::{Role, TaskId};
use baton_core::{Fault, Timestamp};

use crate::archive::{no_context, require_context};
use crate::artifact::{Compress, choose_encoding, encode, write_file};
use crate::content_scan::ContentScan;
use crate::durable::{Batch, failed, make_folder, remove_temporaries, require_folder};
use crate::environment::{CONTEXT_FILE, OUTPUT_FOLDER, TaskEnvironment};
use crate::folder::{exports_are_current, last_number, lock_store, lock_task};
use crate::lock::FolderLock;
use crate::operation::{OnCheckout, Operation};
use crate::rules::{Artifact, Encoding, RoleState, TaskContext, derive};
use crate::secrets::{AuditStamp, SecretScan};

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

    /// Saves and returns the locks of the store and of the task.
    pub(crate) fn save_and_hold(mut self) -> Result<(TaskContext, Vec<String>, [FolderLock; 2]), Fault> {
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
        self.environment.set_saved(&self.context);
        if !derived.is_empty() {
            remove_former_exports(&self.folder, &derived);
        }
        Ok((self.context, self.warnings, [store, self.task_lock]))
    }
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
