//! `black`, with and without `--check`.

use super::report::{QaFailure, QaRun, count_of};
use super::section::Section;

pub(super) fn read(text: &str) -> Option<QaRun> {
    let mut run = QaRun::of("black");
    let mut seen = false;
    for line in text.lines() {
        if let Some(file) = line.strip_prefix("would reformat ") {
            run.add_failure(QaFailure::at("format", file, None, line));
        } else if let Some(problem) = line.strip_prefix("error: cannot format ") {
            let file = problem.split(": ").next().unwrap_or(problem);
            run.add_failure(QaFailure::at("error", file, None, problem));
        } else if line.starts_with("Oh no! ") {
            seen = true;
            run.errors += 1;
        } else if line.starts_with("All done! ") {
            seen = true;
        }
    }
    run.errors = run.errors.max(run.failures.len() as u64);
    (seen || run.errors > 0).then_some(run)
}

/// Matches `All done! ✨ 🍰 ✨` and `2 files would be left unchanged.`
pub(super) fn clean(lines: &[&str]) -> Option<Section> {
    let reformatted = lines.iter().take_while(|line| line.starts_with("reformatted ")).count();
    let [title, total, ..] = lines.get(reformatted..)? else { return None };
    let fits = title.starts_with("All done! ") && count_of(total, "file").is_some() && total.ends_with('.');
    Section::new("black", reformatted + 2).filter(|_| fits && !total.contains("would be reformatted"))
}
