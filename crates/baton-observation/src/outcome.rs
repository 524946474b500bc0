//! Outcome of an observation, derived from its title: checks, commits, failures, and whether it only looked at something.

/// Kind of check. A later result of a kind replaces an earlier one in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckKind {
    Test,
    Lint,
    Types,
    Build,
    /// Formatting.
    Format,
}

/// A check that gave a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check<'a> {
    pub kind: CheckKind,
    /// Title without the result, by which a later run of the same check replaces an earlier one.
    pub command: &'a str,
}

/// Words in commands, by kind of check.
const COMMANDS: [(CheckKind, &[&str]); 5] = [
    (
        CheckKind::Test,
        &[
            "test",
            "tests",
            "pytest",
            "jest",
            "vitest",
            "nextest",
            "mocha",
            "rspec",
            "unittest",
            "ctest",
            "phpunit",
            "tox",
            "playwright",
            "cypress",
        ],
    ),
    (
        CheckKind::Lint,
        &[
            "lint",
            "clippy",
            "eslint",
            "ruff",
            "flake8",
            "pylint",
            "vet",
            "golangci",
            "shellcheck",
            "biome",
            "rubocop",
        ],
    ),
    (CheckKind::Types, &["tsc", "mypy", "pyright", "typecheck", "types"]),
    (CheckKind::Build, &["build", "check", "compile", "make"]),
    (CheckKind::Format, &["fmt", "gofmt", "rustfmt", "prettier", "black", "format"]),
];

/// Returns the message of a commit that succeeded. In the title of a failed commit, the reason follows the
/// message.
pub fn commit_message(title: &str) -> Option<&str> {
    title.strip_prefix("Commit '")?.strip_suffix('\'')
}

/// Reads the title of a check, such as `Run cargo test: 14 passed`. A command that did not run or has no
/// result is not a check.
pub fn check(title: &str) -> Option<Check<'_>> {
    let (command, result) = title.strip_prefix("Run ").and_then(|_| title.split_once(": "))?;
    let mut words = result.split_whitespace();
    let is_size = words.next_back().is_some_and(|word| matches!(word, "line" | "lines"));
    let no_result = [
        "declined",
        "not run",
        "cancelled",
        "interrupted",
        "started",
        "no output",
        "no matches",
        "in background",
    ];
    if is_size || no_result.iter().any(|start| result.starts_with(start)) {
        return None;
    }
    let of_command = COMMANDS.iter().find(|(_, names)| contains_word(command, names)).map(|(kind, _)| *kind);
    // If the title has several commands, the words of the result show which command it belongs to.
    let has = |words: &[&str]| {
        result.split([' ', ',']).any(|word| words.iter().any(|other| word.eq_ignore_ascii_case(other)))
    };
    let kind = if has(&["passed", "package", "packages", "test", "tests"]) {
        CheckKind::Test
    } else if has(&["issue", "issues", "problem", "problems"]) {
        CheckKind::Lint
    } else {
        of_command?
    };
    Some(Check { kind, command })
}

/// Returns true if a command of several steps may have run a kind of check. Titles name at most two steps:
/// `Run fmt and 2 more steps`.
pub fn may_include(command: &str, kind: CheckKind) -> bool {
    let is_kind = |(other, names): &(CheckKind, &[&str])| *other == kind && contains_word(command, names);
    command.contains(" more") || COMMANDS.iter().any(is_kind)
}

/// Returns true if a word of a command names a kind of check: `test`, `lint`.
pub fn is_check_word(word: &str) -> bool {
    COMMANDS.iter().any(|(_, names)| names.contains(&word))
}

/// Returns true if a text contains one of the words as a whole word.
fn contains_word(text: &str, words: &[&str]) -> bool {
    let is_one = |word: &str| words.iter().any(|other| word.eq_ignore_ascii_case(other));
    text.split(|letter: char| !letter.is_alphanumeric()).any(is_one)
}

/// Tools that change nothing.
const READING_TOOLS: [&str; 9] =
    ["Read", "Grep", "Glob", "LS", "WebFetch", "WebSearch", "AskUserQuestion", "TodoWrite", "ExitPlanMode"];

/// First words of titles of tool uses that change and check nothing.
const READING_WORDS: [&str; 13] = [
    "Ask", "Examine", "Explore", "Fetch", "Find", "Inspect", "List", "Look", "Read", "Review", "Search",
    "Show", "View",
];

/// Returns true if the tool changes nothing.
pub fn is_reading_tool(tool_name: &str) -> bool {
    READING_TOOLS.contains(&tool_name)
}

/// Returns true if the title says that something was only looked at: read, searched or listed.
pub fn is_reading(title: &str) -> bool {
    let first = title.split_whitespace().next().unwrap_or_default();
    READING_WORDS.contains(&first)
        || title.starts_with("Check git status")
        || title.starts_with("Check on task")
}

/// Returns true if the title says that something failed. Quoted text, such as a commit message, says nothing about it.
pub fn is_failure(title: &str) -> bool {
    let title = without_quotes(title);
    title.match_indices(": ").any(|(at, separator)| starts_with_failure(&title[at + separator.len()..]))
}

/// Removes the text between single quotes. An apostrophe within a word is no quote.
fn without_quotes(title: &str) -> String {
    let mut kept = String::with_capacity(title.len());
    let mut rest = title;
    while let Some((before, quoted)) = rest.split_once(" '") {
        let is_end = |(at, _): &(usize, &str)| {
            quoted.get(at + 1..).is_some_and(|after| after.is_empty() || after.starts_with([' ', ':', ',']))
        };
        let Some((end, _)) = quoted.match_indices('\'').find(is_end) else { break };
        kept.push_str(before);
        rest = quoted.get(end + 1..).unwrap_or_default();
    }
    kept + rest
}

