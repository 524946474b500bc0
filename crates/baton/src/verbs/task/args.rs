//! Command-line arguments of `baton task`.

use clap::{Args, Subcommand};
use serde::Serialize;

/// Workflow overview, printed below the list of verbs.
pub(crate) const WORKFLOW: &str = "\
Workflow (default roles: implementer, reviewer, validator):
  init-context TASK                                      create the context, once
  run-qa TASK --agent implementer --baseline             optional: results before any change
  for each role, in order:
    update-agent TASK --agent ROLE --status in_progress  acquire the task; verifies the tree
    get-context TASK --role ROLE                         show the context
    … edit files, without committing …
    run-qa TASK --agent ROLE                             run and record the QA commands
    note TASK --agent ROLE TEXT                          optional: note for the next role
    snapshot-worktree TASK --agent ROLE                  record the working tree
    update-agent TASK --agent ROLE --status done         finish
    (or mark-blocked TASK --agent ROLE --finding TEXT    send the task back to the previous role)
  complete TASK                                          archive the task, after a commit
After a drift: get-diff TASK --type drift --content, then resolve-drift TASK --note TEXT.

Examples:
  $ baton task init-context TASK-0824
  $ baton task update-agent TASK-0824 --agent implementer --status in_progress
  $ baton task list";

const INIT_EXAMPLES: &str = "\
Reads the task file tasks/**/TASK-0824*.task.yaml of the checkout.

Examples:
  $ baton task init-context TASK-0824
  $ baton task init-context TASK-0824 --base-commit main";

const RUN_QA_EXAMPLES: &str = "\
Exits with 1 if a command fails; the result is recorded either way.

Examples:
  $ baton task run-qa TASK-0824 --agent implementer
  $ baton task run-qa TASK-0824 --agent implementer -- cargo test --workspace";

const VERIFY_EXAMPLES: &str = "\
Exits with 5 if the working tree differs.

Examples:
  $ baton task verify-worktree TASK-0824 --expected-agent implementer
  $ baton task verify-worktree TASK-0824 --expected-agent implementer --full";

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TaskCommand {
    /// Create the context of a task: description, standards, QA commands and scope
    #[command(after_help = INIT_EXAMPLES)]
    InitContext(Recording<InitArgs>),
    /// Show the context of a task, or the part that one role needs
    #[command(after_help = "Example:\n  $ baton task get-context TASK-0824 --role reviewer")]
    GetContext(ForTask<GetArgs>),
    /// Set the status of a role: acquire a task, finish it or release it
    #[command(
        after_help = "Example:\n  $ baton task update-agent TASK-0824 --agent reviewer --status in_progress"
    )]
    UpdateAgent(Recording<UpdateArgs>),
    /// Run the QA commands and record their results
    #[command(after_help = RUN_QA_EXAMPLES)]
    RunQa(Recording<RunQaArgs>),
    /// Record the log of QA commands that ran elsewhere
    #[command(after_help = "Example:\n  $ baton task record-qa TASK-0824 --agent implementer --from qa.log")]
    RecordQa(Recording<QaArgs>),
    /// Write a handover note for the next role, or a review note
    #[command(
        after_help = "Example:\n  $ baton task note TASK-0824 --agent implementer 'The proxy drops headers'"
    )]
    Note(Recording<NoteArgs>),
    /// Record a snapshot of the working tree
    #[command(after_help = "Example:\n  $ baton task snapshot-worktree TASK-0824 --agent implementer")]
    SnapshotWorktree(Recording<SnapshotArgs>),
    /// Record a finding that blocks the task until it is fixed
    #[command(
        after_help = "Example:\n  $ baton task mark-blocked TASK-0824 --agent reviewer --finding 'No test covers logout'"
    )]
    MarkBlocked(Recording<BlockArgs>),
    /// Verify that the working tree equals the last snapshot of a role
    #[command(after_help = VERIFY_EXAMPLES)]
    VerifyWorktree(ForTask<VerifyArgs>),
    /// Show the diff of a role's work or of a drift
    #[command(after_help = "Example:\n  $ baton task get-diff TASK-0824 --type drift --content")]
    GetDiff(ForTask<DiffArgs>),
    /// Resolve a drift: accept the edits or restore files
    #[command(
        after_help = "Example:\n  $ baton task resolve-drift TASK-0824 --note 'The edit of the README is intended'"
    )]
    ResolveDrift(Recording<ResolveArgs>),
    /// Print environment variables for agents, as shell commands
    #[command(after_help = "Example:\n  $ eval \"$(baton task env TASK-0824)\"")]
    Env(EnvArgs),
    /// Attach a file, or some of its lines, as evidence
    #[command(after_help = "Example:\n  $ baton task attach-evidence TASK-0824 --type plan --path plan.md")]
    AttachEvidence(Recording<EvidenceArgs>),
    /// Update the context after a change of the task file or a standard
    #[command(after_help = "Example:\n  $ baton task rebuild-context TASK-0824")]
    RebuildContext(Recording<RebuildArgs>),
    /// Complete a task and archive its files for 30 days
    #[command(after_help = "Example:\n  $ baton task complete TASK-0824")]
    Complete(ForTask<CompleteArgs>),
    /// List the tasks of this checkout, or of all checkouts
    #[command(after_help = "Example:\n  $ baton task list --everywhere --status in_progress")]
    List(ListArgs),
    /// Delete the files of a task
    #[command(after_help = "Example:\n  $ baton task purge-context TASK-0824")]
    PurgeContext(ForTask<ActorArgs>),
    /// Archive unused task contexts and delete old archives
    #[command(after_help = "Example:\n  $ baton task sweep-contexts")]
    SweepContexts(SweepArgs),
}

