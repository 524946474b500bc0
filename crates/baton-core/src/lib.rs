//! Domain types and rules of Baton.
//!
//! This crate has no I/O, no clock, no randomness and no async: `now`, ids and random bits are arguments.
//! Every function is deterministic.

mod actor;
mod canonical;
pub mod checkpoint;
mod cursor;
mod error;
mod handoff;
mod id;
mod idempotency;
mod json;
mod merge;
mod meta;
mod name;
mod note;
pub mod observation;
mod operation;
mod params;
mod plain;
pub mod recall;
mod request;
mod schema;
mod session;
pub mod task;
mod text;
mod time;
mod token;
mod token_estimate;
mod track_filter;
mod truncate;
mod violation;
mod wire;
mod word_list;

pub use actor::{Access, Actor, ActorKeyId, VentureScope};
pub use canonical::{Canonical, HashError, Sha256Hash};
pub use cursor::{Cursor, CursorError};
pub use error::{ErrorCode, Fault};
pub use handoff::{
    HANDOFF_SCHEMA_1_0, Handoff, HandoffAuthor, HandoffDraft, HandoffFields, HandoffReferences,
    MAX_PAYLOAD_BYTES,
};
pub use id::{
    CheckpointId, HandoffId, IdError, IdKind, NoteId, ObservationId, PartialId, SessionId, UlidSequence,
};
pub use idempotency::{IdempotencyKey, KeyClaim, KeyRecord, KeyScope, require_same_request};
pub use json::{
    JsonError, JsonErrorKind, JsonKind, JsonMember, JsonText, MAX_DEPTH, RoundedInteger, add_member,
    canonicalize, compare_keys, indent, json_tokens, plain_length, read_canonical_object, read_strict,
    read_strict_within, read_with_canonical_member, remove_member, repair_escape, write_string,
};
pub use merge::merge_patch;
pub use meta::{MAX_META_BYTES, require_valid_meta};
pub use name::{Agent, ClientSessionId, CorrelationId, IssueNumber, Label, NameError, Repo, Track, Venture};
pub use note::{MAX_NOTE_CHARS, Note, NoteKind, note_file, note_text};
pub use operation::{
    Effect, KeyUse, Operation, OperationDescription, Privacy, ReplayFirst, RequestFormat, RequestLogging,
    Target,
};
pub use params::{integral, read_params};
pub use plain::{strip_control, strip_overwritten, visible, without_control_characters};
pub use request::{LoggedRequest, RequestRecord, Since, SinceError, StatusFilter, StatusFilterError};
pub use schema::{output_schema, params_schema};
pub use session::{
    EndReason, HeartbeatPolicy, Liveness, Session, SessionFacts, SessionStatus, SessionTuple, StartDecision,
};
pub use text::{counted, require_no_nul, require_plain_text};
pub use time::{TimeError, TimeRangeError, Timestamp};
pub use token::{PresentedToken, Token, TokenId};
pub use token_estimate::estimate_tokens;
pub use track_filter::{TrackFilter, TrackFilterError};
pub use truncate::{first_characters, one_line, printable, shorten, shorten_with_notice};
pub use ulid::Ulid;
pub use violation::SCHEMA_KEYWORDS;
pub use word_list::{contains_any, ends_with_any, is_any, starts_with_any, strip_any};
