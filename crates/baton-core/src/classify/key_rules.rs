//! The built-in rules on keys: which word of a key decides.
//!
//! The last word of a key is its head, as in `planLog` and `decision_plan`, and decides unless it says nothing
//! (`goalText`). Known phrases come before it, since a decision log is not a log. Any other word is a weaker sign.

use super::topic::Topic;
use super::vocabulary::{is_filler, is_modifier, topic_of_phrase, topic_of_word, topic_within};
use super::words::{is_unspaced, singulars, split};

/// What a key says about its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeySign {
    /// What the value is about.
    pub(super) topic: Topic,
    /// The words that say so.
    pub(super) words: String,
    /// Whether the key is about this, or only mentions it.
    pub(super) strength: Strength,
}

/// Whether a key is about something, or only mentions it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    About,
    Mentions,
}

/// Reads what a key says about its value.
pub(super) fn read_key(key: &str) -> Option<KeySign> {
    let words = split(key);
    let sign = |(topic, words), strength| KeySign { topic, words, strength };
    if let Some(found) = phrase_in(&words).or_else(|| modifier_in(&words)) {
        return Some(sign(found, Strength::About));
    }
    let fillers = words.iter().rev().take_while(|word| is_filler(word)).count();
    let telling = &words[..words.len() - fillers];
    let head = telling.last().and_then(|word| look_up(word)).map(|found| sign(found, Strength::About));
    let mentioned =
        || telling.iter().rev().find_map(|word| look_up(word)).map(|found| sign(found, Strength::Mentions));
    // A filler alone may still say something: `summary` means less than `plan` in `planSummary`, but not nothing.
    let filler = || words.last().and_then(|word| look_up(word)).map(|found| sign(found, Strength::About));
    head.or_else(mentioned).or_else(filler)
}

fn phrase_in(words: &[String]) -> Option<(Topic, String)> {
    let found = (0..words.len()).find_map(|start| topic_of_phrase(&words[start..]));
    found.map(|(topic, phrase)| (topic, phrase.to_owned()))
}

fn modifier_in(words: &[String]) -> Option<(Topic, String)> {
    words.iter().filter(|word| is_modifier(word)).find_map(|word| Some((topic_of_word(word)?, word.clone())))
}

fn look_up(word: &str) -> Option<(Topic, String)> {
    if is_unspaced(word) {
        return topic_within(word).map(|(topic, part)| (topic, part.to_owned()));
    }
    let topic = topic_of_word(word).or_else(|| singulars(word).find_map(|one| topic_of_word(&one)))?;
    Some((topic, word.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn topic(key: &str) -> Option<Topic> {
        read_key(key).map(|sign| sign.topic)
    }

    #[test]
    fn the_head_of_a_key_decides() {
        assert_eq!(topic("planLog"), Some(Topic::Log));
        assert_eq!(topic("log_plan"), Some(Topic::Plan));
        assert_eq!(topic("goalId"), Some(Topic::Identifier));
        assert_eq!(topic("goal_text"), Some(Topic::Goal));
        assert_eq!(topic("requirementsList2"), Some(Topic::Requirement));
    }

    #[test]
    fn phrases_and_modifiers_come_before_the_head() {
        assert_eq!(topic("decision-log"), Some(Topic::Decision));
        assert_eq!(topic("definitionOfDone"), Some(Topic::Requirement));
        assert_eq!(topic("raw_plan"), Some(Topic::RawOutput));
        assert_eq!(topic("exampleResponses"), Some(Topic::Example));
    }

    #[test]
    fn a_word_elsewhere_is_a_weaker_sign() {
        let sign = read_key("planForRefactoring").unwrap();
        assert_eq!((sign.topic, sign.strength), (Topic::Plan, Strength::Mentions));
        assert_eq!(read_key("plan").unwrap().strength, Strength::About);
        assert_eq!(read_key("quux"), None);
        assert_eq!(read_key(""), None);
    }

    #[test]
    fn other_languages_are_read_too() {
        assert_eq!(topic("entscheidungen"), Some(Topic::Decision));
        assert_eq!(topic("prochaines_étapes"), Some(Topic::Plan));
        assert_eq!(topic("決定事項"), Some(Topic::Decision));
        assert_eq!(topic("约束条件"), Some(Topic::Constraint));
        assert_eq!(topic("требования"), Some(Topic::Requirement));
    }
}
