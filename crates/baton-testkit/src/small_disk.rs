//! A small separate file system for one test: a tmpfs in a mount namespace that ends with the test.
#![expect(clippy::expect_used, clippy::panic, reason = "a test that cannot be set up must fail loudly")]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Variable with the mounted folder in the process that runs the body of a test.
const FOLDER: &str = "BATON_TEST_SMALL_DISK";

/// Runs `body` with the path of an empty file system of `mebibytes`.
///
/// The test process runs itself again inside a mount namespace, so `test` must be the full name of the calling test,
/// for example `full_disk::deletes_on_a_full_disk`. Without permission to create a namespace the test is skipped,
/// unless CI is set.
///
/// # Panics
///
/// Panics if `body` panics, or if CI is set and no file system can be mounted.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
pub fn on_small_disk(test: &str, mebibytes: u32, body: impl FnOnce(&Path)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return body(&PathBuf::from(folder));
    }
    let folder = tempfile::tempdir().expect("a temporary folder");
    let Some(namespace) = namespaces().into_iter().find(|namespace| can_mount(namespace, folder.path()))
    else {
        assert!(std::env::var_os("CI").is_none(), "no file system can be mounted, and CI is set");
        eprintln!(
            "{test} is skipped: it needs root or user namespaces (unshare --user) to mount a small file system"
        );
        return;
    };
    let binary = std::env::current_exe().expect("the path of this test binary");
    let output = Command::new("unshare")
        .args(namespace)
        .args(["sh", "-c", &format!("{} && exec \"$@\"", mount_command(mebibytes)), "sh"])
        .arg(binary)
        .args(["--exact", test, "--nocapture"])
        .env(FOLDER, folder.path())
        .output()
        .expect("unshare can be started");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat();
    assert!(output.status.success() && text.contains("1 passed"), "in a mount namespace:\n{text}");
}

/// Returns the arguments for a mount namespace: as root, or as root of a user namespace.
fn namespaces() -> [&'static [&'static str]; 2] {
    [&["--mount", "--"], &["--user", "--map-root-user", "--mount", "--"]]
}

fn can_mount(namespace: &[&str], folder: &Path) -> bool {
    let tried = Command::new("unshare")
        .args(namespace)
        .args(["sh", "-c", &mount_command(1)])
        .env(FOLDER, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    tried.is_ok_and(|status| status.success())
}

fn mount_command(mebibytes: u32) -> String {
    format!("mount -t tmpfs -o size={mebibytes}m,mode=0700 tmpfs \"${FOLDER}\"")
}

/// Makes the file system at `folder` read-only.
///
/// # Panics
///
/// Panics if that fails.
pub fn make_read_only(folder: &Path) {
    let status = Command::new("mount").args(["-o", "remount,bind,ro"]).arg(folder).status();
    assert!(status.is_ok_and(|status| status.success()), "the file system can be made read-only");
}

/// Fills the file system at `folder` until a file of `left_bytes` would just fit. Returns the file that fills it.
///
/// # Panics
///
/// Panics if the file system has less space than that.
pub fn fill(folder: &Path, left_bytes: u64) -> PathBuf {
    let (kept, filler) = (folder.join("kept"), folder.join("filler"));
    let write = |path: &Path, limit: u64| {
        let block = [0x5A; 4096];
        let mut file = std::fs::OpenOptions::new().append(true).create(true).open(path).expect("a file");
        let mut written = 0;
        while written < limit {
            match std::io::Write::write(&mut file, &block) {
                Ok(bytes) if bytes > 0 => written += bytes as u64,
                Ok(_) => break,
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => break,
                Err(error) => panic!("{}: {error}", path.display()),
            }
        }
        written
    };
    assert!(write(&kept, left_bytes) >= left_bytes, "there is not enough space");
    write(&filler, u64::MAX);
    std::fs::remove_file(kept).expect("the file can be removed");
    filler
}
