//! Commands in the summaries of observations.

use super::command::{CommandLine, Step};

/// A command as the summary of an observation quotes it, and how it ended.
pub(super) struct QuotedCommand {
    pub(super) line: CommandLine,
    /// Whether the end of the command is missing.
    pub(super) is_truncated: bool,
    /// Whether the command succeeded; `None` if that is not known.
    pub(super) has_succeeded: Option<bool>,
}

impl QuotedCommand {
    /// Reads a summary such as ``Purpose: `git push` succeeded.`` Returns `None` if the summary quotes no command.
    pub(super) fn read(summary: &str) -> Option<Self> {
        const ENDINGS: [(&str, Option<bool>); 4] = [
            ("` succeeded", Some(true)),
            ("` ended with exit code ", Some(false)),
            ("` failed", Some(false)),
            ("` ran", None),
        ];
        let quoted = summary.strip_prefix('`').or_else(|| summary.split_once(": `").map(|(_, rest)| rest))?;
        let end = |(mark, ended): &(&str, Option<bool>)| Some((quoted.find(mark)?, *ended));
        let (at, has_succeeded) = ENDINGS.iter().filter_map(end).min_by_key(|(at, _)| *at)?;
        let command = quoted.get(..at)?;
        let whole = command.strip_suffix('…');
        let line = CommandLine::read(whole.unwrap_or(command));
        Some(Self { line, is_truncated: whole.is_some(), has_succeeded })
    }

    /// Returns the steps that are quoted completely.
    pub(super) fn whole_steps(&self) -> &[Step] {
        let count = self.line.steps.len().saturating_sub(usize::from(self.is_truncated));
        self.line.steps.get(..count).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_commands_are_read_from_summaries() {
        let read = |summary: &str| {
            let quoted = QuotedCommand::read(summary)?;
            Some((quoted.whole_steps().len(), quoted.has_succeeded))
        };
        assert_eq!(read("Push `it`: `git add . && git push` succeeded."), Some((2, Some(true))));
        assert_eq!(read("`git mv a b && git mv c…` succeeded without output."), Some((1, Some(true))));
        assert_eq!(read("`make` ended with exit code 2. `x` succeeded"), Some((1, Some(false))));
        assert_eq!(read("`make | tail -1` ran."), Some((2, None)));
        assert_eq!(read("Edited `a.rs`."), None);
    }
}
