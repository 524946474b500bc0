//! The install script, with releases in a folder.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/install.sh");

/// Runs a shell script in a folder and requires success.
fn shell(folder: &Path, script: &str) {
    let status = Command::new("sh").args(["-euc", script]).current_dir(folder).status().unwrap();
    assert!(status.success(), "{script}");
}

/// Writes a release for all machines whose binary is a script that prints a version.
fn release(folder: &Path) {
    shell(
        folder,
        r#"
        for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl; do
          name=baton-1.2.3-$target
          mkdir -p $name/bin $name/share/man/man1
          printf '#!/bin/sh\necho baton 1.2.3\n' >$name/bin/baton
          chmod 755 $name/bin/baton
          echo page >$name/share/man/man1/baton.1
          tar -czf $name.tar.gz $name
          rm -r $name
        done
        sha256sum *.tar.gz >SHA256SUMS
        "#,
    );
}

fn install(from: &str, prefix: &Path) -> Output {
    Command::new("sh").arg(SCRIPT).args(["--from", from, "--prefix"]).arg(prefix).output().unwrap()
}

#[test]
fn install_script_installs_binary_and_pages() {
    let (from, prefix) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    release(from.path());
    let output = install(from.path().to_str().unwrap(), prefix.path());
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{output:?}");
    assert!(text.starts_with("installed baton 1.2.3 in "), "{text}");
    let mode = fs::metadata(prefix.path().join("bin/baton")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o755);
    assert!(prefix.path().join("share/man/man1/baton.1").exists());
}

#[test]
fn install_script_rejects_an_archive_with_another_checksum() {
    let (from, prefix) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    release(from.path());
    shell(from.path(), "for archive in *.tar.gz; do printf x >>$archive; done");
    let output = install(from.path().to_str().unwrap(), prefix.path());
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("nothing was installed"), "{errors}");
    assert_eq!(fs::read_dir(prefix.path()).unwrap().count(), 0);
}

#[test]
fn install_script_rejects_releases_without_checksums_and_addresses_without_tls() {
    let (from, prefix) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    release(from.path());
    shell(from.path(), "rm SHA256SUMS");
    for (address, reason) in
        [(from.path().to_str().unwrap(), "SHA256SUMS"), ("http://example.org/baton", "use an https address")]
    {
        let output = install(address, prefix.path());
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{address}");
        assert!(errors.contains(reason), "{errors}");
    }
    assert_eq!(fs::read_dir(prefix.path()).unwrap().count(), 0);
}
