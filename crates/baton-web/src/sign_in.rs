//! Sign-in: one-time codes of links, the cookie, and the CSRF token of forms.
//!
//! The cookie holds an access token. A browser that signs in with a link or the relay key gets a token of its own, which
//! is revoked when it signs out; the cookie then also has a signature made with the relay key. All other state is in the
//! store, so that any of several servers accepts the cookie, also after a restart.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use baton_core::Timestamp;
use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;
use subtle::ConstantTimeEq;

/// Validity of a one-time code.
const CODE_TTL: Duration = Duration::from_secs(15 * 60);
/// Maximum number of unused codes.
const MAX_CODES: usize = 100;
/// Prefix of the cookie of a browser for which a token was created.
const OWN_TOKEN_PREFIX: &str = "local.";

/// Days until a browser must sign in again.
pub const SIGN_IN_DAYS: u32 = 7;

/// Issues and checks credentials of browsers.
pub struct SignIn {
    key: Vec<u8>,
    codes: Mutex<HashMap<String, Timestamp>>,
}

impl fmt::Debug for SignIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SignIn")
    }
}

/// Content of a cookie. The token is not checked yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignInCookie {
    /// Access token.
    pub token: String,
    /// True if the token was created for this browser.
    pub has_own_token: bool,
}

impl SignIn {
    /// Signs cookies with the relay key.
    pub fn new(relay_key: &str) -> Self {
        Self { key: relay_key.as_bytes().to_vec(), codes: Mutex::default() }
    }

    /// Makes a code from random bits. It can be used once within 15 minutes.
    pub fn add_code(&self, random: [u128; 2], now: Timestamp) -> String {
        let code = format!("{:032x}{:032x}", random[0], random[1]);
        let mut codes = self.codes();
        codes.retain(|_, until| *until > now);
        if codes.len() >= MAX_CODES
            && let Some(oldest) = codes.iter().min_by_key(|(_, until)| **until).map(|(code, _)| code.clone())
        {
            codes.remove(&oldest);
        }
        codes.insert(code.clone(), now.plus(CODE_TTL));
        code
    }

    /// Redeems a code. Returns false if it is unknown, used or expired.
    pub fn redeem(&self, code: &str, now: Timestamp) -> bool {
        self.codes().remove(code).is_some_and(|until| until > now)
    }

    /// Returns the cookie of a browser for which a token was created.
    pub fn own_token_cookie(&self, token: &str) -> String {
        format!("{OWN_TOKEN_PREFIX}{token}.{}", self.sign("cookie", token))
    }

    /// Reads a cookie. Returns `None` if it is not one of this server.
    pub fn read_cookie(&self, cookie: &str) -> Option<SignInCookie> {
        let (token, has_own_token) = match cookie.strip_prefix(OWN_TOKEN_PREFIX) {
            Some(signed) => {
                let (token, signature) = signed.rsplit_once('.')?;
                (is_equal(signature, &self.sign("cookie", token)).then_some(token)?, true)
            }
            None => (cookie, false),
        };
        token.starts_with("bt_").then(|| SignInCookie { token: token.to_owned(), has_own_token })
    }

    /// Returns the token that forms of a browser with this cookie contain.
    pub fn csrf(&self, cookie: &str) -> String {
        self.sign("form", cookie)
    }

    /// Checks the token of a form.
    pub fn is_valid_csrf(&self, cookie: &str, token: &str) -> bool {
        is_equal(token, &self.csrf(cookie))
    }

    fn sign(&self, purpose: &str, text: &str) -> String {
        let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&self.key) else { return String::new() };
        mac.update(format!("baton dashboard {purpose}\n{text}").as_bytes());
        mac.finalize().into_bytes().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    fn codes(&self) -> MutexGuard<'_, HashMap<String, Timestamp>> {
        self.codes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Compares in constant time. An empty text equals nothing.
fn is_equal(one: &str, other: &str) -> bool {
    !one.is_empty() && bool::from(one.as_bytes().ct_eq(other.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_700_000_000_000);

    #[test]
    fn a_code_works_once_and_expires() {
        let sign_in = SignIn::new("key");
        let (first, second) = (sign_in.add_code([1, 2], NOW), sign_in.add_code([3, 4], NOW));
        assert!(sign_in.redeem(&first, NOW));
        assert!(!sign_in.redeem(&first, NOW));
        assert!(!sign_in.redeem(&second, NOW.plus(CODE_TTL)));
        assert!(!sign_in.redeem("", NOW));
    }

    #[test]
    fn old_codes_are_dropped_when_there_are_too_many() {
        let sign_in = SignIn::new("key");
        let first = sign_in.add_code([0, 0], NOW);
        for number in 1..=MAX_CODES as u128 {
            sign_in.add_code([number, 0], NOW.plus(Duration::from_secs(1)));
        }
        assert!(!sign_in.redeem(&first, NOW));
        assert_eq!(sign_in.codes().len(), MAX_CODES);
    }

    #[test]
    fn the_cookie_of_a_link_is_only_valid_with_its_key() {
        let sign_in = SignIn::new("key");
        let cookie = sign_in.own_token_cookie("bt_a");
        let read = SignInCookie { token: "bt_a".to_owned(), has_own_token: true };
        assert_eq!(sign_in.read_cookie(&cookie), Some(read.clone()));
        assert_eq!(SignIn::new("other").read_cookie(&cookie), None);
        let forged = cookie.replacen("bt_a", "bt_b", 1);
        for bad in [forged.as_str(), "local.", "local.1", "local.bt_a", "local.bt_a.", "", "x"] {
            assert_eq!(sign_in.read_cookie(bad), None, "{bad}");
        }
        assert_eq!(sign_in.read_cookie("bt_a"), Some(SignInCookie { has_own_token: false, ..read }));
    }

    #[test]
    fn a_form_token_belongs_to_one_cookie() {
        let sign_in = SignIn::new("key");
        let (one, other) = (sign_in.own_token_cookie("bt_a"), "bt_a");
        assert!(sign_in.is_valid_csrf(&one, &sign_in.csrf(&one)));
        assert!(!sign_in.is_valid_csrf(other, &sign_in.csrf(&one)));
        assert!(!sign_in.is_valid_csrf(&one, ""));
    }
}
