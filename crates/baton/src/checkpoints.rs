//! Builds the checkpoint settings from the configuration: quotas, rules, compression, folders, keys.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use baton_app::CheckpointSettings;
use baton_app::checkpoint::ContextStorage;
use baton_checkpoint::classify::{Classifier, RulesFile};
use baton_store::{BlobFolder, Outbox, Packing, Threads};
use serde_json::Value;

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::encryption::ConfiguredKeys;
use crate::exit::Exit;
use crate::output::Failure;
use crate::store::store_config;

pub(crate) fn settings(config: &Config) -> Result<CheckpointSettings, Failure> {
    Ok(CheckpointSettings {
        max_checkpoints: config.checkpoint_max_per_workflow,
        max_total_bytes: config.checkpoint_max_total_bytes,
        retention: Duration::from_secs(config.checkpoint_retention_days * 86_400),
        classifier: Arc::new(classifier(config)?),
        storage: storage(config),
    })
}

/// Returns the outbox of checkpoints and notes.
pub(crate) fn outbox(config: &Config) -> Outbox {
    Outbox::at(DataDir::at(&config.data_dir).spill(), Some(store_config(config, Threads::Caller).target()))
}

fn storage(config: &Config) -> ContextStorage {
    let packing = Packing {
        effort: config.checkpoint_compression,
        min_bytes: config.checkpoint_min_size_for_compression,
    };
    // A PostgreSQL store may be used from several machines, so content is stored in the database, not in local files.
    let is_local = config.database_url.is_none();
    let folder = DataDir::at(&config.data_dir);
    let blobs = is_local.then(|| BlobFolder::at(folder.blobs()));
    ContextStorage::new(packing).with_blobs(blobs).with_keys(ConfiguredKeys::of(config))
}

fn classifier(config: &Config) -> Result<Classifier, Failure> {
    let classifier = match &config.checkpoint_rules_file {
        None => Classifier::builtin(),
        Some(path) => Classifier::with_rules(read_rules(path)?),
    };
    Ok(if config.checkpoint_heuristics { classifier } else { classifier.without_heuristics() })
}

/// Reads a rules file: JSON if the extension is `.json`, otherwise TOML.
fn read_rules(path: &Path) -> Result<RulesFile, Failure> {
    let failed = |problem: String| {
        Failure::new(Exit::Usage, "invalid_config", format!("cannot read the rules file {}: {problem}", path.display()))
            .hint("fix the file, or unset checkpoint.rules_file (BATON_CHECKPOINT_RULES_FILE); docs/checkpoints.md shows one")
    };
    let text = std::fs::read_to_string(path).map_err(|error| failed(error.to_string()))?;
    let document: Value = if path.extension().is_some_and(|extension| extension == "json") {
        serde_json::from_str(&text).map_err(|error| failed(error.to_string()))?
    } else {
        toml::from_str(&text).map_err(|error| failed(error.to_string()))?
    };
    RulesFile::read(&document).map_err(|error| failed(error.to_string()))
}
