//! The content of a disk after a power cut.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::disk::overwrite;
use super::operation::{Entry, Kind, Node, Operation, ROOT, Recording};
use crate::contract::fixture::Dice;

/// What happens to changes that were not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Damage {
    /// All are lost.
    Lost,
    /// All are kept except part of the last write.
    TornLastWrite,
    /// Each change, and each sector of a write, is randomly kept or lost.
    Random,
    /// Names are kept and data is lost. A file may have its new size and contain zeros.
    NamesOnly,
    /// Data is kept and names are lost.
    DataOnly,
}

impl Damage {
    pub const ALL: [Self; 5] =
        [Self::Lost, Self::TornLastWrite, Self::Random, Self::NamesOnly, Self::DataOnly];
}

#[derive(Debug, Default)]
struct Tree {
    folders: HashMap<Node, BTreeMap<OsString, Node>>,
    files: HashMap<Node, Vec<u8>>,
    links: HashMap<Node, PathBuf>,
    modes: HashMap<Node, u32>,
}

impl Recording {
    /// Replaces the content of a folder by what the disk contains if the power is cut after `cut` operations. The same
    /// arguments yield the same content.
    ///
    /// # Errors
    ///
    /// Fails if the folder cannot be written.
    pub fn write_image(&self, cut: usize, damage: Damage, seed: u64, folder: &Path) -> io::Result<()> {
        let tree = self.tree_after(cut, damage, &mut Dice::new(seed));
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() && !path.is_symlink() {
                std::fs::remove_dir_all(path)?;
            } else {
                std::fs::remove_file(path)?;
            }
        }
        tree.write(ROOT, folder)
    }

    fn tree_after(&self, cut: usize, damage: Damage, dice: &mut Dice) -> Tree {
        let operations = &self.operations[..cut.min(self.operations.len())];
        let (mut synced, mut all_synced) = (HashMap::new(), 0);
        for (position, operation) in operations.iter().enumerate() {
            match operation {
                Operation::Sync { node } => {
                    synced.insert(*node, position);
                }
                Operation::SyncEverything => all_synced = position,
                _ => {}
            }
        }
        let last_write = operations.iter().rposition(|one| matches!(one, Operation::Write { .. }));
        let mut tree = Tree::default();
        tree.folders.insert(ROOT, BTreeMap::new());
        for (position, operation) in operations.iter().enumerate() {
            let is_durable = |node: &Node| {
                position < all_synced || synced.get(node).is_some_and(|synced| position < *synced)
            };
            match operation {
                Operation::Create { entry, node, kind, mode } => {
                    tree.create(*node, kind, *mode);
                    if is_durable(&entry.folder) || damage.keeps_name(dice) {
                        tree.insert(entry, *node);
                    }
                }
                Operation::Link { entry, node } => {
                    if is_durable(&entry.folder) || damage.keeps_name(dice) {
                        tree.insert(entry, *node);
                    }
                }
                Operation::Remove { entry, node } => {
                    if is_durable(&entry.folder) || damage.keeps_name(dice) {
                        tree.remove(entry, *node);
                    }
                }
                Operation::Rename { from, to, node } => {
                    if is_durable(&to.folder) || damage.keeps_name(dice) {
                        tree.remove(from, *node);
                        tree.insert(to, *node);
                    }
                }
                Operation::Write { node, offset, bytes } => {
                    let file = tree.files.entry(*node).or_default();
                    if is_durable(node) {
                        overwrite(file, *offset, bytes);
                    } else {
                        damage.write(file, *offset, bytes, last_write == Some(position), dice);
                    }
                }
                Operation::Resize { node, size } => {
                    if is_durable(node) || damage.keeps_size(dice) {
                        let size = usize::try_from(*size).unwrap_or(usize::MAX);
                        tree.files.entry(*node).or_default().resize(size, 0);
                    }
                }
                Operation::SetMode { node, mode } => {
                    tree.modes.insert(*node, *mode);
                }
                Operation::Sync { .. } | Operation::SyncEverything => {}
            }
        }
        tree
    }
}

impl Damage {
    fn keeps_name(self, dice: &mut Dice) -> bool {
        match self {
            Self::Lost | Self::DataOnly => false,
            Self::TornLastWrite | Self::NamesOnly => true,
            Self::Random => dice.below(2) == 0,
        }
    }

    fn keeps_size(self, dice: &mut Dice) -> bool {
        match self {
            Self::Lost | Self::NamesOnly => false,
            Self::TornLastWrite | Self::DataOnly => true,
            Self::Random => dice.below(2) == 0,
        }
    }

    /// Applies the surviving part of a write that was not synced.
    fn write(self, file: &mut Vec<u8>, offset: u64, bytes: &[u8], is_last: bool, dice: &mut Dice) {
        match self {
            Self::Lost => {}
            Self::DataOnly => overwrite(file, offset, bytes),
            Self::TornLastWrite if is_last => overwrite_some_sectors(file, offset, bytes, dice),
            Self::TornLastWrite => overwrite(file, offset, bytes),
            Self::Random => match dice.below(3) {
                0 => {}
                1 => overwrite(file, offset, bytes),
                _ => overwrite_some_sectors(file, offset, bytes, dice),
            },
            Self::NamesOnly => {
                let end = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(bytes.len());
                if file.len() < end && dice.below(2) == 0 {
                    file.resize(end, 0);
                }
            }
        }
    }
}

/// Writes a random subset of the sectors of a write; sectors have 512 or 4096 bytes.
fn overwrite_some_sectors(file: &mut Vec<u8>, offset: u64, bytes: &[u8], dice: &mut Dice) {
    let sector = if dice.below(2) == 0 { 512 } else { 4_096 };
    let mut position = offset;
    let mut rest = bytes;
    while !rest.is_empty() {
        // Sectors are aligned to multiples of their size, not to the start of the write.
        let length = usize::try_from(sector - position % sector).unwrap_or(usize::MAX).min(rest.len());
        let (part, others) = rest.split_at(length);
        if dice.below(2) == 0 {
            overwrite(file, position, part);
        }
        position += length as u64;
        rest = others;
    }
}

impl Tree {
    fn create(&mut self, node: Node, kind: &Kind, mode: u32) {
        self.modes.insert(node, mode);
        match kind {
            Kind::File => drop(self.files.insert(node, Vec::new())),
            Kind::Folder => drop(self.folders.insert(node, BTreeMap::new())),
            Kind::Link(target) => drop(self.links.insert(node, target.clone())),
        }
    }

    fn insert(&mut self, entry: &Entry, node: Node) {
        self.folders.entry(entry.folder).or_default().insert(entry.name.clone(), node);
    }

    /// Removes a name if it still refers to this node.
    fn remove(&mut self, entry: &Entry, node: Node) {
        if let Some(entries) = self.folders.get_mut(&entry.folder)
            && entries.get(&entry.name) == Some(&node)
        {
            entries.remove(&entry.name);
        }
    }

    fn write(&self, node: Node, folder: &Path) -> io::Result<()> {
        for (name, child) in self.folders.get(&node).into_iter().flatten() {
            let path = folder.join(name);
            if let Some(target) = self.links.get(child) {
                symlink(target, &path)?;
                continue;
            }
            if let Some(bytes) = self.files.get(child) {
                std::fs::write(&path, bytes)?;
            } else {
                std::fs::create_dir(&path)?;
                self.write(*child, &path)?;
            }
            let mode = self.modes.get(child).copied().unwrap_or(0o600);
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode))?;
        }
        Ok(())
    }
}
