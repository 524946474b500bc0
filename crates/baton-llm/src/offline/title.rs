//! Titles: an action and its outcome in a few words.

use baton_core::shorten;

use super::text::{clean, one_line};

/// Maximum number of words of a title.
const MAX_WORDS: usize = 12;
/// Minimum number of words of a title.
const MIN_WORDS: usize = 3;
/// Maximum length of a word of a title.
const MAX_WORD_CHARACTERS: usize = 64;
/// Maximum length of a title.
const MAX_CHARACTERS: usize = 140;

/// Combines an action and an optional outcome: `Run go test: 2 failed`.
pub(super) fn title(done: &str, outcome: Option<&str>) -> String {
    let outcome = outcome
        .map(|outcome| one_line(&clean(outcome), 60).trim_end_matches('.').to_owned())
        .filter(|outcome| !outcome.is_empty());
    let reserved = outcome.as_ref().map_or(0, |outcome| outcome.split_whitespace().count());
    let reserved_characters = outcome.as_ref().map_or(0, |outcome| outcome.len() + 2);
    let cleaned = clean(done);
    let mut title = String::new();
    for (count, word) in cleaned.split_whitespace().enumerate() {
        let word = shorten(word, MAX_WORD_CHARACTERS);
        let room = MAX_CHARACTERS.saturating_sub(reserved_characters);
        if count + reserved >= MAX_WORDS || count > 1 && title.len() + word.len() > room {
            title = close(title);
            break;
        }
        if !title.is_empty() {
            title.push(' ');
        }
        title.push_str(&word);
    }
    // Keeps `./...`, which is an argument, but removes punctuation at the end.
    if !title.ends_with("...") {
        title.truncate(title.trim_end_matches(['.', ',', ';', ':', ' ', '|', '&']).len());
    }
    match outcome {
        Some(outcome) if title.is_empty() => outcome,
        Some(outcome) => format!("{title}: {outcome}"),
        None => title,
    }
}

/// Adds an ellipsis and closes open quotes after truncation.
fn close(mut title: String) -> String {
    title.push('…');
    for quote in ['\'', '`', '"'] {
        if title.chars().filter(|letter| *letter == quote).count() % 2 == 1 {
            title.push(quote);
        }
    }
    title
}

/// Ensures the minimum and maximum number of words for any tool and input.
pub(super) fn complete(title: &str, tool: &str) -> String {
    let words = title.split_whitespace().count();
    // The subject of a commit may be one word.
    let is_commit = title.starts_with("Commit '") || title.starts_with("Amend '");
    if (MIN_WORDS..=MAX_WORDS).contains(&words) || is_commit && words < MIN_WORDS {
        return title.to_owned();
    }
    let tool = one_line(&clean(tool), 40);
    let tool = tool.split_whitespace().next().unwrap_or("unnamed");
    match words {
        0 => format!("Use {tool} tool"),
        1 | 2 => format!("Use {tool}: {title}"),
        _ => title.split_whitespace().take(MAX_WORDS).collect::<Vec<_>>().join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcome_is_kept_when_the_title_is_truncated() {
        assert_eq!(title("Run go test ./...", Some("2 failed")), "Run go test ./...: 2 failed");
        let long = "Search for 'a b c d e f g h i j k l m n' in src";
        assert_eq!(title(long, Some("12 hits in 4 files")), "Search for 'a b c d e…': 12 hits in 4 files");
        assert_eq!(title("Commit it.", None), "Commit it");
    }

    #[test]
    fn titles_always_have_enough_words() {
        assert_eq!(complete("", "X"), "Use X tool");
        assert_eq!(complete("List", "LS"), "Use LS: List");
        assert_eq!(complete("Commit 'Second'", "Bash"), "Commit 'Second'");
        assert_eq!(complete("", " "), "Use unnamed tool");
        assert_eq!(complete(&"w ".repeat(40), "X").split_whitespace().count(), MAX_WORDS);
    }
}
