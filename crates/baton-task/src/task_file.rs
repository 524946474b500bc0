//! Finds and reads task files: `tasks/**/TASK-XXXX*.task.yaml`.

use std::fs;
use std::path::{Path, PathBuf};

use baton_core::task::TaskId;
use baton_core::{ErrorCode, Fault, Sha256Hash};
use serde_json::json;

use crate::named_file::read_in_checkout;
use crate::rules::{TaskFile, read_task_file};
use crate::yaml::{self, YamlError};

/// Folder of task files.
const FOLDER: &str = "tasks";

/// Maximum depth of folders that are searched.
const MAX_DEPTH: usize = 16;

/// A task file that was read.
#[derive(Debug)]
pub(crate) struct ReadTask {
    /// Path relative to the root.
    pub(crate) path: String,
    pub(crate) text: String,
    /// SHA-256 of the file.
    pub(crate) sha256: Sha256Hash,
    /// Parsed content.
    pub(crate) task: TaskFile,
    /// Warnings about fields that are not used.
    pub(crate) warnings: Vec<String>,
}

/// Returns the path of the task file.
pub(crate) fn find(root: &Path, id: &TaskId) -> Result<String, Fault> {
    let mut found = Vec::new();
    walk(root, Path::new(FOLDER), 0, &mut |path, name| {
        if id.names_file(name) {
            found.push(path.to_string_lossy().into_owned());
        }
    });
    found.sort();
    match found.as_slice() {
        [path] => Ok(path.clone()),
        [] => {
            Err(Fault::new(ErrorCode::TaskNotFound, format!("there is no file {FOLDER}/**/{id}*.task.yaml"))
                .hint("write one, or check the id; baton task list shows the tasks with a context"))
        }
        several => Err(Fault::new(
            ErrorCode::TaskConflict,
            format!("{id} has {} task files: {}", several.len(), several.join(", ")),
        )
        .hint("keep one of them")),
    }
}

fn walk(root: &Path, folder: &Path, depth: usize, visit: &mut dyn FnMut(&Path, &str)) {
    for entry in fs::read_dir(root.join(folder)).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let path: PathBuf = folder.join(&name);
        // Links are not followed, because a link to a parent folder would cause an endless search.
        match entry.file_type() {
            Ok(kind) if kind.is_dir() && depth < MAX_DEPTH => walk(root, &path, depth + 1, visit),
            Ok(kind) if kind.is_file() => visit(&path, &name.to_string_lossy()),
            _ => {}
        }
    }
}

/// Finds, reads and validates the task file.
pub(crate) fn read(root: &Path, id: &TaskId) -> Result<ReadTask, Fault> {
    let file = read_in_checkout(root, "task file", &find(root, id)?)?;
    let sha256 = Sha256Hash::of(&file.bytes);
    let path = file.path;
    let text = yaml::decode("task file", &path, file.bytes)?;
    let (task, warnings) = parse(&path, &text, id)?;
    let mut warnings: Vec<String> =
        warnings.into_iter().map(|warning| format!("{path}: {warning}")).collect();
    if let Some(own) = task.id.as_ref().filter(|own| *own != id) {
        warnings.push(format!("{path}: id is {own}; the id in the file name is used"));
    }
    Ok(ReadTask { path, text, sha256, task, warnings })
}

/// Returns the hash of a task file; `None` if it cannot be read.
pub(crate) fn current_sha(root: &Path, path: &str) -> Option<Sha256Hash> {
    read_in_checkout(root, "task file", path).ok().map(|file| Sha256Hash::of(&file.bytes))
}

