//! `baton checkpoint …`

use std::io::Read;
use std::path::{Path, PathBuf};

use baton_app::checkpoint::{
    CheckpointView, DeleteCheckpoint, DiffCheckpoints, DiffCheckpointsOutput, ExplainContext,
    ExplainContextOutput, ListCheckpoints, ListWorkflows, LoadCheckpoint, MarkCritical, SaveCheckpoint,
    SaveCheckpointOutput, SaveStatus, WorkflowView,
};
use baton_checkpoint::{ChangeKind, SavedContext};
use baton_core::{ErrorCode, JsonErrorKind, counted, indent};
use baton_store::MAX_FRAME_BYTES;
use clap::{ArgGroup, Args, Subcommand, ValueEnum};
use serde::Serialize;
use serde_json::Value;

use crate::backend::Backend;
use crate::checkout::repository_here;
use crate::config::Config;
use crate::exit::Exit;
use crate::live_session::live_session;
use crate::output::{Answer, Failure, print_message, warn};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, when};
use crate::verbs::session::KeyArgs;

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ echo '{\"goal\":\"Add login\",\"step\":2}' | baton checkpoint save --session login
  $ baton checkpoint load --session login --max-tokens 4000
  $ baton checkpoint list --session login";

const SAVE_EXAMPLES: &str = "\
Examples:
  $ echo '{\"goal\":\"Add login\",\"plan\":[\"form\",\"cookie\"]}' | baton checkpoint save --session login
  $ baton checkpoint save --session login --file context.json --name 'before the refactoring'";

const LOAD_EXAMPLES: &str = "\
Examples:
  $ baton checkpoint load --session login
  $ baton checkpoint load --session login --max-tokens 4000
  $ baton checkpoint load ckpt_01M7H6D3C2ZKCKBQ8TJM2W4FA2";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum CheckpointCommand {
    /// Save a checkpoint of a context, read as JSON from standard input or a file
    #[command(after_help = SAVE_EXAMPLES)]
    Save(SaveArgs),
    /// Load a checkpoint, or the latest one of a workflow
    #[command(after_help = LOAD_EXAMPLES)]
    Load(LoadArgs),
    /// List the checkpoints of a workflow, newest first
    #[command(after_help = "Example:\n  $ baton checkpoint list --session login")]
    List(ListArgs),
    /// Mark a key as critical, so that it is always loaded in full
    #[command(after_help = "Example:\n  $ baton checkpoint mark-critical --session login plan")]
    MarkCritical(MarkArgs),
    /// Compare two checkpoints, or the latest two of a workflow
    #[command(after_help = "Example:\n  $ baton checkpoint diff --session login")]
    Diff(DiffArgs),
    /// Show the layer of each key, with the rule and the reason
    #[command(after_help = "Example:\n  $ baton checkpoint explain --session login")]
    Explain(ExplainArgs),
    /// Delete a checkpoint
    #[command(after_help = "Example:\n  $ baton checkpoint delete ckpt_01M7H3Y790KKJH7PNR0DNVSC3B")]
    Delete(DeleteArgs),
    /// List workflows, most recently saved first
    #[command(after_help = "Example:\n  $ baton checkpoint workflows")]
    Workflows(WorkflowsArgs),
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct VentureArgs {
    /// Venture of the workflow [default: session.venture]
    #[arg(long)]
    venture: Option<String>,
}

impl VentureArgs {
    /// Sets the venture to the configured one, unless one was given.
    fn complete(&mut self, config: &Config) {
        self.venture = config.chosen_venture(self.venture.as_deref());
    }
}

