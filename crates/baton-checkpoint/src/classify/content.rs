//! Built-in rules for values, for keys that do not determine the layer.
//!
//! Owns the list of heuristics, their layers and their reliability. `shapes` detects formats, `cues` detects phrases in
//! prose.

use strum::{EnumString, IntoStaticStr, VariantArray};

use std::borrow::Cow;
use std::cell::OnceCell;

use baton_core::{JsonKind, JsonText};

use super::cues::{Cue, Prose, has_steps, heading};
use super::key_rules::{Strength, read_key};
use super::layer::Layer;
use super::shapes;

/// Maximum number of bytes of an array's strings that are inspected.
const MAX_ARRAY_SAMPLE_BYTES: usize = 4096;

/// Detects a kind of value by its content. Rules files can refer to a heuristic by name. The order of declaration is the
/// order in which they are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Heuristic {
    /// A stack trace or thread dump.
    StackTrace,
    /// Log lines, which start with times or levels.
    Log,
    /// A patch.
    Diff,
    /// Tool output: a shell session, an HTTP exchange, a table, nested JSON.
    ToolOutput,
    /// Base64 data.
    Base64,
    /// A date or time.
    Timestamp,
    Duration,
    /// A UUID, hash or random id.
    Identifier,
    /// A network address.
    Address,
    /// A URL without other text.
    Url,
    /// A list of files.
    Listing,
    /// Text that starts with a heading for a known topic.
    Heading,
    /// Prose that states a decision.
    Decision,
    /// Prose that states a constraint.
    Constraint,
    /// A list of steps, one per line.
    Steps,
    /// Prose with examples.
    Example,
    /// Prose with reasoning.
    Reasoning,
}

/// Result of a heuristic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Evidence {
    pub(super) layer: Layer,
    pub(super) why: String,
}

/// How a heuristic inspects a value, and so how reliable it is compared with rules for keys.
#[derive(Debug, Clone, Copy)]
pub(super) enum Test {
    /// An unambiguous format of many lines or bytes.
    Bulk(fn(&str) -> bool),
    /// A single value that may be important inside a critical value.
    Scalar(fn(&str) -> bool),
    /// A heading for a known topic at the start of prose.
    Heading,
    /// Prose with a list of steps.
    Steps,
    /// Prose with phrases of a kind.
    Phrases(Cue),
}

impl Heuristic {
    /// All heuristics, in the order in which they are tried.
    pub const ALL: &'static [Self] = Self::VARIANTS;

