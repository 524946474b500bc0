//! Workflows: fields, filters and pages, lookup by name, and time of last access.

use baton_core::checkpoint::{Workflow, WorkflowId};
use baton_core::{Repo, Timestamp, Venture};
use baton_store::{Store, StoreError, WorkflowFilter};

use super::fixture::{AWKWARD, Dice, NOW, earlier, later, workflow};
use super::store::{TestStore, read, try_write, write};

fn insert(store: &Store, workflows: impl IntoIterator<Item = Workflow>) {
    let workflows: Vec<_> = workflows.into_iter().collect();
    write(store, move |tx| workflows.iter().try_for_each(|workflow| tx.insert_workflow(workflow)));
}

fn find(store: &Store, of: &Workflow) -> Option<Workflow> {
    let (venture, id) = (of.venture.clone(), of.id.clone());
    read(store, move |tx| tx.workflow(&venture, &id))
}

fn repo(name: &str) -> Option<Repo> {
    Some(name.parse().unwrap())
}

/// Returns a filter for every workflow of `vc`.
fn all() -> WorkflowFilter {
    WorkflowFilter { venture: "vc".parse().unwrap(), repo: None, name: None, offset: 0, limit: 1_000 }
}

fn list(store: &Store, filter: WorkflowFilter) -> Vec<String> {
    let found = read(store, move |tx| tx.workflows(&filter));
    found.into_iter().map(|workflow| workflow.id.to_string()).collect()
}

fn full() -> Workflow {
    Workflow {
        venture: "other.venture".parse().unwrap(),
        name: Some(AWKWARD.into()),
        repo: repo("other/repo_2"),
        created_at: earlier(100),
        last_saved_at: later(7),
        last_accessed_at: later(8),
        checkpoint_count: 1_000,
        unnamed_count: 999,
        stored_bytes: 1 << 40,
        critical_keys: vec![AWKWARD.into(), String::new(), "plan.steps".into()],
        ..workflow(&"W_-9".repeat(32))
    }
}

/// Every field is read back as written, with and without a lock.
pub fn reads_back_every_field(store: &TestStore) {
    for written in [workflow("bare"), full()] {
        insert(store, [written.clone()]);
        assert_eq!(find(store, &written), Some(written.clone()));
        let (venture, id) = (written.venture.clone(), written.id.clone());
        assert_eq!(write(store, move |tx| tx.lock_workflow(&venture, &id)), Some(written));
    }
    for unknown in [workflow("unknown"), workflow("Bare"), workflow(&"W_-9".repeat(32))] {
        assert_eq!(find(store, &unknown), None);
    }
    let (venture, id): (Venture, WorkflowId) = ("vc".parse().unwrap(), "unknown".parse().unwrap());
    assert_eq!(
        write(store, move |tx| tx.lock_workflow(&venture, &id)),
        None,
        "an unknown workflow can be locked"
    );
}

/// An update changes one workflow, but neither its creation time nor its repository.
pub fn update_writes_only_what_may_change(store: &TestStore) {
    let (before, neighbour) = (workflow("a"), workflow("b"));
    let elsewhere = Workflow { venture: "dfg".parse().unwrap(), ..workflow("a") };
    insert(store, [before.clone(), neighbour.clone(), elsewhere.clone()]);
    let changed = Workflow { venture: before.venture.clone(), id: before.id.clone(), ..full() };
    let update = changed.clone();
    write(store, move |tx| tx.update_workflow(&update));
    let expected = Workflow { created_at: before.created_at, repo: None, ..changed };
    assert_eq!(find(store, &before), Some(expected));
    for untouched in [neighbour, elsewhere] {
        assert_eq!(find(store, &untouched), Some(untouched));
    }
    let bare = before.clone();
    write(store, move |tx| tx.update_workflow(&bare));
    assert_eq!(find(store, &before), Some(before), "absent values are cleared");
}

