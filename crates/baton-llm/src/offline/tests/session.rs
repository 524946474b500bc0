//! Summaries of sessions.

use baton_core::observation::{
    Digest, FunctionAction, FunctionChange, SessionMaterial, SessionSummary, TurnStatus, TurnText,
};

use super::super::Offline;
use crate::compressor::Compressor;

pub(super) fn digest(
    tool: &str,
    title: &str,
    files: &[&str],
    functions: &[(&str, FunctionAction)],
) -> Digest {
    let change = |(name, action): &(&str, FunctionAction)| FunctionChange {
        file: files.first().copied().unwrap_or("").into(),
        name: (*name).into(),
        action: *action,
    };
    Digest {
        tool_name: tool.into(),
        title: title.into(),
        summary: format!("{title}."),
        files_touched: files.iter().map(|file| (*file).to_owned()).collect(),
        functions_changed: functions.iter().map(change).collect(),
    }
}

pub(super) fn turn(prompt: &str, closing: Option<&str>) -> TurnText {
    let closing = closing.map(str::to_owned);
    TurnText { prompt: prompt.to_owned(), closing, status: TurnStatus::Done, has_changes: false }
}

pub(super) fn summarize(material: &SessionMaterial) -> SessionSummary {
    Offline.summarize(material).unwrap().summary
}

#[test]
fn session_without_observations_has_a_fixed_summary() {
    let empty = summarize(&SessionMaterial {
        turns: vec![turn("hello there you", None)],
        ..SessionMaterial::default()
    });
    assert_eq!(
        empty,
        SessionSummary { summary: "No observations captured.".into(), ..SessionSummary::default() }
    );
}

#[test]
fn summary_contains_outcomes() {
    let material = SessionMaterial {
        notes: vec![],
        pending: vec![],
        turns: vec![
            turn("Add retries to our HTTP client.", Some("Retries are in.")),
            turn("commit it", None),
        ],
        digests: vec![
            digest("Read", "Read src/http.rs: Client and 3 more", &[], &[]),
            digest(
                "Edit",
                "Add retry to src/http.rs",
                &["src/http.rs"],
                &[("Client::retry", FunctionAction::New)],
            ),
            digest(
                "Edit",
                "Modify send in src/http.rs",
                &["src/http.rs"],
                &[("Client::send", FunctionAction::Modified)],
            ),
            digest("Edit", "Edit README.md: +2 -0 lines", &["README.md"], &[]),
            digest("Bash", "Run cargo test: 14 passed", &[], &[]),
            digest("Bash", "Commit 'http: retry what can be retried'", &[], &[]),
        ],
    };
    let summary = summarize(&material);
    assert_eq!(
        summary.summary,
        "Asked to: \"Add retries to our HTTP client\"; last: \"commit it\". The agent last said: \"Retries are in.\" In git: commit 'http: retry what can be retried'. Latest checks: \"Run cargo test: 14 passed\". Changed 2 files: src/http.rs, README.md; added Client::retry; modified Client::send."
    );
    assert_eq!(summary.key_files, ["src/http.rs", "README.md"]);
    assert_eq!(summary.key_decisions, ["Committed: http: retry what can be retried"]);
}

#[test]
fn summary_of_a_long_session_is_bounded_and_contains_its_end() {
    let digests: Vec<Digest> = (0..300)
        .flat_map(|round| {
            let file = format!("src/some/long/folder/file_{round}.rs");
            let title = format!("Add f{round} to {file}");
            let question = digest("AskUserQuestion", &format!("Ask user about round {round}"), &[], &[]);
            [
                digest("Edit", &title, &[&file, "src/main.rs"], &[("f", FunctionAction::New)]),
                Digest { summary: format!("\"Round {round}?\" User chose: yes."), ..question },
            ]
        })
        .collect();
    let long = "We talked about a great many things. ".repeat(100);
    let turns = vec![
        turn(&long, Some(&long)),
        turn(&long.replace("We", "They"), Some(&format!("All tests pass now. {long}"))),
    ];
    let summary = summarize(&SessionMaterial { turns, digests, ..SessionMaterial::default() });
    assert!(summary.summary.chars().count() <= 1_800, "{}", summary.summary);
    assert!(summary.summary.contains("The agent concluded: \"All tests pass now."), "{}", summary.summary);
    assert_eq!((summary.key_files.len(), summary.key_files[0].as_str()), (10, "src/main.rs"));
    assert_eq!(summary.key_decisions.len(), 10);
    assert_eq!(summary.key_decisions.last().unwrap(), "\"Round 299?\" User chose: yes.");
}

