//! What the title of an observation says about its outcome: checks, commits and failures.

/// Words in the command of a check.
const CHECKS: [&str; 5] = ["test", "lint", "clippy", "build", "check"];

/// Returns the message of a commit that succeeded. A title with text after the message says why there is no commit.
pub fn commit_message(title: &str) -> Option<&str> {
    title.strip_prefix("Commit '")?.strip_suffix('\'')
}

/// Returns true for the title of a check, such as `Run cargo test: 14 passed`.
pub fn is_check(title: &str) -> bool {
    let title = title.to_ascii_lowercase();
    title.starts_with("run ") && CHECKS.iter().any(|word| title.contains(word))
}

/// Returns the command of a check without its result, by which a later run of the same check replaces an earlier one.
pub fn check_command(title: &str) -> &str {
    title.rsplit_once(": ").map_or(title, |(command, _)| command)
}

/// Returns true if the title says that something failed.
pub fn is_failure(title: &str) -> bool {
    let outcome = title.rsplit_once(": ").map_or("", |(_, outcome)| outcome).to_ascii_lowercase();
    ["failed", "error", "exit code", "not found", "conflict"].iter().any(|word| outcome.contains(word))
        && !outcome.starts_with("0 ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recognizes_checks_commits_and_failures() {
        assert_eq!(commit_message("Commit 'Fix login'"), Some("Fix login"));
        assert_eq!(commit_message("Commit 'Fix login': nothing to commit"), None);
        assert!(is_check("Run cargo test: 14 passed") && is_check("Run npm run lint: 0 problems"));
        assert!(!is_check("Read src/test.rs") && !is_check("Run ls"));
        assert_eq!(check_command("Run cargo test: 14 passed"), "Run cargo test");
        assert_eq!(check_command("Run cargo test"), "Run cargo test");
        assert!(is_failure("Run go test: 2 of 5 failed") && is_failure("Run ls: exit code 2"));
        for fine in
            ["Run cargo test: 14 passed", "Run cargo test: 0 failed", "Edit error.rs", "Read failed.rs"]
        {
            assert!(!is_failure(fine), "{fine}");
        }
    }
}
