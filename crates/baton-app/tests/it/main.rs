//! Operations through the application layer, with a clock that tests set.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod bundle;
mod chat_recall;
mod checkpoint;
mod checkpoint_damage;
mod checkpoint_model;
mod checkpoint_names;
mod checkpoint_room;
mod checkpoint_view;
mod cleanup;
mod clock;
mod handoff;
mod history;
mod idempotency;
mod liveness;
mod machine;
mod memory;
mod note;
mod observation_end;
mod observation_hook;
mod observation_list;
mod observation_scope;
mod observing;
mod outbox;
mod recall;
mod request_log;
mod saving;
mod schemas;
mod stage;
mod store_failure;
mod token;
mod transcript;
mod turn;
