//! What an operation is, typed for those who write one and erased for those who route to one.

use std::marker::PhantomData;

use baton_core::{
    Actor, CheckpointId, CorrelationId, ErrorCode, Fault, Handoff, HandoffId, Session, SessionId, Timestamp,
    UlidSequence, output_schema, params_schema,
};
use baton_store::{SpillFolder, Store, StoreError, Tx};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::io;
use std::sync::{Mutex, PoisonError};

use crate::after_transaction::AfterTransaction;
use crate::afterthought::{Afterthought, Afterthoughts};
use crate::call::Attachment;
use crate::call_record::CallSession;
use crate::clock::Entropy;
use crate::open_call::{Answered, OpenCall};
use crate::settings::Settings;

/// What an operation does to the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// It reads.
    Read,
    /// It writes.
    Write,
}

/// Whether an operation takes an idempotency key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyUse {
    /// It may have one.
    Optional,
    /// It must have one.
    Required,
}

/// What is done about secrets in the parameters of an operation that writes.
#[derive(Debug, Clone, Copy)]
pub enum Privacy {
    /// They are refused: whoever calls can leave them out.
    Refuse,
    /// They are taken out, in this way: whoever calls cannot tell.
    Redact(fn(&mut Value)),
}

/// One thing that Baton can do.
pub trait Operation: Send + Sync + 'static {
    /// Its wire name: `session.start`.
    const NAME: &'static str;
    /// What it is for, in one sentence that an agent can choose by.
    const SUMMARY: &'static str;
    /// What it does to the store.
    const EFFECT: Effect;
    /// Whether it takes an idempotency key.
    const KEY: KeyUse = KeyUse::Optional;
    /// Whether doing it twice with the same parameters comes to the same as doing it once, also without a key.
    const IDEMPOTENT: bool = true;
    /// Whether it takes something away that was kept.
    const DESTRUCTIVE: bool = false;
    /// Whether checkpoints that wait beside the database are taken in before it runs.
    const MEETS_WAITING: bool = false;
    /// If true, the operation frees at least as much space as it takes when `Context::must_free_space` is set, and is run
    /// once more, with the disk reserve released, after it failed because the disk is full.
    const FREES_SPACE: bool = false;
    /// How many bytes a request for it may have.
    const MAX_REQUEST_BYTES: usize = 1024 * 1024;
    /// Parameter that holds a context. A face passes it as an attachment, as canonical text.
    const CONTEXT_PARAM: Option<&'static str> = None;
    /// What is done about secrets in its parameters.
    const PRIVACY: Privacy = Privacy::Refuse;
    /// Whether making it ready may take long, as asking a model does.
    const BLOCKS: bool = false;
    /// Whether what it stores tells of the call, so that a process that does nothing else need not log it as well.
    const TELLS_OF_ITSELF: bool = false;
    /// If true, successful calls are counted in the request log for up to a minute instead of recorded one by one.
    const COUNT_IN_REQUEST_LOG: bool = false;
    /// Whether a request for it is read as it comes and mended where it is broken, instead of refused: whoever calls passes
    /// on what somebody else said.
    const LENIENT: bool = false;
    /// What it is told.
    type Params: DeserializeOwned + JsonSchema + Send + Sync + 'static;
    /// What it answers.
    type Output: Serialize + DeserializeOwned + JsonSchema + Send + 'static;

    /// Mends parameters that are not of the types they should be of.
    fn mend(_params: &mut Value) {}

    /// Checks what types cannot.
    fn validate(_params: &Self::Params) -> Result<(), Fault> {
        Ok(())
    }

    /// Makes ready, before the transaction, what takes long or asks somebody else.
    fn ready(_context: &Context<'_>, _params: &mut Self::Params) -> Result<(), Fault> {
        Ok(())
    }

    /// Does it: reads, a decision, writes. May be run again from the start.
    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Params) -> Result<Self::Output, Fault>;

    /// Answers without the store, which cannot be used; none when there is no way to.
    fn rescue(_context: &Context<'_>, _params: &Self::Params) -> Option<Result<Self::Output, Fault>> {
        None
    }

    /// Gives what is kept of an answer that is too large to be stored for replays: ids and status.
    fn compact(_output: &Self::Output) -> Value {
        Value::Object(serde_json::Map::new())
    }
}