    /// Returns the name used in rules files and, after `content:`, in explanations.
    pub fn name(self) -> &'static str {
        self.into()
    }

    /// Returns the heuristic with a name.
    pub fn from_name(name: &str) -> Option<Self> {
        name.parse().ok()
    }

    /// Returns the test, and the layer and the description of a value that passes it.
    fn rule(self) -> (Test, Layer, &'static str) {
        use Layer::{Critical, Ephemeral, Important, Useful};
        use Test::{Bulk, Phrases, Scalar};
        match self {
            Self::StackTrace => {
                (Bulk(shapes::is_stack_trace), Ephemeral, "the value is a stack trace or dump")
            }
            Self::Log => {
                (Bulk(shapes::is_log), Ephemeral, "most lines of the value begin with a time or a log level")
            }
            Self::Diff => (Bulk(shapes::is_diff), Ephemeral, "the value is a patch"),
            Self::ToolOutput => {
                (Bulk(shapes::is_tool_output), Ephemeral, "the value is the output of a tool")
            }
            Self::Listing => (Bulk(shapes::is_listing), Ephemeral, "the value is a list of files"),
            Self::Base64 => (Bulk(shapes::is_base64), Ephemeral, "the value is encoded bytes"),
            Self::Timestamp => (Scalar(shapes::is_timestamp), Ephemeral, "the value is a time"),
            Self::Duration => (Scalar(shapes::is_duration), Ephemeral, "the value is a duration"),
            Self::Identifier => (Scalar(shapes::is_identifier), Ephemeral, "the value is an identifier"),
            Self::Address => (Scalar(shapes::is_address), Ephemeral, "the value is a network address"),
            Self::Url => (Scalar(shapes::is_url), Useful, "the value is a link"),
            Self::Heading => (Test::Heading, Useful, "the value begins with a heading"),
            Self::Decision => (Phrases(Cue::Decision), Critical, "the text states a decision"),
            Self::Constraint => (Phrases(Cue::Constraint), Critical, "the text states a constraint"),
            Self::Steps => (Test::Steps, Important, "the value is a list of steps"),
            Self::Example => (Phrases(Cue::Example), Useful, "the text shows examples"),
            Self::Reasoning => (Phrases(Cue::Reasoning), Important, "the text gives a reason"),
        }
    }

    pub(super) fn test(self) -> Test {
        self.rule().0
    }

    /// Applies the heuristic to a sample.
    pub(super) fn find_in(self, sample: &Sample<'_>) -> Option<Evidence> {
        let (test, layer, what) = self.rule();
        let kind = sample.value.kind();
        let is_found = match test {
            // The items of an array were selected deliberately, so an array of paths is not a directory listing.
            Test::Bulk(_) if self == Self::Listing && kind == JsonKind::Array => false,
            Test::Scalar(_) if self == Self::Timestamp && kind == JsonKind::Number => {
                shapes::is_epoch(sample.value.as_str())
            }
            Test::Scalar(_) if kind != JsonKind::String => false,
            Test::Bulk(has_shape) | Test::Scalar(has_shape) => sample.text().is_some_and(has_shape),
            Test::Heading => return heading_evidence(sample.text()?),
            Test::Steps => has_steps(sample.text()?),
            Test::Phrases(cue) => {
                let phrase = sample.prose()?.phrase(cue)?;
                return Some(Evidence { layer, why: format!("{what} (`{phrase}`)") });
            }
        };
        is_found.then(|| Evidence { layer, why: what.to_owned() })
    }
}

/// Classifies a text by its heading, with the rules for keys.
fn heading_evidence(text: &str) -> Option<Evidence> {
    let sign = read_key(heading(text)?).filter(|sign| sign.strength == Strength::About)?;
    Some(Evidence {
        layer: sign.topic.layer(),
        why: format!("the value begins with a heading about {} (`{}`)", sign.topic.description(), sign.words),
    })
}

/// A value with its text and prose, which are computed when first needed.
pub(super) struct Sample<'a> {
    value: JsonText<'a>,
    text: OnceCell<Option<Cow<'a, str>>>,
    prose: OnceCell<Option<Prose>>,
}

impl<'a> Sample<'a> {
    pub(super) const fn of(value: JsonText<'a>) -> Self {
        Self { value, text: OnceCell::new(), prose: OnceCell::new() }
    }

    /// Returns the text of a string, or of an array with its strings as lines.
    pub(super) fn text(&self) -> Option<&str> {
        let text = self.text.get_or_init(|| match self.value.kind() {
            JsonKind::String => Some(self.value.decode()),
            JsonKind::Array => {
                Some(join_strings(self.value).into()).filter(|text: &Cow<'_, str>| !text.is_empty())
            }
            JsonKind::Null | JsonKind::Bool | JsonKind::Number | JsonKind::Object => None,
        });
        text.as_deref()
    }

    fn prose(&self) -> Option<&Prose> {
        self.prose.get_or_init(|| self.text().and_then(Prose::of)).as_ref()
    }

    /// Returns the first heuristic that matches the value.
    pub(super) fn recognise(&self) -> Option<(Heuristic, Evidence)> {
        Heuristic::ALL.iter().find_map(|heuristic| Some((*heuristic, heuristic.find_in(self)?)))
    }
}

fn join_strings(array: JsonText<'_>) -> String {
    let mut joined = String::new();
    for item in array.items().filter(|item| item.kind() == JsonKind::String) {
        let text = item.decode();
        if joined.len() + text.len() > MAX_ARRAY_SAMPLE_BYTES {
            break;
        }
        joined.push_str(&text);
        joined.push('\n');
    }
    joined
}

#[cfg(test)]
#[path = "content_tests.rs"]
mod tests;
