//! Selection of lines of code if not all of them fit.

use std::collections::HashSet;

use baton_core::{contains_any, is_any, starts_with_any};
use baton_observation::count_lines;

use super::facts::{Detail, detail_line};
use super::text::{counted, first_sentence};

/// Number of parts of a text that each get a share of the room.
const PARTS: usize = 4;
/// Line that stands for omitted lines.
const GAP: &str = "…";
/// Size of [`GAP`] with its line break.
const GAP_BYTES: usize = GAP.len() + 1;
/// If a text is larger than this many times the room, only the first sentence of each comment is shown.
const COLLAPSED_FROM: usize = 3;

/// How informative a line of code is without the lines around it, most informative first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Relevance {
    /// A definition or a case.
    Definition,
    /// A member of a type, a constant of a group, or what a case returns.
    Member,
    /// A comment, an assertion or an error message.
    Explanation,
    Statement,
    /// An import, a bracket, `return err`.
    Filler,
}

pub(super) fn relevance(line: &str) -> Relevance {
    const DEFINITIONS: &str = "func |fn |pub |def |class |async |type |struct |enum |trait |impl |\
        interface |export |function |const |static |public |private |protected |case |switch |match |\
        CREATE ";
    const EXPLANATIONS: &str =
        "assert|expect(|t.Error|t.Fatal|require.|raise |throw |panic|rrors.New(|Errorf(|Err(";
    let line = line.trim();
    if !line.chars().any(char::is_alphanumeric) || is_import(line) || is_routine(line) {
        Relevance::Filler
    } else if starts_with_any(line, DEFINITIONS) && line.len() > 8 {
        Relevance::Definition
    } else if is_comment(line) {
        let words = line.split_whitespace().filter(|word| word.contains(char::is_alphabetic)).count();
        if words > 3 { Relevance::Explanation } else { Relevance::Filler }
    } else if contains_any(line, EXPLANATIONS) && !line.ends_with(", err)") {
        Relevance::Explanation
    } else {
        Relevance::Statement
    }
}

pub(super) fn is_comment(line: &str) -> bool {
    let line = line.trim_start();
    starts_with_any(line, "//|# |/*|* |\"\"\"|<!--|--")
}

/// Whether a line of code only imports something or names the package.
fn is_import(line: &str) -> bool {
    let is_statement = starts_with_any(line, "use |import |using ") && line.ends_with(';');
    let is_python = line.starts_with("from ") && line.contains(" import ");
    let is_short =
        starts_with_any(line, "package |import |#include ") && line.split_whitespace().count() == 2;
    is_statement || is_python || is_short
}

/// Whether a line occurs in most functions: it returns a plain value, passes an error on, or only controls the flow.
fn is_routine(line: &str) -> bool {
    const ROUTINE: &str = "if err != nil {|} else {|else {|else:|else|try {|try:|pass|break|continue|fi|\
        done|end|then|do|t.Helper()|t.Parallel()|default:|const (|var (|type (";
    let line = line.trim_end_matches([';', ',']);
    let is_plain_return = line
        .strip_prefix("return")
        .is_some_and(|value| !value.contains(['(', '"', '\'', '{']) && value.split_whitespace().count() < 3);
    is_plain_return || is_any(line, ROUTINE)
}

/// Adds the lines of a text or, if they do not fit, the most informative ones and the number of the others.
pub(super) fn excerpt(text: &str, detail: &mut Detail) {
    excerpt_without(text, &HashSet::new(), detail);
}

/// Like [`excerpt`], without the lines with these indexes.
pub(super) fn excerpt_without(text: &str, omitted_lines: &HashSet<usize>, detail: &mut Detail) {
    let lines: Vec<(usize, &str)> = text
        .lines()
        .enumerate()
        .filter(|(index, line)| !line.trim().is_empty() && !omitted_lines.contains(index))
        .collect();
    let short: Vec<String> = lines.iter().map(|(_, line)| detail_line(line)).collect();
    if short.iter().map(|line| line.len() + 1).sum::<usize>() <= detail.left() {
        return detail.lines(short);
    }
    let is_collapsed = text.len() > detail.left() * COLLAPSED_FROM;
    let ranked = ranked(&lines, is_collapsed);
    let all = count_lines(text);
    let left_out = |shown: usize| format!("[{} of {} left out]", all - shown, counted(all, "line"));
    let room = detail.left().saturating_sub(left_out(0).len() + 1);
    let chosen = select(&ranked, room);
    let mut previous = None;
    for index in &chosen {
        if !is_collapsed && previous.is_some_and(|previous| previous + 1 != *index) {
            detail.line(GAP);
        }
        previous = Some(*index);
        if let Some((_, line)) = ranked.get(*index) {
            detail.line(line);
        }
    }
    detail.line(&left_out(chosen.len()));
}

