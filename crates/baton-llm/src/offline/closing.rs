//! The agent's own words at the end of turns.

use baton_core::observation::{SessionMaterial, TurnStatus, TurnText, is_interruption, user_request};
use baton_core::{contains_any, starts_with_any, strip_any};

use super::text::one_line;

/// Maximum length of the quotation of an earlier closing message.
const MAX_EARLIER_CHARS: usize = 180;
/// Minimum length of the quotation of an earlier closing message.
const MIN_EARLIER_CHARS: usize = 40;
/// Number of latest turns that are quoted before earlier turns with changes.
const LATEST_TURNS: usize = 2;
/// Maximum length of the question at the end of a closing message.
const MAX_QUESTION_CHARS: usize = 300;

/// How a session ended.
pub(super) struct Closing<'a> {
    /// Turns in which the agent worked, oldest first.
    turns: Vec<&'a TurnText>,
    /// How the last turn ended if the agent did not finish it.
    stop: Option<Stop>,
}

/// Why the agent did not finish a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Failed,
    Interrupted,
    Unfinished,
}

impl<'a> Closing<'a> {
    pub(super) fn of(material: &'a SessionMaterial) -> Self {
        let turns: Vec<&TurnText> = material.turns.iter().filter(|turn| is_work(turn)).collect();
        let stop = turns.last().and_then(|last| {
            let mut after = material.turns.iter().rev().take_while(|turn| *turn != *last);
            match last.status {
                _ if after.any(|turn| is_interruption(&turn.prompt)) => Some(Stop::Interrupted),
                TurnStatus::Failed => Some(Stop::Failed),
                TurnStatus::Interrupted => Some(Stop::Interrupted),
                TurnStatus::Unfinished => Some(Stop::Unfinished),
                TurnStatus::Open | TurnStatus::Done | TurnStatus::Unknown => None,
            }
        });
        Self { turns, stop }
    }

    /// Describes how the last turn ended, with at most `chars` characters of the agent's closing words.
    pub(super) fn describe(&self, chars: usize) -> Option<String> {
        let ended = match self.stop {
            Some(Stop::Failed) => "The last turn stopped with an error. ",
            Some(Stop::Interrupted) => "The user interrupted the last turn. ",
            Some(Stop::Unfinished) => "The last turn is unfinished. ",
            None => "",
        };
        let Some(words) = self.last_words() else {
            return (!ended.is_empty()).then(|| ended.trim_end().to_owned());
        };
        let is_conclusion = self.conclusion().is_some_and(|words| !announces(words));
        let whose = if is_conclusion { "The agent concluded" } else { "The agent last said" };
        Some(format!("{ended}{whose}: \"{}\"", quote(words, chars)))
    }

    /// Returns the latest closing message.
    pub(super) fn last_words(&self) -> Option<&'a str> {
        self.answers().next().and_then(TurnText::answer)
    }

    /// Returns the closing message of the last turn, unless the turn was interrupted.
    pub(super) fn conclusion(&self) -> Option<&'a str> {
        let last = self.turns.last().filter(|_| self.stop != Some(Stop::Interrupted))?;
        last.closing.is_some().then(|| self.last_words()).flatten()
    }

    /// Returns the last request if the agent did not finish it, and the reason.
    pub(super) fn stopped_request(&self) -> Option<(Stop, String)> {
        Some((self.stop?, user_request(&self.turns.last()?.prompt)?))
    }

    /// Whether there is more than one closing message.
    pub(super) fn has_earlier(&self) -> bool {
        self.answers().nth(1).is_some()
    }

    /// Returns the turns with a closing message, latest first.
    fn answers(&self) -> impl Iterator<Item = &'a TurnText> {
        self.turns.iter().rev().copied().filter(|turn| turn.answer().is_some())
    }

    /// Quotes the starts of earlier closing messages, as many as there is room for: the latest turns, then turns that
    /// changed something, then the others.
    pub(super) fn earlier(&self, room: usize) -> Option<String> {
        let mut earlier: Vec<&TurnText> = self.answers().skip(1).collect();
        let oldest = earlier.len().min(LATEST_TURNS);
        if let Some(older) = earlier.get_mut(oldest..) {
            older.sort_by_key(|turn| !turn.has_changes);
        }
        let closings = earlier.into_iter().filter_map(TurnText::answer);
        let mut quoted: Vec<String> = Vec::new();
        let mut used = "Before that:".len();
        for words in closings.filter(|words| !announces(words)) {
            let start =
                one_line(&without_introduction(words), MAX_EARLIER_CHARS.min(room.saturating_sub(used + 3)));
            let quote = format!("\"{start}\"");
            if start.chars().count() < MIN_EARLIER_CHARS || quoted.contains(&quote) {
                continue;
            }
            used += quote.chars().count() + 2;
            if used > room {
                break;
            }
            quoted.push(quote);
        }
        (!quoted.is_empty()).then(|| format!("Before that: {}", quoted.join(", ")))
    }
}

/// Whether a turn is work of the agent. Commands such as `/exit` and the texts of programs are recorded as turns too.
fn is_work(turn: &TurnText) -> bool {
    let is_answered = turn.answer().is_some();
    let is_continued = turn.prompt.starts_with("This session is being continued");
    is_answered || turn.prompt.is_empty() || is_continued || user_request(&turn.prompt).is_some()
}

