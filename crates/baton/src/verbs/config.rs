//! `baton config …`

use clap::Subcommand;
use serde_json::json;

use crate::config::{Config, Entry};
use crate::output::{Answer, Failure};
use crate::terminal::Header::{Text, Whole};
use crate::terminal::{Column, list_items, wrap};

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ConfigCommand {
    /// Show all settings with their values and sources
    #[command(after_help = "Example:\n  $ baton config show")]
    Show,
}

pub(crate) fn run(command: &ConfigCommand, config: &Config) -> Result<Answer, Failure> {
    match command {
        ConfigCommand::Show => {
            let entries = config.entries();
            let key_width = entries.iter().map(|entry| entry.key.len()).max().unwrap_or(0);
            let value_width =
                entries.iter().map(|entry| value_of(entry).chars().count()).max().unwrap_or(0).min(48);
            let line = |entry: &Entry| {
                format!("{:key_width$}  {:value_width$}  {}", entry.key, value_of(entry), entry.origin)
            };
            // A part of a path or an address is useless, so only a value longer than a line is broken.
            let columns: [Column<Entry>; _] = [
                (Whole("SETTING"), |entry| entry.key.to_owned()),
                (Whole("VALUE"), |entry| value_of(entry).to_owned()),
                (Text("SOURCE"), |entry| entry.origin.to_string()),
            ];
            let lines = list_items(&entries, "", line, columns);
            Answer::new(&json!({ "settings": entries }), wrap(&lines.join("\n"), 4))
        }
    }
}

fn value_of(entry: &Entry) -> &str {
    entry.value.as_deref().unwrap_or("-")
}
