//! Creates the frozen part of a task context from the task file and its sources.

use baton_core::{ErrorCode, Fault, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::citation::Citation;
use super::context::{Immutable, TaskSnapshot, ValidationBaseline};
use super::normalize::{Layout, normalize_multiline};
use super::role_state::QaResults;
use super::task_file::TaskFile;

/// Size of text above which a warning is given or the text is truncated.
pub(super) const LARGE_TEXT_BYTES: usize = 2_048;

/// Sources of QA commands, in order of precedence.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QaDefaults {
    /// Commands of the area of the task.
    pub area: Vec<String>,
    /// Commands of the repository.
    pub repository: Vec<String>,
}

/// Chooses the QA commands: those of the task, else of its area, else of the repository.
pub fn qa_commands(task: &TaskFile, defaults: &QaDefaults) -> (Vec<String>, &'static str) {
    let own = task.qa_commands.iter().filter(|command| !command.trim().is_empty());
    let own: Vec<String> = own.map(|command| command.trim().to_owned()).collect();
    if !own.is_empty() {
        (own, "task")
    } else if !defaults.area.is_empty() {
        (defaults.area.clone(), "area")
    } else if !defaults.repository.is_empty() {
        (defaults.repository.clone(), "repository")
    } else {
        (Vec::new(), "none")
    }
}

/// Treatment of text above the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LargeText {
    /// Keep the text and warn.
    Keep,
    /// Truncate the text and refer to its source.
    Truncate,
}

/// Input of the frozen part.
#[derive(Debug)]
pub struct Capture<'a> {
    pub task: &'a TaskFile,
    /// Text of the task file, for line numbers.
    pub task_text: &'a str,
    /// Path of the task file.
    pub task_path: &'a str,
    /// Standards that apply to the task and exist.
    pub citations: Vec<Citation>,
    /// True if the task or the configuration cites standards, even if none of them exists.
    pub cites_standards: bool,
    /// QA commands of area and repository.
    pub qa: &'a QaDefaults,
    /// Paths in scope.
    pub repo_paths: Vec<String>,
    /// Patterns that define the scope.
    pub scope_patterns: Vec<String>,
    /// Treatment of text above the limit.
    pub large_text: LargeText,
}

/// One captured field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryLine {
    /// Name of the field.
    pub field: String,
    /// Source of the value.
    pub source: String,
    /// Amount, for example `3 items` or `412 bytes`.
    pub amount: String,
}

/// The frozen part with warnings and a summary.
#[derive(Debug)]
pub struct Captured {
    /// Frozen part.
    pub immutable: Immutable,
    /// Warnings about large, truncated or missing text.
    pub warnings: Vec<String>,
    /// Captured fields and their sources.
    pub summary: Vec<SummaryLine>,
}

/// Creates the frozen part.
///
/// # Errors
///
/// `invalid_request` if the description is empty.
pub fn capture(from: Capture<'_>) -> Result<Captured, Fault> {
    let mut warnings = Vec::new();
    let mut bounded = |field: &str, text: String| bound(&from, from.large_text, field, text, &mut warnings);
    let task = from.task;
    let item = |text: &str| normalize_multiline(text, Layout::Preserved);
    let description = bounded("description", normalize_multiline(&task.description, Layout::Wrapped));
    let scope_in = task.scope_in.iter().map(|text| bounded("scope_in", item(text))).collect();
    let scope_out = task.scope_out.iter().map(|text| bounded("scope_out", item(text))).collect();
    let criteria = &task.acceptance_criteria;
    let acceptance_criteria =
        criteria.iter().map(|text| bounded("acceptance_criteria", item(text))).collect();
    let title = bounded("title", task.title.trim().to_owned());
    let (commands, commands_from) = qa_commands(task, from.qa);
    // Part of a command would be another command.
    let keep = |command| bound(&from, LargeText::Keep, "qa", command, &mut warnings);
    let commands: Vec<String> = commands.into_iter().map(keep).collect();
    if commands.is_empty() {
        warnings.push("no QA commands: neither the task, its area nor the repository defines any".into());
    }
    if !from.cites_standards {
        warnings.push(format!(
            "{}: no standards are cited; add `standards: [file.md#section]`, or [[task.citations]] to .baton.toml",
            from.task_path
        ));
    }
    if criteria.is_empty() {
        warnings.push(format!("{}: no acceptance criteria", from.task_path));
    }
    let immutable = Immutable {
        task_snapshot: TaskSnapshot {
            title,
            priority: task.priority,
            area: task.area.clone(),
            description,
            scope_in,
            scope_out,
            acceptance_criteria,
        },
        standards_citations: from.citations,
        validation_baseline: ValidationBaseline {
            commands,
            commands_from: commands_from.into(),
            initial_results: QaResults::default(),
        },
        repo_paths: from.repo_paths,
        scope_patterns: from.scope_patterns,
    };
    require_complete(&immutable, from.task_path)?;
    let summary = summarize(&immutable, from.task_path);
    Ok(Captured { immutable, warnings, summary })
}

