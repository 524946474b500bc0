//! Random histories of a checkout. The result of each verification is compared with an independent oracle.
//!
//! Every kind of repository has its own test and seed. `BATON_TEST_FACTOR` multiplies the number of histories,
//! `BATON_GIT_SEED` sets another seed; a failure prints the seed.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use baton_core::Sha256Hash;
use baton_git::{Capture, FileMode, Limits, ObjectStore, PermitAll, RepoPath, Repository, Snapshot};

use crate::oracle::{self, Kind, Tree};
use crate::sandbox::{Sandbox, paths_of};

/// A small random number generator (SplitMix64): the same seed gives the same history on every machine.
struct RandomSource(u64);

impl RandomSource {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut value = self.0;
        value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        value ^ value >> 31
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.below(100) < percent
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}

const PATHS: &[&[u8]] = &[
    b"a.txt",
    b"A.txt",
    b"b.txt",
    b"dir",
    b"dir/a",
    b"dir/b.txt",
    b"dir/sub/c",
    b"dir-x",
    b"dir.y",
    b"dir0",
    b"caf\xe9",
    "caf\u{e9}".as_bytes(),
    b"with space.txt",
    b"new\nline",
    b"qu\"ote",
    b"back\\slash",
    b"-dash",
    b":colon",
    b"deep/er/and/deeper.txt",
    b"link",
    b"run.sh",
    b"x.ignored",
    b"ignored/inside",
    b"ignored/deep/inside.txt",
    b"dir/y.ignored",
    b".agent-output/TASK-1/context.json",
    b".gitmodules2",
    b"image.bin",
];

const CONTENTS: &[&[u8]] = &[
    b"",
    b"one\n",
    b"two\n",
    b"six\n",
    b"one\r\n",
    b"one\ntwo\nthree\nfour\nfive\nsix\nseven\n",
    b"one\ntwo\nthree\nFOUR\nfive\nsix\nseven\n",
    b"one\r\ntwo\r\nthree\r\nfour\r\nfive\r\nsix\r\nseven\r\n",
    b"mixed\r\nline\nendings\r\n",
    b"carriage\rreturns\r",
    b"no end",
    b"NO END",
    b"\0binary\x01",
    b"\0BINARY\x02",
    b"\xff\xfe\r\n\0",
    b"$Id$\n",
    b"$Id: 1234 $\n",
];

/// A kind of repository.
#[derive(Clone, Copy)]
struct Setting {
    name: &'static str,
    histories: usize,
    init: &'static [&'static str],
    configuration: &'static [(&'static str, &'static str)],
    attributes: Option<&'static str>,
    executable_bit: bool,
    /// Whether steps may mislead git (marks, forged times), so that its status cannot be used for comparison.
    misleading: bool,
    /// Whether git is asked for stored sizes, which otherwise happens only in large repositories.
    asks_sizes: bool,
}

const PLAIN: Setting = Setting {
    name: "plain",
    histories: 450,
    init: &[],
    configuration: &[],
    attributes: None,
    executable_bit: true,
    misleading: true,
    asks_sizes: false,
};

/// Number of histories before a repository is replaced.
const HISTORIES_PER_REPOSITORY: usize = 30;

fn setting_from_environment(name: &str) -> Option<u64> {
    std::env::var(name).ok().and_then(|value| value.parse().ok())
}

/// Prints how to reproduce a failure.
struct OnFailure {
    name: &'static str,
    seed: u64,
    history: usize,
    steps: Vec<String>,
}

impl Drop for OnFailure {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("{}: seed {}, history {}: {:#?}", self.name, self.seed, self.history, self.steps);
        }
    }
}

