//! What the title of an observation says about its outcome: checks, commits and failures.

/// Kind of check. A later result of a kind replaces an earlier one in a summary.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckKind {
    /// Tests.
    Test,
    /// Lints.
    Lint,
    /// Types.
    Types,
    /// Build.
    Build,
    /// Formatting.
    Format,
}

/// A check that gave a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Check<'a> {
    /// Kind of check.
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

/// Returns the message of a commit that succeeded. A title with text after the message says why there is no commit.
pub fn commit_message(title: &str) -> Option<&str> {
    title.strip_prefix("Commit '")?.strip_suffix('\'')
}

/// Reads the title of a check, such as `Run cargo test: 14 passed`. A command that did not run or gave no result is no
/// check.
pub fn check(title: &str) -> Option<Check<'_>> {
    let (command, result) = title.strip_prefix("Run ").and_then(|_| title.split_once(": "))?;
    let mut words = result.split_whitespace();
    let is_size = words.next_back().is_some_and(|word| matches!(word, "line" | "lines"));
    let did_not_run = ["declined", "not run", "cancelled", "interrupted", "started"];
    if is_size || did_not_run.iter().any(|start| result.starts_with(start)) {
        return None;
    }
    let is_word = |word: &str, words: &[&str]| words.iter().any(|other| word.eq_ignore_ascii_case(other));
    let mut kinds = COMMANDS.iter().filter(|(_, names)| {
        command.split(|letter: char| !letter.is_alphanumeric()).any(|word| is_word(word, names))
    });
    let of_command = kinds.next().map(|(kind, _)| *kind);
    // Of several commands the result tells which one it is about.
    let has = |words: &[&str]| result.split([' ', ',']).any(|word| is_word(word, words));
    let kind = if has(&["passed", "package", "packages", "test", "tests"]) {
        CheckKind::Test
    } else if has(&["issue", "issues", "problem", "problems"]) {
        CheckKind::Lint
    } else {
        of_command?
    };
    Some(Check { kind, command })
}

/// Returns true if the title says that something failed.
pub fn is_failure(title: &str) -> bool {
    title.match_indices(": ").any(|(at, separator)| starts_with_failure(&title[at + separator.len()..]))
}

fn starts_with_failure(outcome: &str) -> bool {
    const STARTS: [&str; 5] = ["failed", "merge conflict", "error:", "not found", "timed out"];
    const COUNTED: [&str; 9] =
        ["failed", "error", "errors", "issue", "issues", "problem", "problems", "merge", "failures"];
    let outcome = outcome.to_ascii_lowercase();
    let mut words = outcome.split([' ', ',']);
    let count = words.next().and_then(|word| word.parse::<u64>().ok());
    let word = words.next().unwrap_or_default();
    // As in `2 of 5 failed`.
    let counted = if word == "of" { words.nth(1).unwrap_or_default() } else { word };
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
            ("Read src/test.rs", None),
            ("Run ls: 3 entries", None),
        ] {
            assert_eq!(kind(title), expected, "{title}");
        }
        assert_eq!(check("Run cargo test: 14 passed").map(|check| check.command), Some("Run cargo test"));
    }

    #[test]
    fn recognizes_failures_by_the_start_of_the_outcome() {
        for failed in [
            "Run go test: 2 of 5 failed",
            "Run ls: exit code 2",
            "Run go vet: exit 1, x.go:3: undefined",
            "Run npm run lint: 3 issues",
            "Merge main: merge conflict in a.go",
            "Read src/a.rs: failed, File does not exist",
        ] {
            assert!(is_failure(failed), "{failed}");
        }
        for fine in [
            "Run cargo test: 14 passed",
            "Run cargo test: 0 failed",
            "Run npm run lint: no issues",
            "Run true: exit 0",
            "Edit error.rs",
            "Read failed.rs",
            "Reply to review: The error was fixed",
        ] {
            assert!(!is_failure(fine), "{fine}");
        }
    }
}
