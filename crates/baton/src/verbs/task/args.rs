//! What can be said after `baton task`.

use clap::{Args, Subcommand};

#[derive(Debug, Subcommand)]
pub(crate) enum TaskCommand {
    /// Freeze what a task is about, before anybody works on it
    InitContext(InitArgs),
    /// Read what is known of a task, or only what one role needs
    GetContext(GetArgs),
    /// Take a task, finish it, or give it back
    UpdateAgent(UpdateArgs),
    /// Record something that must be dealt with first
    MarkBlocked(BlockArgs),
    /// Record the working tree as a role leaves it
    SnapshotWorktree(SnapshotArgs),
    /// Check that the working tree is as a role left it
    VerifyWorktree(VerifyArgs),
    /// Find or print the diff of a role's work
    GetDiff(DiffArgs),
    /// Record what tests, linters and type checkers said
    RecordQa(QaArgs),
    /// Attach a file, or lines of one, to be cited by id
    AttachEvidence(EvidenceArgs),
    /// Take a changed task file or standard over
    RebuildContext(RebuildArgs),
    /// Acknowledge a drift and go on from the tree as it is
    ResolveDrift(ResolveArgs),
    /// End a task; its files are kept for 30 days
    Complete(CompleteArgs),
    /// Remove a task's files without keeping them
    PurgeContext(PurgeArgs),
    /// Archive what nobody needs any more, drop old archives
    SweepContexts(SweepArgs),
    /// List the tasks of this checkout, or of every one
    List(ListArgs),
}

/// Who acts.
#[derive(Debug, Args)]
pub(crate) struct ActorArgs {
    /// Who acts; `session.agent` of the configuration or your user name when left out
    #[arg(long, value_name = "NAME")]
    pub(super) actor: Option<String>,
}

/// Whether a finding of the secret scan is overruled.
#[derive(Debug, Args)]
pub(crate) struct SecretArgs {
    /// Write it although it looks like it holds a credential; that is recorded
    #[arg(long)]
    pub(super) force_secrets: bool,
}

#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// Count changes from this commit; HEAD when left out
    #[arg(long, value_name = "SHA")]
    pub(super) base_commit: Option<String>,
    /// Cut text above 2 KiB, with a pointer to the task file
    #[arg(long)]
    pub(super) truncate: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct GetArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// Only what this role needs
    #[arg(long)]
    pub(super) role: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct UpdateArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// The role, like reviewer
    #[arg(long, value_name = "ROLE")]
    pub(super) agent: String,
    /// pending, in_progress, done or blocked; in_progress takes the task and verifies the tree
    #[arg(long)]
    pub(super) status: String,
    /// The log of its quality checks
    #[arg(long, value_name = "PATH")]
    pub(super) qa_log: Option<String>,
    /// The session that works in this role
    #[arg(long, value_name = "ID")]
    pub(super) session_id: Option<String>,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct BlockArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// The role that found it
    #[arg(long, value_name = "ROLE")]
    pub(super) agent: String,
    /// What must be dealt with
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) finding: String,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SnapshotArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// The role whose work it is
    #[arg(long, value_name = "ROLE")]
    pub(super) agent: String,
    /// Take it although nothing differs from the base
    #[arg(long)]
    pub(super) allow_clean: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct VerifyArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// The role whose last snapshot must still be what is in the tree
    #[arg(long, value_name = "ROLE")]
    pub(super) expected_agent: String,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct DiffArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// The role whose last snapshot is meant
    #[arg(long, value_name = "ROLE")]
    pub(super) agent: String,
    /// from_base for everything so far, incremental for what this role did
    #[arg(long = "type", value_name = "TYPE", default_value = "from_base")]
    pub(super) kind: String,
    /// Print the diff itself
    #[arg(long)]
    pub(super) content: bool,
}

#[derive(Debug, Args)]
pub(crate) struct QaArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// The role that ran them
    #[arg(long, value_name = "ROLE")]
    pub(super) agent: String,
    /// The log, or `-` for standard input
    #[arg(long, value_name = "PATH")]
    pub(super) from: String,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct EvidenceArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// What it is: plan, design, excerpt, or another word
    #[arg(long = "type", value_name = "TYPE")]
    pub(super) kind: String,
    /// The file
    #[arg(long)]
    pub(super) path: String,
    /// Only these lines, like 10-24
    #[arg(long, value_name = "A-B")]
    pub(super) lines: Option<String>,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct RebuildArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// Cut text above 2 KiB, with a pointer to the task file
    #[arg(long)]
    pub(super) truncate: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ResolveArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// Why it is right to go on from the tree as it is
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(super) note: String,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
    #[command(flatten)]
    pub(super) secrets: SecretArgs,
}

#[derive(Debug, Args)]
pub(crate) struct CompleteArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    /// Complete it although a role is not done, is blocked, or a drift is open
    #[arg(long)]
    pub(super) force: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct PurgeArgs {
    /// The task, like TASK-0824
    pub(super) task: String,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SweepArgs {
    /// How long a context must have been left alone: a number and s, m, h, d or w
    #[arg(long, default_value = "7d")]
    pub(super) ttl: String,
    /// Also take contexts whose task is still in progress
    #[arg(long)]
    pub(super) all: bool,
    /// Only say what would be done
    #[arg(long)]
    pub(super) dry_run: bool,
    #[command(flatten)]
    pub(super) actor: ActorArgs,
}

#[derive(Debug, Args)]
pub(crate) struct ListArgs {
    /// Also those that were completed in the last 30 days
    #[arg(long, conflicts_with = "everywhere")]
    pub(super) archived: bool,
    /// Those of every checkout that the store knows of, latest written first
    #[arg(long)]
    pub(super) everywhere: bool,
    /// In this repository, owner/name
    #[arg(long, requires = "everywhere")]
    pub(super) repo: Option<String>,
    /// pending, in_progress, waiting, blocked, done or completed
    #[arg(long, requires = "everywhere")]
    pub(super) status: Option<String>,
    /// How many at the most
    #[arg(long, requires = "everywhere", allow_negative_numbers = true)]
    pub(super) limit: Option<i64>,
    /// How many to skip first
    #[arg(long, requires = "everywhere", allow_negative_numbers = true)]
    pub(super) offset: Option<i64>,
}
