//! Finding a checkout, and errors if there is none.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use baton_git::{Git, GitError, Head, Limits, ObjectFormat, PermitAll, RepoPath, Repository};

use crate::sandbox::{Sandbox, paths_of};

#[test]
fn checkout_is_found_from_any_subfolder() {
    let sandbox = Sandbox::with_files(&[("a/b/c", "1\n")]);
    sandbox.git(&["remote", "add", "origin", "git@example.com:owner/name.git"]);
    let repository = Repository::discover(&sandbox.program(), &sandbox.path("a/b")).unwrap();
    let root = sandbox.root().canonicalize().unwrap();
    assert_eq!(repository.root(), root);
    assert_eq!(repository.git_dir(), root.join(".git"));
    assert_eq!(repository.common_dir(), root.join(".git"));
    assert_eq!(repository.object_format(), ObjectFormat::Sha1);
    assert_eq!(repository.name().unwrap().as_str(), "owner/name");
    let commit = sandbox.git_text(&["rev-parse", "HEAD"]).parse().unwrap();
    assert_eq!(*repository.head(), Head::Branch { name: "main".into(), commit });
    sandbox.git(&["checkout", "--quiet", "--detach"]);
    assert_eq!(*sandbox.repository().head(), Head::Detached { commit });
}

#[test]
fn repository_without_commits_has_a_branch_but_no_commit() {
    let sandbox = Sandbox::with_arguments(&["--object-format=sha256", "--initial-branch=a/b"]);
    let repository = sandbox.repository();
    assert_eq!(*repository.head(), Head::Unborn { name: "a/b".into() });
    assert_eq!(repository.object_format(), ObjectFormat::Sha256);
    assert_eq!(repository.name().unwrap().as_str(), "local/checkout");
}

#[test]
fn head_info_of_a_reftable_repository_has_no_branch() {
    for (arguments, branch) in [(&[][..], Some("main")), (&["--ref-format=reftable"], None)] {
        let sandbox = Sandbox::with_arguments(arguments);
        sandbox.git(&["remote", "add", "origin", "https://example.com/acme/webshop.git"]);
        sandbox.write("a", "1\n");
        sandbox.commit();
        let info = Repository::read_head_info(&sandbox.root()).unwrap();
        assert_eq!(info.branch.as_deref(), branch);
        assert_eq!(info.commit, branch.map(|_| sandbox.git_text(&["rev-parse", "HEAD"])));
        assert_eq!(info.name.unwrap().as_str(), "acme/webshop");
    }
}

#[test]
fn linked_worktree_has_its_own_git_folder_and_the_name_of_the_main_checkout() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let linked = sandbox.folder().join("linked");
    sandbox.git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    let repository = Repository::discover(&sandbox.program(), &linked).unwrap();
    assert_eq!(repository.root(), linked.canonicalize().unwrap());
    assert_eq!(repository.common_dir(), sandbox.repository().git_dir());
    assert_ne!(repository.git_dir(), repository.common_dir());
    assert_eq!(repository.head().branch(), Some("linked"));
    assert_eq!(repository.name(), sandbox.repository().name());

    fs::write(linked.join("a"), "2\n").unwrap();
    let object_store = sandbox.object_store_for(&repository);
    let snapshot = repository.capture(&object_store, &mut PermitAll).unwrap().snapshot;
    let changes = object_store.changes_since(snapshot.head.commit(), &snapshot, &mut PermitAll).unwrap();
    assert_eq!(paths_of(&changes), ["a"]);
    assert!(sandbox.repository().capture(&object_store, &mut PermitAll).unwrap().snapshot.clean);
}

#[test]
fn name_at_returns_the_same_name() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let git = sandbox.program();
    let linked = sandbox.folder().join("linked");
    sandbox.git(&["worktree", "add", "--quiet", linked.to_str().unwrap()]);
    for root in [&sandbox.root(), &linked] {
        assert_eq!(Repository::name_at(&git, root).unwrap(), sandbox.repository().name());
    }
    sandbox.git(&["remote", "add", "up", "git@example.com:owner/name.git"]);
    assert_eq!(Repository::name_at(&git, &sandbox.root()).unwrap().unwrap().as_str(), "owner/name");
    let outside = Repository::name_at(&git, sandbox.folder());
    assert!(matches!(outside, Err(GitError::NotARepository { .. })), "{outside:?}");
}

