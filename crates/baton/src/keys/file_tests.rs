use std::os::unix::fs::{PermissionsExt, symlink};
use std::sync::Barrier;
use std::thread;

use baton_store::KeyId;
use tempfile::TempDir;

use super::*;

fn key_file_in_new_folder() -> (TempDir, KeyFile) {
    let folder = tempfile::tempdir().unwrap();
    let file = KeyFile::at(&folder.path().join("baton.keys"));
    (folder, file)
}

fn fresh() -> SecretKey {
    SecretKey::random().unwrap()
}

fn rotate(file: &KeyFile, key: SecretKey) -> Result<KeyRing, KeyFileError> {
    file.change(|keys| keys.rotated(key))
}

fn mode(file: &KeyFile) -> u32 {
    fs::metadata(&file.path).unwrap().permissions().mode() & 0o7777
}

/// Returns the files in the folder other than the key file and its lock.
fn leftover_files(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.map(|name| name.into_string().unwrap());
    names.filter(|name| name != "baton.keys" && name != "baton.keys.lock").collect()
}

#[test]
fn mint_creates_a_file_with_mode_0600_that_reads_back() {
    let (folder, file) = key_file_in_new_folder();
    assert!(matches!(file.read().unwrap_err(), KeyFileError::Missing { .. }));
    let key = fresh();
    let keys = file.mint(key.clone()).unwrap();
    assert_eq!(keys.current_id(), key.id());
    assert_eq!(file.read().unwrap(), (keys, None));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(leftover_files(&folder), [""; 0]);
}

#[test]
fn mint_keeps_an_existing_key() {
    let (folder, file) = key_file_in_new_folder();
    let first = file.mint(fresh()).unwrap();
    assert_eq!(file.mint(fresh()).unwrap(), first);
    assert_eq!(leftover_files(&folder), [""; 0]);
}

#[test]
fn mint_does_not_replace_a_file_that_is_not_a_key_file() {
    let (_folder, file) = key_file_in_new_folder();
    fs::write(&file.path, "dear diary").unwrap();
    assert!(matches!(file.mint(fresh()).unwrap_err(), KeyFileError::Content { .. }));
    assert_eq!(fs::read_to_string(&file.path).unwrap(), "dear diary");
}

#[test]
fn concurrent_mints_return_the_same_key() {
    for _ in 0..20 {
        let (folder, file) = key_file_in_new_folder();
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
        assert_eq!(file.read().unwrap().0, rings[0]);
        assert_eq!(leftover_files(&folder), [""; 0]);
    }
}

#[test]
fn concurrent_rotations_lose_no_key() {
    let (folder, file) = key_file_in_new_folder();
    file.mint(fresh()).unwrap();
    let added: Vec<KeyId> = thread::scope(|scope| {
        let rotating: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let key = fresh();
                    let id = key.id();
                    rotate(&file, key).unwrap();
                    id
                })
            })
            .collect();
        rotating.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let keys = file.read().unwrap().0;
    assert_eq!(keys.ids().count(), 9);
    assert!(added.iter().all(|id| keys.has(id)));
    assert_eq!(mode(&file), 0o600);
    assert_eq!(leftover_files(&folder), [""; 0]);
}

#[test]
fn changes_put_the_new_key_first_and_remove_unused_keys() {
    let (_folder, file) = key_file_in_new_folder();
    let first = file.mint(fresh()).unwrap().current_id();
    let second = rotate(&file, fresh()).unwrap().current_id();
    let third = rotate(&file, fresh()).unwrap().current_id();
    assert_eq!(file.read().unwrap().0.ids().collect::<Vec<_>>(), [third, second, first]);
    assert_eq!(
        file.change(|keys| keys.without_unneeded(|id| [first].contains(&id)))
            .unwrap()
            .ids()
            .collect::<Vec<_>>(),
        [third, first]
    );
    assert_eq!(
        file.change(|keys| keys.without_unneeded(|id| [].contains(&id))).unwrap().ids().collect::<Vec<_>>(),
        [third]
    );
    assert_eq!(file.read().unwrap().0.ids().collect::<Vec<_>>(), [third]);
}

#[test]
fn rotate_accepts_a_file_with_32_raw_bytes() {
    let (_folder, file) = key_file_in_new_folder();
    let key = fresh();
    fs::write(&file.path, key.expose()).unwrap();
    let keys = rotate(&file, fresh()).unwrap();
    assert!(keys.has(&key.id()));
    assert_eq!(file.read().unwrap().0, keys);
}

#[test]
fn rotate_without_a_file_fails_and_creates_nothing() {
    let (folder, file) = key_file_in_new_folder();
    assert!(matches!(rotate(&file, fresh()).unwrap_err(), KeyFileError::Missing { .. }));
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn a_mode_with_access_for_others_causes_a_warning_until_the_file_is_replaced() {
    let (_folder, file) = key_file_in_new_folder();
    file.mint(fresh()).unwrap();
    for mode in [0o640, 0o604, 0o620] {
        fs::set_permissions(&file.path, fs::Permissions::from_mode(mode)).unwrap();
        let expected = KeyFileWarning::OpenToOthers { path: file.path.clone(), mode };
        assert_eq!(file.read().unwrap().1, Some(expected));
    }
    rotate(&file, fresh()).unwrap();
    assert_eq!(file.read().unwrap().1, None);
}

#[test]
fn rotate_replaces_the_target_of_a_symbolic_link() {
    let (folder, file) = key_file_in_new_folder();
    file.mint(fresh()).unwrap();
    let link = KeyFile::at(&folder.path().join("link"));
    symlink(&file.path, &link.path).unwrap();
    let keys = rotate(&link, fresh()).unwrap();
    assert!(fs::symlink_metadata(&link.path).unwrap().is_symlink());
    assert_eq!(file.read().unwrap().0, keys);
}

#[test]
fn read_reports_files_that_are_not_key_files() {
    let (folder, file) = key_file_in_new_folder();
    fs::write(&file.path, vec![b'#'; MAX_BYTES as usize + 1]).unwrap();
    assert!(matches!(file.read().unwrap_err(), KeyFileError::TooLarge { .. }));
    fs::write(&file.path, vec![b'#'; MAX_BYTES as usize]).unwrap();
    let error = file.read().unwrap_err();
    assert_eq!(error.to_string(), format!("key file {}: the file contains no key", file.path.display()));
    assert!(matches!(KeyFile::at(folder.path()).read().unwrap_err(), KeyFileError::Unreadable { .. }));
}

#[test]
fn acquiring_a_held_lock_times_out() {
    let (folder, _) = key_file_in_new_folder();
    let path = folder.path().join("lock");
    let held = acquire_lock(&path, Duration::ZERO).unwrap();
    assert_eq!(acquire_lock(&path, Duration::ZERO).unwrap_err().kind(), ErrorKind::TimedOut);
    drop(held);
    let _free = acquire_lock(&path, Duration::ZERO).unwrap();
}
