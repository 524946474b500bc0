//! What can be asked about a checkout without reading its files: commits by name, paths, the repository's name.

use std::fs;
use std::path::Path;

use baton_core::Repo;

use crate::configuration::Configuration;
use crate::error::GitError;
use crate::nested::git_dir;
use crate::object::ObjectId;
use crate::path::RepoPath;
use crate::program::Git;
use crate::remote::repository_name;
use crate::repository::Repository;

impl Repository {
    /// Finds the commit that a person named; none if there is none or the name fits several.
    ///
    /// # Errors
    ///
    /// When git cannot be run.
    pub fn resolve_commit(&self, revision: &str) -> Result<Option<ObjectId>, GitError> {
        if revision.is_empty() || revision.contains('\0') {
            return Ok(None);
        }
        let wanted = format!("{revision}^{{commit}}");
        let call = self.call("rev-parse").arguments(["--verify", "--quiet", "--end-of-options"]);
        let (output, ended) = call.arguments([wanted]).attempt()?;
        let id = ended.status.success().then(|| output.trim_ascii_end());
        Ok(id.and_then(ObjectId::from_hex))
    }

    /// Lists what is there of the files that are tracked, or untracked and not ignored, in the order of paths.
    /// Paths within `excluded` are left out.
    ///
    /// # Errors
    ///
    /// When git fails.
    pub fn files(&self, excluded: &[RepoPath]) -> Result<Vec<RepoPath>, GitError> {
        let arguments = ["-z", "--cached", "--others", "--exclude-standard"];
        let output = self.call("ls-files").arguments(arguments).output()?;
        let paths = output.split(|byte| *byte == 0).filter(|path| !path.is_empty()).map(RepoPath::new);
        let mut paths: Vec<RepoPath> = paths
            .filter(|path| !excluded.iter().any(|folder| path.is_within(folder)))
            .filter(|path| self.root().join(path.as_path()).symlink_metadata().is_ok())
            .collect();
        paths.sort();
        paths.dedup();
        Ok(paths)
    }

    /// Names the repository whose checkout has its root here, as [`name`](Self::name) does, with one call of git.
    ///
    /// # Errors
    ///
    /// [`GitError::NotARepository`]; when git fails.
    pub fn name_at(git: &Git, root: &Path) -> Result<Option<Repo>, GitError> {
        let git_dir = git_dir(root).ok_or_else(|| GitError::NotARepository { path: root.to_owned() })?;
        let output = git.call(root, "config").arguments(["--list", "-z"]).output()?;
        let head = fs::read_to_string(git_dir.join("HEAD")).unwrap_or_default();
        let branch = head.trim_end().strip_prefix("ref: refs/heads/");
        let common_dir = match fs::read_to_string(git_dir.join("commondir")) {
            Ok(path) => git_dir.join(path.trim_end()),
            Err(_) => git_dir,
        };
        let common_dir = common_dir.canonicalize().unwrap_or(common_dir);
        let folder = match common_dir.file_name() {
            Some(name) if name == ".git" => common_dir.parent().unwrap_or(root),
            _ => root,
        };
        Ok(repository_name(&Configuration::read(&output), branch, folder))
    }
}