/// What an operation may use beside the transaction.
pub struct Context<'a> {
    /// The credential behind the call.
    pub actor: &'a Actor,
    /// The correlation id of the call.
    pub correlation_id: &'a CorrelationId,
    /// The parameter of the call that is too large to be passed as a tree.
    pub attachment: Option<&'a Attachment>,
    /// When the call came in.
    pub now: Timestamp,
    /// The numbers to go by.
    pub settings: &'a Settings,
    pub(crate) entropy: &'a dyn Entropy,
    pub(crate) sequence: &'a Mutex<UlidSequence>,
    pub(crate) afterthoughts: &'a Afterthoughts,
    /// What is done outside the database when the transaction has ended.
    pub(crate) after: &'a AfterTransaction,
    /// Which run of the call this is.
    pub(crate) attempt: Attempt,
    /// The store, while something is made ready; inside a transaction there is only the transaction.
    pub(crate) store: Option<&'a Store>,
    /// The session that the call concerns, for the request log.
    pub(crate) session: &'a CallSession,
}

/// Which run of a call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The first run.
    First,
    /// The second run, after the disk was full or a blob was missing.
    Second {
        /// Whether the disk is full.
        is_disk_full: bool,
    },
}

impl Context<'_> {
    /// Returns true when the disk is full: a write must delete at least as much as it stores.
    pub(crate) fn must_free_space(&self) -> bool {
        self.attempt == Attempt::Second { is_disk_full: true }
    }

    /// Refuses a credential that does not reach every venture, for operations that concern all of them.
    pub(crate) fn require_every_venture(&self) -> Result<(), Fault> {
        self.actor.require_every_venture()
    }

    /// Leaves something to be written once the answer is on its way, also by an operation that only reads.
    pub(crate) fn afterwards(&self, afterthought: Afterthought) {
        self.afterthoughts.add(afterthought);
    }

    /// Gives 64 random bits.
    pub fn random(&self) -> Result<u64, Fault> {
        Ok((self.entropy.bits()? >> 64) as u64)
    }

    /// Gives 128 random bits.
    pub fn random_bits(&self) -> Result<u128, Fault> {
        self.entropy.bits()
    }

    /// Makes the id of a new session. It sorts after the stored ones, also when the clock was set back or another server's
    /// clock is ahead.
    pub fn session_id(&self, tx: &mut dyn Tx) -> Result<SessionId, Fault> {
        let newest = tx.newest_session_id().map_err(store_fault)?;
        self.next_ulid_after(newest.map(SessionId::ulid)).map(SessionId::new)
    }

    /// Makes the id of a new handoff. It sorts after the stored ones, like that of a session.
    pub fn handoff_id(&self, tx: &mut dyn Tx) -> Result<HandoffId, Fault> {
        let newest = tx.newest_handoff_id().map_err(store_fault)?;
        self.next_ulid_after(newest.map(HandoffId::ulid)).map(HandoffId::new)
    }

    /// Makes the id of a new checkpoint. It sorts after those in the spill folder, which are replayed in the order of their
    /// ids; stored ones are ordered by their place in the workflow.
    pub fn checkpoint_id(&self) -> Result<CheckpointId, Fault> {
        let spilled = self.settings.checkpoints.vault.spill().and_then(SpillFolder::newest_id);
        self.next_ulid_after(spilled.map(CheckpointId::ulid)).map(CheckpointId::new)
    }

    fn next_ulid_after(&self, newest: Option<baton_core::Ulid>) -> Result<baton_core::Ulid, Fault> {
        let random = self.entropy.bits()?;
        let mut sequence = self.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(newest) = newest {
            sequence.skip_past(newest);
        }
        Ok(sequence.next(self.now, random))
    }

    /// Finds a session that the caller reaches, and locks it. One out of reach is not there for the caller.
    pub fn lock_session(&self, tx: &mut dyn Tx, id: SessionId) -> Result<Session, Fault> {
        let found = tx.lock_session(id).map_err(store_fault)?;
        let session = found
            .filter(|session| self.actor.reaches(&session.tuple.venture))
            .ok_or_else(|| session_not_found(id))?;
        self.log_session(&session);
        Ok(session)
    }

    /// Finds a session that the caller reaches.
    pub fn session(&self, tx: &mut dyn Tx, id: SessionId) -> Result<Session, Fault> {
        let found = tx.session(id).map_err(store_fault)?;
        let session = found
            .filter(|session| self.actor.reaches(&session.tuple.venture))
            .ok_or_else(|| session_not_found(id))?;
        self.log_session(&session);
        Ok(session)
    }

    /// Finds a handoff that the caller reaches.
    pub fn handoff(&self, tx: &mut dyn Tx, id: HandoffId) -> Result<Handoff, Fault> {
        let found = tx.handoff(id).map_err(store_fault)?;
        let handoff = found.filter(|handoff| self.actor.reaches(&handoff.venture)).ok_or_else(|| {
            Fault::new(ErrorCode::HandoffNotFound, format!("there is no handoff {id}"))
                .hint("list handoffs with handoff.list (GET /handoffs, baton handoff list)")
        })?;
        self.session.set(handoff.session_id, &handoff.venture);
        Ok(handoff)
    }

    /// Records in the request log which session the call concerns.
    pub(crate) fn log_session(&self, session: &Session) {
        self.session.set(session.id, &session.tuple.venture);
    }
}