/// Returns each line with its relevance. Members of types count as definitions. With `is_collapsed`, a comment of several
/// lines becomes its first sentence.
fn ranked(lines: &[(usize, &str)], is_collapsed: bool) -> Vec<(Relevance, String)> {
    let mut ranked: Vec<(Relevance, String)> = Vec::with_capacity(lines.len());
    // Indentation of the type or the group of constants that contains the line.
    let mut inside: Option<usize> = None;
    let mut is_import_block = false;
    let mut is_after_case = false;
    let mut comment = String::new();
    for (at, (_, line)) in lines.iter().enumerate() {
        let bare = line.trim();
        is_import_block = (is_import_block || bare == "import (") && bare != ")";
        let indent = line.len() - line.trim_start().len();
        if inside.is_some_and(|outer| indent <= outer) {
            inside = None;
        }
        let mut found = if is_import_block { Relevance::Filler } else { relevance(bare) };
        if found == Relevance::Statement && inside.is_some() || is_after_case && bare.starts_with("return ") {
            found = Relevance::Member;
        }
        is_after_case = bare.starts_with("case ") && bare.ends_with(':');
        if bare == "const (" || bare == "var (" {
            inside = Some(indent);
        }
        let is_type =
            bare.split([' ', '{', '(']).any(|word| is_any(word, "struct|interface|enum|trait|class"));
        if found == Relevance::Definition && is_type && bare.ends_with(['{', ':']) {
            inside = Some(indent);
        }
        // The tags of a field repeat its name.
        let untagged =
            bare.find(" `json:").filter(|_| found == Relevance::Member).and_then(|at| bare.get(..at));
        let mut shown = detail_line(untagged.unwrap_or(bare));
        if is_collapsed && is_comment(bare) {
            if comment.is_empty() {
                comment.push_str(bare);
            } else {
                comment.push(' ');
                comment.push_str(bare.trim_start_matches(['/', '*', '#', '!', ' ']));
            }
            let goes_on = lines.get(at + 1).is_some_and(|(_, next)| is_comment(next));
            shown = if goes_on { String::new() } else { first_sentence(&std::mem::take(&mut comment), 160) };
            // The comment of a top-level definition is more informative than its cases, and its cases are more
            // informative than a comment inside it.
            found = match relevance(&shown) {
                _ if goes_on => Relevance::Filler,
                Relevance::Explanation if indent == 0 => Relevance::Definition,
                Relevance::Explanation => Relevance::Statement,
                found => found,
            };
        } else if is_collapsed && found <= Relevance::Member {
            found = Relevance::Explanation;
        }
        ranked.push((found, shown));
    }
    ranked
}

/// Selects the most informative lines that fit into `room`, from all parts of the text, and returns their indexes in
/// order. Repeated lines and fillers are left out.
pub(super) fn select<T: AsRef<str>>(lines: &[(Relevance, T)], mut room: usize) -> Vec<usize> {
    let part = lines.len().div_ceil(PARTS).max(1);
    let mut order: Vec<usize> = (0..lines.len()).collect();
    order.sort_by_key(|index| {
        (lines.get(*index).map(|(relevance, _)| *relevance), index % part, index / part)
    });
    let mut seen = HashSet::new();
    let mut chosen = Vec::new();
    for index in order {
        let Some((relevance, line)) = lines.get(index) else { continue };
        let line = line.as_ref().trim();
        let Some(left) = room.checked_sub(line.len() + 1 + GAP_BYTES) else { continue };
        if *relevance < Relevance::Filler && seen.insert(line) {
            room = left;
            chosen.push(index);
        }
    }
    chosen.sort_unstable();
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(text: &str, bytes: usize) -> String {
        let mut detail = Detail::new(bytes, "", "");
        excerpt(text, &mut detail);
        detail.finish().unwrap_or_default()
    }

    #[test]
    fn cases_and_calls_are_kept_and_routine_lines_are_not() {
        let body = "\tif err != nil {\n\t\treturn nil, err\n\t}\n";
        let text = format!(
            "func Parse(name string) (*Input, error) {{\n\tswitch name {{\n\tcase Start:\n\t\tinput, err := readStart(r)\n{body}\
             \tcase Stop:\n\t\tinput, err := readStop(r)\n{body}\tcase Edit:\n\t\tinput, err := readEdit(r)\n{body}\t}}\n}}\n"
        );
        let kept = filled(&text, 230);
        for line in ["func Parse(", "case Start:", "case Stop:", "case Edit:", "lines left out]"] {
            assert!(kept.contains(line), "{line}: {kept}");
        }
        assert!(!kept.contains("return nil, err") && !kept.contains("err != nil"), "{kept}");
    }

    #[test]
    fn what_a_case_returns_and_constants_of_a_group_are_kept() {
        let filler = "\tlogger.Debug(\"a step of the work is done now\")\n".repeat(9);
        let text = format!(
            "const (\n\tNameDual = \"dual\"\n)\n\nfunc normalize(name string) string {{\n{filler}\tswitch name {{\n\tcase NameDual:\n\t\treturn NameAuto\n\t}}\n}}\n"
        );
        let kept = filled(&text, 220);
        assert!(kept.contains("NameDual = \"dual\""), "{kept}");
        assert!(kept.contains("case NameDual:\nreturn NameAuto"), "{kept}");
    }

    #[test]
    fn members_of_a_type_come_before_their_comments() {
        let text: String = (0..9)
            .map(|n| {
                format!("\t// Field{n} is the value with the number {n} of this type.\n\tField{n} string\n")
            })
            .collect();
        let kept = filled(&format!("type State struct {{\n{text}}}\n"), 330);
        for n in 0..9 {
            assert!(kept.contains(&format!("\nField{n} string")), "{kept}");
        }
    }

    #[test]
    fn large_texts_show_first_sentences_of_comments() {
        let text: String = (0..40)
            .map(|n| {
                format!("// step{n} does the work of this step. It may\n// also fail.\nfunc step{n}() error {{\n\treturn nil\n}}\n\n")
            })
            .collect();
        let kept = filled(&text, 500);
        assert!(kept.contains("// step20 does the work of this step."), "{kept}");
        assert!(!kept.contains("also fail."), "{kept}");
        assert!(kept.len() <= 500);
    }

    #[test]
    fn a_text_that_fits_is_kept_whole() {
        assert_eq!(filled("a := 1\n\n\treturn nil\n", 100), "a := 1\nreturn nil");
    }
}