fn starts_with_failure(outcome: &str) -> bool {
    const STARTS: [&str; 14] = [
        "failed",
        "merge conflict",
        "error:",
        "error[",
        "fatal:",
        "panic:",
        "traceback ",
        "--- fail",
        "fail\t",
        "npm err",
        "conflict (",
        "not found",
        "timed out",
        "not formatted",
    ];
    const COUNTED: [&str; 9] =
        ["failed", "error", "errors", "issue", "issues", "problem", "problems", "merge", "failures"];
    let outcome = outcome.to_ascii_lowercase();
    // If only a part of the output was seen: `at least 2 failed`.
    let outcome = outcome.strip_prefix("at least ").unwrap_or(&outcome);
    let mut words = outcome.split([' ', ',']);
    let count = words.next().and_then(|word| word.parse::<u64>().ok());
    let word = words.next().unwrap_or_default();
    // As in `2 of 5 failed`, `1 package failed` and `2 of 5 packages failed`.
    let noun = if word == "of" { words.nth(1).unwrap_or_default() } else { word };
    let counted =
        if matches!(noun, "package" | "packages") { words.next().unwrap_or_default() } else { noun };
    let has_exit_code = outcome.strip_prefix("exit ").is_some_and(|code| {
        let code = code.trim_start_matches("code").trim_start_matches([':', ' ']);
        !code.starts_with('0')
    });
    has_exit_code
        || STARTS.iter().any(|start| outcome.starts_with(start))
        || count.is_some_and(|count| count > 0) && COUNTED.contains(&counted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind(title: &str) -> Option<CheckKind> {
        check(title).map(|check| check.kind)
    }

    #[test]
    fn recognizes_commits() {
        assert_eq!(commit_message("Commit 'Fix login'"), Some("Fix login"));
        assert_eq!(commit_message("Commit 'Fix login': nothing to commit"), None);
    }

    #[test]
    fn recognizes_checks_by_command_and_result() {
        for (title, expected) in [
            ("Run cargo test: 14 passed", Some(CheckKind::Test)),
            ("Run npx jest: 2 of 5 failed", Some(CheckKind::Test)),
            ("Run npm run lint: 0 problems", Some(CheckKind::Lint)),
            ("Run go vet ./...: exit 1, x.go:3: undefined", Some(CheckKind::Lint)),
            ("Run tsc --noEmit: ok", Some(CheckKind::Types)),
            ("Run make: ok", Some(CheckKind::Build)),
            ("Run mise run fmt and mise run lint: 2 issues", Some(CheckKind::Lint)),
            ("Run mise run fmt and 2 more steps: 22 packages ok", Some(CheckKind::Test)),
            ("Run mise run fmt: ok", Some(CheckKind::Format)),
            ("Run cargo test", None),
            ("Run go test ./...: declined by user", None),
            ("Run session test: 90 lines", None),
            ("Run go test ./...: no matches", None),
            ("Run npm test: in background", None),
            ("Run gofmt -l src: not formatted", Some(CheckKind::Format)),
            ("Read src/test.rs", None),
            ("Run ls: 3 entries", None),
        ] {
            assert_eq!(kind(title), expected, "{title}");
        }
        assert_eq!(check("Run cargo test: 14 passed").map(|check| check.command), Some("Run cargo test"));
    }

    #[test]
    fn a_command_of_several_steps_may_include_checks_that_it_does_not_name() {
        assert!(may_include("Run mise run fmt and mise run lint", CheckKind::Lint));
        assert!(!may_include("Run mise run fmt and mise run lint", CheckKind::Test));
        assert!(may_include("Run mise run fmt and 2 more…", CheckKind::Test));
    }

    #[test]
    fn recognizes_titles_of_tool_uses_that_only_look_at_something() {
        for title in ["Read all 12 lines of a.rs", "Search for 'x' in src: 3 hits", "Check git status: clean"]
        {
            assert!(is_reading(title), "{title}");
        }
        for title in ["Edit readme.md", "Run cargo check: ok", "Commit 'Read the file'", "Delete path a.rs"] {
            assert!(!is_reading(title), "{title}");
        }
    }

    #[test]
    fn recognizes_failures_by_the_start_of_the_outcome() {
        for failed in [
            "Run go test: 2 of 5 failed",
            "Run go test: at least 2 failed",
            "Run go test: 2 of 5 packages failed",
            "Run go test: at least 1 package failed",
            "Run make: fatal: no rule",
            "Run go test: --- FAIL: TestLogin",
            "Run ls: exit code 2",
            "Run go vet: exit 1, x.go:3: undefined",
            "Run npm run lint: 3 issues",
            "Run gofmt -l src: not formatted",
            "Merge main: merge conflict in a.go",
            "Read src/a.rs: failed, File does not exist",
            "Search for 'a: b' in src: failed, can't read 'c'",
        ] {
            assert!(is_failure(failed), "{failed}");
        }
        for fine in [
            "Run cargo test: 14 passed",
            "Run cargo test: 0 failed",
            "Run go test: at least 9 passed",
            "Run go test: at least 3 packages ok",
            "Run npm run lint: no issues",
            "Run true: exit 0",
            "Edit error.rs",
            "Read failed.rs",
            "Reply to review: The error was fixed",
            "Commit 'fix: failed logins don't count'",
            "Search for 'x: error: y' in src: 3 hits",
        ] {
            assert!(!is_failure(fine), "{fine}");
        }
    }
}