fn session_not_found(id: SessionId) -> Fault {
    Fault::new(ErrorCode::SessionNotFound, format!("there is no session {id}"))
        .hint("start one with session.start (POST /sod, baton session start)")
}

/// Says what a failure of the store means to whoever called.
pub(crate) fn store_fault(error: StoreError) -> Fault {
    let fault = match &error {
        StoreError::Overloaded => {
            Fault::new(ErrorCode::Overloaded, "too much work is waiting for the database")
                .hint("try again in a moment")
        }
        StoreError::Busy => Fault::new(ErrorCode::Overloaded, "the database stayed busy with other writers")
            .hint("try again in a moment"),
        StoreError::Full => {
            Fault::new(ErrorCode::StoreUnavailable, "cannot store anything: the disk is full")
                .hint("free some space, then repeat the request; baton doctor shows how much is left")
                .details(json!({ "reason": "disk_full", "retryable": false }))
        }
        StoreError::ReadOnly => {
            Fault::new(ErrorCode::StoreUnavailable, "cannot store anything: the database is read-only")
                .hint("make the data folder and the files in it writable, then repeat the request")
                .details(json!({ "reason": "read_only", "retryable": false }))
        }
        StoreError::Folder { source, .. }
            if matches!(
                source.kind(),
                io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied
            ) =>
        {
            Fault::new(ErrorCode::StoreUnavailable, format!("cannot write to the data folder: {source}"))
                .hint("make the data folder and the files in it writable, then repeat the request")
                .details(json!({ "reason": "read_only", "retryable": false }))
        }
        StoreError::Unavailable { .. } | StoreError::Folder { .. } | StoreError::Closed => {
            Fault::new(ErrorCode::StoreUnavailable, "the database is unavailable; nothing was stored")
                .hint("baton doctor says what is wrong with it")
        }
        StoreError::NewerSchema { found, known } => Fault::new(
            ErrorCode::StoreUnavailable,
            format!("the database has schema version {found}, this binary knows up to {known}"),
        )
        .hint("use the newer baton that wrote it, or another database (BATON_DATA_DIR, BATON_DATABASE_URL)"),
        StoreError::OlderSchema { .. } => Fault::new(ErrorCode::StoreUnavailable, error.to_string())
            .hint("run `baton worker start` or any other baton command; it upgrades the database"),
        StoreError::ForeignDatabase { .. } => Fault::new(ErrorCode::StoreUnavailable, error.to_string())
            .hint("move the file away, or use another database (BATON_DATA_DIR, BATON_DATABASE_URL)"),
        StoreError::CommitUnknown { .. } => Fault::new(
            ErrorCode::StoreUnavailable,
            "the database connection failed during commit; the outcome is unknown",
        )
        .hint("send the request again with the same idempotency key: it is then done exactly once"),
        StoreError::Corrupt { .. } | StoreError::BlobMissing { .. } => {
            Fault::new(ErrorCode::Internal, "a stored row does not make sense")
                .hint("baton doctor checks the database; restore a backup if it is damaged")
        }
        StoreError::Statement { .. } | StoreError::Broken => {
            Fault::new(ErrorCode::Internal, "something failed inside baton; nothing was stored")
                .hint("the log has it under the correlation id")
        }
    };
    fault.caused_by(error)
}

