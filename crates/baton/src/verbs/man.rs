//! `baton man`: manual pages, generated from the definition of the command line.

use std::path::PathBuf;

use clap::{Args, Command};
use clap_mangen::Man;
use serde_json::json;

use crate::VERSION;
use crate::output::{Answer, Failure};

pub(crate) const EXAMPLES: &str = "\
Examples:
  $ baton man ~/.local/share/man/man1
  $ man baton-session-start";

#[derive(Debug, Args)]
pub(crate) struct ManArgs {
    /// Folder for the pages, created if it does not exist
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
}

/// Writes a page for a built command and for each of its verbs.
pub(crate) fn run(args: &ManArgs, command: Command) -> Result<Answer, Failure> {
    let folder = &args.folder;
    let unwritable = |error: std::io::Error| {
        Failure::internal(format!("cannot write manual pages to {}: {error}", folder.display()))
            .hint("name a folder that can be written")
    };
    std::fs::create_dir_all(folder).map_err(unwritable)?;
    let mut pages = Vec::new();
    let mut remaining = vec![command];
    while let Some(command) = remaining.pop() {
        let verbs = command.get_subcommands();
        remaining.extend(verbs.filter(|verb| !verb.is_hide_set() && verb.get_name() != "help").cloned());
        let page = Man::new(command).manual("Baton manual").source(format!("baton {VERSION}"));
        let page = page.generate_to(folder).map_err(unwritable)?;
        pages.extend(page.file_name().map(|name| name.to_string_lossy().into_owned()));
    }
    pages.sort();
    let text = format!("wrote {} manual pages to {}", pages.len(), folder.display());
    Answer::new(&json!({ "folder": folder, "pages": pages }), text)
}