fn require_complete(immutable: &Immutable, task_path: &str) -> Result<(), Fault> {
    if !immutable.task_snapshot.description.trim().is_empty() {
        return Ok(());
    }
    let missing = "task_snapshot.description";
    Err(Fault::new(ErrorCode::InvalidRequest, format!("{task_path}: nothing to capture for {missing}"))
        .hint("describe the task in its file")
        .details(serde_json::json!({ "missing": [missing] })))
}

fn bound(
    from: &Capture<'_>,
    large_text: LargeText,
    field: &str,
    text: String,
    warnings: &mut Vec<String>,
) -> String {
    if text.len() <= LARGE_TEXT_BYTES {
        return text;
    }
    let line = line_of(from.task_text, field);
    let location = format!("{}#L{line}", from.task_path);
    let size = text.len();
    match large_text {
        LargeText::Keep => {
            warnings.push(format!("{field} has {size} bytes, more than {LARGE_TEXT_BYTES}; see {location}"));
            text
        }
        LargeText::Truncate => {
            warnings.push(format!(
                "{field} had {size} bytes and was truncated to {LARGE_TEXT_BYTES}; see {location}"
            ));
            let pointer = format!("… see {location}\n");
            let end = text.floor_char_boundary(LARGE_TEXT_BYTES.saturating_sub(pointer.len()));
            format!("{}{pointer}", text.get(..end).unwrap_or_default().trim_end())
        }
    }
}

/// Returns the first line of a field of the task file, from 1. `scope_in` may also be written as `in` within `scope`.
pub fn line_of(text: &str, field: &str) -> usize {
    let line = |field: &str| {
        let begins =
            |line: &str| line.strip_prefix(field).is_some_and(|rest| rest.trim_start().starts_with(':'));
        text.lines().position(begins)
    };
    let whole = field.split_once('_').map_or(field, |(whole, _)| whole);
    line(field).or_else(|| line(whole)).map_or(1, |at| at + 1)
}