fn run(setting: Setting, default_seed: u64) {
    let seed = setting_from_environment("BATON_GIT_SEED").unwrap_or(default_seed);
    let histories = setting.histories * setting_from_environment("BATON_TEST_FACTOR").unwrap_or(1) as usize;
    let mut random = RandomSource(seed);
    let mut note = OnFailure { name: setting.name, seed, history: 0, steps: Vec::new() };
    while note.history < histories {
        let mut player = Player::new(setting, &mut random);
        for _ in 0..HISTORIES_PER_REPOSITORY.min(histories - note.history) {
            player.history(&mut note);
            note.history += 1;
        }
    }
}

struct Player<'a> {
    setting: Setting,
    random: &'a mut RandomSource,
    sandbox: Sandbox,
    object_store: ObjectStore,
    repository: Repository,
    /// The last verified state, for one more comparison.
    earlier: Option<(Snapshot, Tree)>,
}

impl<'a> Player<'a> {
    fn new(setting: Setting, random: &'a mut RandomSource) -> Self {
        let sandbox = Sandbox::with_arguments(setting.init);
        for (name, value) in setting.configuration {
            sandbox.git(&["config", name, value]);
        }
        fs::write(sandbox.root().join(".git/info/exclude"), oracle::IGNORE_RULES).unwrap();
        if let Some(attributes) = setting.attributes {
            sandbox.write(".gitattributes", attributes);
        }
        let repository = if setting.asks_sizes {
            let limits = Limits { files_worth_a_call: 1, ..Limits::default() };
            Repository::discover(&sandbox.program().with_limits(limits), &sandbox.root()).unwrap()
        } else {
            sandbox.repository()
        };
        let object_store = sandbox.object_store_for(&repository);
        let mut player = Self { setting, random, sandbox, object_store, repository, earlier: None };
        for _ in 0..10 {
            player.write_some_file();
        }
        // Some repositories start without a commit.
        if player.random.chance(80) {
            player.git(&["add", "--all", "--ignore-errors"]);
            player.git(&["commit", "--quiet", "-m", "x"]);
        }
        player
    }

    /// One history: some steps, a snapshot, more steps, a verification.
    fn history(&mut self, note: &mut OnFailure) {
        note.steps.clear();
        self.steps(note, 4);
        if self.setting.asks_sizes && self.random.chance(60) {
            // Without the cache, git is asked again.
            let _ = fs::remove_file(self.object_store.folder().join("stat-cache"));
        }
        let before = oracle::tree(&self.sandbox, self.setting.executable_bit);
        let expected = self.capture(&before).snapshot.clone();
        note.steps.push("-- snapshot --".into());
        self.steps(note, 5);
        let after = oracle::tree(&self.sandbox, self.setting.executable_bit);
        self.verify(&expected, &before, &after);
        if let Some((expected, before)) = self.earlier.take().filter(|_| self.random.chance(20)) {
            note.steps.push("-- against the history before --".into());
            self.verify(&expected, &before, &after);
        }
        if !self.setting.misleading {
            self.agree_with_git(&after);
        }
        self.earlier = Some((expected, before));
    }

    fn steps(&mut self, note: &mut OnFailure, most: usize) {
        for _ in 0..self.random.below(most + 1) {
            let step = self.step();
            note.steps.push(step);
        }
    }

    fn capture(&mut self, tree: &Tree) -> Capture {
        let capture = self.repository.capture(&self.object_store, &mut PermitAll).unwrap();
        let listed: BTreeMap<&[u8], _> =
            capture.files.iter().map(|file| (file.path.as_bytes(), file)).collect();
        let paths: Vec<&[u8]> = listed.keys().copied().collect();
        assert_eq!(paths, tree.keys().map(Vec::as_slice).collect::<Vec<_>>(), "the captured paths");
        for (path, (kind, content)) in tree {
            let file = listed[path.as_slice()];
            let mode = mode(*kind);
            assert_eq!((file.mode, file.size_bytes), (mode, content.len() as u64), "{}", file.path);
        }
        capture
    }

