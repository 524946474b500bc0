//! How a credential becomes an actor.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::{Actor, ErrorCode, Fault, PresentedToken, Sha256Hash, Token, TokenId};
use baton_store::StoreError;

use crate::app::App;

/// How long a token that was looked up is trusted before it is looked up again; a revocation takes at most this long.
const TRUST: Duration = Duration::from_secs(2);
/// How many tokens are remembered.
const REMEMBERED: usize = 10_000;

/// Knows the shared key and, through the store, the tokens.
pub struct Authenticator {
    app: App,
    shared: Sha256Hash,
    holder: Actor,
    /// Tokens that were looked up, and until when they are trusted. Monotonic time: setting the clock back must not
    /// extend the trust in a token that was revoked.
    remembered: Mutex<HashMap<TokenId, (Token, Instant)>>,
}

impl fmt::Debug for Authenticator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Authenticator({})", self.holder.key_id)
    }
}

impl Authenticator {
    /// Takes the shared key.
    pub fn new(app: App, shared_key: &str) -> Self {
        Self {
            app,
            shared: Sha256Hash::of(shared_key.as_bytes()),
            holder: Actor::shared(shared_key),
            remembered: Mutex::new(HashMap::new()),
        }
    }

    /// Finds the actor of a credential. Hashes are compared, in constant time, so that neither a key's length nor its
    /// start can be guessed from how long it takes.
    pub async fn actor(&self, credential: Option<&str>) -> Result<Actor, Fault> {
        let Some(credential) = credential else {
            return Err(unauthorized("no credential was sent"));
        };
        if let Some(presented) = PresentedToken::parse(credential) {
            let now = self.app.now();
            let token = self.token(&presented.id).await?;
            return token.ok_or_else(unknown)?.admit(&presented, now);
        }
        if Sha256Hash::of(credential.as_bytes()).fits(&self.shared) {
            Ok(self.holder.clone())
        } else {
            Err(unknown())
        }
    }

    /// Tells whether a credential is a token that was never found before, which only the database knows.
    pub fn needs_lookup(&self, credential: Option<&str>) -> bool {
        let presented = credential.and_then(PresentedToken::parse);
        presented.is_some_and(|presented| !self.remembered().contains_key(&presented.id))
    }

    async fn token(&self, id: &TokenId) -> Result<Option<Token>, Fault> {
        if let Some((token, until)) = self.remembered().get(id)
            && Instant::now() < *until
        {
            return Ok(Some(token.clone()));
        }
        let (wanted, looked_up_at) = (id.clone(), Instant::now());
        let found = self.app.store().read(move |tx| tx.token(&wanted)).await;
        let found = found.map_err(|error: StoreError| Fault::from(error))?;
        let mut remembered = self.remembered();
        if remembered.len() >= REMEMBERED {
            remembered.clear();
        }
        match &found {
            Some(token) => _ = remembered.insert(id.clone(), (token.clone(), looked_up_at + TRUST)),
            None => _ = remembered.remove(id),
        }
        Ok(found)
    }

    fn remembered(&self) -> std::sync::MutexGuard<'_, HashMap<TokenId, (Token, Instant)>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn unknown() -> Fault {
    unauthorized("the credential is not known here")
}

fn unauthorized(problem: &str) -> Fault {
    Fault::new(ErrorCode::Unauthorized, problem).hint(
        "send the relay key (relay.key in the server's data folder) or a token (baton token create) as \
         `Authorization: Bearer` or `X-Relay-Key`; the command line takes it from BATON_RELAY_KEY",
    )
}
