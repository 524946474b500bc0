//! Snapshots of working trees compared with `git status` on the same tree in the same run.
#![expect(clippy::expect_used, reason = "a bench fails loudly")]

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use baton_benches::{Timings, machine, release_binary, table};
use baton_git::{Git, ObjectStore, PermitAll, RepoPath, Repository, Snapshot};

/// A working tree to measure.
struct TestTree {
    name: &'static str,
    files: usize,
    changed: usize,
    untracked: usize,
    rounds: usize,
    attributes: Option<&'static str>,
    /// True if the objects are in a pack, as after a clone; false for loose objects, as after a first commit.
    packed: bool,
}

const TEST_TREES: &[TestTree] = &[
    TestTree {
        name: "10 files, 1 changed, 1 untracked",
        files: 10,
        changed: 1,
        untracked: 1,
        rounds: 100,
        attributes: None,
        packed: false,
    },
    TestTree {
        name: "20,000 files, 100 changed, 20 untracked",
        files: 20_000,
        changed: 100,
        untracked: 20,
        rounds: 31,
        attributes: None,
        packed: false,
    },
    TestTree {
        name: "20,000 files with `* text=auto`, 100 changed, 20 untracked",
        files: 20_000,
        changed: 100,
        untracked: 20,
        rounds: 31,
        attributes: Some("* text=auto\n"),
        packed: false,
    },
    TestTree {
        name: "20,000 files with `* text=auto` in a pack, 100 changed, 20 untracked",
        files: 20_000,
        changed: 100,
        untracked: 20,
        rounds: 31,
        attributes: Some("* text=auto\n"),
        packed: true,
    },
    TestTree {
        name: "100,000 files, 100 changed, 20 untracked",
        files: 100_000,
        changed: 100,
        untracked: 20,
        rounds: 11,
        attributes: None,
        packed: false,
    },
];

fn run(folder: &Path, arguments: &[&str]) {
    let mut command = Command::new("git");
    command.args(["-c", "user.name=b", "-c", "user.email=b@example.com", "-c", "gc.auto=0"]);
    let output = command.args(arguments).current_dir(folder).output().expect("git");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
}

fn file(root: &Path, number: usize) -> std::path::PathBuf {
    root.join(format!("crate{}/module{}/file{number}.rs", number % 20, number / 20 % 50))
}

fn content(number: usize, generation: usize) -> String {
    let line = format!("pub fn function_{number}_{generation}() -> usize {{ {number} }}\n");
    line.repeat(10 + number % 50)
}

fn build(tree: &TestTree, root: &Path) {
    run(root, &["init", "--quiet"]);
    if let Some(attributes) = tree.attributes {
        fs::write(root.join(".gitattributes"), attributes).expect("attributes");
    }
    for number in 0..tree.files {
        let path = file(root, number);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, content(number, 0)).expect("a file");
    }
    run(root, &["add", "--all"]);
    run(root, &["commit", "--quiet", "-m", "all"]);
    if tree.packed {
        run(root, &["repack", "-a", "-d", "--quiet"]);
    }
    for number in 0..tree.untracked {
        fs::write(root.join(format!("untracked{number}.rs")), content(number, 9)).expect("a file");
    }
    // Git reads recently written files again, because their timestamps are ambiguous, so wait until they are older.
    std::thread::sleep(Duration::from_millis(1_100));
    run(root, &["status"]);
    change(tree, root, 1);
}

/// Edits the changed files again, so that each round has new content to read and store.
fn change(tree: &TestTree, root: &Path, generation: usize) {
    for number in 0..tree.changed {
        let number = number * (tree.files / tree.changed);
        fs::write(file(root, number), content(number, generation)).expect("a file");
    }
    std::thread::sleep(Duration::from_millis(30));
}

fn git_status(root: &Path) -> Duration {
    let mut command = Command::new("git");
    command.args(["status", "--porcelain=v2", "-z", "-uall"]).env("GIT_OPTIONAL_LOCKS", "0");
    let started = Instant::now();
    let output = command.current_dir(root).output().expect("git");
    let taken = started.elapsed();
    assert!(output.status.success());
    taken
}

fn timed<T>(timings: &mut Vec<Duration>, work: impl FnOnce() -> T) -> T {
    let started = Instant::now();
    let result = work();
    timings.push(started.elapsed());
    result
}