#[test]
fn summary_names_the_requests_between_the_first_and_the_last() {
    let turns = vec![
        turn("Update the outdated comment in the parser", Some("Updated.")),
        turn("Use a separate output function for each kind of agent", Some("Both have one now.")),
        turn("why?", Some("They differ.")),
        turn("ignore that error", Some("Done.")),
    ];
    let summary = summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary;
    assert!(
        summary.starts_with(
            "Asked to: \"Update the outdated comment in the parser\"; later: \"Use a separate output function for each kind of agent\", \"why?\"; last: \"ignore that error\"."
        ),
        "{summary}"
    );
}

#[test]
fn every_request_but_consent_is_named_or_others_are_mentioned() {
    let of = |requests: &[String]| {
        let turns = requests.iter().map(|request| turn(request, Some("Done."))).collect();
        summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary
    };
    let short =
        ["Review the open pull request", "merge conflicts...", "yes, go for it", "lint fail", "thanks"];
    let all = of(&short.map(str::to_owned));
    assert!(
        all.starts_with(
            "Asked to: \"Review the open pull request\"; later: \"merge conflicts\"; last: \"lint fail\"."
        ),
        "{all}"
    );
    let many: Vec<String> =
        (0..30).map(|number| format!("Request {number} about the parser and the printer of lists")).collect();
    let some = of(&many);
    assert!(some.contains("; later, among others: \"Request 2"), "{some}");
    assert!(some.contains("\"Request 28 about the parser") && !some.contains(" more"), "{some}");
}

#[test]
fn request_that_is_sent_again_is_named_once() {
    let plan = format!("Implement the following plan: {}", "keep the unknown hooks ".repeat(9));
    let turns = vec![
        turn(&plan, Some("Half of it is done.")),
        turn(&format!("{plan} and the last step"), Some("Done.")),
        turn("thanks", Some("You are welcome.")),
    ];
    let summary = summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary;
    assert!(!summary.contains("; later:") && !summary.contains("; last:"), "{summary}");
    let goal = |requests: &[&str]| {
        let turns = requests.iter().map(|request| turn(request, Some("Done."))).collect();
        summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary
    };
    let again = goal(&["Fix the parser of lists", "/review", "merge conflicts", "/review"]);
    assert!(
        again.starts_with(
            "Asked to: \"Fix the parser of lists\"; later: \"merge conflicts\"; last: \"/review\"."
        ),
        "{again}"
    );
    let first = goal(&["Fix the parser of lists", "/review", "Fix the parser of lists"]);
    assert!(first.starts_with("Asked to: \"Fix the parser of lists\"; later: \"/review\"."), "{first}");
}

#[test]
fn quoted_closing_begins_with_its_content_and_ends_with_its_question() {
    let of = |closing: &str| {
        let turns = vec![turn("Fix the login", Some(closing))];
        summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary
    };
    let filled = of(
        "Perfect! All tests pass. Let me create a summary of what was done:\n\n## Summary\n\nThe login works again.",
    );
    assert!(filled.ends_with("concluded: \"All tests pass. The login works again.\""), "{filled}");
    let long = "The cookie expires too early on some machines. ".repeat(20);
    let asks = |question: &str| of(&format!("{}\n\nThere are two ways. {question}", long.repeat(2)));
    let short = asks("Which approach would you prefer?");
    assert!(short.ends_with("… Which approach would you prefer?\""), "{short}");
    let question =
        format!("Should I commit settings.json first {}?", "or keep it as it is for now ".repeat(7).trim());
    assert!(asks(&question).ends_with(&format!("… {question}\"")), "{}", asks(&question));
    let later = of("---\n\nThe push works.\n\nIt is late.\n\nHere's the timeline:\n\n1. Commit");
    assert!(
        later.ends_with("concluded: \"The push works. It is late. Here's the timeline: 1. Commit\""),
        "{later}"
    );
    let described = of("Here's the PR description:\n\nAdds a switch.");
    assert!(described.ends_with("concluded: \"Here's the PR description: Adds a switch.\""), "{described}");
    let only = of("## Summary");
    assert!(only.ends_with("concluded: \"## Summary\""), "{only}");
}

