//! Statements of observations compared with the raw tool result. Shares no code with the compressor.
//!
//! Every rule looks for one kind of claim in title and summary and derives the truth from the hook event alone.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use baton_core::observation::{CompressedObservation, FunctionAction};
use baton_observation::ToolUse;
use regex::Regex;
use serde_json::Value;

/// Kinds of statements that are checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// `files_touched` against the edits of the tool.
    ChangedFiles,
    /// Added and removed functions against the text that an edit adds and removes.
    Functions,
    /// "Commit …" against exit status and the line that git prints.
    Commit,
    /// Counts of tests, packages and issues against the counts in the raw output.
    Counts,
    /// "succeeded", "ok", "passed", "clean" against exit status and failures in the raw output.
    Success,
    /// "The user approved", "User chose" against the user's answer.
    Decision,
    /// "N lines", "N files", "N hits" of reads and searches against what the tool reported and printed.
    Extent,
}

impl Claim {
    /// All kinds, in the order of the table.
    pub(crate) const ALL: &[Self] = &[
        Self::ChangedFiles,
        Self::Functions,
        Self::Commit,
        Self::Counts,
        Self::Success,
        Self::Decision,
        Self::Extent,
    ];

    /// Name of the kind in the table.
    pub(crate) fn label(self) -> &'static str {
        match self {
            Self::ChangedFiles => "changed files against edits",
            Self::Functions => "added and removed functions against the edited text",
            Self::Commit => "commits against exit status and hash",
            Self::Counts => "counts of tests, packages and issues against the output",
            Self::Success => "success against exit status and failures in the output",
            Self::Decision => "decisions against the user's answer",
            Self::Extent => "numbers of lines, files and hits against the tool's own",
        }
    }
}

/// A checked statement.
pub(crate) struct Statement {
    /// Kind of statement.
    pub(crate) claim: Claim,
    /// Why the statement is false; `None` if it is true.
    pub(crate) fault: Option<String>,
}

/// Checks the statements of one observation.
pub(crate) fn check(tool_use: &ToolUse, observation: &CompressedObservation) -> Vec<Statement> {
    let raw = Raw::of(tool_use);
    let mut statements = Vec::new();
    changed_files(tool_use, &raw, observation, &mut statements);
    functions(tool_use, observation, &mut statements);
    commits(tool_use, &raw, observation, &mut statements);
    counts(&raw, observation, &mut statements);
    success(&raw, observation, &mut statements);
    decisions(tool_use, &raw, observation, &mut statements);
    extents(tool_use, observation, &mut statements);
    statements
}

/// What the hook event says about the result.
struct Raw {
    text: String,
    is_declined: bool,
    has_failed: bool,
    /// Whether the exit status is known at all: Codex sends plain strings that may not have one.
    is_known: bool,
    /// Whether the command only prints existing text, so its output says nothing about the success of the command.
    is_look: bool,
}

impl Raw {
    fn of(tool_use: &ToolUse) -> Self {
        let response = &tool_use.tool_response;
        let mut text = String::new();
        collect(response, &mut text);
        let is_error = ["is_error", "isError"]
            .iter()
            .any(|name| response.get(name).and_then(Value::as_bool) == Some(true));
        let is_interrupted = response.get("interrupted").and_then(Value::as_bool) == Some(true);
        let status = find(
            r"(?m)^(?:Exit code:? |Process exited with code |Command failed with exit code )(\d+)",
            &text,
        );
        let status = status.first().and_then(|found| found.parse::<u64>().ok());
        let command = command(tool_use);
        let is_look = is_match(
            r"(?:^|[;&]\s*)(?:cat|head|tail|less|grep|rg|sed -n|git (?:-C \S+ )?(?:diff|show|log|blame)|gh |curl )",
            &command,
        ) && !is_match(r"\b(?:go|cargo|npm|npx|mise|make|pytest|mvn|gradle)\b", &command);
        Self {
            is_declined: is_error && text.contains("doesn't want to proceed with this tool use"),
            has_failed: is_error || is_interrupted || status.is_some_and(|status| status != 0),
            is_known: !response.is_string() || status.is_some(),
            is_look,
            text,
        }
    }
}

