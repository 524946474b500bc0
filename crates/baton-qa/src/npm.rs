//! Lines that npm, pnpm and yarn print before the output of a script.

use baton_core::starts_with_any;

/// Lines before the output of a script.
pub(super) struct Header<'a> {
    pub(super) lines: usize,
    /// Command that the script runs; its output must follow.
    pub(super) command: Option<&'a str>,
}

/// Matches `> name@1.0.0 script` and the command below it, `$ command`, and npm's warnings.
pub(super) fn header<'a>(lines: &[&'a str]) -> Option<Header<'a>> {
    let first = lines.first()?;
    if starts_with_any(first, "npm warn |npm WARN |npm notice|yarn run v") || is_yarn_end(first) {
        return Some(Header { lines: 1, command: None });
    }
    if let Some(command) = first.strip_prefix("$ ") {
        return Some(Header { lines: 1, command: Some(command) });
    }
    let title = first.strip_prefix("> ")?;
    let command = lines.get(1)?.strip_prefix("> ")?;
    (title.contains('@') || title.split_whitespace().count() == 1)
        .then_some(Header { lines: 2, command: Some(command) })
}

/// `Done in 1.23s.`, which yarn prints only after a success.
fn is_yarn_end(line: &str) -> bool {
    line.strip_prefix("Done in ")
        .and_then(|rest| rest.strip_suffix("s."))
        .is_some_and(|seconds| seconds.parse::<f64>().is_ok())
}
