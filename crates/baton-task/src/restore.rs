//! Restores files of the working tree to the content of a snapshot.
//!
//! Everything is checked and read first. Then the content that will be replaced or removed is stored beside the
//! context, and only then is the working tree changed. Links are replaced and never followed.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Seek, Write};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use baton_core::{ErrorCode, Fault};
use baton_files::{DurableFile, TEMPORARY_PREFIX};
use serde_json::{Value, json};

use crate::draft::Draft;
use crate::durable::{failed, sync_folder};
use crate::rules::{SetAside, TreeChange};
use crate::snapshot::list;
use crate::verification::Verified;
use crate::working_tree::Inspector;

/// Git modes of a nested repository, a symbolic link and an executable file.
const NESTED: &str = "160000";
const LINK: &str = "120000";
const EXECUTABLE: &str = "100755";

/// Result of a restore.
pub(crate) struct Restored {
    /// Paths of the restored files.
    pub(crate) paths: Vec<String>,
    /// Previous content of everything that was replaced or removed.
    pub(crate) set_aside: Vec<SetAside>,
}

/// A path to restore.
#[derive(Clone)]
struct PathToRestore {
    path: String,
    /// Mode in the snapshot; `None` if the snapshot does not have the path.
    mode: Option<String>,
}

/// Restores the given files that differ from a snapshot; all of them if `paths` is `None`.
pub(crate) fn restore(
    draft: &mut Draft<'_>,
    verified: &Verified,
    paths: Option<&[String]>,
) -> Result<Restored, Fault> {
    let targets = choose(&verified.changes, paths)?;
    let root = draft.environment().root().to_owned();
    let mut obstacles = Obstacles::default();
    for target in &targets {
        obstacles.find(&root, target)?;
    }
    scan(draft, &root, &obstacles.files)?;
    let mut contents = Contents::read(draft, &verified.snapshot.record, &targets)?;
    let mut set_aside = Vec::new();
    for path in &obstacles.files {
        let mut content = open(&root.join(path)).map_err(|error| failed("read", &root.join(path), error))?;
        let artifact = draft.keep_now("set-aside", "bin", &mut content)?;
        set_aside.push(SetAside { original_path: path.to_string_lossy().into_owned(), artifact });
    }
    write(&root, &targets, &obstacles, &mut contents).map_err(|fault| interrupted(fault, &set_aside))?;
    Ok(Restored { paths: targets.into_iter().map(|target| target.path).collect(), set_aside })
}

/// Returns the paths to restore. A renamed file has two.
fn choose(changes: &[TreeChange], paths: Option<&[String]>) -> Result<Vec<PathToRestore>, Fault> {
    let mut all: Vec<PathToRestore> = Vec::new();
    for change in changes {
        let mode = change.previous_mode.clone();
        if let Some(path) = change.previous_path.clone() {
            all.push(PathToRestore { path, mode });
            all.push(PathToRestore { path: change.path.clone(), mode: None });
        } else {
            all.push(PathToRestore { path: change.path.clone(), mode });
        }
    }
    let mut chosen = all.clone();
    if let Some(paths) = paths {
        let unknown: Vec<&str> = paths
            .iter()
            .map(String::as_str)
            .filter(|path| all.iter().all(|target| target.path != *path))
            .collect();
        if !unknown.is_empty() {
            let changed: Vec<String> = all.into_iter().map(|target| target.path).collect();
            let problem =
                format!("{} did not change; the changed files are {}", unknown.join(", "), list(&changed));
            return Err(Fault::invalid("restore", problem));
        }
        chosen.retain(|target| paths.contains(&target.path));
    }
    for target in &chosen {
        let is_nested = |change: &&TreeChange| {
            change.path == target.path
                && [&change.mode, &change.previous_mode].iter().any(|mode| mode.as_deref() == Some(NESTED))
        };
        if changes.iter().any(|change| is_nested(&change)) {
            return Err(cannot_restore(&target.path, "it is a nested repository")
                .hint("check out its commit with git, and name the other files with --restore"));
        }
        if target.path.starts_with('"') {
            return Err(
                cannot_restore(&target.path, "its name is not plain UTF-8 text").hint("restore it with git")
            );
        }
    }
    Ok(chosen)
}