#[test]
fn commits_are_resolved_by_revision() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    sandbox.git(&["tag", "-m", "v1", "v1"]);
    let repository = sandbox.repository();
    let commit = repository.head().commit();
    let short = commit.unwrap().to_string()[..8].to_owned();
    for name in ["HEAD", "main", "v1", short.as_str()] {
        assert_eq!(repository.resolve_commit(name).unwrap(), commit, "{name}");
    }
    for name in ["", "nothing", "HEAD:a", "--all", "HEAD~1", "a b", "HEAD^{tree}"] {
        assert_eq!(repository.resolve_commit(name).unwrap(), None, "{name}");
    }
}

#[test]
fn files_lists_existing_files_that_are_not_ignored() {
    let sandbox = Sandbox::with_files(&[("a", "1\n"), ("gone", "1\n"), (".gitignore", "*.log\n")]);
    sandbox.remove("gone");
    sandbox.write("new/b", "1\n");
    sandbox.write("x.log", "1\n");
    sandbox.write(".agent-output/c", "1\n");
    let files = sandbox.repository().files(&[RepoPath::new(".agent-output")]).unwrap();
    let names: Vec<String> = files.iter().map(RepoPath::to_string).collect();
    assert_eq!(names, [".gitignore", "a", "new/b"]);
}

#[test]
fn names_with_line_breaks_are_found() {
    let sandbox = Sandbox::new();
    let folder = sandbox.folder().join("a\nb");
    fs::create_dir(&folder).unwrap();
    let mut init = sandbox.command(&["init", "--quiet"]);
    assert!(init.current_dir(&folder).status().unwrap().success());
    let repository = Repository::discover(&sandbox.program(), &folder).unwrap();
    assert_eq!(repository.root(), folder.canonicalize().unwrap());
    assert!(matches!(repository.head(), Head::Unborn { .. }));
    fs::write(folder.join("x"), "1").unwrap();
    let object_store = sandbox.object_store_for(&repository);
    let snapshot = repository.capture(&object_store, &mut PermitAll).unwrap().snapshot;
    assert_eq!(object_store.changes_since(None, &snapshot, &mut PermitAll).unwrap().changes.len(), 1);
}

#[test]
fn folders_without_a_checkout_have_distinct_errors() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let git = sandbox.program();
    let discover = |path: &std::path::Path| Repository::discover(&git, path).unwrap_err();
    assert!(matches!(discover(sandbox.folder()), GitError::NotARepository { .. }));
    assert!(matches!(discover(&sandbox.folder().join("nowhere")), GitError::NotARepository { .. }));
    assert!(matches!(discover(&sandbox.path(".git")), GitError::BareRepository { .. }));
    let bare = sandbox.folder().join("bare");
    sandbox.git(&["init", "--quiet", "--bare", bare.to_str().unwrap()]);
    assert!(matches!(discover(&bare), GitError::BareRepository { .. }));
    let mut environment = sandbox.environment();
    environment.push(("GIT_TEST_ASSUME_DIFFERENT_OWNER".into(), "1".into()));
    let other = Git::find(environment).unwrap();
    let error = Repository::discover(&other, &sandbox.root()).unwrap_err();
    assert!(matches!(error, GitError::DubiousOwnership { .. }), "{error:?}");
}

#[test]
fn damaged_repository_reports_the_message_of_git() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let config = sandbox.path(".git/config");
    let text = fs::read_to_string(&config).unwrap();
    fs::write(&config, text.replace("repositoryformatversion = 0", "repositoryformatversion = 99")).unwrap();
    let error = Repository::discover(&sandbox.program(), &sandbox.root()).unwrap_err();
    let GitError::CommandFailed { stderr, .. } = error else { panic!("{error:?}") };
    assert!(stderr.contains("99"), "{stderr}");
}

/// Creates a program that replaces git.
fn fake_git(sandbox: &Sandbox, script: &str) -> Git {
    let program = sandbox.folder().join("fake_git");
    fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    Git::at(program, sandbox.environment())
}

#[test]
fn missing_old_and_hanging_git_have_distinct_errors() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let nowhere = [("PATH".into(), sandbox.home().into_os_string())];
    assert!(matches!(Git::find(nowhere), Err(GitError::GitMissing { .. })));
    let missing = Git::at(sandbox.folder().join("no-git"), sandbox.environment());
    let error = Repository::discover(&missing, &sandbox.root()).unwrap_err();
    assert!(matches!(error, GitError::GitMissing { .. }), "{error:?}");

    let script = "case \"$*\" in *version*) echo git version 2.20.1;; *) for a; do echo \"$a\"; done;; esac";
    let error = Repository::discover(&fake_git(&sandbox, script), &sandbox.root()).unwrap_err();
    let GitError::GitTooOld { found, .. } = error else { panic!("{error:?}") };
    assert_eq!(found, "git version 2.20.1");

    let limits = Limits { time: Duration::from_millis(200), ..Limits::default() };
    let hanging = fake_git(&sandbox, "exec sleep 60").with_limits(limits);
    let error = Repository::discover(&hanging, &sandbox.root()).unwrap_err();
    assert!(matches!(error, GitError::TimedOut { .. }), "{error:?}");
}

