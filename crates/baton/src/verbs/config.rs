//! `baton config …`

use clap::Subcommand;
use serde_json::json;

use crate::config::{Config, Entry};
use crate::output::{Answer, Failure};

#[derive(Debug, Subcommand)]
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
            let lines: Vec<String> = entries
                .iter()
                .map(|entry| {
                    format!("{:key_width$}  {:value_width$}  {}", entry.key, value_of(entry), entry.origin)
                })
                .collect();
            Ok(Answer::new(json!({ "settings": entries }), lines.join("\n")))
        }
    }
}

fn value_of(entry: &Entry) -> &str {
    entry.value.as_deref().unwrap_or("-")
}