/// Parses a task file. Fields that cannot be used cause warnings; only a file that is no mapping is an error.
fn parse(path: &str, text: &str, id: &TaskId) -> Result<(TaskFile, Vec<String>), Fault> {
    let file = yaml::read(text).map_err(|YamlError { line, column, problem }| {
        let problem = format!("is not valid YAML: {problem}");
        invalid_task_file(path, &format!("{path}:{line}:{column}: {problem}"))
            .details(json!({ "path": path, "line": line, "column": column, "problem": problem }))
    })?;
    let read = read_task_file(&file.document, id).map_err(|problem| {
        let fields = json!([{ "field": "the file", "problem": problem }]);
        invalid_task_file(path, &format!("{path}: the file {problem}"))
            .details(json!({ "path": path, "fields": fields }))
    });
    read.map(|(task, warnings)| (task, [file.warnings, warnings].concat()))
}

fn invalid_task_file(path: &str, message: &str) -> Fault {
    Fault::new(ErrorCode::InvalidRequest, message).hint(format!("correct {path}, then try again"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str =
        "title: T\nstatus: in_progress\npriority: P1\narea: backend\ndescription: |\n  Do it.\n";

    fn root(files: &[(&str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        root
    }

    fn id() -> TaskId {
        "TASK-7".parse().unwrap()
    }

    #[test]
    fn files_are_found_below_tasks() {
        let root = root(&[
            ("tasks/a/b/TASK-7-x.task.yaml", GOOD),
            ("tasks/TASK-70.task.yaml", GOOD),
            ("TASK-7.task.yaml", GOOD),
        ]);
        let read = read(root.path(), &id()).unwrap();
        assert_eq!((read.path.as_str(), read.task.title.as_str()), ("tasks/a/b/TASK-7-x.task.yaml", "T"));
        assert_eq!(current_sha(root.path(), &read.path), Some(read.sha256));
    }

    #[test]
    fn no_file_and_several_files_are_errors() {
        assert_eq!(find(root(&[]).path(), &id()).unwrap_err().code, ErrorCode::TaskNotFound);
        let two = root(&[("tasks/TASK-7.task.yaml", GOOD), ("tasks/old/TASK-7.task.yaml", GOOD)]);
        assert_eq!(find(two.path(), &id()).unwrap_err().code, ErrorCode::TaskConflict);
    }

    #[test]
    fn errors_of_unreadable_task_files_name_the_position_or_the_field() {
        let cases = [
            ("title: T\npriority: [P1\n", "tasks/TASK-7.task.yaml:"),
            ("- a list\n", "must contain fields like"),
            ("", "tasks/TASK-7.task.yaml"),
        ];
        for (text, expected) in cases {
            let fault = read(root(&[("tasks/TASK-7.task.yaml", text)]).path(), &id()).unwrap_err();
            assert_eq!(fault.code, ErrorCode::InvalidRequest, "{text}");
            assert!(fault.message.contains(expected), "{}", fault.message);
            assert!(!fault.message.contains('\n'), "{}", fault.message);
        }
    }

    #[test]
    fn mappings_keep_the_order_of_the_file_and_words_stay_text() {
        let text = "title: T\nvalidation:\n  setup: [echo setup]\n  checks: [echo checks]\nacceptance_criteria:\n  \
                    must: [y, no]\n  could:\n    - given: a\n      when: b\n      then: c\n";
        let task = read(root(&[("tasks/TASK-7.task.yaml", text)]).path(), &id()).unwrap().task;
        assert_eq!(task.qa_commands, ["echo setup", "echo checks"]);
        assert_eq!(task.acceptance_criteria, ["must: y", "must: no", "could: given: a; when: b; then: c"]);
    }

    #[test]
    fn alias_bombs_are_rejected() {
        let mut bomb = String::from("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n");
        for level in 1..12 {
            let before = format!("*a{}", level - 1);
            bomb += &format!("a{level}: &a{level} [{}]\n", [before.as_str(); 10].join(", "));
        }
        bomb += "title: *a11\n";
        let fault = read(root(&[("tasks/TASK-7.task.yaml", &bomb)]).path(), &id()).unwrap_err();
        assert_eq!(fault.code, ErrorCode::InvalidRequest);
    }
}
