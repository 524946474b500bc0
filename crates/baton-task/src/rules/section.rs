//! Sections of a Markdown file, found by their headings.

use std::collections::BTreeMap;

use baton_core::shorten;

use super::normalize::unix_line_ends;
use super::scope::short_sha;

/// Maximum length of a section summary in characters.
pub(super) const MAX_REQUIREMENT: usize = 140;

/// A section: a heading and the text up to the next heading of the same or a higher level.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Section {
    /// Slug of the heading as used in links, for example `handler-constraints`.
    pub slug: String,
    /// First line, from 1.
    pub first_line: usize,
    /// Last line that is not blank.
    pub last_line: usize,
    /// First 16 hex digits of the SHA-256 hash of these lines, joined by LF.
    pub content_sha: String,
    /// First sentence below the heading, at most 140 characters.
    pub summary: String,
}

impl Section {
    /// Returns the lines in the form `L42-L89`.
    pub fn line_span(&self) -> String {
        format!("L{}-L{}", self.first_line, self.last_line)
    }

    /// Returns true if `name` is the heading or the slug of this section.
    pub fn has_name(&self, name: &str) -> bool {
        self.slug == name || self.slug == slug(name)
    }
}

/// Returns the slug of a heading as used in links.
pub fn slug(heading: &str) -> String {
    let kept = heading.trim().trim_start_matches('#').trim().chars().filter_map(|letter| match letter {
        ' ' | '\t' => Some('-'),
        '-' | '_' => Some(letter),
        letter if letter.is_alphanumeric() => Some(letter),
        _ => None,
    });
    kept.flat_map(char::to_lowercase).collect()
}

/// Finds the sections of a file. The slug of the second occurrence of a heading ends with `-1`.
pub fn sections(text: &str) -> Vec<Section> {
    let text = unix_line_ends(text);
    let lines: Vec<&str> = text.split('\n').collect();
    let headings = headings(&lines);
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    headings
        .iter()
        .enumerate()
        .map(|(index, (at, rank, heading))| {
            let end = headings[index + 1..]
                .iter()
                .find(|(_, other, _)| other <= rank)
                .map_or(lines.len(), |next| next.0);
            let span = &lines[*at..end];
            let used = span.iter().rposition(|line| !line.trim().is_empty()).unwrap_or(0);
            let content = &span[..=used];
            let base = slug(heading);
            let count = seen.entry(base.clone()).or_insert(0);
            let slug = if *count == 0 { base } else { format!("{base}-{count}") };
            *count += 1;
            Section {
                slug,
                first_line: at + 1,
                last_line: at + 1 + used,
                content_sha: short_sha(content.join("\n").as_bytes()),
                summary: summary(heading, content.get(1..).unwrap_or_default()),
            }
        })
        .collect()
}

/// Returns the headings with line, level and text. Fenced code is skipped.
fn headings(lines: &[&str]) -> Vec<(usize, usize, String)> {
    let mut fence: Option<&str> = None;
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        let rank = line.bytes().take_while(|byte| *byte == b'#').count();
        let words = line.get(rank..).unwrap_or_default();
        if fence.is_none() && (1..=6).contains(&rank) && (words.is_empty() || words.starts_with([' ', '\t']))
        {
            found.push((at, rank, words.trim().trim_end_matches('#').trim_end().to_owned()));
        }
    }
    found
}

fn summary(heading: &str, body: &[&str]) -> String {
    let is_text = |line: &&&str| {
        let bare = line.trim();
        !bare.is_empty()
            && !bare.starts_with('#')
            && !bare.starts_with("```")
            && !bare.starts_with("~~~")
            && !bare.starts_with('|')
    };
    let Some(first) = body.iter().position(|line| is_text(&line)) else {
        return shorten(heading, MAX_REQUIREMENT);
    };
    let is_item = |line: &str| ["- ", "* ", "> "].iter().any(|mark| line.trim_start().starts_with(mark));
    let paragraph: Vec<&str> = body[first..]
        .iter()
        .enumerate()
        .take_while(|(at, line)| is_text(line) && (*at == 0 || !is_item(line)))
        .map(|(_, line)| line.trim())
        .collect();
    let text = paragraph.join(" ");
    let text = text.trim_start_matches(['-', '*', '>', ' ']).replace("**", "").replace('`', "");
    let end = text
        .match_indices(['.', '!', '?'])
        .map(|(at, _)| at + 1)
        .find(|at| text.get(*at..).is_some_and(|rest| rest.is_empty() || rest.starts_with(' ')));
    shorten(text.get(..end.unwrap_or(text.len())).unwrap_or(&text).trim(), MAX_REQUIREMENT)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# Backend\n\nIntro.\n\n## Handler Constraints\n\nHandlers stay below `75` lines. More of it.\n\n\
        ### Detail\n- x\n\n```sh\n# no heading\n```\n\n## Coverage & CI!\n\n- **Eighty** percent\n  at least\n- other\n\n## Coverage & CI!\n";

    #[test]
    fn sections_end_at_the_next_heading_of_their_level() {
        let found = sections(TEXT);
        let spans: Vec<(&str, String)> = found.iter().map(|s| (s.slug.as_str(), s.line_span())).collect();
        let expected = [
            ("backend", "L1-L22"),
            ("handler-constraints", "L5-L14"),
            ("detail", "L9-L14"),
            ("coverage--ci", "L16-L20"),
            ("coverage--ci-1", "L22-L22"),
        ];
        assert_eq!(spans, expected.map(|(slug, span)| (slug, span.to_owned())));
        assert_eq!(
            found[1].content_sha,
            short_sha(TEXT.split('\n').collect::<Vec<_>>()[4..14].join("\n").as_bytes())
        );
    }

    #[test]
    fn line_ends_do_not_change_the_hash() {
        assert_eq!(sections(TEXT), sections(&TEXT.replace('\n', "\r\n")));
    }

    #[test]
    fn summary_is_the_first_sentence() {
        let found = sections(TEXT);
        assert_eq!(found[1].summary, "Handlers stay below 75 lines.");
        assert_eq!(found[3].summary, "Eighty percent at least");
        assert_eq!(found[4].summary, "Coverage & CI!");
        let long = sections(&format!("# A\n\n{}", "word ".repeat(60)));
        assert!(long[0].summary.chars().count() <= MAX_REQUIREMENT && long[0].summary.ends_with('…'));
    }

    #[test]
    fn sections_are_found_by_heading_or_slug() {
        let found = sections(TEXT);
        assert!(found[1].has_name("Handler Constraints") && found[1].has_name("handler-constraints"));
        assert!(found[3].has_name("Coverage & CI!") && !found[4].has_name("Coverage & CI!"));
    }
}
