//! Files and functions in summaries of sessions.

use baton_core::observation::{Digest, FunctionAction, SessionMaterial};

use super::session::{digest, summarize, turn};

#[test]
fn renamed_files_have_their_new_name() {
    let renamed = Digest {
        summary: "`git mv clean.go cleanup.go && git mv clean_test.go cleanup_…` succeeded without output."
            .into(),
        ..digest(
            "Bash",
            "Rename files: done",
            &["clean.go", "cleanup.go", "clean_test.go", "cleanup_test.go"],
            &[],
        )
    };
    let digests = vec![digest("Edit", "Edit clean.go", &["clean.go"], &[]), renamed];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() });
    assert_eq!(summary.key_files, ["cleanup.go", "cleanup_test.go"]);
    let deleted = Digest {
        summary: "`mv a.go b.go && rm c.go d.go` succeeded without output.".into(),
        ..digest("Bash", "Move: done", &["a.go", "b.go", "c.go", "d.go"], &[])
    };
    let summary = summarize(&SessionMaterial { digests: vec![deleted], ..SessionMaterial::default() });
    assert_eq!(summary.key_files.len(), 4);
}

#[test]
fn files_outside_the_repository_are_named_last() {
    let digests = vec![
        digest("Write", "Write plan", &["/home/dev/.claude/plans/plan.md"], &[]),
        digest("Edit", "Edit plan", &["/home/dev/.claude/plans/plan.md"], &[]),
        digest("Edit", "Modify load in src/a.rs", &["src/a.rs"], &[]),
    ];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() });
    assert_eq!(summary.key_files, ["src/a.rs", "/home/dev/.claude/plans/plan.md"]);
}

#[test]
fn functions_that_were_added_and_removed_again_are_left_out() {
    let edit = |functions: &[(&str, FunctionAction)]| digest("Edit", "Edit a.go", &["a.go"], functions);
    let digests = vec![
        edit(&[("kept", FunctionAction::New), ("tried", FunctionAction::New)]),
        edit(&[("kept", FunctionAction::Modified), ("old", FunctionAction::Modified)]),
        edit(&[("tried", FunctionAction::Deleted), ("old", FunctionAction::Deleted)]),
    ];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() }).summary;
    assert!(summary.contains("a.go; added kept; removed old."), "{summary}");
}

#[test]
fn states_that_nothing_changed_only_if_all_tools_only_read() {
    let of = |digests| summarize(&SessionMaterial { digests, ..SessionMaterial::default() }).summary;
    let read = || digest("Read", "Read a.go", &[], &[]);
    assert!(of(vec![read()]).contains("Nothing was changed in 1 step"));
    let with_command = of(vec![read(), digest("Bash", "Run git apply fix.patch: ok", &[], &[])]);
    assert!(!with_command.contains("Nothing was changed"), "{with_command}");
}

#[test]
fn deleted_files_are_not_changed_and_later_edits_are_not_in_the_commit() {
    let remove = |file: &str| Digest {
        summary: format!("Clean up: `rm {file}` succeeded without output."),
        ..digest("Bash", "Clean up: done", &[file], &[])
    };
    let summary = summarize(&SessionMaterial {
        turns: vec![turn("Remove the start command of the tool.", Some("The start command is removed now."))],
        digests: vec![
            digest("Write", "Create reset_test.go: 20 lines", &["reset_test.go"], &[]),
            digest("Edit", "Modify run in main.go", &["main.go"], &[]),
            remove("reset_test.go"),
            remove("start.go"),
            digest("Bash", "Commit 'remove start'", &[], &[]),
            digest("Edit", "Modify help in help.go", &["help.go"], &[]),
        ],
        ..SessionMaterial::default()
    });
    let text = &summary.summary;
    assert!(text.contains("Deleted 1 file: start.go. Changed 2 files: "), "{text}");
    assert!(text.contains("after the last commit: help.go") && !text.contains("reset_test.go"), "{text}");
}

#[test]
fn edits_before_an_amendment_are_in_the_commit() {
    let amend = Digest {
        summary: "Continue: `git cherry-pick --continue` succeeded.".into(),
        ..digest("Bash", "Continue: done", &[], &[])
    };
    for last in [digest("Bash", "Amend 'remove start'", &[], &[]), amend] {
        let summary = summarize(&SessionMaterial {
            digests: vec![
                digest("Bash", "Commit 'remove start'", &[], &[]),
                digest("Edit", "Modify help in help.go", &["help.go"], &[]),
                last,
            ],
            ..SessionMaterial::default()
        });
        assert!(!summary.summary.contains("after the last commit"), "{}", summary.summary);
    }
}

#[test]
fn a_summary_keeps_checks_and_commits_of_a_session_with_many_files_and_functions() {
    let mut digests: Vec<Digest> = (0..60)
        .map(|number| {
            let file = format!("src/some/long/folder/file_{number}.rs");
            let name = format!("a_function_with_a_long_name_{number}");
            digest("Edit", "Edit a file", &[&file], &[(&name, FunctionAction::New)])
        })
        .collect();
    digests.push(digest("Bash", "Run npm test: 3 failed", &[], &[]));
    digests.push(digest("Bash", "Run npm run build: ok", &[], &[]));
    digests.push(digest("Bash", "Commit 'Second'", &[], &[]));
    let long = "The parser now accepts nested lists and reports the line of each error. ".repeat(20);
    let turns = vec![turn(&"Please make the parser accept nested lists. ".repeat(20), Some(&long))];
    let summary = summarize(&SessionMaterial { turns, digests, ..SessionMaterial::default() }).summary;
    for part in [
        "Asked to: \"Please make",
        "Changed 60 files",
        "In git: commit 'Second'.",
        "Latest checks: \"Run npm test: 3 failed\", \"Run npm run build: ok\".",
        "The agent concluded: \"The parser now",
    ] {
        assert!(summary.contains(part), "{part} is not in {summary}");
    }
}
