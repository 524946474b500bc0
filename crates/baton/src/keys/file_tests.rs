use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Barrier;
use std::thread;

use tempfile::TempDir;

use super::*;

fn place() -> (TempDir, KeyFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(&folder.path().join("baton.keys"));
    (folder, file)
}

fn fresh() -> SecretKey {
    SecretKey::random().unwrap()
}

fn mode(file: &KeyFile) -> u32 {
    fs::metadata(&file.path).unwrap().permissions().mode() & 0o7777
}

/// What lies in the folder beside the key file and its lock.
fn litter(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name != "baton.keys" && name != "baton.keys.lock").collect()
}

#[test]
fn a_minted_file_is_its_owners_alone_and_reads_back() {
    let (folder, file) = place();
    assert!(matches!(file.read().unwrap_err(), KeyFileError::Missing { .. }));
    let key = fresh();
    let keys = file.mint(key.clone()).unwrap();
    assert_eq!(keys.current_id(), key.id());
    let read = file.read().unwrap();
    assert_eq!((read.keys, read.warning), (keys, None));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(litter(&folder), [""; 0]);
}

#[test]
fn minting_keeps_the_key_that_is_there() {
    let (folder, file) = place();
    let first = file.mint(fresh()).unwrap();
    assert_eq!(file.mint(fresh()).unwrap(), first);
    assert_eq!(litter(&folder), [""; 0]);
}

#[test]
fn minting_does_not_replace_a_file_that_is_no_key_file() {
    let (_folder, file) = place();
    fs::write(&file.path, "dear diary").unwrap();
    assert!(matches!(file.mint(fresh()).unwrap_err(), KeyFileError::Content { .. }));
    assert_eq!(fs::read_to_string(&file.path).unwrap(), "dear diary");
}

#[test]
fn all_who_mint_at_once_get_one_key() {
    for _ in 0..20 {
        let (folder, file) = place();
        let start = Barrier::new(8);
        let rings: Vec<KeyRing> = thread::scope(|scope| {
            let minting: Vec<_> = (0..8)
                .map(|_| {
                    scope.spawn(|| {
                        let key = fresh();
                        start.wait();
                        file.mint(key).unwrap()
                    })
                })
                .collect();
            minting.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(rings.iter().all(|ring| *ring == rings[0]), "{rings:?}");
        assert_eq!(file.read().unwrap().keys, rings[0]);
        assert_eq!(litter(&folder), [""; 0]);
    }
}

#[test]
fn rotations_at_once_lose_no_key() {
    let (folder, file) = place();
    file.mint(fresh()).unwrap();
    let added: Vec<KeyId> = thread::scope(|scope| {
        let rotating: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let key = fresh();
                    let id = key.id();
                    file.rotate(key).unwrap();
                    id
                })
            })
            .collect();
        rotating.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let keys = file.read().unwrap().keys;
    assert_eq!(keys.ids().count(), 9);
    assert!(added.iter().all(|id| keys.has(id)));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(litter(&folder), [""; 0]);
}

#[test]
fn the_newest_key_comes_first_and_unused_ones_can_be_dropped() {
    let (_folder, file) = place();
    let first = file.mint(fresh()).unwrap().current_id();
    let second = file.rotate(fresh()).unwrap().current_id();
    let third = file.rotate(fresh()).unwrap().current_id();
    assert_eq!(file.read().unwrap().keys.ids().collect::<Vec<_>>(), [third, second, first]);
    assert_eq!(file.drop_old(&[first]).unwrap().ids().collect::<Vec<_>>(), [third, first]);
    assert_eq!(file.drop_old(&[]).unwrap().ids().collect::<Vec<_>>(), [third]);
    assert_eq!(file.read().unwrap().keys.ids().collect::<Vec<_>>(), [third]);
}

#[test]
fn a_key_as_it_is_can_be_rotated() {
    let (_folder, file) = place();
    let key = fresh();
    fs::write(&file.path, key.expose()).unwrap();
    let keys = file.rotate(fresh()).unwrap();
    assert!(keys.has(&key.id()));
    assert_eq!(file.read().unwrap().keys, keys);
}

#[test]
fn there_is_nothing_to_rotate_without_a_file() {
    let (folder, file) = place();
    assert!(matches!(file.rotate(fresh()).unwrap_err(), KeyFileError::Missing { .. }));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn modes_that_let_others_in_are_a_warning_until_the_file_is_replaced() {
    let (_folder, file) = place();
    file.mint(fresh()).unwrap();
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(&file.path, fs::Permissions::from_mode(mode)).unwrap();
        let expected = KeyFileWarning::OpenToOthers { path: file.path.clone(), mode };
        assert_eq!(file.read().unwrap().warning, Some(expected));
    }
    file.rotate(fresh()).unwrap();
    assert_eq!(file.read().unwrap().warning, None);
}

#[test]
fn a_link_stays_a_link() {
    let (folder, file) = place();
    file.mint(fresh()).unwrap();
    let link = KeyFile::at(&folder.path().join("link"));
    symlink(&file.path, &link.path).unwrap();
    let keys = link.rotate(fresh()).unwrap();
    assert!(fs::symlink_metadata(&link.path).unwrap().is_symlink());
    assert_eq!(file.read().unwrap().keys, keys);
}

#[test]
fn what_is_no_key_file_is_told_by_name() {
    let (folder, file) = place();
    fs::write(&file.path, vec![b'#'; MAX_BYTES as usize + 1]).unwrap();
    assert!(matches!(file.read().unwrap_err(), KeyFileError::TooLarge { .. }));
    fs::write(&file.path, vec![b'#'; MAX_BYTES as usize]).unwrap();
    let error = file.read().unwrap_err();
    assert_eq!(error.to_string(), format!("key file {}: no key in it", file.path.display()));
    assert!(matches!(KeyFile::at(folder.path()).read().unwrap_err(), KeyFileError::Unreadable { .. }));
}

#[test]
fn a_lock_that_stays_held_is_an_error() {
    let (folder, _) = place();
    let path = folder.path().join("lock");
    let held = Lock::acquire(&path, Duration::ZERO).unwrap();
    assert_eq!(Lock::acquire(&path, Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(held);
    let _free = Lock::acquire(&path, Duration::ZERO).unwrap();
}
