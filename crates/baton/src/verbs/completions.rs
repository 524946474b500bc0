//! `baton completions`

use clap::{Args, Command};
use clap_complete::Shell;
use serde_json::json;

use crate::output::{Answer, Failure};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ source <(baton completions bash)
  $ baton completions zsh > ~/.local/share/zsh/site-functions/_baton
  $ baton completions fish > ~/.config/fish/completions/baton.fish";

#[derive(Debug, Args)]
pub(crate) struct CompletionsArgs {
    /// Shell to generate the script for
    #[arg(value_enum)]
    shell: Shell,
}

pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> Result<Answer, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, "baton", &mut script);
    let script = String::from_utf8_lossy(&script).into_owned();
    Answer::new(&json!({ "shell": args.shell.to_string(), "script": script }), script)
}