#[test]
fn quotes_contain_no_half_code_fences() {
    let of = |closing: &str| {
        let turns = vec![turn("Fix the login", Some(closing))];
        summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary
    };
    let prose =
        "The login keeps its cookie now, and the session ends after an hour of inactivity. Call it with";
    let summary = of(&format!("{prose}\n```go\nLogin(ctx)\n```\nand see\n```\na\nb\n```\nBoth work."));
    assert!(summary.ends_with(&format!("\"{prose} `Login(ctx)` and see [code] Both work.\"")), "{summary}");
    let code = of("Run:\n```sh\nbaton import\nbaton search login\n```");
    assert!(code.ends_with("\"Run: baton import baton search login\""), "{code}");
}

#[test]
fn the_closing_message_fills_a_summary_without_earlier_ones() {
    let long = "The cookie expires too early on some machines. ".repeat(24);
    let turns = vec![turn("Fix the login", Some(&long))];
    let summary = summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary;
    assert!(summary.contains(long.trim()), "{summary}");
}

#[test]
fn outcomes_come_before_names_of_functions() {
    let earlier = "The parser accepts nested lists now, and the tests of the parser and the printer pass.";
    let long = "The printer keeps the order of the lists that the parser returns. ".repeat(20);
    let functions: Vec<String> =
        (0..30).map(|number| format!("a_function_with_a_long_name_{number}")).collect();
    let functions: Vec<(&str, FunctionAction)> =
        functions.iter().map(|name| (name.as_str(), FunctionAction::New)).collect();
    let digests = vec![digest("Edit", "Edit a.go", &["a.go"], &functions)];
    let requests = "Please make the parser accept nested lists. ".repeat(9);
    let turns = vec![
        turn(&requests, Some(&format!("First {earlier}"))),
        turn(&format!("Also {requests}"), Some(&format!("Second {earlier}"))),
        turn(&format!("Now {requests}"), Some(&long)),
    ];
    let summary = summarize(&SessionMaterial { turns, digests, ..SessionMaterial::default() }).summary;
    assert!(summary.contains(&format!("Before that: \"Second {earlier}\"")), "{summary}");
    assert!(summary.contains("Changed 1 file: a.go"), "{summary}");
}

#[test]
fn earlier_outcomes_of_turns_with_changes_follow_those_of_the_latest_turns() {
    let long = |words: &str| format!("{words} {}", "and so on for a while ".repeat(9));
    let mut turns: Vec<TurnText> =
        (0..9).map(|number| turn("What about it?", Some(&long(&format!("Answer {number}"))))).collect();
    turns[0].has_changes = true;
    let summary = summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary;
    let at = |words: &str| summary.find(words).unwrap_or_else(|| panic!("{words}: {summary}"));
    assert!(at("Before that: \"Answer 7 ") < at("\"Answer 6 ") && at("\"Answer 6 ") < at("\"Answer 0 "));
}

#[test]
fn a_failed_check_that_was_not_run_again_is_named_if_the_agent_mentions_a_failure() {
    let of = |closing: &str, titles: &[&str]| {
        let turns = vec![turn("Fix the tests", Some(closing))];
        let digests = titles.iter().map(|title| digest("Bash", title, &[], &[])).collect();
        summarize(&SessionMaterial { turns, digests, ..SessionMaterial::default() }).summary
    };
    let titles = ["Run go test ./integration: at least 1 failed", "Run mise run test: 14 packages ok"];
    let failed = of("Integration tests are still failing.", &titles);
    assert!(
        failed.contains(
            "Latest checks: \"Run go test ./integration: at least 1 failed\" (not run again), \"Run mise run test: 14 packages ok\"."
        ),
        "{failed}"
    );
    assert!(!of("All is well.", &titles).contains("not run again"));
    let repeated = [titles[0], "Run go test ./integration: 3 passed"];
    assert!(!of("Nothing fails now.", &repeated).contains("not run again"));
    let task = ["Run mise run lint:full: 87 issues", "Run mise run lint: no issues"];
    assert!(of("Done.", &task).contains("\"Run mise run lint:full: 87 issues\" (not run again)"));
    let repeated = [task[0], task[1], "Run mise run lint:full: no issues"];
    assert!(!of("Done.", &repeated).contains("not run again"));
}

