//! Text that a person or an agent wrote: reports, plans, commit messages, issues. It is kept whole if it fits, else by
//! its sections: conclusions first, then the beginning of every section, then the rest in order.

use baton_core::{contains_any, shorten, starts_with_any, strip_any};

use super::facts::{Detail, names, paths};
use super::text::{first_sentence, one_line, split_digits};

/// Detail size of an observation that is mainly such a text.
pub(super) const PROSE_BYTES: usize = 7_900;

/// Highest maximum length of a paragraph when the text does not fit.
const MAX_PARAGRAPH: usize = 600;
/// Lowest maximum length of a paragraph when the text does not fit.
const MIN_PARAGRAPH: usize = 160;
/// Length in characters below which a sentence is quoted with the next one: "All of it is done."
const SHORT_SENTENCE: usize = 50;
/// Maximum number of blocks of a text that are read.
const MAX_BLOCKS: usize = 2_000;

/// Words of headings and labels of conclusions.
const CONCLUSIONS: &str =
    "verdict|root cause|conclusion|summary|bottom line|answer|key finding|key insight|key point";

/// Words of headings of sections that a gist leaves out: praise, and lists of places.
const UNIMPORTANT: &str = "strength|went well|done well|positive|praise|location|reference|key files";

/// Words of headings above conclusions, decisions and goals.
const CONCLUSIVE: &str = "summary|conclusion|finding|result|recommend|verdict|decision|answer|root cause|\
    assessment|takeaway|goal|objective|problem|issue|solution|approach|next step|risk|bottom line|outcome";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Heading,
    Paragraph,
    Item,
    Row,
    Code,
}

impl Kind {
    fn is_text(self) -> bool {
        matches!(self, Self::Paragraph | Self::Item | Self::Row)
    }
}

/// A heading, a paragraph, a list item, a row of a table or a line of code.
#[derive(Debug)]
struct Block {
    kind: Kind,
    text: String,
    /// Index of the heading above the block; for a heading, its own index.
    section: Option<usize>,
    /// For a heading, the index of the heading of the enclosing section.
    parent: Option<usize>,
}

impl Block {
    fn states_something(&self) -> bool {
        matches!(self.kind, Kind::Paragraph | Kind::Item)
            && self.text.split_whitespace().count() > 5
            && (!self.text.trim_end_matches('*').ends_with(':') || self.text.contains(". "))
    }
}

/// Adds a text to a detail.
pub(super) fn fill(text: &str, cwd: Option<&str>, detail: &mut Detail) {
    let blocks = blocks(text);
    let size: usize = blocks.iter().map(|block| block.text.len() + 1).sum();
    if size <= detail.left() {
        for block in &blocks {
            match block.kind {
                // An item that the summary repeats is kept, because a list without it would be wrong.
                Kind::Item => detail.item(&block.text),
                _ => detail.paragraph(&block.text),
            }
        }
        return;
    }
    let shown = detail.reserving(detail.left() / 6, |detail| {
        let chosen = choose(&blocks, detail.left().saturating_sub(40));
        chosen.iter().for_each(|text| detail.paragraph(text));
        chosen.len()
    });
    detail.line(&format!("[{} of {} parts left out]", blocks.len() - shown, blocks.len()));
    let files: Vec<&str> = paths(text, cwd).into_iter().filter(|path| !detail.contains_words(path)).collect();
    detail.reserving(detail.left() / 2, |detail| detail.list("Files", files));
    detail.top_names("Names", &names(text));
}

/// Returns true if a file contains text for people.
pub(super) fn is_prose(path: &str) -> bool {
    let ending = path.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    matches!(ending.as_str(), "md" | "mdx" | "markdown" | "rst" | "adoc")
}