// Actor of a call.
#[derive(Debug, Args, Serialize)]
pub(crate) struct ActorArgs {
    /// Actor to record [default: session.agent, else the user name]
    #[arg(long, value_name = "NAME")]
    pub(super) actor: Option<String>,
}

// Arguments of a verb for one task.
#[derive(Debug, Args, Serialize)]
pub(crate) struct ForTask<V: Args> {
    /// Task id, for example TASK-0824
    #[serde(rename = "task_id")]
    pub(super) task: String,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) verb: V,
}

// Arguments of a verb that stores text of a task, with an override of the secret scan.
#[derive(Debug, Args, Serialize)]
pub(crate) struct Recording<V: Args> {
    /// Task id, for example TASK-0824
    #[serde(rename = "task_id")]
    pub(super) task: String,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) verb: V,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) actor: ActorArgs,
    /// Store the text even if it looks like a secret (recorded in the audit log)
    #[arg(long)]
    pub(super) force_secrets: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct InitArgs {
    /// Commit that diffs start from [default: HEAD]
    #[arg(long, value_name = "SHA")]
    pub(super) base_commit: Option<String>,
    /// Truncate text above 2 KiB and refer to the task file
    #[arg(long)]
    pub(super) truncate: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct GetArgs {
    /// Show only the part that this role needs, for example reviewer
    #[arg(long, alias = "agent")]
    pub(super) role: Option<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct UpdateArgs {
    /// Role, for example reviewer
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// in_progress (acquire the task, verify the tree), done, pending (release it) or blocked
    #[arg(long)]
    pub(super) status: String,
    /// Log of the role's QA commands
    #[arg(long, value_name = "PATH")]
    pub(super) qa_log: Option<String>,
    /// Session that works in this role
    #[arg(long, value_name = "ID")]
    pub(super) session_id: Option<String>,
    /// With done: finish without a snapshot, for example when the role changed nothing
    #[arg(long)]
    pub(super) without_snapshot: bool,
    /// With done: let the validator finish without a QA result
    #[arg(long)]
    pub(super) without_qa: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct BlockArgs {
    /// Role that reports the finding
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Problem that must be fixed
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) finding: String,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct SnapshotArgs {
    /// Role that holds the task
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Record a snapshot even if nothing differs from the base commit
    #[arg(long)]
    pub(super) allow_clean: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct VerifyArgs {
    /// Role whose last snapshot must equal the working tree
    #[arg(long, value_name = "ROLE", aliases = ["agent", "role"])]
    pub(super) expected_agent: String,
    /// Read all files instead of comparing size and timestamps
    #[arg(long)]
    pub(super) full: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct DiffArgs {
    /// Role whose last snapshot is shown [default: role of the newest snapshot]
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: Option<String>,
    /// from_base (all changes), incremental (changes of the role) or drift (unexpected changes)
    #[serde(rename = "type")]
    #[arg(long = "type", value_name = "TYPE", default_value = "from_base")]
    pub(super) kind: String,
    /// Print the diff instead of its path
    #[arg(long)]
    pub(super) content: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct EnvArgs {
    /// Task id, for example TASK-0824
    #[serde(rename = "task_id")]
    pub(super) task: String,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct QaArgs {
    /// Role that ran the QA commands and holds the task
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Path of the log, or - for standard input
    #[arg(long, value_name = "PATH", required = true)]
    pub(super) from: Option<String>,
    /// The log itself, read from standard input.
    #[arg(skip)]
    pub(super) content: Option<String>,
    /// Exit code of the command that wrote the log; it determines the result
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub(super) exit_code: Option<i32>,
    /// Record the result as the baseline before the first role's work
    #[arg(long)]
    pub(super) baseline: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct RunQaArgs {
    /// Role that runs the QA commands and holds the task
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Record the result as the baseline before the first role's work
    #[arg(long)]
    pub(super) baseline: bool,
    /// Command to run instead of the task's QA commands; a single argument is run by the shell
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct NoteArgs {
    /// Role that writes the note
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Text of the note
    #[arg(allow_hyphen_values = true)]
    pub(super) text: String,
    /// handover (for the next role, one per role) or review (does not block the task)
    #[arg(long, default_value = "handover")]
    pub(super) kind: String,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct EvidenceArgs {
    /// Kind of evidence, for example plan, design or excerpt
    #[serde(rename = "type")]
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) kind: String,
    /// File to attach
    #[arg(long)]
    pub(super) path: String,
    /// Lines to attach, for example 10-24 [default: the whole file]
    #[arg(long, value_name = "A-B")]
    pub(super) lines: Option<String>,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct RebuildArgs {
    /// Truncate text above 2 KiB and refer to the task file
    #[arg(long)]
    pub(super) truncate: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ResolveArgs {
    /// Reason for accepting the resulting working tree
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) note: String,
    /// Files to restore to the last snapshot; their current content is kept as a copy
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with = "restore_all")]
    pub(super) restore: Vec<String>,
    /// Restore every file that differs from the last snapshot
    #[arg(long, visible_alias = "all")]
    pub(super) restore_all: bool,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct CompleteArgs {
    /// Complete the task even if a role is not done, a drift is open, or the tree changed
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct SweepArgs {
    /// Minimum time since the last change: a number and s, m, h, d or w
    #[arg(long, default_value = "7d")]
    pub(super) ttl: String,
    /// Include contexts whose task is still in progress
    #[arg(long)]
    pub(super) all: bool,
    /// Print what would be archived and deleted
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    #[serde(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args, Serialize)]
pub(crate) struct ListArgs {
    /// Include tasks that were completed in the last 30 days
    #[arg(long, conflicts_with = "everywhere")]
    #[serde(skip)]
    pub(super) archived: bool,
    /// List the tasks of all checkouts in the store, most recently updated first
    #[arg(long)]
    #[serde(skip)]
    pub(super) everywhere: bool,
    /// Filter by repository (with --everywhere)
    #[arg(long, value_name = "OWNER/NAME", requires = "everywhere")]
    pub(super) repo: Option<String>,
    /// Filter by status: pending, in_progress, waiting, blocked, done or completed (with --everywhere)
    #[arg(long, requires = "everywhere")]
    pub(super) status: Option<String>,
    /// Maximum number of tasks, 1 to 100 (with --everywhere) [default: 20]
    #[arg(long, value_name = "N", requires = "everywhere", allow_negative_numbers = true)]
    pub(super) limit: Option<i64>,
    /// Number of tasks to skip (with --everywhere)
    #[arg(long, value_name = "N", requires = "everywhere", allow_negative_numbers = true)]
    pub(super) offset: Option<i64>,
    #[arg(skip)]
    pub(super) venture: Option<String>,
}