#[test]
fn summary_says_how_the_last_turn_ended() {
    let of = |status| {
        let turns =
            vec![turn("Do it", Some("Half of it is done.")), TurnText { status, ..turn("Go on", None) }];
        summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary
    };
    assert!(of(TurnStatus::Unfinished).contains("unfinished. The agent last said: \"Half of it"));
    assert!(of(TurnStatus::Failed).contains("stopped with an error."));
    assert!(of(TurnStatus::Interrupted).contains("The user interrupted the last turn."));
    assert!(!of(TurnStatus::Done).contains("Nothing was changed"), "nothing is known about changes");
}

#[test]
fn unanswered_questions_rejected_plans_and_failed_commits_are_no_decisions() {
    let mut plan = digest("ExitPlanMode", "Propose plan 'Keep hooks': not approved", &[], &[]);
    plan.summary = "The user did not approve the plan \"Keep hooks\".".into();
    let digests = vec![
        plan,
        digest("AskUserQuestion", "Ask user about Storage: not answered", &[], &[]),
        digest("Bash", "Commit 'Fix it': nothing to commit", &[], &[]),
    ];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() });
    assert!(summary.key_decisions.is_empty(), "{:?}", summary.key_decisions);
    assert!(!summary.summary.contains("In git"), "{}", summary.summary);
}

#[test]
fn decisions_of_the_user_are_kept() {
    let mut declined = digest("Bash", "Create pull request: declined by user", &[], &[]);
    declined.summary =
        "The user declined to let Bash run; nothing was done. They said: \"rename the branch first\"".into();
    let summary = summarize(&SessionMaterial { digests: vec![declined], ..SessionMaterial::default() });
    assert_eq!(
        summary.key_decisions,
        ["Create pull request: declined by user. They said: \"rename the branch first\""]
    );
    assert!(
        summary.summary.contains("No edits were recorded in 1 step; the last ones:"),
        "{}",
        summary.summary
    );
}

#[test]
fn the_latest_result_of_each_kind_of_check_is_reported() {
    let digests = vec![
        digest("Bash", "Run mise run lint: 2 issues", &[], &[]),
        digest("Bash", "Run mise run test: 3 failed", &[], &[]),
        digest("Edit", "Edit a.go", &["a.go"], &[]),
        digest("Bash", "Run mise run test: 22 packages ok", &[], &[]),
        digest("Bash", "Run go test ./...: declined by user", &[], &[]),
        digest("Bash", "Run go test ./...", &[], &[]),
    ];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() }).summary;
    assert!(
        summary.contains(
            "Latest checks: \"Run mise run lint: 2 issues\" (before the last edits), \"Run mise run test: 22 \
             packages ok\"."
        ),
        "{summary}"
    );
}

#[test]
fn a_failure_before_a_successful_command_with_several_steps_is_left_out() {
    let digests = vec![
        digest("Bash", "Run mise run lint: 2 issues", &[], &[]),
        digest("Bash", "Run mise run fmt and 2 more steps: 22 packages ok", &[], &[]),
    ];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() }).summary;
    assert!(
        summary.contains("Latest checks: \"Run mise run fmt and 2 more steps: 22 packages ok\"."),
        "{summary}"
    );
}