// Selects a checkpoint by its id, or the latest one of a workflow.
#[derive(Debug, Args, Serialize)]
#[group(required = true, multiple = false)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WantedArgs {
    /// Checkpoint id (ckpt_…)
    checkpoint_id: Option<String>,
    /// Workflow id; selects its latest checkpoint
    #[arg(long = "session", value_name = "ID")]
    session_id: Option<String>,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct SaveArgs {
    /// Workflow id [default: found by workflowId in the context or by --name, else new]
    #[arg(long = "session", value_name = "ID")]
    session_id: Option<String>,
    /// File to read the context from [default: standard input]
    #[arg(long, value_name = "FILE")]
    #[serde(skip)]
    file: Option<PathBuf>,
    #[command(flatten)]
    metadata: MetadataArgs,
    /// Save even if the context is unchanged
    #[arg(long)]
    force: bool,
    /// Replace secrets with [redacted:…] instead of rejecting the context
    #[arg(long)]
    redact_secrets: bool,
    /// Repository [default: repository of the current checkout]
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Session (sess_…) to record with the checkpoint; also counts as its heartbeat [default: newest active session of
    /// this client in the repository]
    #[arg(long = "agent-session", value_name = "ID")]
    agent_session_id: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    venture: VentureArgs,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
struct MetadataArgs {
    /// Checkpoint name; named checkpoints are never deleted automatically
    #[arg(long)]
    name: Option<String>,
    /// Tag of the checkpoint (repeatable)
    #[arg(long = "tag", value_name = "TAG")]
    tags: Vec<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LevelArg {
    /// Longer excerpts of fewer values
    Basic,
    /// Between basic and aggressive
    Standard,
    /// Shorter excerpts of more values
    Aggressive,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct LoadArgs {
    #[command(flatten)]
    #[serde(flatten)]
    wanted: WantedArgs,
    /// Maximum bytes of context; critical values are kept in full, others are shortened
    #[arg(long, value_name = "BYTES", allow_negative_numbers = true)]
    max_bytes: Option<i64>,
    /// Maximum model tokens of the context and the list of omissions
    #[arg(long, value_name = "TOKENS", allow_negative_numbers = true, conflicts_with = "max_bytes")]
    max_tokens: Option<i64>,
    /// Length and number of excerpts [default: standard]
    #[arg(long, value_enum)]
    level: Option<LevelArg>,
    #[command(flatten)]
    #[serde(flatten)]
    venture: VentureArgs,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WindowArgs {
    /// Maximum number of results, 1 to 100 [default: 20]
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    limit: Option<i64>,
    /// Number of results to skip
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    offset: Option<i64>,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ListArgs {
    /// Workflow id
    #[arg(long = "session", value_name = "ID")]
    session_id: String,
    #[command(flatten)]
    #[serde(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    #[serde(flatten)]
    venture: VentureArgs,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MarkArgs {
    /// Workflow id
    #[arg(long = "session", value_name = "ID")]
    session_id: String,
    /// Key of the context, or a path such as plan.steps
    context_key: String,
    #[command(flatten)]
    #[serde(flatten)]
    venture: VentureArgs,
    #[command(flatten)]
    #[serde(skip)]
    key: KeyArgs,
}

#[derive(Debug, Args, Serialize)]
#[command(group(ArgGroup::new("compared").args(["from", "session_id"]).required(true)))]
#[serde(rename_all = "camelCase")]
pub(crate) struct DiffArgs {
    /// Id of the earlier checkpoint
    #[arg(requires = "to")]
    from: Option<String>,
    /// Id of the later checkpoint
    to: Option<String>,
    /// Workflow id; compares its latest two checkpoints
    #[arg(long = "session", value_name = "ID")]
    session_id: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    venture: VentureArgs,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ExplainArgs {
    #[command(flatten)]
    #[serde(flatten)]
    wanted: WantedArgs,
    /// Show only this key and the keys below it
    #[arg(long = "key", value_name = "KEY")]
    context_key: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    venture: VentureArgs,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct DeleteArgs {
    /// Checkpoint id (ckpt_…)
    checkpoint_id: String,
}

#[derive(Debug, Args, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkflowsArgs {
    /// Filter by repository
    #[arg(long, value_name = "OWNER/NAME")]
    repo: Option<String>,
    /// Filter by name
    #[arg(long)]
    name: Option<String>,
    #[command(flatten)]
    #[serde(flatten)]
    window: WindowArgs,
    #[command(flatten)]
    #[serde(flatten)]
    venture: VentureArgs,
}

pub(crate) fn run(command: CheckpointCommand, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    match command {
        CheckpointCommand::Save(args) => save(args, config, backend),
        CheckpointCommand::Load(args) => load(args, config, backend),
        CheckpointCommand::List(mut args) => {
            args.venture.complete(config);
            backend.answer::<ListCheckpoints>(&args, None, |output| {
                let columns: [Column<CheckpointView>; _] = [
                    (Whole("CHECKPOINT"), |checkpoint| checkpoint.checkpoint_id.to_string()),
                    (Whole("SAVED"), |checkpoint| when(checkpoint.created_at)),
                    (Whole("BYTES"), |checkpoint| checkpoint.size_bytes.to_string()),
                    (Whole("STORED"), |checkpoint| checkpoint.metadata.stored_bytes.to_string()),
                    (Text("NAME AND TAGS"), labels),
                ];
                list_items(&output.checkpoints, "no checkpoints", line, columns).join("\n")
            })
        }
        CheckpointCommand::MarkCritical(mut args) => {
            args.venture.complete(config);
            backend.answer::<MarkCritical>(&args, args.key.get(), |output| output.message.clone())
        }
        CheckpointCommand::Diff(mut args) => {
            args.venture.complete(config);
            backend.answer::<DiffCheckpoints>(&args, None, describe_diff)
        }
        CheckpointCommand::Explain(mut args) => {
            args.venture.complete(config);
            backend.answer::<ExplainContext>(&args, None, describe_layers)
        }
        CheckpointCommand::Delete(args) => backend.answer::<DeleteCheckpoint>(&args, None, |output| {
            format!("deleted {}; freed {} bytes", output.checkpoint_id, output.freed_bytes)
        }),
        CheckpointCommand::Workflows(mut args) => {
            args.venture.complete(config);
            backend.answer::<ListWorkflows>(&args, None, |output| {
                let columns: [Column<WorkflowView>; _] = [
                    (Whole("WORKFLOW"), |workflow| workflow.session_id.to_string()),
                    (Text("NAME"), |workflow| workflow.name.clone().unwrap_or_default()),
                    (Text("REPOSITORY"), |workflow| {
                        workflow.repo.as_ref().map(ToString::to_string).unwrap_or_default()
                    }),
                    (Whole("CHECKPOINTS"), |workflow| workflow.checkpoint_count.to_string()),
                    (Whole("BYTES"), |workflow| workflow.stored_bytes.to_string()),
                    (Whole("SAVED"), |workflow| when(workflow.last_saved_at)),
                ];
                list_items(&output.workflows, "no workflows", workflow_line, columns).join("\n")
            })
        }
    }
}

fn save(mut args: SaveArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    args.venture.complete(config);
    if args.repo.is_none() {
        args.repo = repository();
        // While the store cannot be used, the session is unknown, and the checkpoint is saved to the outbox
        // without one.
        let venture = args.venture.venture.as_deref();
        let find = |repo: &String| Some(live_session(repo, venture, config, backend).ok()??.id.to_string());
        args.agent_session_id = args.agent_session_id.or_else(|| args.repo.as_ref().and_then(find));
    }
    let context = read_context(args.file.as_deref())?;
    backend.answer_with_context::<SaveCheckpoint>(&args, Some(context), args.key.get(), describe_save)
}

/// Returns the repository of the current checkout. A git failure is only a warning: the checkpoint is saved without it.
fn repository() -> Option<String> {
    repository_here()
        .unwrap_or_else(|fault| {
            warn(&format!("saving without a repository: {}", fault.message));
            None
        })
        .map(|repo| repo.as_str().to_owned())
}

/// Reads the context, up to the largest size that could be saved.
fn read_context(file: Option<&Path>) -> Result<SavedContext, Failure> {
    let failed = |error: std::io::Error| {
        let source = file.map_or_else(|| "standard input".into(), |path| path.display().to_string());
        Failure::new(Exit::Failure, "unreadable_input", format!("cannot read {source}: {error}"))
            .hint("pass the context as JSON on standard input, or its file with --file")
    };
    let mut bytes = Vec::new();
    // Canonical JSON can be shorter than the input; this allows for input four times as long, for example indented.
    let limit = 4 * MAX_FRAME_BYTES as u64 + 1;
    let read = match file {
        Some(path) => std::fs::File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
        None => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
    };
    let size = read.map_err(failed)? as u64;
    if size == limit {
        let message = format!("the context is larger than {} bytes", limit - 1);
        return Err(Failure::new(Exit::Validation, ErrorCode::PayloadTooLarge.as_str(), message).hint(
            "omit data that can be recreated, such as logs and file contents, and save its location instead",
        ));
    }
    let invalid = |code: ErrorCode, problem: String| {
        Failure::new(
            Exit::Validation,
            code.as_str(),
            format!("cannot save the checkpoint: the context {problem}"),
        )
        .hint("send one strict JSON object: no duplicate keys, no nesting over 64, nothing after it")
    };
    SavedContext::read(&bytes)
        .map_err(|error| {
            let code = match error.kind {
                JsonErrorKind::IntegerWouldRound(_) => ErrorCode::InvalidRequest,
                _ => ErrorCode::InvalidJson,
            };
            invalid(code, format!("is not valid: {error}"))
        })?
        .ok_or_else(|| invalid(ErrorCode::InvalidRequest, "must be an object".to_owned()))
}

fn load(mut args: LoadArgs, config: &Config, backend: &Backend) -> Result<Answer, Failure> {
    args.venture.complete(config);
    backend.answer_with_context::<LoadCheckpoint>(&args, None, None, |output| {
        // Standard output is the context alone; notes go to standard error.
        if let Some(warning) = &output.warning {
            warn(warning);
        }
        if let Some(view) = &output.view
            && let Some(more) = &view.more
        {
            let omitted = view.omissions.len() + view.unlisted.map_or(0, |unlisted| unlisted.count);
            let omitted = counted(omitted as u64, "value");
            print_message(&format!(
                "{} bytes shown, {omitted} shortened or omitted: {more}",
                view.shown_bytes
            ));
        }
        if let Some(overflow) = output.view.as_ref().and_then(|view| view.overflow) {
            print_message(&format!(
                "the critical values have {} bytes and exceed the budget of {} bytes",
                overflow.critical_bytes, overflow.budget_bytes
            ));
        }
        indent(output.context.as_str())
    })
}

fn describe_save(output: &SaveCheckpointOutput) -> String {
    let verb = match output.status {
        SaveStatus::Saved => "saved",
        SaveStatus::SkippedUnchanged => "unchanged since",
    };
    let kept = if output.degraded { ", saved to the outbox because the database is unavailable" } else { "" };
    let warning = output.warning.as_ref().map(|warning| format!("\nwarning: {warning}")).unwrap_or_default();
    format!(
        "{verb} {} of workflow {}: {} bytes, {} stored{kept}{warning}",
        output.checkpoint_id, output.session_id, output.size_bytes, output.stored_bytes
    )
}

fn line(checkpoint: &CheckpointView) -> String {
    format!(
        "{}  {}  {} bytes, {} stored{}",
        checkpoint.checkpoint_id,
        when(checkpoint.created_at),
        checkpoint.size_bytes,
        checkpoint.metadata.stored_bytes,
        labels(checkpoint)
    )
}

/// Returns the name, the tags and a mark of a damaged checkpoint, each after a space.
fn labels(checkpoint: &CheckpointView) -> String {
    let metadata = &checkpoint.metadata;
    let name = metadata.name.as_ref().map(|name| format!("  {name}")).unwrap_or_default();
    let tags: String = metadata.tags.iter().map(|tag| format!(" #{tag}")).collect();
    let is_active = metadata.status == baton_core::checkpoint::CheckpointStatus::Active;
    format!("{name}{tags}{}", if is_active { "" } else { "  DAMAGED" })
}

fn workflow_line(workflow: &WorkflowView) -> String {
    let name = workflow.name.as_deref().unwrap_or("-");
    let repo = workflow.repo.as_ref().map(|repo| format!("  {repo}")).unwrap_or_default();
    format!(
        "{}  {name}{repo}  {}, {} bytes, saved {}",
        workflow.session_id,
        counted(workflow.checkpoint_count, "checkpoint"),
        workflow.stored_bytes,
        when(workflow.last_saved_at)
    )
}

pub(crate) fn describe_diff(output: &DiffCheckpointsOutput) -> String {
    let mut text_lines = vec![format!(
        "{} to {}: {} added, {} removed, {} changed",
        output.from, output.to, output.added, output.removed, output.changed
    )];
    text_lines.extend(output.changes.iter().map(|change| {
        let shown = |value: &Option<Value>| value.as_ref().map(Value::to_string).unwrap_or_default();
        match change.kind {
            ChangeKind::Added => format!("+ {}: {}", change.path, shown(&change.new)),
            ChangeKind::Removed => format!("- {}: {}", change.path, shown(&change.old)),
            ChangeKind::Changed => {
                format!("~ {}: {} → {}", change.path, shown(&change.old), shown(&change.new))
            }
        }
    }));
    if output.unlisted > 0 {
        text_lines.push(format!("and {} more", output.unlisted));
    }
    text_lines.join("\n")
}

fn describe_layers(output: &ExplainContextOutput) -> String {
    let keys = output.keys.iter().map(|key| {
        format!(
            "{:<9}  {}  ({} bytes; {}: {})",
            key.layer.as_str(),
            key.path,
            key.size_bytes,
            key.rule,
            key.why
        )
    });
    let more = (output.unlisted > 0).then(|| format!("and {} more", output.unlisted));
    let lines: Vec<String> = keys.chain(more).collect();
    if lines.is_empty() { "the context is empty".to_owned() } else { lines.join("\n") }
}