    fn verify(&mut self, expected: &Snapshot, before: &Tree, after: &Tree) {
        let verification = self.repository.verify(&self.object_store, expected, &mut PermitAll).unwrap();
        let actual = &verification.current.snapshot;
        let differing = oracle::differing(before, after);
        assert_eq!(expected.tree == actual.tree, differing.is_empty(), "same tree or not: {differing:?}");
        let mut reported = BTreeSet::new();
        for change in &verification.changes {
            let former = bytes_of(change.previous_path.as_ref().unwrap_or(&change.path));
            let path = bytes_of(&change.path);
            compare(before.get(&former), &change.previous_mode, &change.previous_sha256);
            compare(after.get(&path), &change.mode, &change.sha256);
            let size = after.get(&path).map(|(_, content)| content.len() as u64);
            assert_eq!(change.size_bytes, size, "the size of a file");
            reported.extend([former, path]);
        }
        assert_eq!(reported, differing, "the paths that differ");
        if !differing.is_empty() && self.random.chance(15) {
            self.apply(expected, actual);
        }
    }

    /// Checks that the patch between two snapshots leads from one to the other.
    fn apply(&self, from: &Snapshot, to: &Snapshot) {
        let changes = self.object_store.changes_between(from, to).unwrap();
        let index = self.sandbox.folder().join("patch-index");
        let patch = self.sandbox.folder().join("patch");
        fs::write(&patch, changes.patch.as_slice()).unwrap();
        let git = |arguments: &[&str]| {
            let mut command = self.sandbox.command(arguments);
            command.current_dir(self.object_store.folder()).env("GIT_DIR", self.object_store.folder());
            command.env("GIT_INDEX_FILE", &index);
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", self.repository.common_dir().join("objects"));
            let output = command.output().unwrap();
            assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        git(&["read-tree", &from.patch_tree.to_string()]);
        if !changes.patch.is_empty() {
            git(&["apply", "--cached", "--whitespace=nowarn", patch.to_str().unwrap()]);
        }
        assert_eq!(git(&["write-tree"]), to.patch_tree.to_string(), "the applied patch");
        fs::remove_file(index).unwrap();
    }

    /// Checks that the changes since the commit are those that git reports.
    fn agree_with_git(&mut self, after: &Tree) {
        let capture = self.capture(after);
        let arguments = ["status", "--porcelain=v2", "-z", "-uall", "--", ":!.agent-output"];
        let report = self.sandbox.git(&arguments);
        assert_eq!(shown(&capture.status.report), shown(&report), "the report");
        let snapshot = capture.snapshot.clone();
        let changes =
            self.object_store.changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
        let ours: BTreeSet<Vec<u8>> = paths_of(&changes).iter().map(|path| bytes_of(path)).collect();
        let mut theirs = BTreeSet::new();
        if snapshot.head.commit().is_some() {
            let listed = self.sandbox.git(&[
                "diff",
                "--no-renames",
                "--name-only",
                "-z",
                "HEAD",
                "--",
                ":!.agent-output",
            ]);
            theirs.extend(listed.split(|byte| *byte == 0).map(<[u8]>::to_vec));
        } else {
            let listed = self.sandbox.git(&["ls-files", "-z", "--", ":!.agent-output"]);
            theirs.extend(listed.split(|byte| *byte == 0).map(<[u8]>::to_vec));
            theirs.retain(|path| after.contains_key(path));
        }
        let others = ["ls-files", "-z", "--others", "--exclude-standard", "--", ":!.agent-output"];
        let untracked = self.sandbox.git(&others);
        let untracked: BTreeSet<Vec<u8>> = untracked.split(|byte| *byte == 0).map(<[u8]>::to_vec).collect();
        // An untracked file that is in the commit was removed only from the index: git reports it as deleted.
        let in_commit = |path: &Vec<u8>| theirs.contains(path);
        let only_taken_out: BTreeSet<Vec<u8>> =
            untracked.iter().filter(|path| in_commit(path)).cloned().collect();
        theirs.extend(untracked);
        theirs.remove(&Vec::new());
        let missed: Vec<_> =
            theirs.difference(&ours).filter(|path| !only_taken_out.contains(*path)).collect();
        let invented: Vec<_> = ours.difference(&theirs).collect();
        assert!(missed.is_empty() && invented.is_empty(), "missed {missed:?}, invented {invented:?}");
    }

    fn file(&self, path: &[u8]) -> std::path::PathBuf {
        self.sandbox.path(path)
    }

    /// Makes room for a file: creates its folders and removes whatever is in its place.
    fn make_room(&self, path: &[u8]) {
        for end in path.iter().enumerate().filter(|(_, byte)| **byte == b'/').map(|(end, _)| end) {
            let folder = self.file(&path[..end]);
            if fs::symlink_metadata(&folder).is_ok_and(|meta| !meta.is_dir()) {
                fs::remove_file(&folder).unwrap();
            }
            fs::create_dir_all(&folder).unwrap();
        }
        let place = self.file(path);
        if fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_dir()) {
            fs::remove_dir_all(&place).unwrap();
        }
    }

