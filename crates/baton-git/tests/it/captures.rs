//! Content of a snapshot, case by case.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::time::{Duration, SystemTime};

use baton_git::{
    Capture, FileMode, GitError, Limits, ObjectStore, PermitAll, RepoPath, Repository, StatusCode,
    StatusEntry,
};

use crate::sandbox::{Sandbox, file_letters, paths_of};

fn capture(sandbox: &Sandbox) -> Capture {
    sandbox.repository().capture(&sandbox.object_store(), &mut PermitAll).unwrap()
}

fn paths(capture: &Capture) -> Vec<String> {
    capture.files.iter().map(|file| file.path.to_string()).collect()
}

fn sha(bytes: &[u8]) -> Option<String> {
    Some(baton_core::Sha256Hash::of(bytes).to_string())
}

/// Returns the paths changed since `HEAD`.
fn changed(sandbox: &Sandbox) -> Vec<String> {
    let snapshot = capture(sandbox).snapshot.clone();
    let changes =
        sandbox.object_store().changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
    paths_of(&changes)
}

#[test]
fn clean_tree_equals_the_committed_tree() {
    let sandbox =
        Sandbox::with_files(&[("a", "1\n"), ("dir/b", "2\n"), ("dir.c", "3\n"), ("dir/d/e", "4\n")]);
    let snapshot = capture(&sandbox).snapshot;
    assert_eq!(snapshot.tree.to_string(), sandbox.git_text(&["rev-parse", "HEAD^{tree}"]));
    assert_eq!(snapshot.patch_tree, snapshot.tree);
    assert!(snapshot.clean);
    assert!(changed(&sandbox).is_empty());
}

#[test]
fn tree_equals_the_tree_of_git_add_all() {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("dir/b", "2\n"), ("gone/x", "3\n")]);
    sandbox.write("a", "changed\n");
    sandbox.write("dir/new/file", "new\n");
    sandbox.write(b"caf\xe9", "latin\n");
    sandbox.remove("gone/x");
    symlink("dir", sandbox.path("link")).unwrap();
    fs::set_permissions(sandbox.path("dir/b"), fs::Permissions::from_mode(0o755)).unwrap();
    let snapshot = capture(&sandbox).snapshot;
    assert!(!snapshot.clean);
    sandbox.git(&["add", "--all"]);
    assert_eq!(snapshot.tree.to_string(), sandbox.git_text(&["write-tree"]));
}

#[test]
fn ignored_files_are_left_out_and_tracked_ones_are_not() {
    let sandbox = Sandbox::with_files(&[(".gitignore", "*.log\nbuild/\n"), ("a", "1\n")]);
    sandbox.write("x.log", "1");
    sandbox.write("build/x", "1");
    sandbox.write("kept.log", "1");
    sandbox.git(&["add", "--force", "kept.log"]);
    fs::write(sandbox.path(".git/info/exclude"), "secret\n").unwrap();
    sandbox.write("secret", "1");
    sandbox.write("global", "1");
    fs::create_dir_all(sandbox.home().join(".config/git")).unwrap();
    fs::write(sandbox.home().join(".config/git/ignore"), "global\n").unwrap();
    assert_eq!(paths(&capture(&sandbox)), [".gitignore", "a", "kept.log"]);
}

#[test]
fn excluded_paths_are_never_captured() {
    let sandbox =
        Sandbox::with_files(&[("a", "1\n"), (".agent-output/tracked", "1\n"), (".agent-output2", "1\n")]);
    let differences = sandbox.differences(|sandbox| {
        sandbox.write(".agent-output/tracked", "2\n");
        sandbox.write(".agent-output/untracked/deep", "2\n");
        sandbox.git(&["add", ".agent-output/tracked"]);
    });
    assert!(differences.is_empty(), "{differences:?}");
    assert!(changed(&sandbox).is_empty());
    assert!(capture(&sandbox).status.report.is_empty());
    sandbox.git(&["rm", "--quiet", "-r", "--cached", ".agent-output"]);
    assert!(changed(&sandbox).is_empty());
    fs::remove_dir_all(sandbox.path(".agent-output")).unwrap();
    assert!(changed(&sandbox).is_empty());
    assert!(capture(&sandbox).snapshot.staged.is_empty());
}