/// An operation whose types are erased: what a route, a tool or a verb points to.
pub trait AnyOperation: Send + Sync {
    /// Its wire name.
    fn name(&self) -> &'static str;
    /// What it is for.
    fn summary(&self) -> &'static str;
    /// What it does to the store.
    fn effect(&self) -> Effect;
    /// Whether it takes an idempotency key.
    fn key(&self) -> KeyUse;
    /// Whether doing it twice comes to the same as doing it once.
    fn idempotent(&self) -> bool;
    /// Whether it takes something away that was kept.
    fn destructive(&self) -> bool;
    /// Whether checkpoints that wait beside the database are taken in before it runs.
    fn meets_waiting(&self) -> bool;
    /// Whether it is run once more, with the disk reserve released, when the disk is full.
    fn frees_space(&self) -> bool;
    /// How many bytes a request for it may have.
    fn max_request_bytes(&self) -> usize;
    /// The parameter that is passed as an attachment.
    fn context_param(&self) -> Option<&'static str>;
    /// Whether making it ready may take long.
    fn blocks(&self) -> bool;
    /// Whether successful calls are counted in the request log instead of recorded one by one.
    fn counts_in_request_log(&self) -> bool;
    /// Whether a request for it is mended where it is broken.
    fn lenient(&self) -> bool;
    /// The JSON Schema of its parameters.
    fn params_schema(&self) -> Value;
    /// The JSON Schema of its output.
    fn output_schema(&self) -> Value;
    #[doc(hidden)]
    fn submit(&self, call: &OpenCall, params: Value) -> Answered;
}

struct Erased<O>(PhantomData<O>);

impl<O: Operation> AnyOperation for Erased<O> {
    fn name(&self) -> &'static str {
        O::NAME
    }
    fn summary(&self) -> &'static str {
        O::SUMMARY
    }
    fn effect(&self) -> Effect {
        O::EFFECT
    }
    fn key(&self) -> KeyUse {
        O::KEY
    }
    fn idempotent(&self) -> bool {
        O::IDEMPOTENT
    }
    fn destructive(&self) -> bool {
        O::DESTRUCTIVE
    }
    fn meets_waiting(&self) -> bool {
        O::MEETS_WAITING
    }
    fn frees_space(&self) -> bool {
        O::FREES_SPACE
    }
    fn max_request_bytes(&self) -> usize {
        O::MAX_REQUEST_BYTES
    }
    fn context_param(&self) -> Option<&'static str> {
        O::CONTEXT_PARAM
    }
    fn blocks(&self) -> bool {
        O::BLOCKS
    }
    fn counts_in_request_log(&self) -> bool {
        O::COUNT_IN_REQUEST_LOG
    }
    fn lenient(&self) -> bool {
        O::LENIENT
    }
    fn params_schema(&self) -> Value {
        params_schema::<O::Params>()
    }
    fn output_schema(&self) -> Value {
        output_schema::<O::Output>()
    }
    fn submit(&self, call: &OpenCall, params: Value) -> Answered {
        call.submit::<O>(params)
    }
}

/// Gives an operation with its types erased.
pub fn operation<O: Operation>() -> &'static dyn AnyOperation {
    &Erased::<O>(PhantomData)
}
