//! Authentication: finds the actor of a credential.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::{Actor, ErrorCode, Fault, PresentedToken, Sha256Hash, Token, TokenId};
use baton_store::StoreError;

use crate::shared::Shared;

/// Time to live of a cached token. A revocation takes effect after at most this time.
const CACHE_TTL: Duration = Duration::from_secs(2);
/// Maximum number of cached tokens.
const CACHE_CAPACITY: usize = 10_000;

/// Authenticates the shared key and the tokens in the store.
pub struct Authenticator {
    shared: Arc<Shared>,
    shared_key_hash: Sha256Hash,
    shared_key_actor: Actor,
    /// Cached tokens and their expiry. Monotonic time is used because setting the clock back must not extend the use of
    /// a revoked token.
    cache: Mutex<HashMap<TokenId, (Token, Instant)>>,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authenticator({})", self.shared_key_actor.key_id)
    }
}

impl Authenticator {
    pub(crate) fn new(shared: Arc<Shared>, shared_key: &str) -> Self {
        Self {
            shared,
            shared_key_hash: Sha256Hash::of(shared_key.as_bytes()),
            shared_key_actor: Actor::shared(shared_key),
            cache: Mutex::new(HashMap::new()),
        }
    }

    /// Returns the actor of a credential. Hashes are compared in constant time, so that timing reveals neither the
    /// length nor a prefix of the key.
    pub async fn actor(&self, credential: Option<&str>) -> Result<Actor, Fault> {
        let Some(credential) = credential else {
            return Err(unauthorized("no credential was sent"));
        };
        if let Some(presented) = PresentedToken::parse(credential) {
            let now = self.shared.now();
            let token = self.token(&presented.id).await?;
            return token.ok_or_else(unknown)?.authenticate(&presented, now);
        }
        if Sha256Hash::of(credential.as_bytes()).eq_constant_time(&self.shared_key_hash) {
            Ok(self.shared_key_actor.clone())
        } else {
            Err(unknown())
        }
    }

    pub const fn shared_key_actor(&self) -> &Actor {
        &self.shared_key_actor
    }

    /// Returns true if a credential is a token that is not cached.
    pub fn needs_lookup(&self, credential: Option<&str>) -> bool {
        let presented = credential.and_then(PresentedToken::parse);
        presented.is_some_and(|presented| !self.cache().contains_key(&presented.id))
    }

    /// Removes a token from the cache, so that a revocation takes effect at its next use.
    pub fn evict(&self, id: &TokenId) {
        self.cache().remove(id);
    }

    async fn token(&self, id: &TokenId) -> Result<Option<Token>, Fault> {
        if let Some((token, until)) = self.cache().get(id)
            && Instant::now() < *until
        {
            return Ok(Some(token.clone()));
        }
        let (wanted, looked_up_at) = (id.clone(), Instant::now());
        let found = self.shared.store.read(move |tx| tx.token(&wanted)).await;
        let found = found.map_err(|error: StoreError| Fault::from(error))?;
        let mut cache = self.cache();
        if cache.len() >= CACHE_CAPACITY {
            cache.clear();
        }
        match &found {
            Some(token) => _ = cache.insert(id.clone(), (token.clone(), looked_up_at + CACHE_TTL)),
            None => _ = cache.remove(id),
        }
        Ok(found)
    }

    fn cache(&self) -> std::sync::MutexGuard<'_, HashMap<TokenId, (Token, Instant)>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown() -> Fault {
    unauthorized("the credential is unknown")
}

fn unauthorized(problem: &str) -> Fault {
    Fault::new(ErrorCode::Unauthorized, problem).hint(
        "send the relay key (relay.key in the server's data folder) or a token (baton token create) as \
         `Authorization: Bearer` or `X-Relay-Key`; the command line takes it from BATON_RELAY_KEY",
    )
}
