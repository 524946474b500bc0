//! Detects decisions, constraints, reasoning and examples in prose by phrases.

use std::collections::HashMap;
use std::sync::LazyLock;

use strum::EnumString;

use super::shapes::{is_diff, is_listing};
use super::table::{by_first_word, rows};
use super::words::is_unspaced;

/// Number of bytes of a text that are inspected, because the start is usually sufficient.
const MAX_CUE_BYTES: usize = 1024;
/// Minimum length of prose in bytes.
const MIN_CUE_BYTES: usize = 12;
/// Minimum number of different reasoning phrases.
const MIN_REASONING_PHRASES: usize = 2;

/// Kind of prose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Cue {
    Decision,
    /// Forbids or demands something.
    Constraint,
    Reasoning,
    Example,
}

/// Phrases in languages with spaces between words.
const PHRASES: &str = "
    decision: we decided|decided to|decided on|we agreed|was agreed|agreed to|we chose|we will go with|\
        entschieden|beschlossen|on a décidé|nous avons décidé|decidimos|se decidió|решили|решено
    constraint: must not|must never|must be|must keep|must work|may not|shall not|never|do not|\
        no later than|darf nicht|dürfen nicht|niemals|ne doit pas|jamais|no debe|nunca|нельзя|не должен
    reasoning: because|therefore|hence|it follows|thus|since|so that|which means|which explains|if|implies|\
        consequently|otherwise|weil|deshalb|daher|denn|folglich|parce que|donc|car|porque|por lo tanto|\
        поэтому|потому что|следовательно
    example: for example|for instance|e.g.|example:|zum beispiel|z. b.|par exemple|por ejemplo|например
";

/// Phrases in languages without spaces between words.
const UNSPACED: &str = "
    decision: 決定した|に決めた|决定|采用
    constraint: てはならない|不得|必须|不能
    reasoning: ため|したがって|因为|所以
    example: 例えば|例如
";

/// Phrases by first word, built on first use.
static BY_FIRST_WORD: LazyLock<HashMap<&str, Vec<(Cue, &str)>>> =
    LazyLock::new(|| by_first_word(rows(PHRASES, '|')));

/// The phrases found at the start of a text.
pub(super) struct Prose {
    found: Vec<(Cue, &'static str)>,
}

impl Prose {
    /// Finds the phrases at the start of a text. Returns `None` for a word, a number, a patch or a list of files.
    pub(super) fn of(text: &str) -> Option<Self> {
        let head = &text[..text.floor_char_boundary(MAX_CUE_BYTES)];
        let has_words = !head.is_ascii() || head.contains(' ');
        if head.len() < MIN_CUE_BYTES || !has_words || is_diff(head) || is_listing(head) {
            return None;
        }
        let head = head.to_lowercase();
        let mut prose = Self { found: Vec::new() };
        for (start, word) in words_in(&head) {
            let phrases = BY_FIRST_WORD.get(word).into_iter().flatten();
            for found in phrases.filter(|(_, phrase)| starts_with_phrase(&head[start..], phrase)) {
                prose.add(*found);
            }
        }
        if is_unspaced(&head) {
            let phrases = rows(UNSPACED, '|').filter(|(_, phrase)| head.contains(phrase));
            phrases.for_each(|found| prose.add(found));
        }
        Some(prose)
    }

    /// Returns the first phrase of a kind, if there are enough of them.
    pub(super) fn phrase(&self, cue: Cue) -> Option<&'static str> {
        let mut phrases = self.found.iter().filter(|(found, _)| *found == cue).map(|(_, phrase)| *phrase);
        let first = phrases.next();
        let is_enough = cue != Cue::Reasoning || phrases.count() + 1 >= MIN_REASONING_PHRASES;
        first.filter(|_| is_enough)
    }

    fn add(&mut self, found: (Cue, &'static str)) {
        if !self.found.contains(&found) {
            self.found.push(found);
        }
    }
}

/// Returns the words of a text and their positions.
fn words_in(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut from = 0;
    std::iter::from_fn(move || {
        let start = from + text[from..].find(char::is_alphabetic)?;
        let word = text[start..].split(|c: char| !c.is_alphabetic()).next()?;
        from = start + word.len();
        Some((start, word))
    })
}

fn starts_with_phrase(text: &str, phrase: &str) -> bool {
    text.strip_prefix(phrase)
        .is_some_and(|rest| !phrase.ends_with(char::is_alphabetic) || !rest.starts_with(char::is_alphabetic))
}

/// Returns true if at least three lines of a text are steps: numbered, with a check box or starting with "step".
pub(super) fn has_steps(text: &str) -> bool {
    let is_step = |line: &&str| {
        let line = line.trim_start().trim_start_matches(['-', '*', '#', ' ']);
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let is_numbered = (1..=2).contains(&digits) && line[digits..].starts_with(['.', ')', '、']);
        let is_box = line.starts_with("[ ]") || line.starts_with("[x]");
        let is_named = ["step ", "schritt ", "étape ", "paso ", "шаг "]
            .iter()
            .any(|word| line.get(..word.len()).is_some_and(|start| start.to_lowercase() == *word));
        is_numbered || is_box || is_named
    };
    text.lines().take(60).filter(is_step).nth(2).is_some()
}

/// Returns the heading at the start of a text: `Requirements: …`, `# Plan`.
pub(super) fn heading(text: &str) -> Option<&str> {
    let line = text.trim_start().lines().next()?;
    let heading = match line.strip_prefix('#') {
        Some(rest) => rest.trim_start_matches('#'),
        None => line.split_once([':', '：']).map(|(heading, _)| heading)?,
    };
    let heading = heading.trim_matches(['*', '_', ' ']);
    let is_heading = heading.chars().count() <= 40 && heading.split_whitespace().count() <= 4;
    (is_heading && heading.chars().any(char::is_alphabetic)).then_some(heading)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_has_a_known_cue() {
        for table in [PHRASES, UNSPACED] {
            assert_eq!(rows::<Cue>(table, '\n').count(), table.trim().lines().count());
        }
    }
}
