//! Text that people and agents wrote is kept: reports, plans, commit messages, questions, JSON.

use serde_json::json;

use super::{detail, observe};

fn bash(command: &str, stdout: &str) -> baton_core::observation::CompressedObservation {
    observe(
        "Bash",
        json!({ "command": command }),
        json!({ "stdout": stdout, "stderr": "", "interrupted": false }),
    )
}

#[test]
fn reports_of_sub_agents_keep_findings_and_conclusions() {
    let report = "I now have everything that is needed for the report.\n\n## Review\n\n1. `LeaseStore.renew` ignores the error of the second write (src/lease.rs:88).\n2. The test `renews_twice` never waits for the worker.\n\n## Conclusion\n\nDo not merge before the first finding is fixed. The second can wait.\n";
    let seen = observe(
        "Task",
        json!({ "description": "Review the lease code", "prompt": "…", "subagent_type": "reviewer" }),
        json!({ "status": "completed", "content": [{ "type": "text", "text": report }] }),
    );
    assert_eq!(
        seen.summary,
        "reviewer reported: `LeaseStore.renew` ignores the error of the second write (src/lease.rs:88). Do not merge before the first finding is fixed."
    );
    assert!(detail(&seen).contains("2. The test `renews_twice` never waits for the worker."), "{seen:?}");
    let silent = observe(
        "Task",
        json!({ "description": "Review it" }),
        json!({ "status": "async_launched", "content": [] }),
    );
    assert_eq!(silent.title, "Delegate 'Review it' to sub-agent: async launched");
    let failed = observe(
        "Task",
        json!({ "description": "Review it" }),
        json!({ "status": "completed", "content": [{ "type": "text", "text": "API Error: 500 {\"type\":\"error\"}" }] }),
    );
    assert_eq!(failed.title, "Delegate 'Review it' to sub-agent: failed, API Error: 500");
    assert!(failed.summary.starts_with("sub-agent failed: API Error: 500"), "{}", failed.summary);
}

#[test]
fn large_reports_keep_their_end() {
    let filler: String = (0..200)
        .map(|part| {
            format!(
                "## Part {part}\n\nThe function `handle_{part}` does one thing and then another thing.\n\n"
            )
        })
        .collect();
    let report = format!(
        "The queue loses items.\n\n{filler}## Recommendation\n\nUse a transaction around `claim_item`.\n"
    );
    let seen = observe(
        "Task",
        json!({ "description": "Look" }),
        json!({ "content": [{ "type": "text", "text": report }] }),
    );
    assert!(
        detail(&seen).contains("## Recommendation\nUse a transaction around `claim_item`."),
        "{}",
        detail(&seen)
    );
    assert!(detail(&seen).len() <= 7_900 && detail(&seen).contains("parts left out]"), "{}", detail(&seen));
}

#[test]
fn plans_keep_goal_steps_and_decisions_whether_approved_or_not() {
    let plan = "# Plan: Keep unknown hooks\n\nHooks that are not known are dropped today, which loses data.\n\n## Steps\n\n1. Read the raw map in `load_hooks`.\n2. Write it back unchanged.\n\n## Decision\n\nNo new dependency.\n";
    let approved =
        observe("ExitPlanMode", json!({ "plan": plan }), json!({ "plan": plan, "isAgent": false }));
    assert_eq!(approved.title, "Propose plan 'Keep unknown hooks': approved");
    let declined = observe(
        "ExitPlanMode",
        json!({ "plan": plan }),
        json!({ "is_error": true, "content": "The user doesn't want to proceed with this tool use. The tool use was rejected. To tell you how to proceed, the user said:\nuse the typed struct instead" }),
    );
    assert_eq!(declined.title, "Propose plan 'Keep unknown hooks': not approved");
    assert!(declined.summary.starts_with("The user did not approve the plan \"Keep unknown hooks\". They said: \"use the typed struct instead\" The plan says: \"Hooks that are not known"), "{}", declined.summary);
    for seen in [approved, declined] {
        assert!(
            detail(&seen).contains("1. Read the raw map in `load_hooks`.\n2. Write it back unchanged."),
            "{seen:?}"
        );
        assert!(detail(&seen).contains("No new dependency."), "{seen:?}");
    }
    let written = observe(
        "Write",
        json!({ "file_path": "/home/dev/app/docs/plans/2026-01-02-hooks.md", "content": plan }),
        json!({ "type": "create", "filePath": "/home/dev/app/docs/plans/2026-01-02-hooks.md", "content": plan, "structuredPatch": [], "originalFile": null }),
    );
    assert_eq!(written.title, "Write plan 'Keep unknown hooks' to docs/plans/2026-01-02-hooks.md");
    assert!(detail(&written).contains("No new dependency."), "{written:?}");
    assert_eq!(written.files_touched, ["docs/plans/2026-01-02-hooks.md"]);
}