    fn write_some_file(&mut self) -> String {
        let path = *self.random.pick(PATHS);
        let content = *self.random.pick(CONTENTS);
        self.make_room(path);
        let place = self.file(path);
        let is_file = fs::symlink_metadata(&place).is_ok_and(|meta| meta.is_file());
        if !is_file || self.random.chance(30) {
            let _ = fs::remove_file(&place);
        }
        fs::write(&place, content).unwrap();
        format!("write {} {}", shown(path), shown(content))
    }

    /// Picks an existing regular file.
    fn some_file(&mut self) -> Option<Vec<u8>> {
        let is_file = |path: &&&[u8]| fs::symlink_metadata(self.file(path)).is_ok_and(|meta| meta.is_file());
        let files: Vec<&&[u8]> = PATHS.iter().filter(is_file).collect();
        (!files.is_empty()).then(|| self.random.pick(&files).to_vec())
    }

    /// Changes a file without changing its size, and sometimes without changing its modification time.
    fn edit_in_place(&mut self) -> String {
        let Some(path) = self.some_file() else { return "edit nothing".into() };
        let place = self.file(&path);
        let mut content = fs::read(&place).unwrap();
        let Some(last) = content.len().checked_sub(1) else { return "edit an empty file".into() };
        let at = self.random.below(last + 1);
        content[at] = if content[at] == b'#' { b'%' } else { b'#' };
        let modified = fs::metadata(&place).unwrap().modified().unwrap();
        fs::write(&place, content).unwrap();
        let forged = self.setting.misleading && self.random.chance(50);
        if forged {
            fs::File::options().write(true).open(&place).unwrap().set_modified(modified).unwrap();
        }
        format!("edit {} in place, time forged: {forged}", shown(&path))
    }

    fn rename_some_file(&mut self) -> String {
        let Some(from) = self.some_file() else { return "rename nothing".into() };
        let to = *self.random.pick(PATHS);
        if to == from || to.starts_with(&[from.as_slice(), b"/"].concat()) {
            return "rename to itself".into();
        }
        let content = fs::read(self.file(&from)).unwrap();
        self.make_room(to);
        if fs::rename(self.file(&from), self.file(to)).is_err() {
            // Making room removed the file.
            fs::write(self.file(to), content).unwrap();
        }
        format!("rename {} to {}", shown(&from), shown(to))
    }

    fn link_somewhere(&mut self) -> String {
        let path = *self.random.pick(PATHS);
        let target = *self.random.pick(&["a.txt", "dir", "nowhere", ".", "dir/a"]);
        self.make_room(path);
        let _ = fs::remove_file(self.file(path));
        symlink(target, self.file(path)).unwrap();
        format!("link {} to {target}", shown(path))
    }

