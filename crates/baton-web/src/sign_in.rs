//! Sign-in: one-time codes for the local browser, the signed cookie, and the token of forms.
//!
//! The cookie holds an access token, or for the local browser an expiry time signed with the relay key. Nothing else is
//! stored, so that any of several servers accepts it, also after a restart.

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
/// Validity of the cookie.
const COOKIE_TTL: Duration = Duration::from_secs(7 * 24 * 60 * 60);
const LOCAL: &str = "local.";

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

/// Content of a valid cookie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInCookie {
    /// The browser was signed in with a one-time code or the relay key.
    Local,
    /// An access token, which is not checked yet.
    Token(String),
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

    /// Returns the cookie of the local browser.
    pub fn local_cookie(&self, now: Timestamp) -> String {
        let until = now.plus(COOKIE_TTL).as_millis();
        format!("{LOCAL}{until}.{}", self.sign("cookie", &until.to_string()))
    }

    /// Returns the lifetime of a cookie in seconds.
    pub const fn cookie_seconds() -> u64 {
        COOKIE_TTL.as_secs()
    }

    /// Checks a cookie.
    pub fn read_cookie(&self, cookie: &str, now: Timestamp) -> Option<SignInCookie> {
        let Some(signed) = cookie.strip_prefix(LOCAL) else {
            return cookie.starts_with("bt_").then(|| SignInCookie::Token(cookie.to_owned()));
        };
        let (until, signature) = signed.split_once('.')?;
        let is_signed = is_equal(signature, &self.sign("cookie", until));
        let is_valid = is_signed && until.parse().is_ok_and(|until: i64| until > now.as_millis());
        is_valid.then_some(SignInCookie::Local)
    }

    /// Returns the token that forms of a browser with this cookie contain.
    pub fn csrf(&self, cookie: &str) -> String {
        self.sign("form", cookie)
    }

    /// Checks the token of a form.
    pub fn is_csrf(&self, cookie: &str, token: &str) -> bool {
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
    fn a_cookie_is_valid_until_it_expires_and_only_with_its_key() {
        let sign_in = SignIn::new("key");
        let cookie = sign_in.local_cookie(NOW);
        assert_eq!(sign_in.read_cookie(&cookie, NOW), Some(SignInCookie::Local));
        assert_eq!(sign_in.read_cookie(&cookie, NOW.plus(COOKIE_TTL)), None);
        assert_eq!(SignIn::new("other").read_cookie(&cookie, NOW), None);
        let forged = cookie.replacen(&NOW.plus(COOKIE_TTL).as_millis().to_string(), "9999999999999", 1);
        assert_ne!(forged, cookie);
        for bad in [forged.as_str(), "local.", "local.1", "local.1.", "", "x"] {
            assert_eq!(sign_in.read_cookie(bad, NOW), None, "{bad}");
        }
        assert_eq!(sign_in.read_cookie("bt_a", NOW), Some(SignInCookie::Token("bt_a".to_owned())));
    }

    #[test]
    fn a_form_token_belongs_to_one_cookie() {
        let sign_in = SignIn::new("key");
        let (one, other) = (sign_in.local_cookie(NOW), "bt_a");
        assert!(sign_in.is_csrf(&one, &sign_in.csrf(&one)));
        assert!(!sign_in.is_csrf(other, &sign_in.csrf(&one)));
        assert!(!sign_in.is_csrf(&one, ""));
    }
}