fn summarize(immutable: &Immutable, task_path: &str) -> Vec<SummaryLine> {
    let items = |count: usize| counted(count as u64, "item");
    let line = |field: &str, source: &str, amount: String| SummaryLine {
        field: field.into(),
        source: source.into(),
        amount,
    };
    let task = &immutable.task_snapshot;
    let baseline = &immutable.validation_baseline;
    let mut files: Vec<&str> = immutable.standards_citations.iter().map(|c| c.file.as_str()).collect();
    files.dedup();
    vec![
        line("task_snapshot.title", task_path, counted(task.title.len() as u64, "byte")),
        line("task_snapshot.description", task_path, counted(task.description.len() as u64, "byte")),
        line("task_snapshot.scope_in", task_path, items(task.scope_in.len())),
        line("task_snapshot.scope_out", task_path, items(task.scope_out.len())),
        line("task_snapshot.acceptance_criteria", task_path, items(task.acceptance_criteria.len())),
        line("standards_citations", &files.join(", "), items(immutable.standards_citations.len())),
        line("validation_baseline.commands", &baseline.commands_from, items(baseline.commands.len())),
        line("repo_paths", task_path, items(immutable.repo_paths.len())),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn task(change: serde_json::Value) -> TaskFile {
        let mut value = json!({ "title": " T ", "status": "in_progress", "priority": "P0", "area": "backend",
            "description": "a\n# no\nb\n", "scope_in": ["src/a.rs"], "acceptance_criteria": ["- x\r\n- y"],
            "qa_commands": [" cargo test ", ""] });
        baton_core::merge_patch(value.as_object_mut().unwrap(), change.as_object().unwrap());
        serde_json::from_value(value).unwrap()
    }

    fn run(task: &TaskFile, citations: Vec<Citation>, large_text: LargeText) -> Result<Captured, Fault> {
        run_at("tasks/TASK-1.task.yaml", task, citations, large_text)
    }

    fn run_at(
        task_path: &str,
        task: &TaskFile,
        citations: Vec<Citation>,
        large_text: LargeText,
    ) -> Result<Captured, Fault> {
        capture(Capture {
            task,
            task_text: "title: T\ndescription: |\n  a\n",
            task_path,
            cites_standards: !citations.is_empty(),
            citations,
            qa: &QaDefaults { area: vec!["area".into()], repository: vec!["repo".into()] },
            repo_paths: vec!["src/a.rs".into()],
            scope_patterns: vec!["src/a.rs".into()],
            large_text,
        })
    }

    fn citation() -> Vec<Citation> {
        crate::rules::context::tests::sample().immutable.standards_citations
    }

    #[test]
    fn text_is_normalized_and_the_summary_lists_sources() {
        let captured = run(&task(json!({})), citation(), LargeText::Keep).unwrap();
        let snapshot = &captured.immutable.task_snapshot;
        assert_eq!((snapshot.title.as_str(), snapshot.description.as_str()), ("T", "a b\n"));
        assert_eq!(snapshot.acceptance_criteria, ["- x\n- y\n"]);
        assert_eq!(captured.immutable.validation_baseline.commands, ["cargo test"]);
        assert_eq!(captured.summary.len(), 8);
        assert_eq!(captured.warnings, Vec::<String>::new());
    }

    #[test]
    fn commands_come_from_the_task_then_its_area_then_the_repository() {
        let defaults = QaDefaults { area: vec!["area".into()], repository: vec!["repo".into()] };
        assert_eq!(qa_commands(&task(json!({})), &defaults), (vec!["cargo test".into()], "task"));
        let bare = task(json!({ "qa_commands": null }));
        assert_eq!(qa_commands(&bare, &defaults), (vec!["area".into()], "area"));
        let repository = QaDefaults { area: Vec::new(), ..defaults };
        assert_eq!(qa_commands(&bare, &repository), (vec!["repo".into()], "repository"));
        assert_eq!(qa_commands(&bare, &QaDefaults::default()), (Vec::new(), "none"));
    }

    #[test]
    fn field_is_found_in_every_notation() {
        let line = |text: &str| line_of(text, "scope_in");
        assert_eq!(line("title: T\nscope:\n  in: [a]\n"), 2);
        assert_eq!(line("title: T\nscope_out: [b]\nscope_in: [a]\n"), 3);
        assert_eq!(
            (line("title: T\n"), line_of("a: 1\nacceptance_criteria:\n", "acceptance_criteria")),
            (1, 2)
        );
    }

    #[test]
    fn missing_citations_warn_and_a_missing_description_is_rejected() {
        let captured = run(&task(json!({})), Vec::new(), LargeText::Keep).unwrap();
        assert!(captured.warnings.iter().any(|text| text.contains("no standards are cited")));
        let only_comments = task(json!({ "description": "# nothing\n" }));
        let fault = run(&only_comments, Vec::new(), LargeText::Keep).unwrap_err();
        assert!(fault.message.contains("task_snapshot.description"), "{}", fault.message);
    }

    #[test]
    fn large_text_warns_or_is_truncated_with_a_reference() {
        let large = task(json!({ "description": "ä ".repeat(2_000) }));
        let kept = run(&large, citation(), LargeText::Keep).unwrap();
        assert!(kept.warnings[0].contains("tasks/TASK-1.task.yaml#L2"), "{:?}", kept.warnings);
        assert!(kept.immutable.task_snapshot.description.len() > LARGE_TEXT_BYTES);
        let cut = run(&large, citation(), LargeText::Truncate).unwrap().immutable.task_snapshot.description;
        assert!(cut.len() <= LARGE_TEXT_BYTES && cut.ends_with("… see tasks/TASK-1.task.yaml#L2\n"), "{cut}");
    }

    #[test]
    fn commands_are_never_truncated() {
        let command = format!("cargo test {}", "x ".repeat(LARGE_TEXT_BYTES)).trim_end().to_owned();
        let long = task(json!({ "qa_commands": [command] }));
        let captured = run(&long, citation(), LargeText::Truncate).unwrap();
        assert_eq!(captured.immutable.validation_baseline.commands, [command]);
        assert!(captured.warnings[0].starts_with("qa has 4106 bytes"), "{:?}", captured.warnings);
    }

    #[test]
    fn large_text_is_truncated_to_the_reference_if_the_path_of_the_task_is_long() {
        let large = task(json!({ "description": "ä ".repeat(2_000) }));
        for length in [LARGE_TEXT_BYTES - 20, LARGE_TEXT_BYTES - 10, LARGE_TEXT_BYTES, 4_000] {
            let path = "t".repeat(length);
            let captured = run_at(&path, &large, citation(), LargeText::Truncate).unwrap();
            let description = captured.immutable.task_snapshot.description;
            assert!(description.ends_with(&format!("… see {path}#L2\n")), "{description}");
        }
    }
}
