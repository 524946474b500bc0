//! Layout of the context bundle: the text that a new chat receives.
//!
//! The caller fetches the lines; this module orders them, fits them into a budget and states what was
//! omitted. The same lines always give the same text. A blocker is never dropped: if the budget is tight,
//! blockers are shortened.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::ops::Range;

use baton_core::{counted, estimate_tokens, one_line};
use baton_observation::{Client, ContextLimit};

/// Default budget in tokens.
pub(crate) const DEFAULT_BUNDLE_TOKENS: u32 = 2_000;
/// Smallest budget in tokens.
pub(crate) const MIN_BUNDLE_TOKENS: u32 = 200;
/// Largest budget in tokens.
pub(crate) const MAX_BUNDLE_TOKENS: u32 = 100_000;
/// Maximum length of a line's text in characters.
const MAX_TEXT_CHARS: usize = 400;
/// Maximum length of the first line about the state in characters. This line and the first line about a recent session
/// contain the outcome of the latest session, and take at most about a quarter of the budget.
const MAX_STATE_CHARS: usize = 1_200;
/// Maximum length of the first line about a recent session in characters.
const MAX_RECENT_CHARS: usize = 800;
/// Maximum length of the introduction in characters.
const MAX_INTRODUCTION_CHARS: usize = 160;
/// Lengths of a blocker's text in characters that are tried until all blockers fit.
const BLOCKER_CHARS: [usize; 5] = [MAX_TEXT_CHARS, 200, 100, 50, 20];

/// Sections in the order of the text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Section {
    /// Pinned items.
    Pinned,
    /// Goal of the work.
    Goal,
    /// Conditions that the work must meet.
    Constraints,
    /// State of the work: summary, failing checks, unfinished requests.
    State,
    /// Decisions with reasons.
    Decided,
    /// Approaches that were rejected.
    Rejected,
    /// Findings that cost time.
    Gotchas,
    /// Open blockers. Never dropped.
    Blocked,
    /// Next actions.
    Next,
    /// Open tasks and checkpoints.
    Open,
    /// Other active agents.
    Agents,
    /// Files that are probably relevant.
    Files,
    /// Stored items that match the request.
    Related,
    /// Summaries of recent sessions.
    Recent,
}

