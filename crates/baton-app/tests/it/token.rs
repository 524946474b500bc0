//! Authentication with tokens: expiry, revocation and unknown credentials.

use baton_core::{Access, ErrorCode, VentureScope};
use baton_testkit::processes::wait_until;
use serde_json::json;

use crate::stage::{DAY, HOUR, MILLISECOND, NOW, Stage, ok, wait};

#[test]
fn token_is_valid_until_it_expires() {
    for stage in Stage::each() {
        let params = json!({ "name": "t", "access": "read", "ventures": ["v"], "expires_in_days": 1 });
        let token = ok(&stage.call("token.create", params))["token"].as_str().unwrap().to_owned();
        let authenticator = stage.app.authenticator("shared key");
        let actor = wait(authenticator.actor(Some(&token))).unwrap();
        assert_eq!(
            (actor.access, &actor.ventures),
            (Access::Read, &VentureScope::Only(vec!["v".parse().unwrap()]))
        );
        stage.clock.set(NOW.plus(DAY - MILLISECOND));
        assert!(wait(authenticator.actor(Some(&token))).is_ok());
        stage.clock.set(NOW.plus(DAY));
        let fault = wait(authenticator.actor(Some(&token))).unwrap_err();
        assert_eq!((fault.code, fault.message.as_str()), (ErrorCode::Unauthorized, "the token has expired"));
        assert!(wait(authenticator.actor(Some("shared key"))).is_ok());
    }
}

#[test]
fn revocation_takes_effect_even_if_the_clock_was_set_back() {
    for stage in Stage::each() {
        let made = ok(&stage.call("token.create", json!({ "name": "t", "access": "write" })));
        let token = made["token"].as_str().unwrap();
        let authenticator = stage.app.authenticator("shared key");
        assert!(wait(authenticator.actor(Some(token))).is_ok());
        ok(&stage.call("token.revoke", json!({ "token_id": made["info"]["id"] })));
        let fresh = stage.app.authenticator("shared key");
        assert!(wait(fresh.actor(Some(token))).is_err(), "a token that is not cached is rejected at once");
        stage.clock.set(NOW.minus(HOUR));
        let mut rejected = None;
        wait_until("the revoked token is rejected", || {
            rejected = wait(authenticator.actor(Some(token))).err();
            rejected.is_some()
        });
        let fault = rejected.unwrap();
        assert_eq!((fault.code, fault.message.as_str()), (ErrorCode::Unauthorized, "the token was revoked"));
    }
}

#[test]
fn all_unknown_credentials_get_the_same_error() {
    for stage in Stage::each() {
        let made = ok(&stage.call("token.create", json!({ "name": "t", "access": "write" })));
        let token = made["token"].as_str().unwrap().to_owned();
        ok(&stage.call("token.revoke", json!({ "token_id": made["info"]["id"] })));
        let authenticator = stage.app.authenticator("shared key");
        let other_secret = format!("{}{}", &token[..20], "0".repeat(64));
        let other_id = format!("bt_{}_{}", "0".repeat(16), &token[20..]);
        for credential in ["", "shared", "shared key ", &other_secret, &other_id] {
            let fault = wait(authenticator.actor(Some(credential))).unwrap_err();
            assert_eq!(fault.message, "the credential is unknown", "{credential}");
        }
        assert_eq!(wait(authenticator.actor(None)).unwrap_err().code, ErrorCode::Unauthorized);
    }
}
