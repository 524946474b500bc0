//! `baton key …`

use std::time::Duration;

use baton_app::checkpoint::{KEY_CACHE_TTL, ListWorkflows, ResealCheckpoints};
use baton_core::{CheckpointId, counted};
use baton_store::{BlobFolder, KeyId, KeyRing, SecretKey, Store, StoreError, Threads};
use clap::{Args, Subcommand};
use serde_json::json;

use crate::backend::Backend;
use crate::checkpoints;
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::encryption::ConfiguredKeys;
use crate::exit::Exit;
use crate::keys::{KeySource, Mode, SourceError};
use crate::output::{Answer, Failure, print_message};
use crate::store::{require_local, store_config, store_failure};
use crate::terminal::wrap;

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum KeyCommand {
    /// Show the encryption mode, the keys and their source
    #[command(after_help = "Example:\n  $ baton key status")]
    Status,
    /// Create a new key and re-encrypt all checkpoints with it
    #[command(after_help = "Example:\n  $ baton key rotate")]
    Rotate(RotateArgs),
}

#[derive(Debug, Args)]
pub(crate) struct RotateArgs {
    /// Delete old keys that are no longer in use
    #[arg(long)]
    drop_old: bool,
}

pub(crate) fn run(command: &KeyCommand, config: &Config) -> Result<Answer, Failure> {
    match command {
        KeyCommand::Status => status(config),
        KeyCommand::Rotate(args) => rotate(args, config),
    }
}

fn status(config: &Config) -> Result<Answer, Failure> {
    require_local(config, "managing keys")?;
    let keys = ConfiguredKeys::of(config);
    let (location, mode) = (location(keys.source()), mode(keys.mode()));
    let used = keys_in_use(config)?;
    let (ids, problem) = match keys.source().read() {
        Ok((ring, warning)) => {
            (ring.ids().map(|id| id.to_string()).collect(), warning.map(|warning| warning.to_string()))
        }
        Err(error) => (Vec::new(), Some(format!("{error}; {}", error.hint()))),
    };
    let missing: Vec<&String> = used.iter().map(|(id, _)| id).filter(|id| !ids.contains(*id)).collect();
    let mut lines = vec![format!("encryption is {mode}; keys are kept in {location}")];
    lines.extend(ids.first().map(|id| format!("current key: {id}")));
    lines.extend(ids.iter().skip(1).map(|id| format!("older key: {id}")));
    lines.extend(used.iter().map(|(id, count)| format!("{count} checkpoints are encrypted with {id}")));
    lines.extend(
        missing.iter().map(|id| format!("MISSING: key {id}; checkpoints encrypted with it cannot be loaded")),
    );
    lines.extend(problem.iter().map(|problem| format!("note: {problem}")));
    let used: Vec<_> = used.iter().map(|(id, count)| json!({ "key_id": id, "checkpoints": count })).collect();
    let data = json!({
        "mode": mode, "source": location, "keys": ids, "in_use": used, "missing": missing, "problem": problem,
    });
    Answer::new(&data, wrap(&lines.join("\n"), 4))
}

fn rotate(args: &RotateArgs, config: &Config) -> Result<Answer, Failure> {
    let keys = ConfiguredKeys::of(config);
    if keys.mode() == Mode::Off {
        return Err(Failure::usage("cannot rotate the keys: encryption is off")
            .hint("set BATON_ENCRYPTION=preferred or required first"));
    }
    require_local(config, "managing keys")?;
    replay_checkpoints(config)?;
    let fresh = SecretKey::random().map_err(|error| Failure::internal(error.to_string()))?;
    // If nothing was encrypted yet, create the first key.
    let rotated = match keys.source().read() {
        Ok(_) => keys.source().change(|keys| keys.rotated(fresh)),
        Err(_) if keys_in_use(config)?.is_empty() => keys.source().mint(fresh),
        Err(error) => Err(error),
    };
    let ring = rotated.map_err(|error| source_failure(&error))?;
    let (mut resealed, damaged) = reseal_all(config)?;
    let mut dropped = 0;
    if args.drop_old {
        // Running processes cache their keys for a short time. Checkpoints saved with an old key meanwhile are
        // re-encrypted.
        print_message("waiting until other processes use the new key");
        std::thread::sleep(KEY_CACHE_TTL + Duration::from_secs(1));
        resealed += reseal_all(config)?.0;
        let used: Vec<KeyId> = keys_in_use(config)?.iter().filter_map(|(id, _)| id.parse().ok()).collect();
        let left = keys.source().change(move |keys| keys.without_unneeded(|id| used.contains(&id)));
        let left = left.map_err(|error| source_failure(&error))?;
        dropped = removed_keys(&ring, &left);
    }
    let current = ring.current_id().to_string();
    let mut text = format!(
        "the current key is {current}; encrypted {} with it, deleted {}",
        counted(resealed, "checkpoint"),
        counted(dropped as u64, "old key")
    );
    if !damaged.is_empty() {
        text += &format!("; {} are damaged and were not re-encrypted", damaged.len());
    }
    let data =
        json!({ "key_id": current, "resealed": resealed, "damaged": damaged, "dropped_keys": dropped });
    Answer::new(&data, text)
}

