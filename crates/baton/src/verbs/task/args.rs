//! Command-line arguments of `baton task`.

use clap::{Args, Subcommand};

/// Printed below the list of verbs.
pub(crate) const WORKFLOW: &str = "\
Workflow (default roles: implementer, reviewer, validator):
  init-context TASK                                      freeze the task, once
  run-qa TASK --agent implementer --baseline             optional: results before any change
  for each role, in order:
    update-agent TASK --agent ROLE --status in_progress  take the task; verifies the working tree
    get-context TASK --role ROLE                         read it
    … work, without committing …
    run-qa TASK --agent ROLE                             run and record the checks
    note TASK --agent ROLE TEXT                          optional: for the next role
    snapshot-worktree TASK --agent ROLE                  record the working tree
    update-agent TASK --agent ROLE --status done         finish
    (or mark-blocked TASK --agent ROLE --finding TEXT    send it back to the role before)
  complete TASK                                          archive it, after a commit
After a drift: get-diff TASK --type drift --content, then resolve-drift TASK --note TEXT.";

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Freeze a task's description, standards, checks and scope
    InitContext(InitArgs),
    /// Show a task, or only what one role needs
    GetContext(GetArgs),
    /// Take a task, finish it, or give it back
    UpdateAgent(UpdateArgs),
    /// Run the QA commands and record their exit codes
    RunQa(RunQaArgs),
    /// Record the log of checks that ran elsewhere
    RecordQa(QaArgs),
    /// Leave a note for the next role, or a review note
    Note(NoteArgs),
    /// Record the working tree as a role leaves it
    SnapshotWorktree(SnapshotArgs),
    /// Record a finding that must be fixed first
    MarkBlocked(BlockArgs),
    /// Check that the working tree is as a role left it
    VerifyWorktree(VerifyArgs),
    /// Show the diff of a role's work or of a drift
    GetDiff(DiffArgs),
    /// Settle a drift: keep the edits or restore files
    ResolveDrift(ResolveArgs),
    /// Print environment variables for agents, as shell commands
    Env(EnvArgs),
    /// Attach a file, or lines of one, to be cited by id
    AttachEvidence(EvidenceArgs),
    /// Adopt a changed task file or standard
    RebuildContext(RebuildArgs),
    /// End a task; its files are kept for 30 days
    Complete(CompleteArgs),
    /// List the tasks of this checkout, or of all checkouts
    List(ListArgs),
    /// Delete a task's files
    PurgeContext(PurgeArgs),
    /// Archive unused contexts and delete old archives
    SweepContexts(SweepArgs),
}

/// Actor of a call.
#[derive(Debug, Args)]
pub(crate) struct ActorArgs {
    /// Actor to record [default: session.agent, else the user name]
    #[arg(long, value_name = "NAME")]
    pub(super) actor: Option<String>,
}

/// Override of the secret scan.
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// Store the text even if it looks like a secret (recorded in the audit)
    #[arg(long)]
    pub(super) force_secrets: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Commit that changes are counted from [default: HEAD]
    #[arg(long, value_name = "SHA")]
    pub(super) base_commit: Option<String>,
    /// Truncate text above 2 KiB, with a pointer to the task file
    #[arg(long)]
    pub(super) truncate: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role, for example reviewer: show only what it needs
    #[arg(long, alias = "agent")]
    pub(super) role: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role, for example reviewer
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// in_progress (take the task, verifies the tree), done, pending (give it back) or blocked
    #[arg(long)]
    pub(super) status: String,
    /// Log of the role's checks
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
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BlockArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role that found it
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// What must be fixed
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) finding: String,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role that holds the task
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Take it even if nothing differs from the base
    #[arg(long)]
    pub(super) allow_clean: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role whose last snapshot must equal the working tree
    #[arg(long, value_name = "ROLE", aliases = ["agent", "role"])]
    pub(super) expected_agent: String,
    /// Read every file again instead of trusting size and time stamps
    #[arg(long)]
    pub(super) full: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role whose last snapshot is shown [default: role of the newest snapshot]
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: Option<String>,
    /// from_base (everything so far), incremental (what the role did) or drift (edits outside the workflow)
    #[arg(long = "type", value_name = "TYPE", default_value = "from_base")]
    pub(super) kind: String,
    /// Print the diff instead of its path
    #[arg(long)]
    pub(super) content: bool,
}

#[derive(Debug, Args)]
pub(crate) struct EnvArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
}

#[derive(Debug, Args)]
pub(crate) struct QaArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role that ran the checks and holds the task
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Path of the log, or `-` for standard input
    #[arg(long, value_name = "PATH")]
    pub(super) from: String,
    /// Exit code of the command that wrote the log; it decides the result
    #[arg(long, value_name = "CODE", allow_negative_numbers = true)]
    pub(super) exit_code: Option<i32>,
    /// Record it as the state before the first role's work
    #[arg(long)]
    pub(super) baseline: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RunQaArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role that runs the checks and holds the task
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Record it as the state before the first role's work
    #[arg(long)]
    pub(super) baseline: bool,
    /// Command to run instead of the task's QA commands; one word is run by the shell
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct NoteArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Role that writes the note
    #[arg(long, value_name = "ROLE", alias = "role")]
    pub(super) agent: String,
    /// Text of the note
    #[arg(allow_hyphen_values = true)]
    pub(super) text: String,
    /// handover (for the next role, one per role) or review (does not block the work)
    #[arg(long, default_value = "handover")]
    pub(super) kind: String,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvidenceArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Kind: plan, design, excerpt, or another word
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) kind: String,
    /// File to attach
    #[arg(long)]
    pub(super) path: String,
    /// Lines to attach, for example 10-24 [default: the whole file]
    #[arg(long, value_name = "A-B")]
    pub(super) lines: Option<String>,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Truncate text above 2 KiB, with a pointer to the task file
    #[arg(long)]
    pub(super) truncate: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Reason for accepting the resulting working tree
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) note: String,
    /// Files to restore to the last snapshot; their present content is kept aside
    #[arg(long, value_name = "PATH", num_args = 1.., conflicts_with = "restore_all")]
    pub(super) restore: Vec<String>,
    /// Restore every file that differs from the last snapshot
    #[arg(long, visible_alias = "all")]
    pub(super) restore_all: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    /// Complete it even if a role is not done, a drift is open, or the tree changed
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// Task id, for example TASK-0824
    pub(super) task: String,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// Minimum age of the last change: a number and s, m, h, d or w
    #[arg(long, default_value = "7d")]
    pub(super) ttl: String,
    /// Include contexts whose task is still in progress
    #[arg(long)]
    pub(super) all: bool,
    /// Print what would be done
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Include tasks that were completed in the last 30 days
    #[arg(long, conflicts_with = "everywhere")]
    pub(super) archived: bool,
    /// List the tasks of every checkout that the store knows, latest first
    #[arg(long)]
    pub(super) everywhere: bool,
    /// Filter by repository, owner/name
    #[arg(long, requires = "everywhere")]
    pub(super) repo: Option<String>,
    /// Filter by status: pending, in_progress, waiting, blocked, done or completed
    #[arg(long, requires = "everywhere")]
    pub(super) status: Option<String>,
    /// Maximum number of tasks
    #[arg(long, requires = "everywhere", allow_negative_numbers = true)]
    pub(super) limit: Option<i64>,
    /// Number of tasks to skip
    #[arg(long, requires = "everywhere", allow_negative_numbers = true)]
    pub(super) offset: Option<i64>,
}
