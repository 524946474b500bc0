//! The turns of phrase that tell what prose is about when its key does not.

use super::shapes::{is_diff, is_listing};

/// How much of a text is read; what matters is said early.
const MAX_CUE_BYTES: usize = 1024;
/// Shorter texts are too short to be prose.
const MIN_CUE_BYTES: usize = 12;

/// Says that something was settled.
const DECISION: &[&str] = &[
    "we decided", "decided to ", "decided on ", "we agreed", "was agreed", "we chose", "we will go with", "agreed to ",
    "entschieden", "beschlossen", "on a décidé", "nous avons décidé", "decidimos", "se decidió", "решили", "решено",
    "決定した", "に決めた", "决定", "采用",
];

/// Forbids or demands something.
const CONSTRAINT: &[&str] = &[
    "must not", "must never", "must be", "must keep", "must work", "may not", "shall not", "never ", "do not ",
    "no later than", "darf nicht", "dürfen nicht", "niemals", "ne doit pas", "jamais", "no debe", "nunca", "нельзя",
    "не должен", "てはならない", "不得", "必须", "不能",
];

/// Concludes one thing from another; two of them make an argument.
const REASONING: &[&str] = &[
    "because", "therefore", "hence", "it follows", "thus", "since ", "so that", "which means", "which explains", "if ",
    "consequently", "otherwise", "implies", "weil", "deshalb", "daher", "denn ", "folglich", "parce que", "donc ",
    "car ", "porque", "por lo tanto", "поэтому", "потому что", "следовательно", "ため", "したがって", "因为", "所以",
];

/// Shows instead of telling.
const EXAMPLE: &[&str] = &[
    "for example", "for instance", "e.g.", "example:", "zum beispiel", "z. b.", "par exemple", "por ejemplo",
    "например", "例えば", "例如",
];

/// What prose turned out to be about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cue {
    Decision,
    Constraint,
    Reasoning,
    Example,
}

impl Cue {
    /// Finds the phrase by which a text gives itself away.
    pub(super) fn find_in(self, prose: &Prose) -> Option<&'static str> {
        match self {
            Self::Decision => prose.first_of(DECISION),
            Self::Constraint => prose.first_of(CONSTRAINT),
            Self::Example => prose.first_of(EXAMPLE),
            Self::Reasoning => {
                let mut found = REASONING.iter().filter(|phrase| prose.holds(phrase));
                found.next().filter(|_| found.next().is_some()).copied()
            }
        }
    }
}

/// The beginning of a text in lower case, if it is prose at all.
pub(super) struct Prose {
    text: String,
    is_ascii: bool,
}

impl Prose {
    /// Takes the beginning of a text; nothing for a word, a number or a list of files.
    pub(super) fn of(text: &str) -> Option<Self> {
        let head = &text[..text.floor_char_boundary(MAX_CUE_BYTES)];
        let is_ascii = head.is_ascii();
        let has_words = !is_ascii || head.contains(' ');
        if head.len() < MIN_CUE_BYTES || !has_words || is_diff(head) || is_listing(head) {
            return None;
        }
        // Most contexts are English, and ASCII is lowered without looking at each character.
        let text = if is_ascii { head.to_ascii_lowercase() } else { head.to_lowercase() };
        Some(Self { text, is_ascii })
    }

    fn first_of(&self, phrases: &[&'static str]) -> Option<&'static str> {
        phrases.iter().find(|phrase| self.holds(phrase)).copied()
    }

    /// Tells whether a phrase begins at the start of a word; scripts without blanks have none.
    fn holds(&self, phrase: &str) -> bool {
        if self.is_ascii && !phrase.is_ascii() {
            return false;
        }
        let starts_word = |index: usize| !self.text[..index].ends_with(|c: char| c.is_ascii_alphanumeric());
        self.text.find(phrase).is_some_and(|index| !phrase.is_ascii() || starts_word(index))
    }
}

/// Tells whether at least three lines of a text are steps: numbered, ticked off or called a step.
pub(super) fn has_steps(text: &str) -> bool {
    let is_step = |line: &&str| {
        let line = line.trim_start().trim_start_matches(['-', '*', '#', ' ']);
        let digits = line.bytes().take_while(u8::is_ascii_digit).count();
        let is_numbered = (1..=2).contains(&digits) && line[digits..].starts_with(['.', ')', '、']);
        let is_box = line.starts_with("[ ]") || line.starts_with("[x]");
        let is_named = ["step ", "schritt ", "étape ", "paso ", "шаг "].iter().any(|word| {
            line.get(..word.len()).is_some_and(|start| start.to_lowercase() == *word)
        });
        is_numbered || is_box || is_named
    };
    text.lines().take(60).filter(is_step).nth(2).is_some()
}

/// Gives the heading that a text opens with: `Requirements: …`, `# Plan`.
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