#[test]
fn index_marks_do_not_hide_changes() {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("b", "1\n"), ("c", "1\n")]);
    sandbox.git(&["update-index", "--assume-unchanged", "a"]);
    sandbox.git(&["update-index", "--skip-worktree", "b", "c"]);
    let differences = sandbox.differences(|sandbox| {
        sandbox.write("a", "2\n");
        sandbox.write("b", "2\n");
        sandbox.remove("c");
    });
    assert_eq!(file_letters(&differences), ["M a", "M b", "D c"]);
    assert_eq!(changed(&sandbox), ["a", "b", "c"]);
}

#[test]
fn edit_within_the_same_clock_tick_is_found() {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("b", "1\n")]);
    for round in 0..20 {
        let differences = sandbox.differences(|sandbox| {
            let file = sandbox.path("a");
            let modified = fs::metadata(&file).unwrap().modified().unwrap();
            fs::write(&file, format!("{}\n", round % 7 + 2)).unwrap();
            fs::File::options().write(true).open(&file).unwrap().set_modified(modified).unwrap();
        });
        assert_eq!(file_letters(&differences), ["M a"], "round {round}");
    }
}

#[test]
fn converted_line_endings_are_captured_raw_without_false_changes() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "core.autocrlf", "true"]);
    sandbox.write("a.txt", "one\ntwo\nthree\n");
    sandbox.write("b.txt", "one\n");
    sandbox.commit();
    for file in ["a.txt", "b.txt"] {
        sandbox.remove(file);
        sandbox.git(&["checkout", "--quiet", file]);
    }
    assert_eq!(fs::read(sandbox.path("a.txt")).unwrap(), b"one\r\ntwo\r\nthree\r\n");
    let snapshot = capture(&sandbox).snapshot;
    assert!(snapshot.clean);
    assert_ne!(snapshot.tree, snapshot.patch_tree);
    assert_eq!(snapshot.patch_tree.to_string(), sandbox.git_text(&["rev-parse", "HEAD^{tree}"]));
    assert!(changed(&sandbox).is_empty());

    // Written again, so that only the content can show that it is unchanged.
    sandbox.write("a.txt", "one\r\ntwo\r\nthree\r\n");
    assert!(changed(&sandbox).is_empty());

    // An edited line counts as one line.
    sandbox.write("a.txt", "one\r\nTWO\r\nthree\r\n");
    let snapshot = capture(&sandbox).snapshot;
    let object_store = sandbox.object_store();
    let changes = object_store.changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
    assert_eq!((changes.stat.insertions, changes.stat.deletions), (1, 1));
    assert_eq!(changes.changes[0].size_bytes, Some(17), "size of the raw bytes");
    assert_eq!(changes.changes[0].sha256, sha(b"one\r\nTWO\r\nthree\r\n"));

    // Other line endings change the raw tree, but nothing that git would store.
    let differences = sandbox.differences(|sandbox| sandbox.write("b.txt", "one\n"));
    assert_eq!(file_letters(&differences), ["M b.txt"]);
    assert_eq!(changed(&sandbox), ["a.txt"]);
}

#[test]
fn untracked_attribute_files_are_respected() {
    let sandbox = Sandbox::with_files(&[(".gitignore", ".gitattributes\n"), ("dir/a.txt", "one\r\n")]);
    sandbox.write("dir/.gitattributes", "*.txt text\n");
    sandbox.git(&["add", "--renormalize", "."]);
    sandbox.git(&["commit", "--quiet", "-m", "x"]);
    let differences = sandbox.differences(|sandbox| sandbox.write("dir/a.txt", "one\r\n"));
    assert!(differences.is_empty(), "{differences:?}");
    assert!(changed(&sandbox).is_empty());
}

#[test]
fn filters_are_not_run() {
    let sandbox = Sandbox::new();
    let trace = sandbox.folder().join("trace");
    let script = format!("tee -a {} | tr a-z A-Z", trace.display());
    sandbox.git(&["config", "filter.shout.clean", &script]);
    sandbox.git(&["config", "filter.shout.required", "true"]);
    sandbox.git(&["config", "filter.with=equals.clean", &script]);
    sandbox.write(".gitattributes", "*.txt filter=shout\n");
    sandbox.write("a.txt", "quiet\n");
    sandbox.write("b.txt", "quiet\n");
    sandbox.commit();
    assert_eq!(sandbox.git(&["show", "HEAD:a.txt"]), b"QUIET\n");
    fs::write(&trace, "").unwrap();
    let snapshot = capture(&sandbox).snapshot;
    let differences = sandbox.differences(|sandbox| sandbox.write("a.txt", "other\n"));
    assert_eq!(file_letters(&differences), ["M a.txt"]);
    assert_eq!(changed(&sandbox), ["a.txt"]);
    assert_eq!(fs::read(&trace).unwrap(), b"", "a filter was executed");
    assert_ne!(snapshot.tree, snapshot.patch_tree);
}

