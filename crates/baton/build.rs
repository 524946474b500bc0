//! Sets `BATON_COMMIT` for `baton --version` and linker options for a fast start and a small file.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output =
        Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn main() {
    // Builds of a source archive get the commit as a variable.
    let given = std::env::var("BATON_COMMIT").ok().filter(|commit| !commit.is_empty());
    let commit =
        given.or_else(|| git(&["rev-parse", "--short=12", "HEAD"])).unwrap_or_else(|| "unknown".into());
    println!("cargo:rustc-env=BATON_COMMIT={commit}");
    // A binary at a fixed address needs no relocations; 45,000 of them took a millisecond of every hook and every verb.
    // The addresses of stack, heap and libraries are still randomized.
    // Static binaries for musl get the same from `relocation-model` in `.cargo/config.toml`.
    let is = |name: &str, value: &str| std::env::var(name).is_ok_and(|found| found == value);
    let linux = is("CARGO_CFG_TARGET_OS", "linux");
    if linux && is("CARGO_CFG_TARGET_ENV", "gnu") {
        println!("cargo:rustc-link-arg-bins=-no-pie");
    }
    // Cargo ignores `strip` of a profile that sets an option for this package.
    if linux && is("PROFILE", "release") {
        println!("cargo:rustc-link-arg-bins=-Wl,--strip-all");
    }
    // A source archive has no history, so only this file is watched.
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=BATON_COMMIT");
    if let Some(head) = git(&["rev-parse", "--path-format=absolute", "--git-path", "logs/HEAD"]) {
        println!("cargo:rerun-if-changed={head}");
    }
}