pub fn ids_are_unique_in_a_venture(store: &TestStore) {
    let first = workflow("a");
    let second = Workflow { name: Some("second".into()), ..workflow("a") };
    let elsewhere = Workflow { venture: "dfg".parse().unwrap(), ..workflow("a") };
    insert(store, [first.clone(), elsewhere]);
    let answer = try_write(store, move |tx| tx.insert_workflow(&second));
    assert!(matches!(answer, Err(StoreError::Statement { .. })), "{answer:?}");
    assert_eq!(find(store, &first), Some(first));
}

/// Lists contain exact matches, last saved first.
pub fn lists_filter_and_order(store: &TestStore) {
    let make = |id: &str, saved: u64, name: &str, repo: Option<Repo>| Workflow {
        name: Some(name.to_owned()).filter(|name| !name.is_empty()),
        repo,
        last_saved_at: later(saved),
        ..workflow(id)
    };
    insert(
        store,
        [
            make("b", 2, "auth", repo("o/r")),
            make("d", 4, "", None),
            make("a", 1, "Auth", repo("o/r")),
            make("c", 3, "auth", repo("o/R")),
            Workflow { venture: "dfg".parse().unwrap(), ..make("e", 5, "auth", repo("o/r")) },
        ],
    );
    let named = |name: &str| Some(name.to_owned());
    let cases: [(WorkflowFilter, &[&str]); 7] = [
        (all(), &["d", "c", "b", "a"]),
        (WorkflowFilter { repo: repo("o/r"), ..all() }, &["b", "a"]),
        (WorkflowFilter { name: named("auth"), ..all() }, &["c", "b"]),
        (WorkflowFilter { name: named("auth"), repo: repo("o/r"), ..all() }, &["b"]),
        (WorkflowFilter { name: named(""), ..all() }, &[]),
        (WorkflowFilter { name: named("au%"), ..all() }, &[]),
        (WorkflowFilter { venture: "dfg".parse().unwrap(), ..all() }, &["e"]),
    ];
    for (filter, expected) in cases {
        assert_eq!(list(store, filter.clone()), expected, "{filter:?}");
    }
}

/// Adjacent pages return the list once, even if several workflows were saved at the same time.
pub fn windows_neither_skip_nor_repeat(store: &TestStore) {
    let mut dice = Dice::new(5);
    let made = (0..40).map(|number| {
        let saved = later(dice.below(4));
        let name = dice.maybe("auth".to_owned());
        Workflow {
            last_saved_at: saved,
            name,
            repo: dice.maybe("o/r".parse().unwrap()),
            ..workflow(&format!("w{number}"))
        }
    });
    let made: Vec<Workflow> = made.collect();
    insert(store, made.clone());
    for (name, repo) in [(None, None), (Some("auth".to_owned()), None), (None, repo("o/r"))] {
        let mut expected: Vec<&Workflow> = made
            .iter()
            .filter(|workflow| name.is_none() || workflow.name == name)
            .filter(|workflow| repo.is_none() || workflow.repo == repo)
            .collect();
        expected.sort_by_key(|workflow| std::cmp::Reverse((workflow.last_saved_at, workflow.id.clone())));
        let expected: Vec<String> = expected.iter().map(|workflow| workflow.id.to_string()).collect();
        let whole = WorkflowFilter { name: name.clone(), repo: repo.clone(), ..all() };
        assert_eq!(list(store, whole.clone()), expected);
        let windows: Vec<String> = (0..20)
            .flat_map(|number| list(store, WorkflowFilter { offset: number * 3, limit: 3, ..whole.clone() }))
            .collect();
        assert_eq!(windows, expected);
    }
}