impl Section {
    pub(crate) const fn heading(self) -> &'static str {
        match self {
            Self::Pinned => "Pinned",
            Self::Goal => "Goal",
            Self::Constraints => "Constraints",
            Self::State => "State",
            Self::Decided => "Decided",
            Self::Rejected => "Rejected",
            Self::Gotchas => "Gotchas",
            Self::Blocked => "Blocked",
            Self::Next => "Next",
            Self::Open => "Open work",
            Self::Agents => "Other active agents",
            Self::Files => "Files",
            Self::Related => "Related",
            Self::Recent => "Recent sessions",
        }
    }

    /// Returns the lines of the section that are placed in a round. Each round places lines of every section, so that a
    /// long section leaves room for the others.
    const fn lines_of_round(self, round: usize) -> Range<usize> {
        let (first, second) = match self {
            // Blockers are placed before the first round.
            Self::Blocked => return 0..0,
            Self::Goal => (2, 2),
            Self::Constraints | Self::State | Self::Rejected | Self::Gotchas => (4, 8),
            Self::Pinned | Self::Decided | Self::Next => (6, 12),
            Self::Open | Self::Agents => (3, 5),
            Self::Files => (12, 30),
            Self::Related => (3, 8),
            Self::Recent => (2, 5),
        };
        match round {
            0 => 0..first,
            1 => first..second,
            _ => second..usize::MAX,
        }
    }

    /// Returns the maximum length of the text of a line in characters.
    const fn max_chars(self, index: usize) -> usize {
        match self {
            Self::State if index == 0 => MAX_STATE_CHARS,
            Self::Recent if index == 0 => MAX_RECENT_CHARS,
            _ => MAX_TEXT_CHARS,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BundleLine {
    pub(crate) section: Section,
    /// Id of the record behind the line.
    pub(crate) id: String,
    /// Text. Line ends are removed, and a long text is truncated.
    pub(crate) text: String,
}

impl BundleLine {
    fn write(&self, max_chars: usize) -> String {
        let text = one_line(&self.text, max_chars);
        format!("- {text} [{}]\n", self.id)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BundleLimits {
    /// Maximum number of tokens.
    pub(crate) max_tokens: usize,
    /// Maximum number of characters.
    pub(crate) max_chars: usize,
}

impl BundleLimits {
    /// Returns the limits for a budget and a client program. Some programs cut longer texts or move them to a file.
    pub(crate) fn of(max_tokens: Option<u32>, client: Option<&str>) -> Self {
        let asked = max_tokens.unwrap_or(DEFAULT_BUNDLE_TOKENS);
        let asked = asked.clamp(MIN_BUNDLE_TOKENS, MAX_BUNDLE_TOKENS) as usize;
        let limit = client.and_then(Client::named).and_then(|client| client.context_limit);
        // A hook may add a warning, so a part of the limit stays free.
        let without_reserve = |most: usize| most - most / 10;
        match limit {
            Some(ContextLimit::Chars(most)) => Self { max_tokens: asked, max_chars: without_reserve(most) },
            Some(ContextLimit::Tokens(most)) => {
                Self { max_tokens: asked.min(without_reserve(most)), max_chars: usize::MAX }
            }
            None => Self { max_tokens: asked, max_chars: usize::MAX },
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct BundleParts {
    /// First line: the session, and that it is open.
    pub(crate) introduction: String,
    /// Lines of all sections, the most important of a section first.
    pub(crate) lines: Vec<BundleLine>,
    /// How to get more, each with its cost.
    pub(crate) more: Vec<String>,
}

impl BundleParts {
    fn lines_of(&self, section: Section) -> impl Iterator<Item = &BundleLine> {
        self.lines.iter().filter(move |line| line.section == section)
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bundle {
    pub(crate) text: String,
    /// Estimated number of tokens.
    pub(crate) tokens: usize,
    /// Lines that did not fit.
    pub(crate) omitted: Vec<BundleLine>,
}

/// Builds the text of a bundle.
pub(crate) fn lay_out(parts: &BundleParts, limits: BundleLimits) -> Bundle {
    let budget = Budget { tokens: limits.max_tokens, chars: limits.max_chars };
    let mut layout = Layout { parts, max_tokens: limits.max_tokens, budget, chosen: BTreeMap::new() };
    let introduction = format!("{}\n", one_line(&parts.introduction, MAX_INTRODUCTION_CHARS));
    layout.budget.take(&introduction);
    let more =
        if parts.more.is_empty() { String::new() } else { format!("More: {}\n", parts.more.join("; ")) };
    // The list of omitted lines is at most as long as the list of all lines.
    let everything: Vec<Section> = parts.lines.iter().map(|line| line.section).collect();
    let sections: BTreeSet<Section> = everything.iter().copied().collect();
    let lists_sections = layout.budget.take(&omitted_by_section(&everything));
    if !lists_sections {
        layout.budget.take(&omitted_in_total(&everything));
    }
    let has_more = layout.budget.take(&more);
    layout.place_blockers();
    for round in 0..3 {
        for section in &sections {
            layout.place_lines(*section, section.lines_of_round(round));
        }
    }
    let omitted = omitted_lines(parts, &layout.chosen);
    let mut text = introduction;
    for section in sections {
        let lines: String = layout.chosen_lines(section).collect();
        if !lines.is_empty() {
            let _ = write!(text, "{}:\n{lines}", section.heading());
        }
    }
    let omitted_sections: Vec<Section> = omitted.iter().map(|line| line.section).collect();
    text.push_str(&if lists_sections {
        omitted_by_section(&omitted_sections)
    } else {
        omitted_in_total(&omitted_sections)
    });
    if has_more {
        text.push_str(&more);
    }
    let text = text.trim_end().to_owned();
    Bundle { tokens: estimate_tokens(&text), omitted, text }
}

/// Chooses the lines of a bundle until the budget is used up.
struct Layout<'a> {
    parts: &'a BundleParts,
    max_tokens: usize,
    budget: Budget,
    /// Chosen lines by section and index in the section.
    chosen: BTreeMap<(Section, usize), String>,
}

impl Layout<'_> {
    fn chosen_lines(&self, section: Section) -> impl Iterator<Item = &str> {
        self.chosen.range((section, 0)..=(section, usize::MAX)).map(|(_, line)| line.as_str())
    }

    /// Places all blockers, shortened until they fit. If even their starts do not fit, one line counts them.
    fn place_blockers(&mut self) {
        let blockers: Vec<&BundleLine> = self.parts.lines_of(Section::Blocked).collect();
        let Some(first) = blockers.first() else { return };
        let heading = format!("{}:\n", Section::Blocked.heading());
        for max_chars in BLOCKER_CHARS {
            let lines: Vec<String> = blockers.iter().map(|line| line.write(max_chars)).collect();
            if self.budget.take(&format!("{heading}{}", lines.concat())) {
                let lines = lines.into_iter().enumerate();
                self.chosen.extend(lines.map(|(index, line)| ((Section::Blocked, index), line)));
                return;
            }
        }
        let line = format!("- {} [{}]\n", counted(blockers.len() as u64, "blocker"), first.id);
        self.budget.take(&format!("{heading}{line}"));
        self.chosen.insert((Section::Blocked, 0), line);
    }

    /// Places the lines of a section that fit, shortened if necessary.
    fn place_lines(&mut self, section: Section, range: Range<usize>) {
        let lines = self.parts.lines_of(section).enumerate();
        for (index, line) in lines.skip(range.start).take(range.len()) {
            let is_first = self.chosen_lines(section).next().is_none();
            let heading = if is_first { format!("{}:\n", section.heading()) } else { String::new() };
            let longest = self.max_tokens.clamp(MAX_TEXT_CHARS, section.max_chars(index));
            let mut texts = [longest, MAX_TEXT_CHARS].into_iter().map(|max_chars| line.write(max_chars));
            if let Some(text) = texts.find(|text| self.budget.take(&format!("{heading}{text}"))) {
                self.chosen.insert((section, index), text);
            }
        }
    }
}

/// Returns the lines that were not chosen. Blockers are always chosen.
fn omitted_lines(parts: &BundleParts, chosen: &BTreeMap<(Section, usize), String>) -> Vec<BundleLine> {
    let mut indexes: BTreeMap<Section, usize> = BTreeMap::new();
    let mut omitted = Vec::new();
    for line in parts.lines.iter().filter(|line| line.section != Section::Blocked) {
        let index = indexes.entry(line.section).or_default();
        if !chosen.contains_key(&(line.section, *index)) {
            omitted.push(line.clone());
        }
        *index += 1;
    }
    omitted
}

/// Returns a short form of the line that states what was omitted.
fn omitted_in_total(omitted: &[Section]) -> String {
    if omitted.is_empty() { String::new() } else { format!("Omitted: {} lines.\n", omitted.len()) }
}

/// Returns the line that states what was omitted; empty if nothing was omitted.
fn omitted_by_section(omitted: &[Section]) -> String {
    let mut counts: BTreeMap<Section, usize> = BTreeMap::new();
    omitted.iter().for_each(|section| *counts.entry(*section).or_default() += 1);
    let counts: Vec<String> =
        counts.iter().map(|(section, count)| format!("{} {count}", section.heading())).collect();
    if counts.is_empty() { String::new() } else { format!("Omitted lines: {}.\n", counts.join(", ")) }
}

/// Remaining room.
struct Budget {
    tokens: usize,
    chars: usize,
}

impl Budget {
    /// Reserves room for a text. Returns false and reserves nothing if the text does not fit.
    fn take(&mut self, text: &str) -> bool {
        let (tokens, chars) = (estimate_tokens(text), text.chars().count());
        let fits = tokens <= self.tokens && chars <= self.chars;
        if fits {
            self.tokens -= tokens;
            self.chars -= chars;
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECTIONS: [Section; 14] = [
        Section::Pinned,
        Section::Goal,
        Section::Constraints,
        Section::State,
        Section::Decided,
        Section::Rejected,
        Section::Gotchas,
        Section::Blocked,
        Section::Next,
        Section::Open,
        Section::Agents,
        Section::Files,
        Section::Related,
        Section::Recent,
    ];

    fn line(section: Section, id: usize, text: &str) -> BundleLine {
        BundleLine { section, id: format!("turn_{id}"), text: text.to_owned() }
    }

    fn parts(lines: Vec<BundleLine>) -> BundleParts {
        BundleParts {
            introduction: "Baton session sess_1 of claude-1 in acme/shop is open.".into(),
            lines,
            more: vec!["search (50 tokens a result)".into()],
        }
    }

    #[test]
    fn sections_have_a_fixed_order_and_omissions_are_named() {
        let mut lines = vec![
            line(Section::Next, 3, "Add a test"),
            line(Section::Goal, 1, "Fix the\n login"),
            line(Section::Blocked, 2, "No access to the database"),
        ];
        let whole = lay_out(&parts(lines.clone()), BundleLimits::of(None, None));
        assert_eq!(
            whole.text,
            "Baton session sess_1 of claude-1 in acme/shop is open.\nGoal:\n- Fix the login [turn_1]\nBlocked:\n\
             - No access to the database [turn_2]\nNext:\n- Add a test [turn_3]\nMore: search (50 tokens a result)"
        );
        lines.extend((0..500).map(|id| line(Section::Files, id, &format!("src/file_{id}.rs"))));
        let cut = lay_out(&parts(lines), BundleLimits::of(Some(300), None));
        assert!(cut.text.contains("\nOmitted lines: Files "), "{}", cut.text);
        assert!(!cut.omitted.is_empty() && cut.tokens <= 300);
    }

    #[test]
    fn limits_of_clients_are_applied() {
        let lines: Vec<BundleLine> =
            (0..900).map(|id| line(Section::Files, id, "internationalization")).collect();
        let claude = lay_out(&parts(lines.clone()), BundleLimits::of(Some(50_000), Some("claude-code")));
        assert!(claude.text.chars().count() <= 9_000);
        let codex = lay_out(&parts(lines), BundleLimits::of(Some(50_000), Some("codex")));
        assert!(codex.tokens <= 2_300);
    }

    #[test]
    fn outcome_of_the_latest_session_is_cut_last() {
        let text = format!("Asked to: {} The tests pass.", "words ".repeat(150));
        let lines = vec![line(Section::State, 1, &text), line(Section::State, 2, &text)];
        let whole = lay_out(&parts(lines.clone()), BundleLimits::of(None, None));
        assert_eq!(whole.text.matches("The tests pass. [turn_1]").count(), 1, "{}", whole.text);
        assert!(whole.text.contains("… [turn_2]"), "{}", whole.text);
        let small = lay_out(&parts(lines), BundleLimits::of(Some(MIN_BUNDLE_TOKENS), None));
        assert!(small.text.contains("… [turn_1]"), "{}", small.text);
    }

    fn any_line() -> impl Strategy<Value = BundleLine> {
        let section = prop::sample::select(SECTIONS.to_vec());
        (section, 0_usize..1_000, "[ -~éж日🙂\n]{0,600}")
            .prop_map(|(section, id, text)| line(section, id, &text))
    }

    proptest! {
        #[test]
        fn the_budget_is_never_exceeded_and_no_blocker_is_dropped(
            lines in prop::collection::vec(any_line(), 0..80),
            max_tokens in MIN_BUNDLE_TOKENS..4_000_u32,
            client in prop::sample::select(vec![None, Some("claude-code"), Some("codex")]),
        ) {
            let limits = BundleLimits::of(Some(max_tokens), client);
            let bundle = lay_out(&parts(lines.clone()), limits);
            prop_assert!(bundle.tokens <= limits.max_tokens, "{} > {}", bundle.tokens, limits.max_tokens);
            prop_assert!(bundle.text.chars().count() <= limits.max_chars);
            prop_assert_eq!(&lay_out(&parts(lines.clone()), limits), &bundle);
            let blockers: Vec<&BundleLine> =
                lines.iter().filter(|line| line.section == Section::Blocked).collect();
            let counted = format!("- {} blockers [", blockers.len());
            for blocker in &blockers {
                let start = blocker.write(*BLOCKER_CHARS.last().unwrap());
                let start = start.split('…').next().unwrap().trim_end();
                prop_assert!(bundle.text.contains(start) || bundle.text.contains(&counted), "{start}");
            }
        }
    }
}
