//! Source code: the functions and types that a source defines, and the differences between two versions.
//!
//! Fragments of a file are parsed as well as whole files; unparsable sources yield nothing. The work is limited by the
//! size of the source and by the number of parser steps, never by time, so the result is deterministic.

use std::collections::BTreeMap;
use std::ops::{ControlFlow, Range};

use baton_core::observation::FunctionAction;
use tree_sitter::{InputEdit, ParseOptions, ParseState, Parser, Point, Tree};

use super::language::{Kind, Language};
use super::skeleton::Source;
use super::text::one_line;

/// Maximum size of a source that is parsed.
const MAX_SOURCE_BYTES: usize = 512 * 1024;
/// Number of progress callbacks after which the parser is stopped: per KiB of source, and the minimum.
const REPORTS_PER_KIB: usize = 64;
const MIN_REPORTS: usize = 4_000;
/// Maximum number of definitions per source.
const MAX_SYMBOLS: usize = 2_000;
/// Maximum depth at which definitions are searched.
const MAX_DEPTH: usize = 40;

/// A named definition in a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Symbol {
    pub(super) kind: Kind,
    /// Type, module or class that contains the definition.
    pub(super) owner: Option<String>,
    pub(super) name: String,
    /// Line number, starting at 1.
    pub(super) line: usize,
    range: Range<usize>,
}

/// A change of a named definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) kind: Kind,
    /// Qualified name.
    pub(super) name: String,
    pub(super) action: FunctionAction,
}

/// Lists the definitions of a source in order. Empty if the language is unknown or the source is too large.
pub(super) fn outline(path: &str, source: &str) -> Vec<Symbol> {
    let Some(language) = Language::of_path(path) else { return Vec::new() };
    let Some(source) = Source::of(language, source) else { return Vec::new() };
    parse(language, &source.text, None).map(|tree| symbols(language, &source, &tree)).unwrap_or_default()
}

/// Compares two versions of a source: new, modified and deleted definitions, in the order of the newer version.
pub(super) fn compare(path: &str, before: &str, after: &str) -> Vec<Change> {
    let Some(language) = Language::of_path(path) else { return Vec::new() };
    if before == after {
        return Vec::new();
    }
    compare_sources(language, before, after).unwrap_or_default()
}

fn compare_sources(language: Language, before: &str, after: &str) -> Option<Vec<Change>> {
    let (old, new) = (Source::of(language, before)?, Source::of(language, after)?);
    let mut tree = parse(language, &old.text, None)?;
    let old_symbols = symbols(language, &old, &tree);
    tree.edit(&edit_between(&old.text, &new.text));
    let tree = parse(language, &new.text, Some(&tree))?;
    Some(changes(language, (before, &old_symbols), (after, &symbols(language, &new, &tree))))
}

fn parse(language: Language, source: &str, old: Option<&Tree>) -> Option<Tree> {
    if source.len() > MAX_SOURCE_BYTES {
        return None;
    }
    let mut parser = Parser::new();
    parser.set_language(&language.grammar()).ok()?;
    let mut reports_left = MIN_REPORTS + source.len() / 1024 * REPORTS_PER_KIB;
    let mut report = |_: &ParseState| {
        reports_left = reports_left.saturating_sub(1);
        if reports_left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let bytes = source.as_bytes();
    parser.parse_with_options(
        &mut |at, _| bytes.get(at..).unwrap_or_default(),
        old,
        Some(ParseOptions::new().progress_callback(&mut report)),
    )
}

/// Walks the tree without recursion. Does not descend into functions.
fn symbols(language: Language, source: &Source<'_>, tree: &Tree) -> Vec<Symbol> {
    let mut found = Vec::new();
    let mut owners: Vec<(usize, String)> = Vec::new();
    let mut cursor = tree.walk();
    let mut depth = 0;
    loop {
        let node = cursor.node();
        while owners.last().is_some_and(|(level, _)| *level >= depth) {
            owners.pop();
        }
        let definition = if node.is_named() { language.definition(node) } else { None };
        let mut enter = depth < MAX_DEPTH;
        if let Some((kind, name_node)) = definition {
            let name = one_line(source.text.get(name_node.byte_range()).unwrap_or_default(), 80);
            let owner = language
                .receiver(node, &source.text)
                .map(str::to_owned)
                .or_else(|| owners.last().map(|(_, owner)| owner.clone()));
            enter &= kind != Kind::Function;
            if kind != Kind::Function && kind != Kind::Constant {
                owners.push((depth, bare_type(&name)));
            }
            if kind != Kind::Scope && !name.is_empty() && found.len() < MAX_SYMBOLS {
                let (row, range) = source.place(&node, language);
                found.push(Symbol { kind, owner, name, line: row + 1, range });
            }
        }
        if enter && cursor.goto_first_child() {
            depth += 1;
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return found;
            }
            depth -= 1;
        }
    }
}

