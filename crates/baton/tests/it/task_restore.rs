//! Restoring files with `resolve-drift`: what is in the way is kept, links are not followed, a refusal changes nothing.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::Value;

use crate::checkout::{Checkout, TASK};

/// Returns a checkout with a finished role, after an edit that was detected as drift.
fn drifted(edit: impl FnOnce(&Checkout)) -> Checkout {
    let checkout = Checkout::new();
    checkout.write("src/b.txt", "before\n");
    checkout.write("src/dir/f", "f\n");
    checkout.write("src/dir/g", "g\n");
    checkout.commit();
    checkout.task(&["init-context", TASK]);
    checkout.work("implementer", "fn main() { work() }\n");
    edit(&checkout);
    checkout.refused(5, &["update-agent", TASK, "--agent", "reviewer", "--status", "in_progress"]);
    checkout
}

fn restore<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["resolve-drift", TASK, "--note", "undo"], arguments].concat()
}

fn text(checkout: &Checkout, path: &str) -> String {
    fs::read_to_string(checkout.path(path)).unwrap()
}

/// Returns the original path and the kept content of everything that was replaced or removed.
fn kept(checkout: &Checkout, answer: &Value) -> Vec<(String, String)> {
    let kept = answer["set_aside"].as_array().unwrap().iter();
    kept.map(|kept| {
        (kept["original_path"].as_str().unwrap().into(), text(checkout, kept["path"].as_str().unwrap()))
    })
    .collect()
}

fn pair(path: &str, content: &str) -> (String, String) {
    (path.to_owned(), content.to_owned())
}

#[test]
fn link_in_place_of_a_folder_is_replaced_and_not_followed() {
    let outside = tempfile::tempdir().unwrap();
    fs::write(outside.path().join("f"), "OUTSIDE").unwrap();
    let checkout = drifted(|checkout| {
        fs::remove_dir_all(checkout.path("src/dir")).unwrap();
        symlink(outside.path(), checkout.path("src/dir")).unwrap();
    });
    let answer = checkout.task(&restore(&["--restore", "src/dir/f"]));
    assert_eq!(fs::read_to_string(outside.path().join("f")).unwrap(), "OUTSIDE");
    assert!(checkout.path("src/dir").symlink_metadata().unwrap().is_dir());
    assert_eq!(text(&checkout, "src/dir/f"), "f\n");
    assert_eq!(kept(&checkout, &answer), [pair("src/dir", outside.path().to_str().unwrap())]);
}

#[test]
fn folder_that_became_a_file_is_restored() {
    let checkout = drifted(|checkout| {
        checkout.write("src/b.txt", "PRECIOUS\n");
        fs::remove_dir_all(checkout.path("src/dir")).unwrap();
        checkout.write("src/dir", "a file\n");
    });
    let answer = checkout.task(&restore(&["--restore", "src/b.txt", "src/dir/f"]));
    assert_eq!(
        (text(&checkout, "src/b.txt"), text(&checkout, "src/dir/f")),
        ("before\n".into(), "f\n".into())
    );
    assert!(!checkout.path("src/dir/g").exists(), "the file was not named");
    let expected = [pair("src/b.txt", "PRECIOUS\n"), pair("src/dir", "a file\n")];
    assert_eq!(kept(&checkout, &answer), expected);
}

#[test]
fn file_that_became_a_folder_is_restored() {
    let checkout = drifted(|checkout| {
        fs::remove_file(checkout.path("src/b.txt")).unwrap();
        checkout.write("src/b.txt/inner/q", "q\n");
    });
    let answer = checkout.task(&restore(&["--restore-all"]));
    assert_eq!(text(&checkout, "src/b.txt"), "before\n");
    assert_eq!(kept(&checkout, &answer), [pair("src/b.txt/inner/q", "q\n")]);
    checkout.update("reviewer", "in_progress");
}

#[test]
fn refused_restore_changes_no_file() {
    let checkout = drifted(|checkout| {
        checkout.write("src/b.txt", "PRECIOUS\n");
        fs::remove_file(checkout.path("src/dir/f")).unwrap();
        checkout.git(&["init", "--quiet", "src/dir/f/repository"]);
    });
    let files = || fs::read_dir(checkout.path(".agent-output").join(TASK)).unwrap().count();
    let before = files();
    let error = checkout.refused(4, &restore(&["--restore", "src/b.txt", "src/dir/f"]));
    assert!(error["message"].as_str().unwrap().contains("is a git repository"), "{error}");
    assert_eq!((text(&checkout, "src/b.txt").as_str(), files()), ("PRECIOUS\n", before));
}

#[test]
fn changed_nested_repository_does_not_prevent_restoring_other_files() {
    let checkout = drifted(|checkout| {
        checkout.write("src/b.txt", "edited\n");
        checkout.git(&["init", "--quiet", "embedded"]);
        checkout.git(&["-C", "embedded", "commit", "--quiet", "--allow-empty", "-m", "first"]);
    });
    let error = checkout.refused(4, &restore(&["--restore-all"]));
    assert!(error["message"].as_str().unwrap().contains("nested repository"), "{error}");
    assert_eq!(text(&checkout, "src/b.txt"), "edited\n");
    checkout.task(&restore(&["--restore", "src/b.txt"]));
    assert_eq!(text(&checkout, "src/b.txt"), "before\n");
}

#[test]
fn content_kept_by_an_interrupted_restore_is_not_overwritten() {
    let checkout = drifted(|checkout| checkout.write("src/b.txt", "PRECIOUS\n"));
    // A restore that stops after it stored the content leaves a file that the context does not name.
    let folder = checkout.path(".agent-output").join(TASK);
    let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let number = |name: String| name.split_once('-')?.0.parse::<u32>().ok();
    let next = names.filter_map(number).max().unwrap() + 1;
    let left = folder.join(format!("{next:04}-set-aside.bin"));
    fs::write(&left, "left").unwrap();
    let answer = checkout.task(&restore(&["--restore-all"]));
    assert_eq!(fs::read_to_string(&left).unwrap(), "left");
    assert_eq!(kept(&checkout, &answer), [pair("src/b.txt", "PRECIOUS\n")]);
}
