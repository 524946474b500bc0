//! Topics of keys and their layers.

use super::layer::Layer;

/// Topic of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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
        match self {
            Self::Goal
            | Self::Decision
            | Self::Constraint
            | Self::Requirement
            | Self::Instruction
            | Self::Answer => Layer::Critical,
            Self::Plan
            | Self::Reasoning
            | Self::Progress
            | Self::Finding
            | Self::OpenPoint
            | Self::Summary
            | Self::Preference
            | Self::Requests
            | Self::Place => Layer::Important,
            Self::Analysis | Self::Example | Self::Note | Self::Reference | Self::History | Self::Setting => {
                Layer::Useful
            }
            Self::Time
            | Self::Duration
            | Self::Identifier
            | Self::Metric
            | Self::Machine
            | Self::Log
            | Self::Debug
            | Self::RawOutput => Layer::Ephemeral,
        }
    }

    /// Returns true if a value with this topic is critical inside a critical value: the deadline of a constraint is a
    /// date, and its limits are numbers of seconds.
    pub(super) const fn is_detail(self) -> bool {
        matches!(
            self,
            Self::Place | Self::Time | Self::Duration | Self::Identifier | Self::Metric | Self::Machine
        )
    }

    /// Returns the id of the rule and its description in an explanation.
    pub(super) const fn rule(self) -> (&'static str, &'static str) {
        match self {
            Self::Goal => ("key:goal", "a goal"),
            Self::Decision => ("key:decision", "a decision"),
            Self::Constraint => ("key:constraint", "a constraint"),
            Self::Requirement => ("key:requirement", "a requirement"),
            Self::Instruction => ("key:instruction", "an instruction"),
            Self::Answer => ("key:answer", "a final answer"),
            Self::Plan => ("key:plan", "a plan"),
            Self::Reasoning => ("key:reasoning", "reasoning"),
            Self::Progress => ("key:progress", "the state of the work"),
            Self::Finding => ("key:finding", "a finding"),
            Self::OpenPoint => ("key:open-point", "an open point"),
            Self::Summary => ("key:summary", "a summary"),
            Self::Preference => ("key:preference", "a preference"),
            Self::Requests => ("key:requests", "the user's requests over time"),
            Self::Place => ("key:place", "where the work happens"),
            Self::Analysis => ("key:analysis", "detailed analysis"),
            Self::Example => ("key:example", "an example"),
            Self::Note => ("key:note", "a note"),
            Self::Reference => ("key:reference", "a reference"),
            Self::History => ("key:history", "history"),
            Self::Setting => ("key:setting", "a setting"),
            Self::Time => ("key:time", "a time"),
            Self::Duration => ("key:duration", "a duration"),
            Self::Identifier => ("key:identifier", "an identifier"),
            Self::Metric => ("key:metric", "a measurement"),
            Self::Machine => ("key:machine", "a machine or process"),
            Self::Log => ("key:log", "a log"),
            Self::Debug => ("key:debug", "debug information"),
            Self::RawOutput => ("key:raw-output", "raw output"),
        }
    }
}