/// Returns the first statement and the conclusion of a text, for a summary. A heading is used only if the
/// text has no statement.
pub(super) fn gist(text: &str, characters: usize) -> String {
    let blocks = blocks(text);
    let states = |block: &&Block| is_statement(&blocks, block);
    let opening = blocks.iter().take_while(|block| matches!(block.kind, Kind::Heading | Kind::Paragraph));
    let opening = opening.filter(|block| block.kind == Kind::Paragraph).find(states);
    let concluded = conclusion(&blocks, CONCLUSIONS).or_else(|| conclusion(&blocks, CONCLUSIVE));
    let any = || blocks.iter().find(|block| block.states_something() && !announces(&block.text));
    let Some(first) = opening.or_else(|| blocks.iter().find(states)).or_else(any).or(blocks.first()) else {
        return String::new();
    };
    let Some(concluded) = concluded.filter(|block| block.text != first.text) else {
        return first_sentences(bare(&first.text), characters);
    };
    let mut lead = first_sentences(bare(&first.text), characters * 3 / 5);
    if !lead.ends_with(['.', '!', '?', '…', ':']) {
        lead.push('.');
    }
    let room = characters.saturating_sub(lead.chars().count() + 1);
    format!("{lead} {}", first_sentence(bare(&concluded.text), room))
}

/// Returns the first sentence of a paragraph, and the second if the first is short.
fn first_sentences(text: &str, characters: usize) -> String {
    let first = first_sentence(text, characters);
    let rest = one_line(text, characters * 3);
    let rest = rest.strip_prefix(first.as_str()).unwrap_or_default().trim();
    let room = characters.saturating_sub(first.chars().count() + 1);
    if first.chars().count() >= SHORT_SENTENCE
        || rest.is_empty()
        || rest.ends_with(':')
        || room < SHORT_SENTENCE
    {
        return first;
    }
    format!("{first} {}", first_sentence(rest, room))
}

/// Returns the first statement of the last section with one of these words in its heading, or the last statement with
/// such a label. The last one is used, because reports conclude at their end.
fn conclusion<'a>(blocks: &'a [Block], words: &str) -> Option<&'a Block> {
    let states = |block: &&Block| is_statement(blocks, block);
    let last = blocks.iter().rev().find(|block| states(block) && concludes(blocks, block, words))?;
    if label(&last.text).is_some_and(|label| has_word(label, words)) {
        return Some(last);
    }
    blocks.iter().find(|block| states(block) && block.section == last.section)
}

/// Whether a block may represent a text: neither an announcement nor praise nor a list of places.
fn is_statement(blocks: &[Block], block: &Block) -> bool {
    let is_unimportant = || {
        headings_of(blocks, block)
            .filter_map(|at| blocks.get(at))
            .any(|heading| has_word(&heading.text, UNIMPORTANT))
    };
    block.states_something() && !announces(&block.text) && !is_unimportant()
}

/// Returns the first heading of a text without its marks, or the first line.
pub(super) fn heading(text: &str) -> Option<String> {
    let mut lines = text.lines().map(str::trim).filter(|line| line.chars().any(char::is_alphanumeric));
    let first = lines.next()?;
    let heading = text.lines().map(str::trim).take(40).find(|line| line.starts_with("# "));
    let heading = bare(heading.unwrap_or(first));
    let heading = heading.strip_prefix("Plan: ").unwrap_or(heading);
    Some(heading.trim_matches(['*', ' ']).to_owned()).filter(|heading| !heading.is_empty())
}

/// Removes the Markdown marks before a line: `- `, `1. `, `## `.
pub(super) fn bare(line: &str) -> &str {
    let line = line.trim_start_matches(['#', ' ', '>']);
    let line = strip_any(line, "- |* ").unwrap_or(line);
    let (digits, rest) = split_digits(line);
    let unnumbered = rest.strip_prefix(". ").filter(|_| (1..3).contains(&digits.len()));
    unnumbered.unwrap_or(line).trim_start()
}

