//! The part of a log that one passing run wrote.

use baton_core::contains_any;

/// A complete output of a passing run at the start of some lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Section {
    pub(super) lines: usize,
    /// Word by which a command line names the tool.
    pub(super) tool: &'static str,
}

impl Section {
    pub(super) fn new(tool: &'static str, lines: usize) -> Option<Self> {
        (lines > 0).then_some(Self { lines, tool })
    }
}

/// Words of lines that may report a problem. A line with one of them is never skipped as output of a test.
const PROBLEM_WORDS: &str = "error|fail|panic|not found|exception|traceback|fatal|abort|killed|cannot|denied|no such|\
    segmentation|exit code|exit status|timed out|timeout|unrecogni|usage:|not ok|would reformat|warn|✖|✕";

/// Returns true if a line cannot report a problem, so it may be output of a passing test.
pub(super) fn is_harmless(line: &str) -> bool {
    !contains_any(&line.to_lowercase(), PROBLEM_WORDS)
}