fn cannot_restore(path: &str, problem: &str) -> Fault {
    Fault::new(ErrorCode::TaskConflict, format!("cannot restore {path}: {problem}"))
        .hint("move it away, then try again")
}

/// Everything in the working tree that is replaced or removed. Paths are relative to the root.
#[derive(Default)]
struct Obstacles {
    /// Files and links.
    files: BTreeSet<PathBuf>,
    /// Folders where the snapshot has a file or a link.
    folders: BTreeSet<PathBuf>,
}

impl Obstacles {
    fn find(&mut self, root: &Path, target: &PathToRestore) -> Result<(), Fault> {
        let path = Path::new(&target.path);
        let mut parents: Vec<&Path> = path.ancestors().skip(1).collect();
        parents.reverse();
        // The first one is the root itself.
        for parent in parents.into_iter().skip(1) {
            match metadata(&root.join(parent))? {
                Some(found) if found.is_dir() => {}
                Some(_) if target.mode.is_some() => return self.add(root, parent),
                _ => return Ok(()),
            }
        }
        self.add(root, path)
    }

    fn add(&mut self, root: &Path, path: &Path) -> Result<(), Fault> {
        let full = root.join(path);
        let Some(found) = metadata(&full)? else { return Ok(()) };
        if found.is_file() || found.is_symlink() {
            self.files.insert(path.to_owned());
            return Ok(());
        }
        if !found.is_dir() {
            return Err(cannot_restore(&path.to_string_lossy(), "it is not a file, a link or a folder"));
        }
        self.folders.insert(path.to_owned());
        for entry in fs::read_dir(&full).map_err(|error| failed("read", &full, error))? {
            let name = entry.map_err(|error| failed("read", &full, error))?.file_name();
            if name == ".git" {
                return Err(cannot_restore(&path.to_string_lossy(), "it is a git repository now"));
            }
            self.add(root, &path.join(name))?;
        }
        Ok(())
    }
}