/// Returns true for a sentence that only announces the following text: "Perfect! I now have…", "Here is my
/// report".
fn announces(text: &str) -> bool {
    const OPENINGS: &str = "perfect|great|excellent|now i|i have|i now|i've|let me|based on|here is|here's";
    let start: String = bare(text).chars().take(12).collect::<String>().to_lowercase();
    starts_with_any(&start, OPENINGS)
}

/// Returns true if a block is below a heading with one of these words, or begins with such a label: `**Goal:**`,
/// `Verdict:`.
fn concludes(blocks: &[Block], block: &Block, words: &str) -> bool {
    let nearest = block.section.and_then(|at| blocks.get(at));
    // A heading that is only a line in bold belongs to the section that contains it.
    let outer = nearest.filter(|heading| heading.text.starts_with("**")).and_then(|heading| heading.parent);
    let headings = nearest.into_iter().chain(outer.and_then(|at| blocks.get(at)));
    let texts = headings.map(|heading| heading.text.as_str()).chain(label(&block.text));
    texts.into_iter().any(|text| has_word(text, words))
}

/// Returns the label at the start of a paragraph or list item: `**Goal:**`, `Verdict:`.
fn label(text: &str) -> Option<&str> {
    let text = bare(text);
    let label = match text.strip_prefix("**") {
        Some(rest) => {
            let (label, after) = rest.split_once("**")?;
            (label.ends_with(':') || after.starts_with(':')).then_some(label)?
        }
        None => text.split_once(": ")?.0,
    };
    (label.split_whitespace().count() <= 4).then_some(label)
}

fn has_word(text: &str, words: &str) -> bool {
    contains_any(&text.to_lowercase(), words)
}

/// Splits a text into blocks.
fn blocks(text: &str) -> Vec<Block> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut section = None;
    // The open headings with their levels.
    let mut above: Vec<(usize, usize)> = Vec::new();
    let mut is_fenced = false;
    let mut is_open = false;
    // Each field of the front matter, between two lines `---`, is a block.
    let mut is_front = text.trim_start().starts_with("---\n");
    for (number, line) in text.trim_start().lines().enumerate() {
        let bare = line.trim();
        if blocks.len() >= MAX_BLOCKS {
            break;
        }
        is_front &= number == 0 || bare != "---";
        if bare.starts_with("```") {
            is_fenced = !is_fenced;
            is_open = false;
            continue;
        }
        let is_rule = !bare.chars().any(char::is_alphanumeric);
        if is_rule {
            is_open = false;
            continue;
        }
        let kind = kind_of(bare, is_fenced);
        match blocks.last_mut() {
            Some(last) if is_open && kind == Kind::Paragraph && !is_front => {
                last.text.push(' ');
                last.text.push_str(bare);
            }
            _ if bare.is_empty() => {}
            _ => {
                let mut parent = None;
                if kind == Kind::Heading {
                    section = Some(blocks.len());
                    let level = heading_level(bare);
                    above.retain(|(_, other)| *other < level);
                    parent = above.last().map(|(at, _)| *at);
                    above.push((blocks.len(), level));
                }
                blocks.push(Block { kind, text: bare.to_owned(), section, parent });
            }
        }
        is_open = matches!(kind, Kind::Paragraph | Kind::Item);
    }
    blocks
}

/// Returns the level of a heading. A line in bold is below all headings.
fn heading_level(line: &str) -> usize {
    match line.bytes().take_while(|byte| *byte == b'#').count() {
        0 => usize::MAX,
        level => level,
    }
}

/// Returns the indexes of the headings above a block, the nearest first.
fn headings_of<'a>(blocks: &'a [Block], block: &Block) -> impl Iterator<Item = usize> + 'a {
    std::iter::successors(block.section, |at| blocks.get(*at)?.parent)
}

