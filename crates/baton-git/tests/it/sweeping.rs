//! What a sweep removes from an object store, and what it keeps.

use std::fs;
use std::path::{Path, PathBuf};

use baton_git::{ObjectStore, PermitAll, Snapshot};

use crate::sandbox::{Sandbox, file_letters};

fn snapshot(sandbox: &Sandbox) -> Snapshot {
    sandbox.repository().capture(&sandbox.object_store(), &mut PermitAll).unwrap().snapshot
}

fn packs(object_store: &ObjectStore) -> Vec<PathBuf> {
    let mut list: Vec<PathBuf> = files(&object_store.folder().join("objects/pack"));
    list.sort();
    list
}

fn files(folder: &Path) -> Vec<PathBuf> {
    fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

#[test]
fn sweep_removes_only_unreachable_packs() {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("dir/b", "2\n")]);
    sandbox.write("dir/b", "first\n");
    let first = snapshot(&sandbox);
    let object_store = sandbox.object_store();
    let of_first = packs(&object_store);
    sandbox.write("a", "second\n");
    let second = snapshot(&sandbox);
    assert_eq!(packs(&object_store).len(), 4);
    // The tree of `dir` and its file are in the first pack, and the second snapshot has them too.
    assert_eq!(object_store.sweep(&second.objects().collect::<Vec<_>>()).unwrap(), Some(0));
    assert_eq!(packs(&object_store).len(), 4);
    let freed = object_store.sweep(&first.objects().collect::<Vec<_>>()).unwrap().unwrap();
    assert!(freed > 0);
    assert_eq!(packs(&object_store), of_first);
    // The kept snapshot can still be compared file by file.
    let differences = sandbox.repository().verify(&object_store, &first, &mut PermitAll).unwrap().changes;
    assert_eq!(file_letters(&differences), ["M a"]);
    object_store.sweep(&[]).unwrap();
    assert!(packs(&object_store).is_empty());
}

#[test]
fn sweep_removes_converted_objects_and_leftovers() {
    let sandbox = Sandbox::with_files(&[(".gitattributes", "*.txt text\n"), ("a.txt", "1\n")]);
    sandbox.write("a.txt", "1\r\n2\r\n");
    let kept = snapshot(&sandbox);
    let object_store = sandbox.object_store();
    let loose = || {
        let folders = files(&object_store.folder().join("objects"));
        let named = |folder: &&PathBuf| folder.file_name().is_some_and(|name| name.len() == 2);
        folders.iter().filter(named).map(|folder| files(folder).len()).sum::<usize>()
    };
    assert_eq!(loose(), 1, "the converted object");
    let pack = object_store.folder().join("objects/pack");
    fs::write(pack.join(".tmpXYZ"), "half").unwrap();
    fs::write(pack.join("pack-0000000000000000000000000000000000000000.pack"), "no index").unwrap();
    object_store.sweep(&kept.objects().collect::<Vec<_>>()).unwrap();
    assert_eq!((loose(), packs(&object_store).len()), (1, 2));
    let changes = object_store.changes_since(kept.head.commit(), &kept, &mut PermitAll).unwrap();
    assert!(changes.patch.as_slice().ends_with(b"+2\n"));
    object_store.sweep(&[]).unwrap();
    assert_eq!((loose(), packs(&object_store).len()), (0, 0));
}

#[test]
fn sweep_does_nothing_while_the_object_store_is_in_use() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    sandbox.write("a", "2\n");
    snapshot(&sandbox);
    let (object_store, other) = (sandbox.object_store(), sandbox.object_store());
    assert_eq!(object_store.sweep(&[]).unwrap(), None);
    assert_eq!(packs(&object_store).len(), 2);
    // The sweep that did nothing leaves its object store in use.
    assert_eq!(other.sweep(&[]).unwrap(), None);
    drop(other);
    assert!(object_store.sweep(&[]).unwrap().is_some());
    // Afterwards the object store can be used and swept as before.
    let other = sandbox.object_store();
    assert_eq!(object_store.sweep(&[]).unwrap(), None);
    drop(other);
}

#[test]
fn sweep_ignores_missing_objects() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    sandbox.write("a", "2\n");
    let lost = snapshot(&sandbox);
    sandbox.object_store().sweep(&[]).unwrap();
    sandbox.write("a", "3\n");
    let kept = snapshot(&sandbox);
    let both: Vec<_> = lost.objects().chain(kept.objects()).collect();
    assert_eq!(sandbox.object_store().sweep(&both).unwrap(), Some(0));
}

#[test]
fn temporary_files_of_killed_processes_are_removed() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let object_store = sandbox.object_store();
    let file = object_store.folder().join(".tmpAbCdEf");
    let folder = object_store.folder().join(".tmpGhIjKl");
    std::fs::write(&file, "index").unwrap();
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(folder.join("index"), "index").unwrap();
    assert_eq!(object_store.sweep(&[]).unwrap(), Some(10));
    assert!(!file.exists() && !folder.exists() && object_store.folder().join("HEAD").exists());
}

#[test]
fn the_first_user_of_an_object_store_removes_temporary_files_and_others_do_not() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let first = sandbox.object_store();
    let left = [first.folder().join(".tmpAbCdEf"), first.folder().join("objects/pack/.tmpGhIjKl")];
    left.iter().for_each(|file| std::fs::write(file, "index").unwrap());
    drop(sandbox.object_store());
    assert!(left.iter().all(|file| file.exists()), "they may belong to the first user");
    drop(first);
    drop(sandbox.object_store());
    assert!(!left.iter().any(|file| file.exists()));
}
