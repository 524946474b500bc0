//! Encryption keys according to the configuration, and the warnings about missing ones.

use std::io::IsTerminal;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use baton_app::checkpoint::{Keys, Sealing};
use baton_store::SecretKey;

use crate::config::Config;
use crate::keys::{Decision, KeyFile, KeySource, Keychain, Mode, Sealed, obtain};
use crate::output::{note, warn};

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
        let sealed = if is_anything_sealed { Sealed::Some } else { Sealed::None };
        if self.mode == Mode::Off && sealed == Sealed::None {
            return Sealing::Plain(None);
        }
        let fresh = match SecretKey::random() {
            Ok(fresh) => fresh,
            Err(error) => {
                let hint = "see that /dev/urandom can be read".to_owned();
                return Sealing::Refused { reason: error.to_string(), hint };
            }
        };
        let obtained = obtain(self.mode, &self.source, sealed, fresh);
        if let Some(warning) = obtained.warning
            && !self.has_warned.swap(true, Ordering::Relaxed)
        {
            warn(&warning.to_string());
        }
        match obtained.decision {
            Decision::Plain { opening } => Sealing::Plain(opening),
            Decision::Use(keys) => Sealing::Sealed(keys),
            Decision::PlainWithWarning { reason, hint } => {
                if !self.has_warned.swap(true, Ordering::Relaxed) {
                    warn(&format!(
                        "contexts are stored unencrypted although encryption is preferred: {reason}"
                    ));
                    note(&format!("next: {hint}"));
                }
                Sealing::Fallback { reason, hint }
            }
            Decision::Refuse { reason, hint } => Sealing::Refused { reason, hint },
            // Unreachable: `obtain` creates the key itself and never returns `Mint`.
            Decision::Mint => Sealing::Refused {
                reason: "no key could be made".into(),
                hint: "keep the keys in a file: BATON_ENCRYPTION_KEY_FILE=<path>".into(),
            },
        }
    }
}