fn kind_of(line: &str, is_fenced: bool) -> Kind {
    let (digits, rest) = split_digits(line);
    let is_numbered = !digits.is_empty() && starts_with_any(rest, ". |) ");
    // A line in bold is a heading, unless it is a sentence.
    let is_bold =
        line.starts_with("**") && line.trim_end_matches(':').ends_with("**") && !line.ends_with(".**");
    if is_fenced {
        Kind::Code
    } else if line.starts_with('#') && line.trim_start_matches('#').starts_with(' ') || is_bold {
        Kind::Heading
    } else if line.starts_with('|') {
        Kind::Row
    } else if is_numbered || starts_with_any(line, "- |* |• |+ |**") {
        Kind::Item
    } else {
        Kind::Paragraph
    }
}

/// Returns the blocks that fit into `bytes`, in their order: conclusions first, then the beginning of every section, then
/// other text, then code. Long blocks are shortened.
fn choose(blocks: &[Block], bytes: usize) -> Vec<String> {
    let mut is_chosen = vec![false; blocks.len()];
    let mut room = bytes;
    let limit = (bytes / 8).clamp(MIN_PARAGRAPH, MAX_PARAGRAPH);
    let cost = |block: &Block| block.text.len().min(limit) + 1;
    let opening = blocks.iter().position(|block| block.kind.is_text() && !announces(&block.text));
    for pass in 0..4 {
        let mut seen = None;
        for (index, block) in blocks.iter().enumerate() {
            let is_first = seen != Some(block.section) && block.kind != Kind::Heading;
            if is_first {
                seen = Some(block.section);
            }
            // "Perfect! Let me create a report."
            let is_filler = index == 0 && announces(&block.text) && blocks.len() > 1;
            let is_wanted = block.kind != Kind::Heading
                && !is_filler
                && match pass {
                    0 => {
                        let is_statement = matches!(block.kind, Kind::Paragraph | Kind::Item);
                        opening == Some(index) || is_statement && concludes(blocks, block, CONCLUSIVE)
                    }
                    1 => block.kind.is_text() && is_first,
                    2 => block.kind.is_text(),
                    _ => true,
                };
            if !is_wanted || is_chosen.get(index).copied().unwrap_or(true) {
                continue;
            }
            // All headings above come with the first block below them: a point of criticism must not appear below
            // "Strengths".
            let headings: Vec<usize> = headings_of(blocks, block)
                .filter(|at| !is_chosen.get(*at).copied().unwrap_or(true))
                .collect();
            let needed =
                cost(block) + headings.iter().filter_map(|at| blocks.get(*at)).map(cost).sum::<usize>();
            if needed <= room {
                room -= needed;
                for at in headings.into_iter().chain([index]) {
                    if let Some(chosen) = is_chosen.get_mut(at) {
                        *chosen = true;
                    }
                }
            }
        }
    }
    let chosen = blocks.iter().zip(is_chosen).filter(|(_, is_chosen)| *is_chosen);
    chosen.map(|(block, _)| shorten(block.text.trim(), limit)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, bytes: usize) -> String {
        let mut detail = Detail::new(bytes, "", "");
        fill(text, None, &mut detail);
        detail.finish().unwrap_or_default()
    }

    #[test]
    fn keeps_a_text_that_fits_and_joins_its_paragraphs() {
        let text = "# Plan\n\nFirst line\nof a paragraph.\n\n- item one\n  goes on\n- item two\n\n---\n";
        assert_eq!(filled(text, 500), "# Plan\nFirst line of a paragraph.\n- item one goes on\n- item two");
    }

    #[test]
    fn items_that_the_summary_has_stay_in_their_list() {
        let mut detail =
            Detail::new(500, "", "Steps: - After the save, call the transition of the state - Then go on");
        fill("To do:\n- After the save, call the transition of the state\n- Then go on\n", None, &mut detail);
        let text = detail.finish().unwrap_or_default();
        assert_eq!(text, "To do:\n- After the save, call the transition of the state\n- Then go on");
    }

    #[test]
    fn keeps_conclusions_and_says_how_much_is_missing() {
        let filler = "Some words about the way that was taken in this part of the work. ".repeat(5);
        let text = format!(
            "Opening words of the report here.\n\n## Way\n\n{filler}\n\n{filler}\n\n## Conclusion\n\nThe lock is held twice.\n"
        );
        let kept = filled(&text, 420);
        assert!(kept.starts_with("Opening words of the report here."), "{kept}");
        assert!(kept.contains("## Conclusion\nThe lock is held twice."), "{kept}");
        assert!(kept.contains("parts left out]"), "{kept}");
    }

    #[test]
    fn points_stay_below_all_their_headings() {
        let words = "Words about the code that were written in this place of the review. ".repeat(3);
        let issues: String =
            (1..6).map(|n| format!("**{n}. Point {n}**\n\n{words}\n\n{words}\n\n")).collect();
        let text = format!(
            "Perfect! Let me write it.\n\n### Strengths\n\n{words}\n\n### Issues\n\n#### Critical\n\n{issues}"
        );
        let kept = filled(&text, 1_200);
        assert!(kept.contains("### Issues\n#### Critical\n**1. Point 1**"), "{kept}");
        assert!(!kept.contains("Perfect!"), "{kept}");
    }

    #[test]
    fn the_gist_leaves_out_praise_and_lists_of_places() {
        let review = "### Strengths\n\n1. The helper is clean and easy to read for all.\n\n### Issues\n\n1. The lock is held during the call of the server.\n\n### File Locations Summary\n\n- The lock of the server is in src/lock.rs\n";
        assert_eq!(gist(review, 200), "The lock is held during the call of the server.");
        let document = "---\nname: find-code\ndescription: Search for related code before writing new code.\n---\n\n# Find code\n\n- **Recommendations** - what to use of the code that exists\n";
        assert_eq!(gist(document, 200), "description: Search for related code before writing new code.");
    }

    #[test]
    fn the_gist_is_a_statement_and_not_a_list_number() {
        let report = "Perfect! I have everything now, here we go.\n\n### Issues\n\n1. **`save` drops the error** of the second write.\n";
        assert_eq!(gist(report, 200), "**`save` drops the error** of the second write.");
        let long = "Great, I have it all.\n\n## Summary: how hooks are handled\n\n- **When**: a session starts in the morning\n\n### Risks\n\nTwo hooks can write the same file.\n";
        assert_eq!(gist(long, 200), "**When**: a session starts in the morning");
        let plan = "# Plan\n\nAll of it is done. This plan adds tests of the version to the store.\n";
        assert_eq!(gist(plan, 200), "All of it is done. This plan adds tests of the version to the store.");
        let opened = "## Logging\n\nThe package writes JSON lines to one file. Key functions:\n\n- `init` starts it all for a session\n";
        assert_eq!(gist(opened, 200), "The package writes JSON lines to one file.");
        let bold = "## Answers\n\n### 1. Which part does it return?\n\n**It returns the part of the checkpoint only.**\n\n- Calls `read` with the id of the checkpoint\n- **It is then written by:**\n";
        assert_eq!(gist(bold, 200), "**It returns the part of the checkpoint only.**");
        let labelled = "## Review of the login page\n\nThe page was read from top to bottom.\n\n**Verdict:** two errors must be fixed before release.\n\n## Files\n\n- src/login.rs holds the whole page\n";
        assert_eq!(
            gist(labelled, 200),
            "The page was read from top to bottom. **Verdict:** two errors must be fixed before release."
        );
        assert_eq!(gist("## Only a heading with many words", 200), "Only a heading with many words");
        assert_eq!(gist("", 200), "");
    }

    #[test]
    fn the_heading_of_a_plan_is_its_name() {
        assert_eq!(heading("# Plan: Keep unknown hooks\n\nText").as_deref(), Some("Keep unknown hooks"));
        assert_eq!(heading("\n1. Do it\n").as_deref(), Some("Do it"));
        assert_eq!(heading("---\n"), None);
    }
}
