//! Reads YAML into a tree that keeps the order of the document. Every valid document is accepted: keys of any kind
//! become text.

use std::collections::HashMap;

use baton_core::Fault;
use granit_parser::{Event, Marker, Parser, ScalarStyle, Tag};

use crate::rules::Node;

/// Maximum nesting depth of collections.
const MAX_DEPTH: usize = 64;

/// Maximum number of values that aliases copy. A task file that copies more is an attack.
const MAX_COPIES: usize = 10_000;

/// Content of a YAML file.
#[derive(Debug)]
pub(crate) struct YamlFile {
    /// The first document that is not empty; null if all are empty.
    pub(crate) document: Node,
    /// Warnings about ignored content.
    pub(crate) warnings: Vec<String>,
}

/// Reason why a text is not valid YAML.
#[derive(Debug)]
pub(crate) struct YamlError {
    pub(crate) line: usize,
    pub(crate) column: usize,
    pub(crate) problem: String,
}

impl YamlError {
    fn at(position: &Marker, problem: String) -> Self {
        Self { line: position.line(), column: position.col() + 1, problem }
    }
}

/// Decodes UTF-8, or UTF-16 with a byte order mark. Removes the mark.
pub(crate) fn decode(field: &str, path: &str, bytes: Vec<u8>) -> Result<String, Fault> {
    let units = |from: fn([u8; 2]) -> u16| -> Vec<u16> {
        bytes[2..].chunks_exact(2).map(|pair| from([pair[0], pair[1]])).collect()
    };
    let text = match bytes.as_slice() {
        [0xff, 0xfe, ..] => String::from_utf16(&units(u16::from_le_bytes)).ok(),
        [0xfe, 0xff, ..] => String::from_utf16(&units(u16::from_be_bytes)).ok(),
        _ => String::from_utf8(bytes).ok(),
    };
    let text = text.ok_or_else(|| Fault::invalid(field, format!("{path} is not UTF-8 or UTF-16 text")))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// Parses a file. Duplicate keys are invalid YAML but common, so the last value is used, with a warning.
pub(crate) fn read(text: &str) -> Result<YamlFile, YamlError> {
    let options = granit_parser::options! { flow_nesting_limit: MAX_DEPTH, block_nesting_limit: MAX_DEPTH };
    let mut reader = Reader::default();
    for event in Parser::new_from_str_with_options(text, options) {
        let (event, span) = event.map_err(|error| YamlError::at(error.marker(), error.info()))?;
        reader.read(event, &span.start)?;
    }
    let Reader { documents, mut warnings, .. } = reader;
    if documents.len() > 1 {
        warnings.push(format!("the file contains {} documents; the first one is used", documents.len()));
    }
    Ok(YamlFile { document: documents.into_iter().next().unwrap_or(Node::Null), warnings })
}

/// Builds the documents from the events of the parser.
#[derive(Default)]
struct Reader {
    /// Documents that are not empty.
    documents: Vec<Node>,
    /// Collections whose end was not read yet, the innermost last.
    open: Vec<Open>,
    /// Complete values with an anchor, by the number of the anchor.
    anchors: HashMap<usize, Node>,
    copies: usize,
    warnings: Vec<String>,
}

/// A collection whose end was not read yet.
struct Open {
    content: Content,
    anchor: usize,
}

enum Content {
    List(Vec<Node>),
    Map {
        members: Vec<(String, Node)>,
        /// Members of mappings under the key `<<`.
        merged: Vec<(String, Node)>,
        /// Key whose value was not read yet, and its line.
        key: Option<(String, usize)>,
    },
}

impl Reader {
    fn read(&mut self, event: Event<'_>, position: &Marker) -> Result<(), YamlError> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                self.add(scalar(text.into_owned(), style, tag.as_deref()), anchor, position);
            }
            Event::SequenceStart(_, anchor, _) => {
                self.open.push(Open { content: Content::List(Vec::new()), anchor });
            }
            Event::MappingStart(_, anchor, _) => {
                let content = Content::Map { members: Vec::new(), merged: Vec::new(), key: None };
                self.open.push(Open { content, anchor });
            }
            Event::SequenceEnd | Event::MappingEnd => {
                if let Some(Open { content, anchor }) = self.open.pop() {
                    self.add(content.complete(), anchor, position);
                }
            }
            Event::Alias(anchor) => {
                let Some(node) = self.anchors.get(&anchor).cloned() else {
                    return Err(YamlError::at(
                        position,
                        "an alias is inside the value that it copies".to_owned(),
                    ));
                };
                self.copies += count(&node);
                if self.copies > MAX_COPIES {
                    return Err(YamlError::at(
                        position,
                        format!("aliases copy more than {MAX_COPIES} values"),
                    ));
                }
                self.add(node, 0, position);
            }
            _ => {}
        }
        Ok(())
    }

    /// Adds a complete value to the innermost open collection.
    fn add(&mut self, node: Node, anchor: usize, position: &Marker) {
        if anchor != 0 {
            self.anchors.insert(anchor, node.clone());
        }
        match self.open.last_mut().map(|open| &mut open.content) {
            None if node == Node::Null => {}
            None => self.documents.push(node),
            Some(Content::List(items)) => items.push(node),
            Some(Content::Map { members, merged, key }) => match key.take() {
                None => *key = Some((node.to_string(), position.line())),
                Some((key, line)) => match merged_members(&key, node) {
                    Ok(more) => merged.extend(more),
                    Err(node) => match members.iter_mut().find(|(known, _)| *known == key) {
                        Some(known) => {
                            self.warnings.push(format!("line {line}: duplicate key; the last value is used"));
                            known.1 = node;
                        }
                        None => members.push((key, node)),
                    },
                },
            },
        }
    }
}

