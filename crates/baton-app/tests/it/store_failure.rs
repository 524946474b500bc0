//! Calls that fail because of the store.

use serde_json::json;

use crate::stage::{Stage, refused, who};

#[test]
fn only_writes_say_that_nothing_was_stored() {
    for stage in Stage::each() {
        let rename = "ALTER TABLE sessions RENAME TO elsewhere";
        stage.store.place().execute(rename, rename);
        let read = refused(&stage.call("session.list", json!({ "venture": "v" })), "internal");
        assert_eq!(read["message"], "internal error", "{read}");
        let write = refused(&stage.call("session.start", who("a")), "internal");
        assert_eq!(write["message"], "internal error; nothing was stored", "{write}");
        let back = "ALTER TABLE elsewhere RENAME TO sessions";
        stage.store.place().execute(back, back);
    }
}
