//! Encryption keys according to the configuration, and the warnings about missing ones.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_app::checkpoint::{Keys, Sealing};
use baton_store::SecretKey;

use crate::config::Config;
use crate::keys::{KeyFile, KeySource, Keychain, Mode, decide};
use crate::output::{print_message, warn};

/// Keychain timeout if standard input is a terminal: the keychain may ask the user for a password.
const INTERACTIVE_TIMEOUT: Duration = Duration::from_secs(60);
/// Keychain timeout without a terminal, where no user can answer a password prompt.
const UNATTENDED_TIMEOUT: Duration = Duration::from_secs(2);

/// Source of the configured encryption keys.
#[derive(Debug, Clone)]
pub(crate) struct ConfiguredKeys {
    mode: Mode,
    source: KeySource,
    /// True after the first warning. Keys are read repeatedly, but the user is warned once per process.
    has_warned: Arc<AtomicBool>,
}

impl ConfiguredKeys {
    pub(crate) fn of(config: &Config) -> Self {
        let source = match &config.encryption_key_file {
            Some(path) => KeySource::File(KeyFile::at(path)),
            None => {
                let is_interactive = std::io::stdin().is_terminal();
                let deadline = if is_interactive { INTERACTIVE_TIMEOUT } else { UNATTENDED_TIMEOUT };
                KeySource::Keychain(Keychain::new(&config.keychain_lock, deadline))
            }
        };
        Self { mode: config.encryption, source, has_warned: Arc::default() }
    }

    pub(crate) const fn mode(&self) -> Mode {
        self.mode
    }

    pub(crate) const fn source(&self) -> &KeySource {
        &self.source
    }
}

impl Keys for ConfiguredKeys {
    fn obtain(&self, is_anything_sealed: bool) -> Sealing {
        // Nothing to encrypt and nothing to decrypt, so the keychain must not prompt for its password.
        if self.mode == Mode::Off && !is_anything_sealed {
            return Sealing::Plain(None);
        }
        let fresh = match SecretKey::random() {
            Ok(fresh) => fresh,
            Err(error) => {
                let hint = "check that /dev/urandom can be read".to_owned();
                return Sealing::Refused { reason: error.to_string(), hint };
            }
        };
        let (keys, warning) = match self.source.read() {
            Ok((keys, warning)) => (Ok(keys), warning),
            Err(error) => (Err(error), None),
        };
        let sealing = decide(self.mode, keys, is_anything_sealed, || self.source.mint(fresh));
        if let Some(warning) = warning
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            warn(&warning.to_string());
        }
        if let Sealing::Fallback { reason, hint } = &sealing
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            warn(&format!("contexts are stored unencrypted although encryption is preferred: {reason}"));
            print_message(&format!("next: {hint}"));
        }
        sealing
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn obtain(mode: Mode, path: &Path, is_anything_sealed: bool) -> Sealing {
        let source = KeySource::File(KeyFile::at(path));
        ConfiguredKeys { mode, source, has_warned: Arc::default() }.obtain(is_anything_sealed)
    }

    #[test]
    fn the_first_key_is_created_once_and_reused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        let Sealing::Sealed(keys) = obtain(Mode::Preferred, &path, false) else { panic!("no key") };
        assert!(matches!(obtain(Mode::Required, &path, true), Sealing::Sealed(found) if found == keys));
        assert!(matches!(obtain(Mode::Off, &path, true), Sealing::Plain(Some(found)) if found == keys));
        assert!(matches!(obtain(Mode::Off, &path, false), Sealing::Plain(None)));
    }

    #[test]
    fn no_key_is_created_if_the_store_has_encrypted_data() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("keys");
        for mode in [Mode::Off, Mode::Preferred, Mode::Required] {
            obtain(mode, &path, true);
            assert!(!path.exists(), "{mode:?}");
        }
    }

    #[test]
    fn a_key_that_cannot_be_stored_is_not_used() {
        let path = Path::new("/nowhere/at/all/keys");
        let Sealing::Fallback { reason, .. } = obtain(Mode::Preferred, path, false) else { panic!("used") };
        assert!(reason.contains("/nowhere/at/all/keys"), "{reason}");
        assert!(matches!(obtain(Mode::Required, path, false), Sealing::Refused { .. }));
    }
}