#[test]
fn filtered_file_is_unchanged_after_checkout() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "filter.shout.clean", "tr a-z A-Z"]);
    sandbox.write(".gitattributes", "*.txt filter=shout\n");
    sandbox.write("a.txt", "quiet\n");
    let set_modified = |path: &str, seconds| {
        let time = SystemTime::now() + Duration::from_secs(seconds);
        fs::File::options().write(true).open(sandbox.path(path)).unwrap().set_modified(time).unwrap();
    };
    // The index is written after the last change of the file, but not after its time stamp, so git is unsure.
    set_modified("a.txt", 2_000);
    sandbox.commit();
    set_modified(".git/index", 1_000);
    let capture = capture(&sandbox);
    assert!(capture.snapshot.clean, "{:?}", capture.status);
}

#[test]
fn file_in_an_invalid_encoding_is_captured_raw() {
    let sandbox = Sandbox::with_files(&[(".gitattributes", "*.u text working-tree-encoding=UTF-16\n")]);
    sandbox.write("bad.u", "no mark\r\n");
    sandbox.write("good.u", [0xff, 0xfe, b'a', 0, b'\n', 0]);
    let snapshot = capture(&sandbox).snapshot;
    let changes =
        sandbox.object_store().changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
    assert_eq!(paths_of(&changes).len(), 2);
    assert!(String::from_utf8_lossy(changes.patch.as_slice()).contains("+a\n"));
}

#[test]
fn executable_bit_comes_from_the_index_without_file_modes() {
    let sandbox = Sandbox::with_files(&[("plain", "1\n"), ("run", "1\n")]);
    sandbox.git(&["config", "core.fileMode", "false"]);
    sandbox.git(&["update-index", "--chmod=+x", "run"]);
    sandbox.git(&["commit", "--quiet", "-m", "x"]);
    let differences = sandbox.differences(|sandbox| {
        fs::set_permissions(sandbox.path("plain"), fs::Permissions::from_mode(0o755)).unwrap();
    });
    assert!(differences.is_empty(), "{differences:?}");
    let modes: Vec<FileMode> = capture(&sandbox).files.iter().map(|file| file.mode).collect();
    assert_eq!(modes, [FileMode::Regular, FileMode::Executable]);
    assert!(changed(&sandbox).is_empty());
}

#[test]
fn conflicts_are_captured_as_in_the_working_tree() {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("b", "1\n")]);
    sandbox.git(&["checkout", "--quiet", "-b", "other"]);
    sandbox.write("a", "2\n");
    sandbox.git(&["rm", "--quiet", "b"]);
    sandbox.commit();
    sandbox.git(&["checkout", "--quiet", "main"]);
    sandbox.write("a", "3\n");
    sandbox.write("b", "3\n");
    sandbox.commit();
    assert!(!sandbox.try_git(&["merge", "other"]).status.success());
    let capture = capture(&sandbox);
    let unmerged: Vec<_> = capture
        .status
        .entries
        .iter()
        .filter(|entry| matches!(entry, StatusEntry::Unmerged { .. }))
        .map(|entry| entry.path().to_string())
        .collect();
    assert_eq!(unmerged, ["a", "b"]);
    assert_eq!(paths(&capture), ["a", "b"]);
    assert_eq!(changed(&sandbox), ["a"], "b is as it was in HEAD");
    let staged: Vec<_> = capture.snapshot.staged.iter().map(|staged| staged.change).collect();
    assert_eq!(staged, [StatusCode::Unmerged, StatusCode::Unmerged]);
    let differences = sandbox.differences(|sandbox| sandbox.write("a", "resolved\n"));
    assert_eq!(file_letters(&differences), ["M a"]);
}

#[test]
fn intent_to_add_files_are_captured() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    sandbox.write("new", "content\n");
    sandbox.write("empty", "");
    sandbox.git(&["add", "--intent-to-add", "new", "empty"]);
    assert_eq!(changed(&sandbox), ["empty", "new"]);
    let snapshot = capture(&sandbox).snapshot;
    sandbox.git(&["add", "--all"]);
    assert_eq!(snapshot.tree.to_string(), sandbox.git_text(&["write-tree"]));
}