fn measure(tree: &TestTree) -> Vec<Vec<String>> {
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("checkout");
    fs::create_dir(&root).expect("a folder");
    build(tree, &root);
    let git = Git::find(std::env::vars_os()).expect("git");
    let open = |name: &str| {
        let repository = Repository::discover(&git, &root).expect("a repository");
        let excluded = [RepoPath::new(".agent-output")];
        let object_store =
            ObjectStore::open(folder.path().join(name), &repository, excluded).expect("an object store");
        (repository, object_store)
    };
    let [mut status, mut first, mut next, mut same, mut drift, mut changes] = [const { Vec::new() }; 6];
    for round in 0..tree.rounds {
        status.push(git_status(&root));
        // Each round has a new object store here.
        timed(&mut first, || {
            let (repository, object_store) = open(&format!("object_store{round}"));
            repository.capture(&object_store, &mut PermitAll).expect("a snapshot")
        });
        let snapshot: Snapshot = timed(&mut next, || {
            let (repository, object_store) = open("object store");
            repository.capture(&object_store, &mut PermitAll).expect("a snapshot").snapshot
        });
        status.push(git_status(&root));
        let verified = timed(&mut same, || {
            let (repository, object_store) = open("object store");
            repository.verify(&object_store, &snapshot, &mut PermitAll).expect("a verification")
        });
        assert!(verified.changes.is_empty());
        timed(&mut changes, || {
            let (_, object_store) = open("object store");
            object_store.changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).expect("changes")
        });
        change(tree, &root, round + 2);
        status.push(git_status(&root));
        let verified = timed(&mut drift, || {
            let (repository, object_store) = open("object store");
            repository.verify(&object_store, &snapshot, &mut PermitAll).expect("a verification")
        });
        assert_eq!(verified.changes.len(), tree.changed);
    }
    let floor = Timings::new(status);
    let row = |name: &str, timings: Timings| {
        vec![
            name.to_owned(),
            format!("{:.1}", timings.percentile_ms(50)),
            format!("{:.1}", timings.percentile_ms(95)),
            format!("{:.2}×", timings.percentile_ms(50) / floor.percentile_ms(50)),
        ]
    };
    vec![
        row("snapshot, first of an object store", Timings::new(first)),
        row("snapshot, nothing new to store", Timings::new(next)),
        row("verify, nothing different", Timings::new(same)),
        row("verify, every changed file different", Timings::new(drift)),
        row("changes since the commit, with patch and hashes", Timings::new(changes)),
        vec![
            "`git status --porcelain=v2 -z -uall`".into(),
            format!("{:.1}", floor.percentile_ms(50)),
            format!("{:.1}", floor.percentile_ms(95)),
            "1.00×".into(),
        ],
    ]
}

/// Number of files in the scope of the task whose verbs are measured.
const SCOPE_FILES: usize = 20_000;

/// Measures whole verbs of the binary on a task whose scope has 20,000 files.
fn measure_verbs() -> Vec<Vec<String>> {
    let tree = TestTree {
        name: "scope",
        files: SCOPE_FILES,
        changed: 100,
        untracked: 20,
        rounds: 31,
        attributes: None,
        packed: false,
    };
    let folder = tempfile::tempdir().expect("a folder");
    let root = folder.path().join("checkout");
    fs::create_dir_all(root.join("tasks")).expect("a folder");
    let task = "title: T\nstatus: in_progress\ndescription: D\nscope: {in: ['**/*.rs']}\n";
    fs::write(root.join("tasks/TASK-1.task.yaml"), task).expect("a task file");
    build(&tree, &root);
    let binary = release_binary("baton");
    let verb = |arguments: &[&str]| {
        let mut command = Command::new(&binary);
        command.arg("task").args(arguments).current_dir(&root).env("HOME", folder.path());
        command.env("BATON_DATA_DIR", folder.path().join("data"));
        let started = Instant::now();
        let output = command.output().expect("baton");
        let taken = started.elapsed();
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        taken
    };
    verb(&["init-context", "TASK-1"]);
    verb(&["update-agent", "TASK-1", "--agent", "implementer", "--status", "in_progress"]);
    let [mut status, mut snapshot, mut verify] = [const { Vec::new() }; 3];
    for round in 0..tree.rounds {
        change(&tree, &root, round + 2);
        status.push(git_status(&root));
        snapshot.push(verb(&["snapshot-worktree", "TASK-1", "--agent", "implementer"]));
        status.push(git_status(&root));
        verify.push(verb(&["verify-worktree", "TASK-1", "--expected-agent", "implementer"]));
    }
    let floor = Timings::new(status);
    let row = |name: &str, timings: Timings| {
        let (p50, p95) = (timings.percentile_ms(50), timings.percentile_ms(95));
        let ratio = p50 / floor.percentile_ms(50);
        vec![name.to_owned(), format!("{p50:.1}"), format!("{p95:.1}"), format!("{ratio:.2}×")]
    };
    let mut rows = vec![
        row("`baton task snapshot-worktree`, 100 files to store", Timings::new(snapshot)),
        row("`baton task verify-worktree`, nothing different", Timings::new(verify)),
    ];
    let (p50, p95) = (floor.percentile_ms(50), floor.percentile_ms(95));
    let status = "`git status --porcelain=v2 -z -uall`";
    rows.push(vec![status.into(), format!("{p50:.1}"), format!("{p95:.1}"), "1.00×".into()]);
    rows
}

fn main() {
    machine();
    // `-- 20,000` runs only the trees whose name contains this text.
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    for tree in TEST_TREES.iter().filter(|tree| tree.name.contains(&wanted)) {
        table(
            &format!("{}: each call finds the repository and opens the object store anew", tree.name),
            &["call", "p50 ms", "p95 ms", "to `git status`"],
            &measure(tree),
        );
    }
    if "scope".contains(&wanted) {
        table(
            &format!("Whole verbs, scope of {SCOPE_FILES} files, 100 changed, 20 untracked"),
            &["process", "p50 ms", "p95 ms", "to `git status`"],
            &measure_verbs(),
        );
    }
}
