//! Repository and checkout of imported chats.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use baton_core::Repo;
use baton_git::{Repository, name_in_url};
use baton_observation::transcript::ChatFacts;

use crate::checkout::{find_root, repository_at};

/// Repository and root of a folder.
#[derive(Debug, Clone, Default)]
pub(super) struct FolderRepository {
    pub(super) repo: Option<Repo>,
    pub(super) root: Option<String>,
}

/// Repositories of the folders seen so far.
#[derive(Debug, Default)]
pub(super) struct FolderRepositories {
    known: Mutex<HashMap<String, FolderRepository>>,
}

impl FolderRepositories {
    /// Returns the repository and the root of a folder; empty if the folder does not exist any more or is not in a
    /// checkout.
    pub(super) fn of(&self, folder: &str) -> FolderRepository {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.entry(folder.to_owned()).or_insert_with(|| look_up(folder)).clone()
    }

    /// Returns the repository of a chat: the repository of its checkout, otherwise of the recorded remote.
    /// Without either, the store derives the repository from the folder name.
    pub(super) fn repo(&self, facts: &ChatFacts) -> Option<Repo> {
        let of_folder = facts.cwd.as_deref().and_then(|folder| self.of(folder).repo);
        of_folder.or_else(|| facts.repository_url.as_deref().and_then(name_in_url))
    }
}

fn look_up(folder: &str) -> FolderRepository {
    let folder = Path::new(folder);
    if !folder.is_dir() {
        return FolderRepository::default();
    }
    let Some(root) = find_root(folder) else { return FolderRepository::default() };
    let quick = Repository::read_head_info(&root).and_then(|head_info| head_info.name);
    let repo = quick.or_else(|| repository_at(&root).ok().flatten());
    FolderRepository { repo, root: root.to_str().map(str::to_owned) }
}