impl Content {
    /// Returns the complete collection. Own members of a mapping take precedence over merged ones; of merged members with
    /// the same key, the first is used.
    fn complete(self) -> Node {
        match self {
            Self::List(items) => Node::List(items),
            Self::Map { mut members, merged, .. } => {
                for (key, node) in merged {
                    if !members.iter().any(|(known, _)| *known == key) {
                        members.push((key, node));
                    }
                }
                Node::Map(members)
            }
        }
    }
}

/// Returns the members that `<<: *mapping` or `<<: [*mapping, *mapping]` adds. Any other value is returned as the error.
fn merged_members(key: &str, value: Node) -> Result<Vec<(String, Node)>, Node> {
    match value {
        Node::Map(members) if key == "<<" => Ok(members),
        Node::List(items) if key == "<<" && items.iter().all(|item| matches!(item, Node::Map(_))) => {
            Ok(items.into_iter().flat_map(|item| merged_members(key, item).unwrap_or_default()).collect())
        }
        value => Err(value),
    }
}

/// Converts a scalar. Numbers stay as they are written. Only `true` and `false` are booleans; `y`, `no` or `on` is text.
fn scalar(text: String, style: ScalarStyle, tag: Option<&Tag>) -> Node {
    let is_plain = style == ScalarStyle::Plain;
    match tag.and_then(Tag::core_suffix) {
        Some("null") => Node::Null,
        Some("bool" | "int" | "float") => Node::Other(text),
        None if is_plain && matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL") => Node::Null,
        None if is_plain && is_number_or_boolean(&text) => Node::Other(text),
        _ => Node::Text(text),
    }
}

fn is_number_or_boolean(text: &str) -> bool {
    // Without a digit, Rust's numbers are words: `inf`, `nan`.
    let is_number = text.bytes().any(|byte| byte.is_ascii_digit()) && text.parse::<f64>().is_ok();
    is_number || text.eq_ignore_ascii_case("true") || text.eq_ignore_ascii_case("false")
}

/// Returns the number of values in a tree.
fn count(node: &Node) -> usize {
    match node {
        Node::Null | Node::Text(_) | Node::Other(_) => 1,
        Node::List(items) => 1 + items.iter().map(count).sum::<usize>(),
        Node::Map(members) => 1 + members.iter().map(|(_, value)| count(value)).sum::<usize>(),
    }
}