#[test]
fn staged_content_stays_in_the_object_store_after_it_is_lost() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    sandbox.write("a", "staged\n");
    sandbox.git(&["add", "a"]);
    let object_store = sandbox.object_store();
    let snapshot = capture(&sandbox).snapshot;
    sandbox.git(&["reset", "--quiet", "--hard"]);
    sandbox.git(&["gc", "--quiet", "--prune=now"]);
    let changes = object_store.changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
    assert!(String::from_utf8_lossy(changes.patch.as_slice()).contains("+staged"));
}

#[test]
fn nested_repositories_are_captured_by_commit() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let inner = |arguments: &[&str]| {
        let status = sandbox.command(arguments).current_dir(sandbox.path("inner")).status().unwrap();
        assert!(status.success(), "{arguments:?}");
    };
    fs::create_dir(sandbox.path("inner")).unwrap();
    inner(&["init", "--quiet"]);
    let snapshot = capture(&sandbox).snapshot;
    assert_eq!(snapshot.nested.len(), 1);
    assert_eq!((snapshot.nested[0].tracked, snapshot.nested[0].commit), (false, None));

    sandbox.write("inner/x", "1\n");
    inner(&["add", "x"]);
    inner(&["commit", "--quiet", "-m", "x"]);
    let nested = capture(&sandbox).snapshot.nested.clone();
    let first = nested[0].commit.unwrap();
    sandbox.git(&["add", "inner"]);
    sandbox.git(&["commit", "--quiet", "-m", "x"]);
    let snapshot = capture(&sandbox).snapshot;
    assert!(snapshot.clean);
    assert_eq!((snapshot.nested[0].tracked, snapshot.nested[0].commit), (true, Some(first)));

    // Uncommitted changes inside a nested repository are not visible.
    let differences = sandbox.differences(|sandbox| sandbox.write("inner/x", "2\n"));
    assert!(differences.is_empty(), "{differences:?}");
    let differences = sandbox.differences(|_| inner(&["commit", "--quiet", "--all", "-m", "y"]));
    let [moved] = &differences[..] else { panic!("{differences:?}") };
    assert_eq!(moved.path, "inner");
    assert_eq!(moved.previous_sha256, Some(first.to_string()));
    assert_ne!(moved.sha256, Some(first.to_string()));
    inner(&["pack-refs", "--all"]);
    assert_eq!(capture(&sandbox).snapshot.nested[0].commit.map(|id| id.to_string()), moved.sha256);

    // A submodule that was never fetched counts as unchanged.
    sandbox.git(&["commit", "--quiet", "--all", "-m", "x"]);
    fs::remove_dir_all(sandbox.path("inner")).unwrap();
    fs::create_dir(sandbox.path("inner")).unwrap();
    assert!(capture(&sandbox).snapshot.clean);
}

#[test]
fn sparse_checkout_omits_files() {
    for sparse_index in ["false", "true"] {
        let sandbox =
            Sandbox::with_files(&[("in/a", "1\n"), ("out/deep/b", "1\n"), ("out/c", "1\n"), ("top", "1\n")]);
        sandbox.git(&["config", "index.sparse", sparse_index]);
        sandbox.git(&["sparse-checkout", "set", "--cone", "in"]);
        assert!(!sandbox.path("out").exists());
        let snapshot = capture(&sandbox).snapshot;
        assert!(snapshot.clean, "{snapshot:?}");
        assert_eq!(snapshot.tree.to_string(), sandbox.git_text(&["rev-parse", "HEAD^{tree}"]));
        assert!(snapshot.not_checked_out.is_some());
        sandbox.write("in/a", "2\n");
        assert_eq!(changed(&sandbox), ["in/a"]);
        let differences = sandbox.differences(|sandbox| {
            sandbox.git(&["checkout", "--quiet", "in/a"]);
            sandbox.git(&["sparse-checkout", "disable"]);
        });
        assert_eq!(file_letters(&differences), ["M in/a"]);
        assert_eq!(capture(&sandbox).snapshot.not_checked_out, None);
    }
}

