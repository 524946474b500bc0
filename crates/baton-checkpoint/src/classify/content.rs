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
    /// A duration.
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

/// Reliability of a heuristic compared with rules for keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trust {
    /// An unambiguous format of many lines or bytes.
    Bulk,
    /// A single value that may be important inside a critical value.
    Scalar,
    /// An interpretation of prose.
    Prose,
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

    pub(super) const fn trust(self) -> Trust {
        match self {
            Self::StackTrace | Self::Log | Self::Diff | Self::ToolOutput | Self::Listing | Self::Base64 => {
                Trust::Bulk
            }
            Self::Timestamp | Self::Duration | Self::Identifier | Self::Address | Self::Url => Trust::Scalar,
            Self::Heading
            | Self::Decision
            | Self::Constraint
            | Self::Steps
            | Self::Example
            | Self::Reasoning => Trust::Prose,
        }
    }

    /// Applies the heuristic to a sample.
    pub(super) fn find_in(self, sample: &Sample<'_>) -> Option<Evidence> {
        match self.trust() {
            // The items of an array were selected deliberately, so an array of paths is not a directory listing.
            Trust::Bulk if self == Self::Listing && sample.value.kind() == JsonKind::Array => None,
            Trust::Bulk => {
                sample.text().filter(|text| self.has_bulk_shape(text)).map(|_| self.evidence(None))
            }
            Trust::Scalar => self.has_scalar_shape(sample).then(|| self.evidence(None)),
            Trust::Prose => self.read_prose(sample),
        }
    }

    fn has_bulk_shape(self, text: &str) -> bool {
        match self {
            Self::StackTrace => shapes::is_stack_trace(text),
            Self::Log => shapes::is_log(text),
            Self::Diff => shapes::is_diff(text),
            Self::ToolOutput => shapes::is_tool_output(text),
            Self::Listing => shapes::is_listing(text),
            Self::Base64 => shapes::is_base64(text),
            _ => false,
        }
    }

    fn has_scalar_shape(self, sample: &Sample<'_>) -> bool {
        let is_shaped = match (self, sample.value.kind()) {
            (Self::Timestamp, JsonKind::Number) => return shapes::is_epoch(sample.value.as_str()),
            (_, kind) if kind != JsonKind::String => return false,
            (Self::Timestamp, _) => shapes::is_timestamp,
            (Self::Duration, _) => shapes::is_duration,
            (Self::Identifier, _) => shapes::is_identifier,
            (Self::Address, _) => shapes::is_address,
            (Self::Url, _) => shapes::is_url,
            _ => return false,
        };
        sample.text().is_some_and(is_shaped)
    }

    fn read_prose(self, sample: &Sample<'_>) -> Option<Evidence> {
        let cue = match self {
            Self::Heading => return heading_evidence(sample.text()?),
            Self::Steps => return has_steps(sample.text()?).then(|| self.evidence(None)),
            Self::Decision => Cue::Decision,
            Self::Constraint => Cue::Constraint,
            Self::Example => Cue::Example,
            _ => Cue::Reasoning,
        };
        sample.prose()?.phrase(cue).map(|phrase| self.evidence(Some(phrase)))
    }

    fn evidence(self, phrase: Option<&str>) -> Evidence {
        let (layer, what) = match self {
            Self::StackTrace => (Layer::Ephemeral, "the value is a stack trace or dump"),
            Self::Log => (Layer::Ephemeral, "most lines of the value begin with a time or a log level"),
            Self::Diff => (Layer::Ephemeral, "the value is a patch"),
            Self::ToolOutput => (Layer::Ephemeral, "the value is the output of a tool"),
            Self::Listing => (Layer::Ephemeral, "the value is a list of files"),
            Self::Base64 => (Layer::Ephemeral, "the value is encoded bytes"),
            Self::Timestamp => (Layer::Ephemeral, "the value is a time"),
            Self::Duration => (Layer::Ephemeral, "the value is a duration"),
            Self::Identifier => (Layer::Ephemeral, "the value is an identifier"),
            Self::Address => (Layer::Ephemeral, "the value is a network address"),
            Self::Url => (Layer::Useful, "the value is a link"),
            Self::Heading => (Layer::Useful, "the value begins with a heading"),
            Self::Decision => (Layer::Critical, "the text states a decision"),
            Self::Constraint => (Layer::Critical, "the text states a constraint"),
            Self::Steps => (Layer::Important, "the value is a list of steps"),
            Self::Example => (Layer::Useful, "the text shows examples"),
            Self::Reasoning => (Layer::Important, "the text gives a reason"),
        };
        let why = phrase.map_or_else(|| what.to_owned(), |phrase| format!("{what} (`{phrase}`)"));
        Evidence { layer, why }
    }
}

/// Classifies a text by its heading, with the rules for keys.
fn heading_evidence(text: &str) -> Option<Evidence> {
    let sign = read_key(heading(text)?).filter(|sign| sign.strength == Strength::About)?;
    let (_, what) = sign.topic.rule();
    Some(Evidence {
        layer: sign.topic.layer(),
        why: format!("the value begins with a heading about {what} (`{}`)", sign.words),
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