/// Returns a type without its parameters: `Store` for `Store<T>`.
fn bare_type(name: &str) -> String {
    name.split('<').next().unwrap_or(name).trim().trim_start_matches(['&', '*']).to_owned()
}

impl Symbol {
    /// Returns the text of the definition in the source that was parsed.
    pub(super) fn text<'a>(&self, source: &'a str) -> &'a str {
        source.get(self.range.clone()).unwrap_or_default()
    }

    /// Returns the name qualified with its owner.
    pub(super) fn qualified(&self, path: &str) -> String {
        self.joined(Language::of_path(path).map_or(".", Language::separator))
    }

    fn joined(&self, separator: &str) -> String {
        match &self.owner {
            Some(owner) => format!("{owner}{separator}{}", self.name),
            None => self.name.clone(),
        }
    }
}

type Version<'a> = (&'a str, &'a [Symbol]);

fn changes(language: Language, before: Version<'_>, after: Version<'_>) -> Vec<Change> {
    let (old, new) = (texts(before), texts(after));
    let mut changes = Vec::new();
    let mut seen = std::collections::BTreeSet::new();
    let mut note = |symbol: &Symbol, action| {
        let name = symbol.joined(language.separator());
        if seen.insert((name.clone(), action)) {
            changes.push(Change { kind: symbol.kind, name, action });
        }
    };
    for symbol in after.1 {
        match old.get(&key(symbol)) {
            None => note(symbol, FunctionAction::New),
            Some(texts) if new.get(&key(symbol)) != Some(texts) => note(symbol, FunctionAction::Modified),
            Some(_) => {}
        }
    }
    for symbol in before.1 {
        if !new.contains_key(&key(symbol)) {
            note(symbol, FunctionAction::Deleted);
        }
    }
    changes
}

fn key(symbol: &Symbol) -> (Option<&str>, &str) {
    (symbol.owner.as_deref(), &symbol.name)
}

/// Returns the text of each definition. The text of a type does not include its methods, which are compared separately.
fn texts<'a>((source, symbols): Version<'a>) -> BTreeMap<(Option<&'a str>, &'a str), Vec<Vec<&'a str>>> {
    let mut texts: BTreeMap<_, Vec<Vec<&str>>> = BTreeMap::new();
    for (index, symbol) in symbols.iter().enumerate() {
        let mut own = Vec::new();
        let mut from = symbol.range.start;
        let inside = symbols.iter().skip(index + 1).take_while(|inner| inner.range.start < symbol.range.end);
        for inner in inside.take(MAX_SYMBOLS / 10) {
            own.push(source.get(from..inner.range.start.max(from)).unwrap_or_default().trim());
            from = inner.range.end.max(from);
        }
        own.push(source.get(from..symbol.range.end.max(from)).unwrap_or_default().trim());
        own.retain(|piece| !piece.is_empty());
        texts.entry(key(symbol)).or_default().push(own);
    }
    texts
}

/// Returns the difference of two texts in the form that the parser requires.
fn edit_between(before: &str, after: &str) -> InputEdit {
    let (old, new) = (before.as_bytes(), after.as_bytes());
    let start = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let longest = old.len().min(new.len()) - start;
    let end = old.iter().rev().zip(new.iter().rev()).take(longest).take_while(|(a, b)| a == b).count();
    let (old_end_byte, new_end_byte) = (old.len() - end, new.len() - end);
    InputEdit {
        start_byte: start,
        old_end_byte,
        new_end_byte,
        start_position: point(old, start),
        old_end_position: point(old, old_end_byte),
        new_end_position: point(new, new_end_byte),
    }
}

fn point(bytes: &[u8], at: usize) -> Point {
    let before = bytes.get(..at).unwrap_or(bytes);
    let row = before.iter().filter(|byte| **byte == b'\n').count();
    let column = before.iter().rev().take_while(|byte| **byte != b'\n').count();
    Point { row, column }
}

#[cfg(test)]
#[path = "code_tests.rs"]
mod tests;
