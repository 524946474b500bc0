//! Topics of keys and their layers.

use strum::{EnumString, IntoStaticStr};

use super::layer::Layer;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, EnumString, IntoStaticStr)]
#[strum(serialize_all = "kebab-case")]
pub(super) enum Topic {
    Goal,
    Decision,
    Constraint,
    Requirement,
    Instruction,
    Answer,
    Plan,
    Reasoning,
    Progress,
    Finding,
    OpenPoint,
    Summary,
    Preference,
    Requests,
    Place,
    Analysis,
    Example,
    Note,
    Reference,
    History,
    Setting,
    Time,
    Duration,
    Identifier,
    Metric,
    Machine,
    Log,
    Debug,
    RawOutput,
}

impl Topic {
    /// Returns the layer of values with this topic.
    pub(super) const fn layer(self) -> Layer {
        self.entry().0
    }

    /// Returns true if a value with this topic is critical inside a critical value: the deadline of a constraint is a
    /// date, and its limits are numbers of seconds.
    pub(super) const fn is_detail(self) -> bool {
        matches!(
            self,
            Self::Place | Self::Time | Self::Duration | Self::Identifier | Self::Metric | Self::Machine
        )
    }

    /// Returns the id of the rule for keys with this topic.
    pub(super) fn rule(self) -> String {
        format!("key:{}", <&str>::from(self))
    }

    /// Returns the description of a value in an explanation.
    pub(super) const fn description(self) -> &'static str {
        self.entry().1
    }

    const fn entry(self) -> (Layer, &'static str) {
        match self {
            Self::Goal => (Layer::Critical, "a goal"),
            Self::Decision => (Layer::Critical, "a decision"),
            Self::Constraint => (Layer::Critical, "a constraint"),
            Self::Requirement => (Layer::Critical, "a requirement"),
            Self::Instruction => (Layer::Critical, "an instruction"),
            Self::Answer => (Layer::Critical, "a final answer"),
            Self::Plan => (Layer::Important, "a plan"),
            Self::Reasoning => (Layer::Important, "reasoning"),
            Self::Progress => (Layer::Important, "the state of the work"),
            Self::Finding => (Layer::Important, "a finding"),
            Self::OpenPoint => (Layer::Important, "an open point"),
            Self::Summary => (Layer::Important, "a summary"),
            Self::Preference => (Layer::Important, "a preference"),
            Self::Requests => (Layer::Important, "the user's requests over time"),
            Self::Place => (Layer::Important, "where the work happens"),
            Self::Analysis => (Layer::Useful, "detailed analysis"),
            Self::Example => (Layer::Useful, "an example"),
            Self::Note => (Layer::Useful, "a note"),
            Self::Reference => (Layer::Useful, "a reference"),
            Self::History => (Layer::Useful, "history"),
            Self::Setting => (Layer::Useful, "a setting"),
            Self::Time => (Layer::Ephemeral, "a time"),
            Self::Duration => (Layer::Ephemeral, "a duration"),
            Self::Identifier => (Layer::Ephemeral, "an identifier"),
            Self::Metric => (Layer::Ephemeral, "a measurement"),
            Self::Machine => (Layer::Ephemeral, "a machine or process"),
            Self::Log => (Layer::Ephemeral, "a log"),
            Self::Debug => (Layer::Ephemeral, "debug information"),
            Self::RawOutput => (Layer::Ephemeral, "raw output"),
        }
    }
}
