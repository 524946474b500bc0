//! Edits that replace one text by another in several places.

use super::patch::FilePatch;
use super::text::counted;

/// A text that was replaced in several places.
pub(super) struct Replaced {
    old: String,
    new: String,
    /// Number of places, if it is known.
    places: Option<usize>,
}

impl Replaced {
    /// Finds the one identifier in which all changed lines differ.
    pub(super) fn identifier(patch: &FilePatch<'_>) -> Option<Self> {
        if patch.removed.len() != patch.added.len() {
            return None;
        }
        let mut pair: Option<(&str, &str)> = None;
        let mut places = 0;
        for (old, new) in patch.removed.iter().zip(&patch.added) {
            let (old, new) = (tokens(old), tokens(new));
            if old.len() != new.len() {
                return None;
            }
            for change in old.into_iter().zip(new).filter(|(old, new)| old != new) {
                if *pair.get_or_insert(change) != change {
                    return None;
                }
                places += 1;
            }
        }
        let (old, new) = pair.filter(|(old, new)| places > 1 && is_word(old) && is_word(new))?;
        Some(Self { old: old.to_owned(), new: new.to_owned(), places: Some(places) })
    }

    /// Reads an edit that replaces all occurrences of a short text.
    pub(super) fn everywhere(patch: &FilePatch<'_>, pairs: &[(&str, &str)]) -> Option<Self> {
        let [(old, new)] = pairs else { return None };
        let is_short = |text: &str| (1..=60).contains(&text.trim().len()) && !text.contains('\n');
        let count: usize = patch.removed.iter().map(|line| line.matches(old).count()).sum();
        (is_short(old) && is_short(new)).then(|| Self {
            old: old.trim().to_owned(),
            new: new.trim().to_owned(),
            places: Some(count).filter(|count| *count > 1),
        })
    }

    /// Describes the replacement: `serve by accept in src/a.rs (3 places)`.
    pub(super) fn in_words(&self, path: &str) -> String {
        let places = self.places.map(|places| format!(" ({})", counted(places, "place"))).unwrap_or_default();
        let quoted = |text: &str| if is_word(text) { text.to_owned() } else { format!("'{text}'") };
        format!("{} by {} in {path}{places}", quoted(&self.old), quoted(&self.new))
    }
}

/// Splits a line into identifiers and the text between them.
fn tokens(line: &str) -> Vec<&str> {
    let is_part = |letter: char| letter.is_alphanumeric() || letter == '_';
    let mut tokens = Vec::new();
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let end = rest.find(|letter| is_part(letter) != is_part(first)).unwrap_or(rest.len());
        let (token, others) = rest.split_at(end);
        tokens.push(token);
        rest = others;
    }
    tokens
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|letter| letter.is_alphanumeric() || letter == '_')
}