/// Returns the start of a closing message without introductory words, and the question to the user at its end.
fn quote(words: &str, chars: usize) -> String {
    let words = without_introduction(words);
    let start = one_line(&words, chars);
    match final_question(&words) {
        Some(question) if start.ends_with('…') => {
            let room = chars.saturating_sub(question.chars().count() + 1);
            format!("{} {question}", one_line(&words, room))
        }
        _ => start,
    }
}

/// Returns the question to the user at the end of a message, with all options if it ends with a list of them.
pub(super) fn final_question(words: &str) -> Option<String> {
    options(words).or_else(|| last_question(words).map(str::to_owned))
}

/// Returns the list at the end of a message that asks the user to choose, with the line that introduces it.
fn options(words: &str) -> Option<String> {
    let lines: Vec<&str> = words.trim_end().lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let is_item = |line: &&&str| {
        let bare = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
        starts_with_any(line, "- |* ") || bare.len() < line.len() && bare.starts_with(['.', ')'])
    };
    let items = lines.iter().rev().take_while(is_item).count();
    let asked = lines.get(lines.len().checked_sub(items + 1)?..)?;
    let asks = |line: &&str| line.ends_with([':', '?']);
    let is_question = asked.iter().any(|line| line.ends_with('?')) && asked.first().is_some_and(asks);
    let text = asked.join(" ");
    (items > 1 && is_question && text.chars().count() <= MAX_QUESTION_CHARS).then_some(text)
}

fn last_question(words: &str) -> Option<&str> {
    let paragraph = words.trim_end().rsplit('\n').next()?.trim_matches(['*', '_', ' ']);
    let ends = [". ", "! ", ": "].iter().filter_map(|end| Some(paragraph.rfind(end)? + end.len()));
    let question = paragraph.get(ends.max().unwrap_or(0)..)?.trim_start_matches(['-', '*', ' ']);
    (question.ends_with('?') && question.chars().count() <= MAX_QUESTION_CHARS).then_some(question)
}

/// Replaces fenced code, which cannot be read in one line: a single line is kept in backticks, more lines are `[code]`.
/// In a message that is little else than code, only the fences are removed.
fn without_fences(words: &str) -> String {
    let is_fence = |line: &str| line.trim_start().starts_with("```");
    let mut kept: Vec<String> = Vec::new();
    let mut code: Option<Vec<&str>> = None;
    for line in words.lines() {
        match (code.as_mut(), is_fence(line)) {
            (None, false) => kept.push(line.to_owned()),
            (None, true) => code = Some(Vec::new()),
            (Some(lines), false) => lines.push(line.trim()),
            (Some(lines), true) => {
                kept.push(match lines.as_slice() {
                    [one] if !one.is_empty() => format!("`{one}`"),
                    _ => "[code]".to_owned(),
                });
                code = None;
            }
        }
    }
    kept.extend(code.map(|_| "[code]".to_owned()));
    let prose: usize = kept.iter().filter(|line| *line != "[code]").map(String::len).sum();
    if prose >= MIN_EARLIER_CHARS * 2 || prose * 2 >= words.len() {
        return kept.join("\n");
    }
    words.lines().filter(|line| !is_fence(line)).collect::<Vec<_>>().join("\n")
}

/// Removes code and the introduction of a closing message: an exclamation, the announcement of a summary, and a heading
/// such as `## Summary`.
fn without_introduction(words: &str) -> String {
    let words = &without_fences(words);
    const EXCLAMATIONS: &str = "Perfect!|Great!|Excellent!|Perfect.|Great.";
    let is_heading = |line: &str| {
        let text = line.trim_start_matches('#').trim_matches(['*', ':', ' ']).to_lowercase();
        let is_marked =
            line.starts_with('#') || line.starts_with("**") && line.trim_end_matches(':').ends_with("**");
        is_marked && text.split_whitespace().count() <= 4 && text.contains("summary")
    };
    let is_announcement = |sentence: &str| {
        let sentence = sentence.to_lowercase();
        // "Here's the description of the pull request:" is kept, because it says what follows.
        sentence.ends_with(':')
            && starts_with_any(&sentence, "let me |now let me |here's |here is ")
            && contains_any(&sentence, "summary|what was|what i |what changed")
    };
    let mut lines: Vec<String> = Vec::new();
    for line in words.trim().lines() {
        let mut bare = line.trim();
        if lines.is_empty() {
            let rest = strip_any(bare, EXCLAMATIONS).map(str::trim_start);
            bare = rest.unwrap_or(bare);
        }
        // Later lines are quoted as they are.
        if lines.len() > 1 {
            lines.push(bare.to_owned());
            continue;
        }
        if !bare.chars().any(char::is_alphanumeric) || is_heading(bare) {
            continue;
        }
        let (before, last) = bare.rsplit_once(". ").unwrap_or(("", bare));
        match (is_announcement(last), before) {
            (false, _) => lines.push(bare.to_owned()),
            (true, "") => {}
            (true, before) => lines.push(format!("{before}.")),
        }
    }
    let text = lines.join("\n").trim().to_owned();
    if text.is_empty() { words.trim().to_owned() } else { text }
}

/// Whether a message ends with what the agent is about to do, so it is no conclusion.
fn announces(words: &str) -> bool {
    const STARTS: &str = "let me |now let me |i'll |i will |i need to ";
    let last = words.trim().rsplit(['\n', '.', '!']).map(str::trim).find(|sentence| !sentence.is_empty());
    let last = last.unwrap_or_default().to_lowercase();
    let is_start = starts_with_any(&last, STARTS) && !last.starts_with("let me know");
    is_start || words.trim_end().ends_with(':')
}