#[test]
fn names_that_differ_only_in_case_are_distinct() {
    let sandbox = Sandbox::with_files(&[("File", "1\n")]);
    // As in a repository copied from a machine with a case-insensitive file system.
    sandbox.git(&["config", "core.ignoreCase", "true"]);
    let differences = sandbox.differences(|sandbox| {
        fs::rename(sandbox.path("File"), sandbox.path("file")).unwrap();
    });
    assert_eq!(file_letters(&differences), ["R file"]);
    assert_eq!(changed(&sandbox), ["File", "file"]);
}

#[test]
fn special_files_are_ignored() {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("pipe", "1\n")]);
    sandbox.remove("pipe");
    for name in ["pipe", "other-pipe"] {
        assert!(std::process::Command::new("mkfifo").arg(sandbox.path(name)).status().unwrap().success());
    }
    assert_eq!(paths(&capture(&sandbox)), ["a"]);
    assert_eq!(changed(&sandbox), ["pipe"]);
}

#[test]
fn object_store_rejects_another_object_format() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let other = Sandbox::with_arguments(&["--object-format=sha256"]);
    let object_store = sandbox.object_store();
    let error = ObjectStore::open(object_store.folder(), &other.repository(), []).unwrap_err();
    assert!(matches!(error, GitError::OtherObjectFormat { .. }), "{error:?}");
}

#[test]
fn large_files_are_read_in_pieces() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let content: Vec<u8> = (0..3_000_000_u32).map(|number| (number * 7 / 3) as u8).collect();
    sandbox.write("large", &content);
    let snapshot = capture(&sandbox).snapshot;
    let changes =
        sandbox.object_store().changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
    assert_eq!(changes.changes[0].size_bytes, Some(3_000_000));
    assert_eq!(changes.changes[0].sha256, sha(&content));
    assert_eq!((changes.stat.insertions, changes.stat.deletions), (0, 0));
}

#[test]
fn files_above_the_limit_are_hashed_as_a_stream_and_left_out_of_the_patch() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let git = sandbox.program().with_limits(Limits {
        output_bytes: 100_000,
        large_file_bytes: 200_000,
        ..Limits::default()
    });
    sandbox.write("a", "2\n");
    sandbox.write("large", vec![b'x'; 300_000]);
    let repository = Repository::discover(&git, &sandbox.root()).unwrap();
    let object_store = sandbox.object_store_for(&repository);
    let snapshot = repository.capture(&object_store, &mut PermitAll).unwrap().snapshot;
    assert_eq!(snapshot.large, [RepoPath::new("large")]);
    let changes = object_store.changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
    let large = changes.changes.iter().find(|file| file.path == "large").unwrap();
    assert_eq!(large.sha256, sha(&[b'x'; 300_000]));
    let patch = String::from_utf8(changes.patch).unwrap();
    assert!(patch.contains("+2\n") && patch.contains("Binary files a/large and b/large differ"), "{patch}");
    assert!(patch.len() < 1_000, "{}", patch.len());
}

#[test]
fn large_files_that_were_deleted_renamed_or_shrunk_are_left_out_of_the_patch() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    // The content does not compress.
    let mut state = 1_u64;
    let mut random = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    let mut large = || (0..300_000).map(|_| random()).collect::<Vec<u8>>();
    for name in ["deleted", "previous", "shrunk", "moved"] {
        sandbox.write(name, large());
    }
    sandbox.commit();
    let limits = Limits { output_bytes: 100_000, large_file_bytes: 200_000, ..Limits::default() };
    let repository = Repository::discover(&sandbox.program().with_limits(limits), &sandbox.root()).unwrap();
    sandbox.write("a", "2\n");
    sandbox.git(&["rm", "--quiet", "deleted"]);
    sandbox.git(&["mv", "previous", "renamed"]);
    sandbox.git(&["mv", "moved", "moved again"]);
    let mut content = fs::read(sandbox.path("renamed")).unwrap();
    content[0] ^= 1;
    sandbox.write("renamed", content);
    sandbox.write("shrunk", "small\n");
    let base = repository.head().commit();
    let patch = || {
        let object_store = sandbox.object_store_for(&repository);
        let snapshot = repository.capture(&object_store, &mut PermitAll).unwrap().snapshot;
        String::from_utf8(object_store.changes_since(base, &snapshot, &mut PermitAll).unwrap().patch).unwrap()
    };
    let staged = patch();
    for line in [
        "+2\n",
        "Binary files a/deleted and b/deleted differ",
        "diff --git a/previous b/renamed\nBinary files a/previous and b/renamed differ",
        "Binary files a/shrunk and b/shrunk differ",
        "rename from moved\nrename to moved again",
    ] {
        assert!(staged.contains(line), "{line}: {staged}");
    }
    assert!(staged.len() < 1_000, "{}", staged.len());
    sandbox.commit();
    assert_eq!(patch(), staged, "the base is not HEAD");
}