#[test]
fn the_goal_is_a_request_of_the_user() {
    let of = |prompts: &[&str]| {
        let turns = prompts.iter().map(|prompt| turn(prompt, None)).collect();
        let digests = vec![digest("Read", "Read a.go", &[], &[])];
        summarize(&SessionMaterial { turns, digests, ..SessionMaterial::default() }).summary
    };
    let summary = of(&[
        "do you have access to linear?",
        "Fix the parser so that it accepts nested lists",
        "This session is being continued from a previous conversation that ran out of context",
    ]);
    assert!(
        summary.starts_with(
            "Asked to: \"do you have access to linear?\"; then: \"Fix the parser so that it accepts nested lists\"."
        ),
        "{summary}"
    );
    let question =
        of(&["our git status has broken, why?", "1. this has happened twice now just fyi", "close it"]);
    assert!(
        question.starts_with(
            "Asked to: \"our git status has broken, why?\"; then: \"1. this has happened twice now just fyi\"; \
             last: \"close it\"."
        ),
        "{question}"
    );
    let stopped =
        of(&["Fix the parser please, it is slow", "Operation stopped by hook: Another session is active"]);
    assert!(stopped.starts_with("Asked to: \"Fix the parser please, it is slow\"."), "{stopped}");
    let command = "<command-message>review</command-message>\n<command-name>/review</command-name>\n\
                   <command-args>the open pull request</command-args>";
    assert!(of(&[command]).contains("Asked to: \"/review the open pull request\"."), "{}", of(&[command]));
    let turns = vec![
        turn("/ide", None),
        turn("/brainstorm", Some("What would you like to add?")),
        turn("I would like to add hooks for the end of a session", None),
    ];
    let bare = summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary;
    assert!(bare.starts_with("Asked to: \"/brainstorm\"; then: \"I would like to add hooks"), "{bare}");
}

#[test]
fn a_short_closing_message_is_quoted_with_the_one_before() {
    let before = "The parser accepts nested lists now, and the tests of the parser and the printer pass.";
    let turns = vec![
        turn("Fix the parser of nested lists please", Some(before)),
        turn("thanks", Some("Good catch.")),
    ];
    let summary = summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary;
    assert!(
        summary.ends_with(&format!("The agent concluded: \"Good catch.\" Before that: \"{before}\"")),
        "{summary}"
    );
}

#[test]
fn edits_of_documents_do_not_make_a_check_old() {
    let digests = vec![
        digest("Edit", "Edit a.go", &["a.go"], &[]),
        digest("Bash", "Run mise run test and mise run lint: 18 packages ok", &[], &[]),
        digest("Edit", "Edit plan.md", &["/home/dev/.claude/plans/plan.md"], &[]),
    ];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() }).summary;
    assert!(
        summary.contains("Latest checks: \"Run mise run test and mise run lint: 18 packages ok\"."),
        "{summary}"
    );
}

#[test]
fn old_result_is_left_out_if_a_later_command_may_have_repeated_the_check() {
    let digests = vec![
        digest("Bash", "Run mise run lint: no issues", &[], &[]),
        digest("Edit", "Edit a.go", &["a.go"], &[]),
        digest("Bash", "Run mise run fmt and 2 more…: 20 packages ok", &[], &[]),
    ];
    let summary = summarize(&SessionMaterial { digests, ..SessionMaterial::default() }).summary;
    assert!(
        summary.contains("Latest checks: \"Run mise run fmt and 2 more…: 20 packages ok\"."),
        "{summary}"
    );
}

#[test]
fn plan_that_was_not_approved_is_named_unless_files_changed_after_it() {
    let plan = || digest("ExitPlanMode", "Propose plan 'Notifications': not approved", &[], &[]);
    let of = |digests| summarize(&SessionMaterial { digests, ..SessionMaterial::default() }).summary;
    let open = of(vec![digest("Edit", "Edit a.go", &["a.go"], &[]), plan()]);
    assert!(open.contains("Propose plan 'Notifications'; the user did not approve it."), "{open}");
    let done = of(vec![plan(), digest("Edit", "Edit a.go", &["a.go"], &[])]);
    assert!(!done.contains("Notifications"), "{done}");
}

#[test]
fn outcomes_of_earlier_turns_fill_the_rest_of_the_summary() {
    let turns = vec![
        turn("why is the index broken?", Some("The hook calls `worktree.Status()`, which writes the index.")),
        turn("log an issue for it", Some("Done. ENT-241 is cancelled, ENT-242 is the single fix to track.")),
        turn("go on", Some("Let me look at the settings:")),
        turn("<command-name>/exit</command-name>", Some("No response requested.")),
        turn("which settings enable it?", Some("Set `enabled` to true in `settings.json`.")),
    ];
    let summary = summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary;
    assert!(
        summary.ends_with(
            "The agent concluded: \"Set `enabled` to true in `settings.json`.\" Before that: \"Done. ENT-241 is \
             cancelled, ENT-242 is the single fix to track.\", \"The hook calls `worktree.Status()`, which writes the \
             index.\""
        ),
        "{summary}"
    );
}