#[test]
fn commit_messages_keep_subject_and_body() {
    let seen = bash(
        "git -C /home/dev/app add -A && git -C /home/dev/app commit -m \"$(cat <<'EOF'\nstore: keep the lease's token\n\nThe token was lost on renewal, so a second worker\ncould take the item.\n\n- add LeaseStore::renew\n\nCo-Authored-By: Someone <dev@example.com>\nEOF\n)\" && git -C /home/dev/app push",
        "[main 1a2b3c4] store: keep the lease's token\n 2 files changed, 10 insertions(+), 3 deletions(-)\nTo github.com:x/y.git\n   1234567..1a2b3c4  main -> main\n",
    );
    assert_eq!(seen.title, "Commit 'store: keep the lease's token'");
    assert_eq!(
        seen.summary,
        "Commit 1a2b3c4 on main: \"store: keep the lease's token\" (2 files, +10 -3). Push: done."
    );
    assert_eq!(
        detail(&seen),
        "The token was lost on renewal, so a second worker could take the item.\n- add LeaseStore::renew"
    );
    let amended = bash(
        "git commit --amend --no-edit",
        "[main 5d6e7f8] store: keep the token\n 1 file changed, 1 insertion(+)\n",
    );
    assert_eq!(amended.title, "Amend 'store: keep the token'");
    let two = bash("git commit -m 'One subject' -m 'And the reason for it.'", "[main 5d6e7f8] One subject\n");
    assert_eq!(detail(&two), "And the reason for it.");
}

#[test]
fn trailers_of_commit_messages_are_omitted_and_similar_lines_are_kept() {
    let message = "Renew leases\n\nFollow-up: drop the cache\nTables Generated with protoc stay.\n\n\
        \u{1f916} Generated with [Claude Code](https://claude.com/claude-code)\n\n\
        Co-authored-by: A <a@example.com>\nSigned-off-by: B <b@example.com>\nChange-Id: I1f2e3d\n";
    let made = "[main 1a2b3c4] Renew leases\n";
    let seen = bash(&format!("git commit -m '{message}'"), made);
    assert_eq!(detail(&seen), "Follow-up: drop the cache Tables Generated with protoc stay.");
    let indented = message.lines().map(|line| format!("    {line}\n")).collect::<String>();
    let hash = "1a2b3c4".repeat(5);
    let log = bash("git log -1", &format!("commit {hash}\nAuthor: A <a@b.c>\nDate:   Mon\n\n{indented}"));
    assert_eq!(
        detail(&log),
        "1a2b3c41a Renew leases\nFollow-up: drop the cache\nTables Generated with protoc stay."
    );
}

#[test]
fn commits_that_were_not_made_are_not_stated() {
    let nothing = observe(
        "Bash",
        json!({ "command": "git commit -m 'Fix it'" }),
        json!({ "is_error": true, "content": "Exit code 1\nOn branch main\nnothing to commit, working tree clean\n" }),
    );
    assert_eq!(nothing.title, "Commit 'Fix it': nothing to commit");
    let hook = observe(
        "Bash",
        json!({ "command": "git commit -m 'Fix it'" }),
        json!({ "is_error": true, "content": "Exit code 1\nerror: the pre-commit hook failed\n" }),
    );
    assert_eq!(hook.title, "Commit 'Fix it': exit 1, error: the pre-commit hook failed");
    let unknown = observe("Bash", json!({ "command": "git commit -m 'Fix it'" }), json!("…\n"));
    assert_eq!(unknown.title, "Commit 'Fix it': result unknown");
}

#[test]
fn questions_keep_question_and_answer_and_a_declined_one_is_no_decision() {
    let questions = json!({ "questions": [
        { "question": "Embed files or inline strings?", "header": "Storage", "options": [
            { "label": "Inline", "description": "No build step" }, { "label": "Embed", "description": "Editable" } ] },
        { "question": "Which branch?", "header": "Branch", "options": [{ "label": "main" }, { "label": "next" }] },
    ] });
    let answered = observe(
        "AskUserQuestion",
        questions.clone(),
        json!({ "answers": { "Embed files or inline strings?": "Inline", "Which branch?": "next" } }),
    );
    assert_eq!(
        (answered.title.as_str(), answered.summary.as_str()),
        (
            "Ask user about Storage: Inline",
            "\"Embed files or inline strings?\" User chose: Inline. \"Which branch?\" User chose: next."
        )
    );
    assert!(
        detail(&answered).contains("Chosen Inline: No build step\nOption Embed: Editable"),
        "{answered:?}"
    );
    let declined = observe(
        "AskUserQuestion",
        questions,
        json!({ "is_error": true, "content": "The user doesn't want to proceed with this tool use. The tool use was rejected." }),
    );
    assert_eq!(declined.title, "Ask user about Storage: not answered");
    assert!(
        declined.summary.starts_with("The user did not answer \"Embed files or inline strings?\""),
        "{declined:?}"
    );
    assert!(!declined.summary.contains("chose"), "{declined:?}");
    let codex = observe(
        "request_user_input",
        json!({ "questions": [{ "id": "q1", "header": "Port", "question": "Which port?" }] }),
        json!({ "answers": { "q1": { "answers": ["8080"] } } }),
    );
    assert_eq!(codex.summary, "\"Which port?\" User chose: 8080.");
}