/// Run with little memory by the test below.
#[test]
#[ignore = "run by file_larger_than_memory_is_captured_and_verified"]
fn with_little_memory() {
    const SIZE: u64 = 48 << 20;
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let git = sandbox.program().with_limits(Limits { large_file_bytes: 1 << 20, ..Limits::default() });
    let file = std::fs::File::create(sandbox.path("large")).unwrap();
    file.set_len(SIZE).unwrap();
    let repository = Repository::discover(&git, &sandbox.root()).unwrap();
    let object_store = sandbox.object_store_for(&repository);
    let snapshot = repository.capture(&object_store, &mut PermitAll).unwrap().snapshot;
    let changes = object_store.changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
    assert_eq!(changes.changes[0].size_bytes, Some(SIZE));
    assert!(
        repository
            .verify(&object_store.clone().rereading(), &snapshot, &mut PermitAll)
            .unwrap()
            .changes
            .is_empty()
    );
    file.set_len(SIZE + 1).unwrap();
    assert!(!repository.verify(&object_store, &snapshot, &mut PermitAll).unwrap().changes.is_empty());
}

#[test]
fn file_larger_than_memory_is_captured_and_verified() {
    let output = std::process::Command::new("sh")
        .args(["-c", "ulimit -d 40000 && exec \"$0\" \"$@\""])
        .arg(std::env::current_exe().unwrap())
        // A backtrace needs more memory than available.
        .env("RUST_BACKTRACE", "0")
        .args(["captures::with_little_memory", "--exact", "--ignored", "--test-threads", "1"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn rereading_finds_an_edit_that_leaves_the_status_information_unchanged() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let repository = sandbox.repository();
    let object_store = sandbox.object_store_for(&repository);
    let id = |text: &str| {
        sandbox.write("a", text);
        let digits = sandbox.git_text(&["hash-object", "a"]);
        digits.parse::<baton_git::ObjectId>().unwrap()
    };
    let first = id("aaa\n");
    let snapshot = repository.capture(&object_store, &mut PermitAll).unwrap().snapshot;
    let second = id("bbb\n");
    // Makes the cache name the old content for the new file, as if its stat information had not changed.
    let path = object_store.folder().join("stat-cache");
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let at = loop {
        repository.capture_without_storing(&object_store).unwrap();
        let bytes = fs::read(&path).unwrap_or_default();
        let found = bytes.windows(second.as_bytes().len()).position(|part| part == second.as_bytes());
        if let Some(at) = found {
            break at;
        }
        assert!(std::time::Instant::now() < deadline, "the file never settled");
    };
    let mut bytes = fs::read(&path).unwrap();
    bytes[at..at + first.as_bytes().len()].copy_from_slice(first.as_bytes());
    let end = bytes.len() - 4;
    let sum = crc32(&bytes[..end]).to_le_bytes();
    bytes[end..].copy_from_slice(&sum);
    fs::write(&path, bytes).unwrap();
    assert!(
        repository.verify(&object_store, &snapshot, &mut PermitAll).unwrap().changes.is_empty(),
        "the stat information is trusted"
    );
    assert!(
        !repository
            .verify(&object_store.clone().rereading(), &snapshot, &mut PermitAll)
            .unwrap()
            .changes
            .is_empty()
    );
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut sum = u32::MAX;
    for byte in bytes {
        sum ^= u32::from(*byte);
        for _ in 0..8 {
            sum = if sum & 1 == 1 { sum >> 1 ^ 0xedb8_8320 } else { sum >> 1 };
        }
    }
    !sum
}

#[test]
fn snapshots_survive_serialization() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    sandbox.write(b"caf\xe9", "1\n");
    sandbox.git(&["add", "--all"]);
    let snapshot = capture(&sandbox).snapshot;
    let text = serde_json::to_string(&snapshot).unwrap();
    assert_eq!(serde_json::from_str::<baton_git::Snapshot>(&text).unwrap(), snapshot);
}