/// Returns the metadata without following a link at the end; `None` if the path does not exist.
fn metadata(path: &Path) -> Result<Option<fs::Metadata>, Fault> {
    match fs::symlink_metadata(path) {
        Ok(found) => Ok(Some(found)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(failed("read", path, error)),
    }
}

/// Opens a file, or the target of a link as text.
fn open(path: &Path) -> io::Result<Box<dyn Read>> {
    if fs::symlink_metadata(path)?.is_symlink() {
        let target = fs::read_link(path)?.into_os_string().into_encoded_bytes();
        return Ok(Box::new(io::Cursor::new(target)));
    }
    Ok(Box::new(File::open(path)?))
}

/// Scans the files for secrets. The tree was scanned when it was verified, but without ignored files.
fn scan(draft: &mut Draft<'_>, root: &Path, files: &BTreeSet<PathBuf>) -> Result<(), Fault> {
    let mut scan = draft.content_scan();
    let mut buffer = vec![0; 64 * 1024];
    for path in files {
        let (full, name) = (root.join(path), path.to_string_lossy());
        scan.inspect(&name, &[]);
        let mut content = open(&full).map_err(|error| failed("read", &full, error))?;
        loop {
            match content.read(&mut buffer) {
                Ok(0) => break,
                Ok(count) => scan.inspect(&name, &buffer[..count]),
                Err(error) => return Err(failed("read", &full, error)),
            }
        }
    }
    scan.check()?;
    draft.scan().merge(scan.finish());
    Ok(())
}

/// Content of all targets in one temporary file without a name, in their order.
struct Contents {
    file: File,
    sizes: Vec<u64>,
}

impl Contents {
    fn read(draft: &Draft<'_>, record: &Value, targets: &[PathToRestore]) -> Result<Self, Fault> {
        let folder = draft.folder();
        let not_written = |error| failed("write", folder, error);
        let mut file = tempfile::tempfile_in(folder).map_err(not_written)?;
        let mut sizes = Vec::new();
        for target in targets {
            let (mut size, mut written) = (0, Ok(()));
            if target.mode.is_some() {
                draft.environment().tree().snapshot_file(record, &target.path, &mut |piece| {
                    size += piece.len() as u64;
                    if written.is_ok() {
                        written = file.write_all(piece);
                    }
                })?;
            }
            written.map_err(not_written)?;
            sizes.push(size);
        }
        file.rewind().map_err(not_written)?;
        Ok(Self { file, sizes })
    }
}

fn write(
    root: &Path,
    targets: &[PathToRestore],
    obstacles: &Obstacles,
    contents: &mut Contents,
) -> Result<(), Fault> {
    let replaced: BTreeSet<&Path> = targets
        .iter()
        .filter(|target| target.mode.is_some())
        .map(|target| Path::new(target.path.as_str()))
        .collect();
    for path in obstacles.files.iter().filter(|path| !replaced.contains(path.as_path())) {
        fs::remove_file(root.join(path)).map_err(|error| failed("remove", &root.join(path), error))?;
    }
    // A folder sorts before what it contains.
    for path in obstacles.folders.iter().rev() {
        fs::remove_dir(root.join(path)).map_err(|error| failed("remove", &root.join(path), error))?;
    }
    for (target, size) in targets.iter().zip(&contents.sizes) {
        let Some(mode) = &target.mode else { continue };
        let put = put(root, &target.path, mode, &mut (&mut contents.file).take(*size));
        put.map_err(|error| failed("restore", &root.join(&target.path), error))?;
    }
    // All folders that contain a changed name. Those that were removed are skipped.
    let changed = targets.iter().map(|target| Path::new(&target.path));
    let changed = changed.chain(obstacles.files.iter().map(PathBuf::as_path));
    let folders: BTreeSet<&Path> = changed.flat_map(|path| path.ancestors().skip(1)).collect();
    let mut folders = folders.into_iter().map(|folder| root.join(folder)).filter(|folder| folder.is_dir());
    folders.try_for_each(|folder| sync_folder(&folder))
}

/// Writes a file or link under a temporary name, then renames it. The caller syncs the folder.
fn put(root: &Path, path: &str, mode: &str, content: &mut dyn Read) -> io::Result<()> {
    let path = Path::new(path);
    let mut folder = root.to_owned();
    for part in path.parent().into_iter().flat_map(Path::components) {
        folder.push(part);
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                if !fs::symlink_metadata(&folder)?.is_dir() {
                    return Err(error);
                }
            }
            made => made?,
        }
    }
    if mode == LINK {
        let mut target = Vec::new();
        content.read_to_end(&mut target)?;
        let target = OsString::from_vec(target);
        let link = tempfile::Builder::new()
            .prefix(TEMPORARY_PREFIX)
            .make_in(&folder, |name| symlink(&target, name))?;
        return link.persist(root.join(path)).map_err(|error| error.error);
    }
    let mode = if mode == EXECUTABLE { 0o777 } else { 0o666 };
    let mut file = DurableFile::create_with_mode(&root.join(path), mode)?;
    io::copy(content, &mut file)?;
    file.sync()?;
    file.rename()
}

/// Adds the location of the previous content to the error of a restore that stopped.
fn interrupted(fault: Fault, set_aside: &[SetAside]) -> Fault {
    let copies: Vec<String> = set_aside
        .iter()
        .map(|kept| format!("{} (from {})", kept.artifact.path, kept.original_path))
        .collect();
    if copies.is_empty() {
        return fault;
    }
    fault
        .hint(format!("correct it, then run the command again; the previous content is in {}", list(&copies)))
        .details(json!({ "set_aside": set_aside }))
}
