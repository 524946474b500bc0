//! `baton observation …` and `baton summarize`

use std::convert::Infallible;
use std::path::{Path, PathBuf};

use baton_app::observation::{
    ListObservations, ObservationView, ShowObservation, ShowObservationOutput, SummarizeSession,
};
use baton_core::visible;
use clap::{ArgAction, Args, Subcommand};
use serde::Serialize;

use crate::backend::Backend;
use crate::checkout::find_root;
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, page_text, when};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton observation list --repo acme/webshop --tool Bash
  $ baton observation list --file src/store.rs";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ObservationCommand {
    /// List observations, newest first
    #[command(after_help = "Example:\n  $ baton observation list --file src/store.rs")]
    List(ListArgs),
    /// Show an observation
    #[command(after_help = "Example:\n  $ baton observation show obs_01M7H3Y790KKJH7PNR0DNVSC3B --raw")]
    Show(ShowArgs),
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ListArgs {
    /// Filter by venture [default: all ventures]
    #[arg(long)]
    venture: Option<String>,
    /// Filter by repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Filter by session
    #[arg(long = "session", value_name = "ID")]
    session_id: Option<String>,
    /// Filter by tool, for example Bash or Edit
    #[arg(long)]
    tool: Option<String>,
    /// Filter by file: its path, or the last parts of it, for example src/store.rs
    #[arg(long, value_name = "PATH", value_parser = |file: &str| Ok::<_, Infallible>(within_checkout(file)))]
    file: Option<String>,
    /// Maximum number of observations, 1 to 200 [default: 50]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Continue after the previous page
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ShowArgs {
    /// Observation id (obs_…)
    observation_id: String,
    /// Include the raw tool input and output, if still stored
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct SummarizeArgs {
    /// Session id (sess_…)
    session_id: String,
    /// Do not end the session
    #[arg(long = "keep-open", action = ArgAction::SetFalse)]
    close: bool,
}

pub(crate) fn run(command: &ObservationCommand, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        ObservationCommand::List(args) => backend.answer::<ListObservations>(args, None, |found| {
            let columns: [Column<ObservationView>; _] = [
                (Whole("OBSERVATION"), |observation| observation.id.to_string()),
                (Whole("CAPTURED"), |observation| when(observation.captured_at)),
                (Text("TOOL"), |observation| observation.tool_name.clone()),
                (Text("TITLE"), |observation| observation.title.clone()),
            ];
            let empty = "no observations; baton queue stats shows pending items";
            let lines = list_items(&found.observations, empty, line, columns);
            page_text(lines, "--cursor", found.pagination.next_cursor.as_ref())
        }),
        ObservationCommand::Show(args) => backend.answer::<ShowObservation>(args, None, |shown| {
            let mut text = describe(&shown.observation);
            if args.raw {
                text += &raw(shown);
            }
            text
        }),
    }
}

/// Formats the raw input and output of a tool use.
fn raw(shown: &ShowObservationOutput) -> String {
    if shown.raw_kept != Some(true) {
        return "\n\nthe raw output is no longer kept".to_owned();
    }
    let mut text = String::new();
    if let Some(input) = &shown.tool_input {
        text += &format!("\n\ninput   {input}");
    }
    text + &match &shown.tool_response {
        None => "\n\nthe tool returned no output".to_owned(),
        Some(response) => {
            let output = response.as_str().map_or_else(|| response.to_string(), str::to_owned);
            format!("\n\noutput\n{output}")
        }
    }
}

pub(crate) fn summarize(args: &SummarizeArgs, backend: &Backend) -> Result<Answer, Failure> {
    backend.answer::<SummarizeSession>(args, None, |made| {
        let mut lines = vec![made.summary.clone()];
        lines.extend(made.key_files.iter().map(|file| format!("file      {file}")));
        lines.extend(made.key_decisions.iter().map(|decision| format!("decision  {decision}")));
        if made.waiting > 0 {
            lines.push(format!("pending   {} tool uses; the worker adds them to the summary", made.waiting));
        }
        visible(&lines.join("\n")).into_owned()
    })
}

/// Converts a path to the form that observations store: relative to the root of the checkout that contains it.
fn within_checkout(file: &str) -> String {
    let path = Path::new(file);
    if !path.is_absolute() {
        return file.strip_prefix("./").unwrap_or(file).to_owned();
    }
    // Outside of a checkout, paths are relative to the working folder of the agent.
    let relative = path_in_checkout(path)
        .or_else(|| path.strip_prefix(std::env::current_dir().ok()?).ok().map(Path::to_owned));
    let relative = relative.and_then(|path| path.to_str().map(str::to_owned));
    relative.filter(|path| !path.is_empty()).unwrap_or_else(|| file.to_owned())
}

/// Returns an absolute path relative to the root of the checkout that contains it. The agent may have used a path through
/// a symbolic link, so both are resolved.
fn path_in_checkout(path: &Path) -> Option<PathBuf> {
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir())?;
    let root = find_root(folder)?.canonicalize().ok()?;
    let resolved = folder.canonicalize().ok()?;
    Some(resolved.strip_prefix(root).ok()?.join(path.strip_prefix(folder).ok()?))
}

fn line(observation: &ObservationView) -> String {
    let line = format!(
        "{}  {}  [{}] {}",
        observation.id, observation.captured_at, observation.tool_name, observation.title
    );
    visible(&line).into_owned()
}

fn describe(observation: &ObservationView) -> String {
    let provenance = &observation.provenance;
    let model = provenance.model.as_deref().map(|model| format!(", {model}")).unwrap_or_default();
    let mut lines = vec![
        format!("{}  [{}] {}", observation.id, observation.tool_name, observation.title),
        observation.summary.clone(),
    ];
    lines.extend(observation.detail.iter().map(|detail| format!("\n{detail}\n")));
    lines.extend(observation.files_touched.iter().map(|file| format!("changed   {file}")));
    lines.extend(observation.functions_changed.iter().map(|function| {
        let action = match function.action {
            baton_core::observation::FunctionAction::New => "new",
            baton_core::observation::FunctionAction::Modified => "modified",
            baton_core::observation::FunctionAction::Deleted => "deleted",
        };
        format!("{action:<8}  {} in {}", function.name, function.file)
    }));
    lines.push(format!("session   {} in {}", observation.session_id, observation.repo));
    lines.push(format!(
        "made by   {}{model} ({}), from {} bytes",
        provenance.compressor, provenance.prompt_version, observation.raw_bytes
    ));
    visible(&lines.join("\n")).into_owned()
}