fn changed_files(
    tool_use: &ToolUse,
    raw: &Raw,
    observation: &CompressedObservation,
    statements: &mut Vec<Statement>,
) {
    let cwd = tool_use.cwd.as_deref().unwrap_or_default().trim_end_matches('/');
    let input = |name: &str| tool_use.tool_input.get(name).and_then(Value::as_str);
    let path = ["file_path", "notebook_path", "path"].iter().find_map(|name| input(name));
    let is_edit = matches!(tool_use.tool_name.as_str(), "Edit" | "Write" | "MultiEdit" | "NotebookEdit");
    let command = command(tool_use);
    for file in &observation.files_touched {
        let fault = if raw.has_failed || raw.is_declined {
            Some("the tool use failed or was declined".to_owned())
        } else if is_edit {
            let is_path = path.is_some_and(|path| path == file || path == format!("{cwd}/{file}"));
            (!is_path).then(|| format!("{file} is not the edited file"))
        } else if command.is_empty() {
            Some(format!("{} does not change files", tool_use.tool_name))
        } else {
            let changes = is_match(
                r">|\b(?:rm|mv|cp|touch|tee|patch|apply_patch)\b|\b(?:sed|perl)\b.* -[a-zA-Z]*i|git (?:-C \S+ )?(?:rm|mv|checkout|restore)",
                &command,
            );
            (!changes || !command.contains(file.as_str()))
                .then(|| format!("the command does not change {file}"))
        };
        statements.push(Statement { claim: Claim::ChangedFiles, fault });
    }
    if is_edit && !raw.has_failed && observation.files_touched.is_empty() {
        let fault = Some("the edited file is missing".to_owned());
        statements.push(Statement { claim: Claim::ChangedFiles, fault });
    }
    let says_changed = observation.summary.starts_with("Change to ")
        || observation.summary.starts_with("Changed ")
        || observation.title.starts_with("Create ") && is_edit;
    if is_edit && says_changed && raw.has_failed {
        let fault = Some("nothing was changed: the tool use failed".to_owned());
        statements.push(Statement { claim: Claim::ChangedFiles, fault });
    }
}

fn functions(tool_use: &ToolUse, observation: &CompressedObservation, statements: &mut Vec<Statement>) {
    let Some(hunks) = tool_use.tool_response.get("structuredPatch").and_then(Value::as_array) else { return };
    let lines = hunks.iter().filter_map(|hunk| hunk.get("lines").and_then(Value::as_array)).flatten();
    let lines: Vec<&str> = lines.filter_map(Value::as_str).collect();
    if lines.is_empty() {
        return;
    }
    let text = |mark: char| -> String {
        lines.iter().filter_map(|line| line.strip_prefix(mark)).map(|line| format!("{line}\n")).collect()
    };
    let (old, new) = (text('-'), text('+'));
    for change in &observation.functions_changed {
        let name = change.name.rsplit(['.', ':']).next().unwrap_or(&change.name);
        let is_there = match change.action {
            FunctionAction::New => new.contains(name),
            FunctionAction::Deleted => old.contains(name),
            FunctionAction::Modified => continue,
        };
        let fault = (!is_there).then(|| format!("{:?} {name} is not in the edited text", change.action));
        statements.push(Statement { claim: Claim::Functions, fault });
    }
}

fn commits(
    tool_use: &ToolUse,
    raw: &Raw,
    observation: &CompressedObservation,
    statements: &mut Vec<Statement>,
) {
    let command = command(tool_use);
    if !is_match(r"\bgit (?:-[cC] \S+ )*commit\b", &command) {
        return;
    }
    let made = find(r"(?m)^\[[^\]\n]+ ([0-9a-f]{7,40})\] ", &raw.text);
    let said = find(r"\bCommit ([0-9a-f]{7,40}) on ", &observation.summary);
    for hash in &said {
        let fault = (!made.contains(hash)).then(|| format!("there is no commit {hash}"));
        statements.push(Statement { claim: Claim::Commit, fault });
    }
    let title = &observation.title;
    if title.starts_with("Commit ") {
        let admits = ["declined", "failed", "exit ", "interrupted", "nothing", "unknown", "rejected"]
            .iter()
            .any(|word| title.rsplit(": ").next().is_some_and(|outcome| outcome.contains(word)));
        let is_made = !made.is_empty() || !raw.has_failed && is_match(r"commit .*(?:-q|--quiet)", &command);
        let fault = (!is_made && !admits).then(|| "the title states a commit that was not made".to_owned());
        statements.push(Statement { claim: Claim::Commit, fault });
    }
    let is_elsewhere = is_match(r"\bgit init\b|mktemp", &command);
    for hash in made.iter().filter(|_| !raw.has_failed && !is_elsewhere) {
        let fault = (!said.contains(hash)).then(|| format!("commit {hash} is missing"));
        statements.push(Statement { claim: Claim::Commit, fault });
    }
}

