//! `baton observation …` and `baton summarize`

use std::path::Path;

use baton_app::observation::{
    ListObservations, ObservationView, ShowObservation, ShowObservationOutput, SummarizeSession,
};
use baton_core::observation::visible;
use clap::{Args, Subcommand};
use serde_json::json;

use crate::backend::Backend;
use crate::checkout::find_root;
use crate::output::{Answer, Failure};

#[derive(Debug, Subcommand)]
pub(crate) enum ObservationCommand {
    /// List what tool uses taught, newest first
    List(ListArgs),
    /// Show one observation
    Show(ShowArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Of this undertaking
    #[arg(long)]
    venture: Option<String>,
    /// In this repository
    #[arg(long)]
    repo: Option<String>,
    /// Of this session
    #[arg(long = "session", value_name = "ID")]
    session_id: Option<String>,
    /// Of this tool
    #[arg(long)]
    tool: Option<String>,
    /// That speak of this file: its path, or the end of it from a slash on
    #[arg(long)]
    file: Option<String>,
    /// How many at the most
    #[arg(long, allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Where the page before ended
    #[arg(long)]
    cursor: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// The observation
    observation_id: String,
    /// With the raw output, while it is kept
    #[arg(long)]
    raw: bool,
}

#[derive(Debug, Args)]
pub(crate) struct SummarizeArgs {
    /// The session
    session_id: String,
    /// Leave the session open
    #[arg(long)]
    keep_open: bool,
}

pub(crate) fn run(command: &ObservationCommand, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        ObservationCommand::List(args) => {
            let file = args.file.as_deref().map(within_checkout);
            let params = json!({
                "venture": args.venture, "repo": args.repo, "session_id": args.session_id, "tool": args.tool,
                "file": file, "limit": args.limit, "cursor": args.cursor,
            });
            backend.answer::<ListObservations>(&params, None, |found| {
                let mut lines: Vec<String> = found.observations.iter().map(line).collect();
                if lines.is_empty() {
                    lines.push("no observations; baton queue stats shows what waits".into());
                }
                if let Some(cursor) = &found.pagination.next_cursor {
                    lines.push(format!("more: --cursor {cursor}"));
                }
                lines.join("\n")
            })
        }
        ObservationCommand::Show(args) => {
            let params = json!({ "observation_id": args.observation_id, "raw": args.raw });
            backend.answer::<ShowObservation>(&params, None, |shown| {
                let mut text = describe(&shown.observation);
                if args.raw {
                    text += &raw(shown);
                }
                text
            })
        }
    }
}

/// What a tool was asked and what it said.
fn raw(shown: &ShowObservationOutput) -> String {
    if shown.raw_kept != Some(true) {
        return "\n\nthe raw output is no longer kept".to_owned();
    }
    let mut text = String::new();
    if let Some(input) = &shown.tool_input {
        text += &format!("\n\ninput   {input}");
    }
    text + &match &shown.tool_response {
        None => "\n\nthe tool said nothing".to_owned(),
        Some(response) => {
            let said = response.as_str().map_or_else(|| response.to_string(), str::to_owned);
            format!("\n\noutput\n{said}")
        }
    }
}

pub(crate) fn summarize(args: &SummarizeArgs, backend: &Backend) -> Result<Answer, Failure> {
    let params = json!({ "session_id": args.session_id, "close": !args.keep_open });
    backend.answer::<SummarizeSession>(&params, None, |made| {
        let mut lines = vec![made.summary.clone()];
        lines.extend(made.key_files.iter().map(|file| format!("file      {file}")));
        lines.extend(made.key_decisions.iter().map(|decision| format!("decision  {decision}")));
        if made.waiting > 0 {
            lines.push(format!(
                "waiting   {} tool uses; baton worker takes them into the summary",
                made.waiting
            ));
        }
        visible(&lines.join("\n")).into_owned()
    })
}

/// A path as observations have it: relative to the root of the checkout that it is in, however it was written.
fn within_checkout(file: &str) -> String {
    let path = Path::new(file);
    if !path.is_absolute() {
        return file.strip_prefix("./").unwrap_or(file).to_owned();
    }
    let folder = path.ancestors().skip(1).find(|folder| folder.is_dir());
    let root = folder.and_then(find_root);
    // Observations name files as the agent did, which may have gone through a link.
    let inside = root.as_ref().and_then(|root| {
        let folder = folder?;
        let rest = path.strip_prefix(folder).ok()?;
        let above = folder.canonicalize().ok()?;
        let above = above.strip_prefix(root.canonicalize().ok()?).ok()?;
        Some(above.join(rest))
    });
    // Outside of a checkout files are named relative to the folder that the agent worked in.
    let inside = inside.or_else(|| path.strip_prefix(std::env::current_dir().ok()?).ok().map(Path::to_owned));
    let inside = inside.and_then(|path| path.to_str().map(str::to_owned));
    inside.filter(|path| !path.is_empty()).unwrap_or_else(|| file.to_owned())
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