/// A name refers to the workflow in that repository, or in none, that was saved last and recently enough.
pub fn recent_workflow_is_found_by_name_and_repository(store: &TestStore) {
    let make = |id: &str, saved: Timestamp, repo: Option<Repo>| Workflow {
        name: Some("auth".into()),
        repo,
        last_saved_at: saved,
        ..workflow(id)
    };
    insert(
        store,
        [
            make("early", later(1), repo("o/r")),
            make("late", later(2), repo("o/r")),
            make("nowhere", later(3), None),
            make("elsewhere", later(4), repo("o/q")),
            Workflow { name: Some("other".into()), ..make("other", later(5), repo("o/r")) },
            Workflow { venture: "dfg".parse().unwrap(), ..make("theirs", later(6), repo("o/r")) },
        ],
    );
    let recent = |venture: &str, name: &'static str, repo: Option<Repo>, since: Timestamp| {
        let venture: Venture = venture.parse().unwrap();
        let found = read(store, move |tx| tx.recent_workflow(&venture, name, repo.as_ref(), since));
        found.map(|workflow| workflow.id.to_string())
    };
    let found = |id: &str| Some(id.to_owned());
    assert_eq!(recent("vc", "auth", repo("o/r"), NOW), found("late"));
    assert_eq!(recent("vc", "auth", repo("o/r"), later(2)), found("late"), "just recent enough");
    assert_eq!(recent("vc", "auth", repo("o/r"), later(3)), None);
    assert_eq!(recent("vc", "auth", None, NOW), found("nowhere"));
    assert_eq!(recent("vc", "auth", repo("o/q"), NOW), found("elsewhere"));
    assert_eq!(recent("vc", "Auth", repo("o/r"), NOW), None);
    assert_eq!(recent("dfg", "auth", repo("o/r"), NOW), found("theirs"));
    assert_eq!(recent("dfg", "auth", None, NOW), None);
}

/// A use is recorded only in its workflow, and its time never moves back.
pub fn last_access_only_moves_forward(store: &TestStore) {
    let (used, neighbour) = (workflow("a"), workflow("b"));
    insert(store, [used.clone(), neighbour.clone()]);
    for (at, expected) in [(later(5), later(5)), (later(3), later(5)), (later(6), later(6))] {
        let (venture, id) = (used.venture.clone(), used.id.clone());
        write(store, move |tx| tx.touch_workflow(&venture, &id, at));
        let expected = Workflow { last_accessed_at: expected, ..used.clone() };
        assert_eq!(find(store, &used), Some(expected));
    }
    assert_eq!(find(store, &neighbour), Some(neighbour));
}

/// The bytes of all ventures are summed; without workflows the sum is zero.
pub fn stored_bytes_of_all_ventures_are_summed(store: &TestStore) {
    assert_eq!(read(store, |tx| tx.stored_bytes()), 0);
    let large = Workflow { stored_bytes: 1 << 41, ..workflow("a") };
    let elsewhere = Workflow { stored_bytes: 3, venture: "dfg".parse().unwrap(), ..workflow("b") };
    insert(store, [large, elsewhere, workflow("c")]);
    assert_eq!(read(store, |tx| tx.stored_bytes()), (1 << 41) + 3);
}

/// Workflows of all ventures with several unnamed checkpoints are listed longest unused first.
pub fn unused_workflows_are_listed_longest_unused_first(store: &TestStore) {
    let make = |id: &str, used: Timestamp, unnamed_count: u64| Workflow {
        last_accessed_at: used,
        unnamed_count,
        checkpoint_count: 5,
        ..workflow(id)
    };
    insert(
        store,
        [
            make("late", later(2), 2),
            make("early", later(1), 5),
            make("now", later(3), 2),
            make("named", NOW, 1),
            Workflow { venture: "dfg".parse().unwrap(), ..make("theirs", NOW, 2) },
        ],
    );
    let unused = |since: Timestamp, limit: u32| -> Vec<String> {
        let found = read(store, move |tx| tx.unused_workflows(since, limit));
        found.into_iter().map(|workflow| workflow.id.to_string()).collect()
    };
    assert_eq!(unused(later(3), 10), ["theirs", "early", "late"]);
    assert_eq!(unused(later(3), 2), ["theirs", "early"]);
    assert_eq!(unused(later(1), 10), ["theirs"]);
    assert_eq!(unused(NOW, 10), [""; 0]);
}