/// Counts in title and summary that must be in the raw output: as a number, as a number of lines or as a sum.
fn counts(raw: &Raw, observation: &CompressedObservation, statements: &mut Vec<Statement>) {
    let rules: [(&str, &str, &str); 4] = [
        (
            r"(?:: |, )(?:at least )?(\d+) passed",
            r"(\d+) (?:passed|passing|tests? passed)|# pass (\d+)|OK \((\d+) test",
            r"(?m)^\s*--- PASS|\.\.\. ok$|^ok\s|\bPASSED\b|^\s*[✓✔]",
        ),
        (
            r"(?:: |, )(?:at least )?(\d+)(?: of \d+)? failed",
            r"(\d+) (?:failed|failing|failures?)|failures=(\d+)|# fail (\d+)",
            r"(?m)^\s*--- FAIL|\.\.\. FAILED$|^FAIL[\s:]|\bFAILED\b|^\s*[✗✕×●]",
        ),
        (r": (?:at least )?(\d+) packages? ok", "", r"(?m)^ok\s"),
        (r": (\d+) issues?\b", r"(\d+) issues?", ""),
    ];
    // The command is quoted in the summary and may hold numbers of its own.
    let quoted = pattern(r"`[^`]*`|'[^']*'|\x22[^\x22]*\x22");
    let title = quoted.replace_all(&observation.title, "");
    let summary = quoted.replace_all(&observation.summary, "");
    for (said, number, line) in rules {
        let mut stated = find(said, &title);
        if describes_command(&observation.summary) {
            stated.extend(find(said, &summary));
        }
        if stated.is_empty() {
            continue;
        }
        let numbers: Vec<u64> = if number.is_empty() { Vec::new() } else { find_all(number, &raw.text) }
            .iter()
            .filter_map(|found| found.parse().ok())
            .collect();
        let lines = if line.is_empty() { 0 } else { pattern(line).find_iter(&raw.text).count() as u64 };
        let sum: u64 = numbers.iter().sum();
        for stated in stated {
            let value: u64 = stated.parse().unwrap_or(u64::MAX);
            let is_there = value == sum || numbers.contains(&value) || (value > 0 && value <= lines);
            let fault = (!is_there).then(|| format!("{value} is not in the output ({said})"));
            statements.push(Statement { claim: Claim::Counts, fault });
        }
    }
}

/// Returns true if a summary describes a command, which it quotes at the start or after the purpose.
fn describes_command(summary: &str) -> bool {
    is_match(r"`[^`]*` (?:succeeded|ran|ended|failed|was )", summary)
}

fn success(raw: &Raw, observation: &CompressedObservation, statements: &mut Vec<Statement>) {
    let in_title = is_match(
        r": (?:ok|clean|no issues|done|(?:at least )?\d+ (?:passed|packages? ok))(?:$|,)",
        &observation.title,
    );
    let in_summary = is_match(r"` succeeded\b|^It succeeded\b", &observation.summary);
    if !in_title && !in_summary {
        return;
    }
    let failure = (!raw.is_look)
        .then(|| {
            pattern(
                r"(?m)^(?:\s*--- FAIL: .*|FAIL\s.*|FAILED .*|error(?:\[E\d+\])?: .*|fatal: .*|panic: .*|CONFLICT .*|Traceback \(most.*|make: \*\*\* .*|npm ERR! .*|.* ! \[(?:remote )?rejected\] .*|\S+: command not found)$",
            )
            .find(&raw.text)
        })
        .flatten();
    let fault = if raw.has_failed || raw.is_declined {
        Some("the tool use failed".to_owned())
    } else if !raw.is_known {
        Some("the exit status is unknown".to_owned())
    } else {
        failure.map(|line| format!("the output says \"{}\"", line.as_str().trim()))
    };
    statements.push(Statement { claim: Claim::Success, fault });
}

fn decisions(
    tool_use: &ToolUse,
    raw: &Raw,
    observation: &CompressedObservation,
    statements: &mut Vec<Statement>,
) {
    let text = format!("{}\n{}", observation.title, observation.summary);
    match tool_use.tool_name.as_str() {
        "ExitPlanMode" if is_match(r": approved$|user approved", &text) => {
            let fault = raw.has_failed.then(|| "the plan was not approved".to_owned());
            statements.push(Statement { claim: Claim::Decision, fault });
        }
        "AskUserQuestion" => {
            let answers = tool_use.tool_response.get("answers").and_then(Value::as_object);
            for answer in find(r"(?:User chose|Answer): ([^\n]+?)(?:\. |\.$|$)", &observation.summary) {
                let given =
                    answers.into_iter().flat_map(|answers| answers.values()).filter_map(Value::as_str);
                let start: String = answer.chars().take(40).collect();
                let is_given = given.map(|given| given.split_whitespace().collect::<Vec<_>>().join(" "));
                let is_given = is_given.into_iter().any(|given| given.contains(start.trim_end_matches('…')));
                let is_none = answer.contains("no answer") || answer.contains("not answered");
                let fault = (!is_given && !is_none).then(|| format!("the user did not answer \"{answer}\""));
                statements.push(Statement { claim: Claim::Decision, fault });
            }
        }
        _ => {}
    }
}