#[test]
fn git_variables_of_the_caller_are_ignored() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let mut environment = sandbox.environment();
    for (name, value) in [
        ("GIT_DIR", "/nowhere"),
        ("GIT_WORK_TREE", "/nowhere"),
        ("GIT_INDEX_FILE", "/nowhere"),
        ("GIT_OBJECT_DIRECTORY", "/nowhere"),
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "core.bare"),
        ("GIT_CONFIG_VALUE_0", "true"),
        ("GIT_TRACE", "1"),
        ("LC_ALL", "de_DE.UTF-8"),
    ] {
        environment.push((name.into(), value.into()));
    }
    let repository = Repository::discover(&Git::find(environment).unwrap(), &sandbox.root()).unwrap();
    assert_eq!(repository.root(), sandbox.root().canonicalize().unwrap());
    assert!(
        repository.capture(&sandbox.object_store_for(&repository), &mut PermitAll).unwrap().snapshot.clean
    );
}

/// Adds settings as `GIT_CONFIG_COUNT` and its variables.
fn with_settings(mut environment: Vec<(OsString, OsString)>, settings: &[(&str, &str)]) -> Git {
    environment.push(("GIT_CONFIG_COUNT".into(), settings.len().to_string().into()));
    for (number, (key, value)) in settings.iter().enumerate() {
        environment.push((format!("GIT_CONFIG_KEY_{number}").into(), key.into()));
        environment.push((format!("GIT_CONFIG_VALUE_{number}").into(), value.into()));
    }
    Git::find(environment).unwrap()
}

#[test]
fn settings_from_the_environment_apply_as_they_do_for_git() {
    let sandbox =
        Sandbox::with_files(&[(".gitattributes", "*.up filter=up\n"), ("a.txt", "1\n2\n"), ("b.up", "x\n")]);
    let ignore = sandbox.folder().join("ignore");
    std::fs::write(&ignore, "*.tmp\n").unwrap();
    sandbox.write("scratch.tmp", "x\n");
    sandbox.write("a.txt", "1\r\n2\r\n");
    sandbox.write("b.up", "y\n");
    let marker = sandbox.folder().join("filter-ran");
    let filter = format!("touch {}; cat", marker.display());
    let program = with_settings(
        sandbox.environment(),
        &[
            ("core.excludesFile", ignore.to_str().unwrap()),
            ("core.autocrlf", "input"),
            ("filter.up.clean", &filter),
            ("core.fsmonitor", &filter),
            ("remote.origin.url", "https://example.com/acme/webshop.git"),
        ],
    );
    let repository = Repository::discover(&program, &sandbox.root()).unwrap();
    assert_eq!(repository.name().unwrap().as_str(), "acme/webshop");
    let object_store = sandbox.object_store_for(&repository);
    let capture = repository.capture(&object_store, &mut PermitAll).unwrap();
    let paths: Vec<String> = capture.files.iter().map(|file| file.path.to_string()).collect();
    assert!(!paths.contains(&"scratch.tmp".to_owned()), "core.excludesFile: {paths:?}");
    let changes =
        object_store.changes_since(repository.head().commit(), &capture.snapshot, &mut PermitAll).unwrap();
    let changed: Vec<String> = changes.changes.iter().map(|file| file.path.to_string()).collect();
    let patch = String::from_utf8_lossy(changes.patch.as_slice()).into_owned();
    assert!(changed.contains(&"b.up".to_owned()), "{changed:?}");
    assert!(!patch.contains("a.txt"), "core.autocrlf: {patch}");
    assert!(!marker.exists(), "filters and monitors must not run, wherever they are configured");
}

#[test]
fn safe_directory_from_the_environment_is_trusted() {
    let sandbox = Sandbox::with_files(&[("a", "1\n")]);
    let foreign = |settings: &[(&str, &str)]| {
        let mut environment = sandbox.environment();
        environment.push(("GIT_TEST_ASSUME_DIFFERENT_OWNER".into(), "1".into()));
        Repository::discover(&with_settings(environment, settings), &sandbox.root())
    };
    assert!(matches!(foreign(&[]), Err(GitError::DubiousOwnership { .. })));
    foreign(&[("safe.directory", "*")]).unwrap();
}