    fn replace_folder_by_link(&mut self) -> String {
        if !fs::symlink_metadata(self.file(b"dir")).is_ok_and(|meta| meta.is_dir()) {
            return "no folder to replace".into();
        }
        let _ = fs::remove_dir_all(self.file(b"moved"));
        fs::rename(self.file(b"dir"), self.file(b"moved")).unwrap();
        symlink("moved", self.file(b"dir")).unwrap();
        "replace dir by a link to it".into()
    }

    fn toggle_executable(&mut self) -> String {
        let Some(path) = self.some_file() else { return "chmod nothing".into() };
        let mode = fs::metadata(self.file(&path)).unwrap().permissions().mode() ^ 0o111;
        fs::set_permissions(self.file(&path), fs::Permissions::from_mode(mode)).unwrap();
        format!("chmod {}", shown(&path))
    }

    fn git(&self, arguments: &[&str]) -> String {
        // The exit status does not matter; only the resulting state is examined.
        let output = self.sandbox.try_git(arguments);
        format!("git {} ({})", arguments.join(" "), output.status)
    }

    fn git_with_path(&mut self, arguments: &[&str]) -> String {
        let path = self.random.pick(PATHS).to_vec();
        let mut words: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        words.extend(["--".into(), OsString::from_vec([b":(literal)".as_slice(), &path].concat())]);
        if arguments[0] == "update-index" {
            words.truncate(arguments.len());
            words.push(OsString::from_vec(path.clone()));
        }
        let output = self.sandbox.try_git(&words);
        format!("git {} {} ({})", arguments.join(" "), shown(&path), output.status)
    }

    fn step(&mut self) -> String {
        match self.random.below(100) {
            0..25 => self.write_some_file(),
            25..40 => self.edit_in_place(),
            40..47 => match self.some_file() {
                Some(path) => {
                    fs::remove_file(self.file(&path)).unwrap();
                    format!("delete {}", shown(&path))
                }
                None => "delete nothing".into(),
            },
            47..54 => self.rename_some_file(),
            54..59 => self.toggle_executable(),
            59..63 => self.link_somewhere(),
            63..65 => self.replace_folder_by_link(),
            65..68 => self.rewrite_same(),
            68..74 => self.git_with_path(&["add"]),
            74..76 => self.git_with_path(&["add", "--force"]),
            76..79 => self.git(&["add", "--all"]),
            79..80 => self.git_with_path(&["add", "--intent-to-add"]),
            80..82 => self.git_with_path(&["rm", "--cached", "--quiet", "-r"]),
            82..86 => self.git(&["commit", "--quiet", "--all", "-m", "x"]),
            86..88 => self.git(&["stash", "--quiet", "--include-untracked"]),
            88..90 => self.git(&["stash", "pop", "--quiet"]),
            90..92 => self.git(&["reset", "--quiet", "--hard"]),
            92..94 => self.git_with_path(&["checkout", "--quiet"]),
            94..95 => self.git(&["reset", "--quiet"]),
            95..97 => self.git(&["status"]),
            97..98 if self.setting.misleading => self.git_with_path(&["update-index", "--assume-unchanged"]),
            98..99 if self.setting.misleading => self.git_with_path(&["update-index", "--skip-worktree"]),
            _ if self.setting.misleading => {
                self.git_with_path(&["update-index", "--no-assume-unchanged", "--no-skip-worktree"])
            }
            _ => self.git(&["gc", "--quiet"]),
        }
    }

    /// Rewrites a file with the same content.
    fn rewrite_same(&mut self) -> String {
        let Some(path) = self.some_file() else { return "rewrite nothing".into() };
        let content = fs::read(self.file(&path)).unwrap();
        fs::write(self.file(&path), content).unwrap();
        format!("rewrite {}", shown(&path))
    }
}