/// Counts the keys that are missing from `after`. Another process may have added keys meanwhile.
fn removed_keys(before: &KeyRing, after: &KeyRing) -> usize {
    before.ids().filter(|id| !after.has(id)).count()
}

/// Replays checkpoints in the outbox, which may be encrypted with a key that is about to be deleted.
fn replay_checkpoints(config: &Config) -> Result<(), Failure> {
    Backend::local(config, "rotating keys")?.call::<ListWorkflows>(&ListWorkflows::default(), None)?;
    if checkpoints::outbox(config).count() > 0 {
        return Err(Failure::new(
            Exit::Conflict,
            "checkpoints_waiting",
            "cannot rotate the keys: checkpoints in the outbox (spill/) could not be replayed",
        )
        .hint("run baton doctor and repair the database, or move unreadable files away; then rotate again"));
    }
    Ok(())
}

/// Re-encrypts all checkpoints in batches. After an interruption both keys exist, and another rotation continues.
fn reseal_all(config: &Config) -> Result<(u64, Vec<CheckpointId>), Failure> {
    let backend = Backend::local(config, "rotating keys")?;
    let blobs = BlobFolder::at(DataDir::at(&config.data_dir).blobs());
    let (mut resealed, mut damaged, mut after) = (0, Vec::new(), None);
    loop {
        let done = backend.call::<ResealCheckpoints>(&ResealCheckpoints { after }, None)?;
        resealed += done.resealed;
        damaged.extend(done.damaged);
        for name in done.leftover_blobs {
            blobs.remove(&name).map_err(|error| store_failure(&error))?;
        }
        match done.next {
            Some(next) => after = Some(next),
            None => return Ok((resealed, damaged)),
        }
    }
}

/// Returns the ids of the keys in use and the number of checkpoints encrypted with each.
pub(crate) fn keys_in_use(config: &Config) -> Result<Vec<(String, u64)>, Failure> {
    let store = Store::open(&store_config(config, Threads::Caller)).map_err(|error| store_failure(&error))?;
    let used: Result<_, StoreError> = store.read(|tx| tx.keys_in_use()).wait();
    used.map_err(|error| store_failure(&error))
}

fn source_failure(error: &SourceError) -> Failure {
    Failure::new(Exit::Failure, "key_unavailable", error.to_string()).hint(error.hint())
}

const fn mode(mode: Mode) -> &'static str {
    match mode {
        Mode::Off => "off",
        Mode::Preferred => "preferred",
        Mode::Required => "required",
    }
}

fn location(source: &KeySource) -> String {
    match source {
        KeySource::File(file) => file.path().display().to_string(),
        KeySource::Keychain(_) => "the keychain".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_another_process_added_are_not_subtracted_from_the_removed_ones() {
        let [one, two, three] = [1, 2, 3].map(|byte| SecretKey::new(&[byte; 32]));
        let before = KeyRing::from(one).rotated(two);
        assert_eq!(removed_keys(&before, &before.clone().rotated(three.clone())), 0);
        let after = before.clone().without_unneeded(|_| false).rotated(three);
        assert_eq!(removed_keys(&before, &after), 1);
    }
}
