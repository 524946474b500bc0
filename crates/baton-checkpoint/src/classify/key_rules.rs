//! Built-in rules for keys: which word of a key determines its topic.
//!
//! The last word of a key is its head, as in `planLog` and `decision_plan`, and decides unless it is a filler
//! (`goalText`). Known phrases take precedence, because a decision log is not a log. Any other word is a weaker sign.

use baton_core::{JsonText, is_any};

use super::topic::Topic;
use super::vocabulary::{is_filler, is_modifier, topic_of_phrase, topic_of_word, topic_within};
use super::words::{is_unspaced, singulars, split};

/// Topic of a value, derived from its key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct KeySign {
    pub(super) topic: Topic,
    /// Word or phrase that determines the topic.
    pub(super) words: String,
    pub(super) strength: Strength,
}

/// Whether a key is about something, or only mentions it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Strength {
    About,
    Mentions,
}

/// Words for lists in chronological order.
const CHRONOLOGICAL: &str = "action|attempt|changelog|chat|command|conversation|dialogue|event|history|\
    iteration|journal|log|message|output|prompt|run|stderr|stdout|step|timeline|trace|transcript|turn|\
    update";

/// Returns true if the end of a list or text is its latest part, because of its key or because its items are chat
/// messages.
pub(crate) fn is_chronological(key: &str, value: JsonText<'_>) -> bool {
    let is_listed = |word: &str| is_any(word, CHRONOLOGICAL);
    let words = split(key);
    let named = words
        .iter()
        .rev()
        .find(|word| !is_filler(word))
        .is_some_and(|word| is_listed(word) || singulars(word).any(|singular| is_listed(&singular)));
    let mut items = value.items().peekable();
    named || (items.peek().is_some() && items.all(|item| item.member("role").is_some()))
}

/// File name extensions. `plan.steps` is a dotted key, `plan.md` a file.
const FILE_EXTENSIONS: &[&str] = &[
    "bash", "c", "cc", "cfg", "conf", "cpp", "cs", "css", "csv", "env", "go", "gradle", "h", "hpp", "html",
    "ini", "ipynb", "java", "js", "json", "jsonl", "jsx", "kt", "lock", "log", "lua", "md", "mjs", "php",
    "proto", "ps1", "py", "rb", "rs", "rst", "scala", "scss", "sh", "sql", "svelte", "swift", "tf", "toml",
    "ts", "tsx", "txt", "vue", "xml", "yaml", "yml",
];

/// Returns true if a key is the path or name of a file. The words in a path describe the file, not the value.
fn is_file_path(key: &str) -> bool {
    let extension = key.rsplit_once('.').map(|(_, extension)| extension.to_ascii_lowercase());
    let is_file = extension.is_some_and(|extension| FILE_EXTENSIONS.contains(&extension.as_str()));
    let separators = key.matches(['/', '\\']).count();
    if key.contains(char::is_whitespace) {
        // `Decision: and/or` and `goals / plans` are texts, `a folder/b/goal` is a path.
        let is_text = key.split(['/', '\\']).any(|part| part.trim() != part);
        return !is_text && (separators > 1 || (is_file && separators > 0));
    }
    is_file || separators > 0
}

/// Derives the topic of a value from its key.
pub(super) fn read_key(key: &str) -> Option<KeySign> {
    if is_file_path(key) {
        return None;
    }
    let words = split(key);
    let sign = |(topic, words), strength| KeySign { topic, words, strength };
    if let Some(found) = phrase_in(&words).or_else(|| modifier_in(&words)) {
        return Some(sign(found, Strength::About));
    }
    let fillers = words.iter().rev().take_while(|word| is_filler(word)).count();
    let significant = &words[..words.len() - fillers];
    let head = significant.last().and_then(|word| look_up(word)).map(|found| sign(found, Strength::About));
    let mentioned = || {
        significant.iter().rev().find_map(|word| look_up(word)).map(|found| sign(found, Strength::Mentions))
    };
    // A filler decides if no other word does: `summary` is ignored in `planSummary`, but not alone.
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
    fn words_in_a_file_path_do_not_classify_its_value() {
        for key in [
            "src/decision/log.rs",
            "docs\\plan.md",
            "requirements.txt",
            "/tmp/goal",
            "goal.test.ts",
            "debug/",
            "path/with space/goal",
            "/tmp/my goal",
            "my notes/plan.md",
        ] {
            assert_eq!(read_key(key), None, "{key}");
        }
        assert_eq!(topic("project.goal"), Some(Topic::Goal));
        assert_eq!(topic("Decision: and/or"), Some(Topic::Decision));
        assert_eq!(topic("first / second / goal"), Some(Topic::Goal));
    }

    #[test]
    fn ids_of_work_items_are_places() {
        for key in ["workflowId", "workflow_id", "taskId", "checkpointId", "issue_id", "ticketId"] {
            assert_eq!(topic(key), Some(Topic::Place), "{key}");
        }
        assert_eq!(topic("requestId"), Some(Topic::Identifier));
    }

    #[test]
    fn a_list_of_prompts_is_not_an_instruction() {
        for key in ["userPrompts", "user_messages", "prompts", "userInputs"] {
            assert_eq!(topic(key), Some(Topic::Requests), "{key}");
        }
        assert_eq!(topic("systemPrompt"), Some(Topic::Instruction));
        assert_eq!(topic("userPrompt"), Some(Topic::Instruction));
    }

    #[test]
    fn logs_messages_and_steps_are_chronological() {
        let none = JsonText::new("null");
        for key in [
            "messages",
            "log",
            "steps",
            "buildLog",
            "conversation_history",
            "toolOutputs",
            "userPrompts",
            "turnList",
        ] {
            assert!(is_chronological(key, none), "{key}");
        }
        for key in ["goals", "files", "plan", "examples", ""] {
            assert!(!is_chronological(key, none), "{key}");
        }
        let chat = JsonText::new(r#"[{"role":"user"},{"role":"assistant"}]"#);
        assert!(is_chronological("x", chat));
        assert!(!is_chronological("x", JsonText::new(r#"[{"role":"user"},1]"#)));
    }

    #[test]
    fn word_elsewhere_in_a_key_has_lower_priority() {
        let sign = read_key("planForRefactoring").unwrap();
        assert_eq!((sign.topic, sign.strength), (Topic::Plan, Strength::Mentions));
        assert_eq!(read_key("plan").unwrap().strength, Strength::About);
        assert_eq!(read_key("quux"), None);
        assert_eq!(read_key(""), None);
    }

    #[test]
    fn recognises_words_of_other_languages() {
        assert_eq!(topic("entscheidungen"), Some(Topic::Decision));
        assert_eq!(topic("prochaines_étapes"), Some(Topic::Plan));
        assert_eq!(topic("決定事項"), Some(Topic::Decision));
        assert_eq!(topic("约束条件"), Some(Topic::Constraint));
        assert_eq!(topic("требования"), Some(Topic::Requirement));
    }
}