fn shown(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn mode(kind: Kind) -> FileMode {
    match kind {
        Kind::File => FileMode::Regular,
        Kind::Executable => FileMode::Executable,
        Kind::Link => FileMode::Symlink,
    }
}

fn compare(known: Option<&(Kind, Vec<u8>)>, told_mode: &Option<String>, told_sha: &Option<String>) {
    let known = known.map(|(kind, content)| (mode(*kind).to_string(), Sha256Hash::of(content).to_string()));
    assert_eq!(told_mode.clone().zip(told_sha.clone()), known, "what a file holds");
}

fn bytes_of(path: &str) -> Vec<u8> {
    path.parse::<RepoPath>().unwrap().as_bytes().to_vec()
}

#[test]
fn plain_histories_match_the_oracle() {
    run(PLAIN, 1);
}

#[test]
fn more_plain_histories_match_the_oracle() {
    run(PLAIN, 2);
}

#[test]
fn histories_with_converted_line_endings() {
    let configuration = &[("core.autocrlf", "true"), ("core.safecrlf", "false")];
    run(Setting { name: "autocrlf", histories: 300, configuration, ..PLAIN }, 3);
}

#[test]
fn histories_with_attributes_and_a_filter() {
    let attributes =
        "*.txt text\n*.sh eol=crlf\ndir* ident\ncaf* working-tree-encoding=UTF-16\nimage.bin filter=rot\n";
    let configuration = &[
        ("filter.rot.clean", "tr a-z n-za-m"),
        ("filter.rot.smudge", "tr n-za-m a-z"),
        ("filter.rot.required", "true"),
    ];
    run(
        Setting { name: "attributes", histories: 300, configuration, attributes: Some(attributes), ..PLAIN },
        4,
    );
}

#[test]
fn histories_with_automatic_line_endings() {
    let attributes = Some("* text=auto\n*.sh eol=crlf\nimage.bin -text\n");
    run(Setting { name: "text=auto", histories: 300, attributes, asks_sizes: true, ..PLAIN }, 10);
}

#[test]
fn histories_with_automatic_line_endings_that_git_agrees_with() {
    let attributes = Some("* text=auto\n");
    let setting = Setting { name: "auto agreement", histories: 150, attributes, asks_sizes: true, ..PLAIN };
    run(Setting { misleading: false, ..setting }, 11);
}

#[test]
fn histories_that_git_agrees_with() {
    run(Setting { name: "agreement", histories: 150, misleading: false, ..PLAIN }, 5);
}

#[test]
fn histories_with_line_endings_that_git_agrees_with() {
    let configuration = &[("core.autocrlf", "input"), ("core.safecrlf", "false")];
    run(Setting { name: "input", histories: 150, configuration, misleading: false, ..PLAIN }, 6);
}

#[test]
fn histories_without_the_executable_bit() {
    let configuration = &[("core.fileMode", "false")];
    run(Setting { name: "no mode", histories: 200, configuration, executable_bit: false, ..PLAIN }, 7);
}

#[test]
fn histories_with_sha256_and_a_packed_index() {
    let configuration = &[("index.version", "4"), ("core.untrackedCache", "true")];
    let init = &["--object-format=sha256"];
    run(Setting { name: "sha256", histories: 200, init, configuration, ..PLAIN }, 8);
}

#[test]
fn histories_with_a_split_index() {
    let configuration = &[("core.splitIndex", "true"), ("core.ignoreCase", "true")];
    run(Setting { name: "split index", histories: 200, configuration, ..PLAIN }, 9);
}

#[test]
fn oracle_reads_files_and_links() {
    let sandbox = Sandbox::new();
    sandbox.write("a", "1");
    sandbox.write("ignored/x", "1");
    sandbox.write("x.ignored", "1");
    sandbox.write(".agent-output/x", "1");
    symlink(Path::new("a"), sandbox.path("l")).unwrap();
    let before = oracle::tree(&sandbox, true);
    assert_eq!(before.keys().map(Vec::as_slice).collect::<Vec<_>>(), [b"a".as_slice(), b"l"]);
    sandbox.write("a", "2");
    assert_eq!(oracle::differing(&before, &oracle::tree(&sandbox, true)).len(), 1);
}