#[test]
fn announcements_and_interruptions_are_no_conclusions() {
    let of = |turns| summarize(&SessionMaterial { turns, ..SessionMaterial::default() }).summary;
    let announced = of(vec![turn("is there further work for this?", Some("Good. Let me check the plan."))]);
    assert!(announced.ends_with("The agent last said: \"Good. Let me check the plan.\""), "{announced}");
    let open = TurnText {
        status: TurnStatus::Unfinished,
        ..turn("[Request interrupted by user for tool use]", None)
    };
    let interrupted =
        of(vec![turn("add notifications to the agent", Some("It works as described now.")), open]);
    assert!(
        interrupted.ends_with(
            "The user interrupted the last turn. The agent last said: \"It works as described now.\""
        ),
        "{interrupted}"
    );
    let exit =
        TurnText { status: TurnStatus::Unfinished, ..turn("<command-name>/exit</command-name>", None) };
    let ended =
        of(vec![turn("add notifications to the agent", Some("It works. Let me know if it fails.")), exit]);
    assert!(ended.ends_with("The agent concluded: \"It works. Let me know if it fails.\""), "{ended}");
}

#[test]
fn to_dos_and_tasks_that_are_not_completed_are_listed() {
    let of = |digests| summarize(&SessionMaterial { digests, ..SessionMaterial::default() }).summary;
    let list = |summary: &str| {
        let digest = digest("TodoWrite", "Update to-do list", &[], &[]);
        Digest { summary: summary.into(), ..digest }
    };
    let open = of(vec![
        list("To-do list: 1 of 3 done. In progress: Parse lists. Next: Print lists."),
        digest("TaskCreate", "Create task 1 'Add a test'", &[], &[]),
        digest("TaskCreate", "Create task 2 'Run the linter'", &[], &[]),
        digest("TaskUpdate", "Mark task 1 completed: Add a test", &[], &[]),
        digest("TaskUpdate", "Mark task 2 in progress: Run the linter", &[], &[]),
    ]);
    assert!(
        open.contains(
            "To-do list: 1 of 3 done. In progress: Parse lists. Next: Print lists. Tasks not marked completed: 2 'Run \
             the linter'."
        ),
        "{open}"
    );
    let done = of(vec![
        list("To-do list: 3 of 3 done."),
        digest("TaskCreate", "Create task 1 'Add a test'", &[], &[]),
        digest("TaskUpdate", "Mark task 1 completed: Add a test", &[], &[]),
    ]);
    assert!(!done.contains("To-do") && !done.contains("Tasks not"), "{done}");
}

#[test]
fn all_options_of_a_question_are_quoted() {
    let long = "The counts are still wrong after the last change of the code. ".repeat(12);
    let closing = format!(
        "{long}\n\nWould you like me to:\n1. Revert the fix\n2. Go on debugging\n3. Commit everything?"
    );
    let summary = summarize(&SessionMaterial {
        turns: vec![turn("Fix the counts of the attribution.", Some(&closing))],
        digests: vec![digest("Edit", "Modify run in main.go", &["main.go"], &[])],
        ..SessionMaterial::default()
    });
    let asked = "Would you like me to: 1. Revert the fix 2. Go on debugging 3. Commit everything?";
    assert!(summary.summary.contains(asked), "{}", summary.summary);
}

#[test]
fn words_with_which_a_plan_was_declined_are_a_decision() {
    let declined = Digest {
        summary:
            "The user did not approve the plan \"Add tests\". They said: \"we don't need the auto test\""
                .into(),
        ..digest("ExitPlanMode", "Propose plan 'Add tests': not approved", &[], &[])
    };
    let summary = summarize(&SessionMaterial {
        turns: vec![turn("Add tests of the version to it.", Some("Good catch."))],
        digests: vec![declined],
        ..SessionMaterial::default()
    });
    assert!(summary.key_decisions[0].contains("we don't need the auto test"), "{summary:?}");
    assert!(summary.summary.contains("Ended with \"Propose plan"), "{summary:?}");
}