fn extents(tool_use: &ToolUse, observation: &CompressedObservation, statements: &mut Vec<Statement>) {
    let response = &tool_use.tool_response;
    let number = |pointer: &str| response.pointer(pointer).and_then(Value::as_u64);
    let stated = match tool_use.tool_name.as_str() {
        "Read" => find(r"^Read all (\d+) lines?", &observation.summary).pop().zip(number("/file/numLines")),
        "Grep" if response.get("mode").and_then(Value::as_str) == Some("files_with_matches") => {
            let found = find(r"found in (?:first )?(\d+) files?|: (\d+) hits?", &observation.summary).pop();
            found.or_else(|| Some("0".to_owned())).zip(number("/numFiles"))
        }
        "Grep" if response.get("mode").and_then(Value::as_str) == Some("content") => {
            let found = find(r": (?:first )?(\d+) hits?(?: in \d+ files?)?$", &observation.title).pop();
            found.or_else(|| Some("0".to_owned())).zip(hit_lines(tool_use))
        }
        "Glob" => find(r": (?:first )?(\d+) entr", &observation.summary).pop().zip(number("/numFiles")),
        _ => None,
    };
    if let Some((stated, actual)) = stated {
        // Some tools count an empty line after the last line end of a file.
        let tolerance = u64::from(tool_use.tool_name == "Read");
        let is_near = stated.parse::<u64>().is_ok_and(|stated| stated.abs_diff(actual) <= tolerance);
        let fault = (!is_near).then(|| format!("{stated} stated, {actual} reported"));
        statements.push(Statement { claim: Claim::Extent, fault });
    }
}

/// Returns the number of lines that a search prints for hits: `path:12:text`, or all lines if no context lines were
/// requested.
fn hit_lines(tool_use: &ToolUse) -> Option<u64> {
    let content = tool_use.tool_response.get("content").and_then(Value::as_str)?;
    let has_context =
        ["-A", "-B", "-C", "context"].iter().any(|name| tool_use.tool_input.get(name).is_some());
    let is_hit = |line: &&str| {
        let is_text = !line.is_empty() && *line != "--" && !is_match(r"^\[Showing|^No matches found", line);
        is_text && (!has_context || is_match(r"^(?:[^\s:]*:)?\d+:", line))
    };
    Some(content.lines().filter(is_hit).count() as u64)
}

fn command(tool_use: &ToolUse) -> String {
    match tool_use.tool_input.get("command").or_else(|| tool_use.tool_input.get("cmd")) {
        Some(Value::String(command)) => command.clone(),
        Some(Value::Array(words)) => words.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" "),
        _ => String::new(),
    }
}

fn collect(value: &Value, text: &mut String) {
    match value {
        Value::String(string) => {
            text.push_str(string);
            text.push('\n');
        }
        Value::Array(elements) => elements.iter().for_each(|element| collect(element, text)),
        Value::Object(members) => members.values().for_each(|member| collect(member, text)),
        _ => {}
    }
}

/// Returns a compiled pattern. Each pattern is compiled once.
fn pattern(pattern: &str) -> Regex {
    use std::collections::HashMap;
    use std::sync::Mutex;
    static PATTERNS: LazyLock<Mutex<HashMap<String, Regex>>> = LazyLock::new(Mutex::default);
    let mut patterns = PATTERNS.lock().expect("no rule panics");
    let known = patterns.entry(pattern.to_owned());
    known.or_insert_with(|| Regex::new(pattern).expect("the pattern is valid")).clone()
}

fn is_match(pattern: &str, text: &str) -> bool {
    self::pattern(pattern).is_match(text)
}

/// Returns the text of the first participating group of each match.
fn find_all(pattern: &str, text: &str) -> Vec<String> {
    self::pattern(pattern)
        .captures_iter(text)
        .filter_map(|groups| groups.iter().skip(1).flatten().next().map(|group| group.as_str().to_owned()))
        .collect()
}

/// Returns the same as [`find_all`], sorted and without duplicates.
fn find(pattern: &str, text: &str) -> Vec<String> {
    find_all(pattern, text).into_iter().collect::<BTreeSet<_>>().into_iter().collect()
}