#[test]
fn json_keeps_the_text_that_people_wrote() {
    let comments = json!([
        { "id": 27765, "node_id": "PRRC_kwDOQyo98M6lfzq", "path": "src/state.rs", "line": 151, "user": { "login": "alice", "id": 1 },
          "diff_hunk": "@@ -1,2 +1,2 @@ fn load() and other words here", "html_url": "https://x/1",
          "body": "`load` drops the old field, so sessions of the last release lose their offset." },
        { "id": 27766, "path": "src/main.rs", "line": null, "user": { "login": "bob" }, "body": "Please add a test for the empty file." },
    ]);
    let seen = bash("gh api repos/o/r/pulls/1/comments", &comments.to_string());
    let text = detail(&seen);
    assert!(text.contains("src/state.rs:151 (by alice)"), "{text}");
    assert!(
        text.contains("`load` drops the old field, so sessions of the last release lose their offset."),
        "{text}"
    );
    assert!(text.contains("Please add a test for the empty file."), "{text}");
    for noise in ["node_id", "PRRC", "diff_hunk", "https://x"] {
        assert!(!text.contains(noise), "{noise}: {text}");
    }
    let view = json!({ "number": 12, "title": "Keep hooks", "state": "OPEN", "author": { "login": "carol" },
        "body": "## Why\n\nUnknown hooks were dropped.\n\n<!-- template -->\n", "reviews": [{ "state": "APPROVED", "author": { "login": "dan" }, "body": "Good as it is, ship it." }] });
    let seen = bash("gh pr view 12 --json number,title,state,author,body,reviews", &view.to_string());
    let text = detail(&seen);
    assert!(
        seen.title.ends_with(": 12 Keep hooks (OPEN, by carol)")
            && text.contains("Unknown hooks were dropped."),
        "{text}"
    );
    assert!(
        text.contains("APPROVED, by dan\nGood as it is, ship it.") && !text.contains("template"),
        "{text}"
    );
}

#[test]
fn pull_requests_keep_title_and_body() {
    let seen = bash(
        "gh pr create --title \"Keep unknown hooks\" --body \"$(cat <<'EOF'\n## Summary\n- unknown hooks survive an edit\nEOF\n)\"",
        "https://github.com/o/r/pull/12\n",
    );
    assert_eq!(seen.title, "Create pull request 'Keep unknown hooks': #12");
    assert_eq!(
        (seen.summary.as_str(), detail(&seen)),
        ("https://github.com/o/r/pull/12.", "## Summary\n- unknown hooks survive an edit")
    );
}

#[test]
fn describes_images_and_encoded_data_by_type_and_size() {
    let data = "iVBORw0KGgoAAAANSUhEUgAAAAUA".repeat(100);
    let read = observe(
        "Read",
        json!({ "file_path": "/home/dev/app/logo.png" }),
        json!({ "type": "image", "file": { "base64": data, "type": "image/png", "originalSize": 2100, "dimensions": { "originalWidth": 640, "originalHeight": 480 } } }),
    );
    assert_eq!(read.title, "Look at logo.png: image/png, 2.1 KB");
    assert_eq!(read.summary, "Looked at logo.png: image/png, 2.1 KB, 640×480 pixels.");
    let shot = observe(
        "mcp__browser__screenshot",
        json!({ "url": "http://localhost" }),
        json!([{ "type": "text", "text": "Took a screenshot" }, { "type": "image", "data": data, "mimeType": "image/png" }]),
    );
    let all = format!("{}{}{}", shot.title, shot.summary, detail(&shot));
    assert!(all.contains("[image/png, 2.1 KB]") && !all.contains("iVBOR"), "{all}");
    let printed = bash("base64 logo.png", &data);
    assert!(printed.title.ends_with("[image/png, 2.1 KB]"), "{}", printed.title);
}
