//! The one way in: authorise, validate, scan for secrets, begin, claim the key, run, record, commit, log.

use std::fmt;
use std::sync::{Arc, Mutex};

use baton_core::{
    Access, Canonical, CanonicalError, CorrelationId, ErrorCode, Fault, KeyClaim, KeyRecord, KeyScope,
    RequestRecord, Sha256Hash, Timestamp, UlidSequence, secrets,
};
use baton_store::{Durability, Outcome, Pending, Store, StoreError, Tx};
use serde_json::{Value, json};

use crate::call::{Call, Face, Reply, error_body};
use crate::clock::{Clock, Entropy};
use crate::operation::{AnyOperation, Context, Effect, KeyUse, Operation, request_id, store_fault};
use crate::request_log::RequestLog;
use crate::settings::Settings;

/// The versions of the wire shapes that this version reads.
const SCHEMA_VERSIONS: [&str; 1] = ["1.0"];
/// How many characters of an error the request log keeps, and how many an answer repeats of what does not fit.
const MAX_MESSAGE: usize = 1_000;

/// Baton, ready to be called. Clones share it.
#[derive(Clone)]
pub struct App {
    inner: Arc<Inner>,
}

struct Inner {
    store: Store,
    clock: Box<dyn Clock>,
    surroundings: Arc<Surroundings>,
    log: RequestLog,
}

/// What operations go by. Work that waits in the store holds this alone, so that the store never keeps itself alive.
struct Surroundings {
    settings: Settings,
    entropy: Box<dyn Entropy>,
    sequence: Mutex<UlidSequence>,
}

/// What the store's part of a call comes to.
#[derive(Debug)]
pub struct Stored {
    status: u16,
    error: Option<ErrorCode>,
    body: String,
    replayed: bool,
    truncated: bool,
    message: Option<String>,
}

/// A failure of the transaction itself, as opposed to an answer that says no.
#[derive(Debug)]
pub struct Failed(Fault);

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        Self(store_fault(error))
    }
}

/// A call under way: refused before it reached the store, or waiting for it.
#[doc(hidden)]
pub enum Answered {
    Refused(Fault),
    Waiting(Pending<Stored, Failed>),
}

impl fmt::Debug for App {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("App")
    }
}

impl App {
    /// Puts the parts together.
    pub fn new(
        store: Store,
        settings: Settings,
        clock: impl Clock + 'static,
        entropy: impl Entropy + 'static,
        log: RequestLog,
    ) -> Self {
        let sequence = Mutex::new(UlidSequence::new());
        let surroundings = Arc::new(Surroundings { settings, entropy: Box::new(entropy), sequence });
        Self { inner: Arc::new(Inner { store, clock: Box::new(clock), surroundings, log }) }
    }

    /// The store behind the operations.
    pub fn store(&self) -> &Store {
        &self.inner.store
    }

    /// The numbers that operations go by.
    pub fn settings(&self) -> &Settings {
        &self.inner.surroundings.settings
    }

    /// The present, as operations see it.
    pub fn now(&self) -> Timestamp {
        self.inner.clock.now()
    }

    /// Tells whether calls can be served: the store answers.
    pub async fn ready(&self) -> Result<(), Fault> {
        let looked: Result<(), Failed> = self.inner.store.read(|tx| Ok(tx.requests(1).map(|_| ())?)).await;
        looked.map_err(|Failed(fault)| fault)
    }

    /// Makes a correlation id for a call that brought none. It sorts by time, as ids do.
    pub fn correlation_id(&self) -> Result<CorrelationId, Fault> {
        let millis = u64::try_from(self.now().as_millis()).unwrap_or(0);
        let bits = self.inner.surroundings.entropy.bits()?.to_le_bytes();
        let mut random = [0; 10];
        random.copy_from_slice(&bits[..10]);
        let id = uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid();
        format!("corr_{id}")
            .parse()
            .map_err(|_| Fault::new(ErrorCode::Internal, "could not make a correlation id"))
    }

    /// Calls an operation and awaits its durable answer.
    pub async fn call(&self, operation: &'static dyn AnyOperation, call: Call, params: Value) -> Reply {
        let open = self.open(call, operation, &params);
        let answer = match operation.submit(self, &open.call, open.started_at, params) {
            Answered::Refused(fault) => Err(fault),
            Answered::Waiting(pending) => pending.await.map_err(|Failed(fault)| fault),
        };
        open.close(answer)
    }

    /// Calls an operation and blocks until its durable answer is there.
    pub fn call_blocking(&self, operation: &'static dyn AnyOperation, call: Call, params: Value) -> Reply {
        let open = self.open(call, operation, &params);
        let answer = match operation.submit(self, &open.call, open.started_at, params) {
            Answered::Refused(fault) => Err(fault),
            Answered::Waiting(pending) => pending.wait().map_err(|Failed(fault)| fault),
        };
        open.close(answer)
    }

    /// Answers and logs a call that never reached an operation: no credential, no such path.
    pub fn refuse(&self, refused: RefusedCall, fault: &Fault) -> Reply {
        let RefusedCall { face, correlation_id, actor_key_id } = refused;
        let now = self.now();
        let (endpoint, method) = endpoint_of(&face, "");
        let reply = Reply::fault(fault, correlation_id.clone());
        self.log(now, |id| RequestRecord {
            id,
            timestamp: now,
            correlation_id,
            endpoint,
            method,
            actor_key_id,
            agent: None,
            venture: None,
            repo: None,
            track: None,
            issue_number: None,
            status_code: fault.code.status(),
            duration_ms: 0,
            error_message: Some(clip(&fault.to_string(), MAX_MESSAGE)),
            idempotency_key: None,
            idempotency_hit: false,
        });
        reply
    }

    fn log(&self, now: Timestamp, record: impl FnOnce(baton_core::RequestId) -> RequestRecord) {
        let Surroundings { entropy, sequence, .. } = self.inner.surroundings.as_ref();
        match request_id(sequence, entropy.as_ref(), now) {
            Ok(id) => self.inner.log.record(&self.inner.store, record(id)),
            Err(fault) => tracing::error!(%fault, "a call could not be logged"),
        }
    }

    fn open(&self, call: Call, operation: &'static dyn AnyOperation, params: &Value) -> OpenCall {
        let text = |name: &str| params.get(name).and_then(Value::as_str).map(|text| clip(text, 257));
        let number = |name: &str| params.get(name).and_then(Value::as_i64);
        let started_at = self.now();
        let (endpoint, method) = endpoint_of(&call.face, operation.name());
        let record = RequestRecord {
            id: baton_core::RequestId::new(baton_core::Ulid::nil()),
            timestamp: started_at,
            correlation_id: call.correlation_id.clone(),
            endpoint,
            method,
            actor_key_id: Some(call.actor.key_id.clone()),
            agent: text("agent"),
            venture: text("venture"),
            repo: text("repo"),
            track: number("track"),
            issue_number: number("issue_number"),
            status_code: 499,
            duration_ms: 0,
            error_message: Some("the client went away before the answer".into()),
            idempotency_key: call.idempotency_key.as_ref().map(ToString::to_string),
            idempotency_hit: false,
        };
        OpenCall { app: self.clone(), call, started_at, record: Some(record) }
    }

    /// The pipeline of one operation, up to handing it to the store.
    pub(crate) fn submit<O: Operation>(&self, call: &Call, now: Timestamp, params: Value) -> Answered {
        let prepared = match prepare::<O>(call, params) {
            Ok(prepared) => prepared,
            Err(fault) => return Answered::Refused(fault),
        };
        let (surroundings, call) = (self.inner.surroundings.clone(), call.clone());
        let work = move |tx: &mut dyn Tx| surroundings.transact::<O>(&call, now, &prepared, tx);
        Answered::Waiting(match O::EFFECT {
            Effect::Read => self.inner.store.read(work),
            Effect::Write => self.inner.store.write(Durability::Full, work),
        })
    }
}

impl Surroundings {
    fn transact<O: Operation>(
        &self,
        call: &Call,
        now: Timestamp,
        prepared: &Prepared<O::Params>,
        tx: &mut dyn Tx,
    ) -> Result<Stored, Failed> {
        let context = Context {
            actor: &call.actor,
            correlation_id: &call.correlation_id,
            now,
            settings: &self.settings,
            entropy: self.entropy.as_ref(),
            sequence: &self.sequence,
        };
        let Some((scope, request_hash)) = &prepared.key else {
            let output = O::run(&context, tx, &prepared.params).map_err(Failed)?;
            return Ok(Stored::ok(body_of(&output)?));
        };
        if let KeyClaim::Answered(record) = tx.claim_key(scope, now)? {
            record.require_same_request(*request_hash).map_err(Failed)?;
            return Ok(Stored::replay(record));
        }
        let mut result = None;
        tx.nested(&mut |tx| {
            let output = O::run(&context, tx, &prepared.params);
            let outcome = if output.is_ok() { Outcome::Keep } else { Outcome::Undo };
            result = Some(output);
            outcome
        })?;
        let output =
            result.unwrap_or_else(|| Err(Fault::new(ErrorCode::Internal, "the operation did not run")));
        let (stored, compact) = match output {
            Ok(output) => (Stored::ok(body_of(&output)?), Some(O::compact(&output))),
            // What went wrong inside is not an answer to be remembered.
            Err(fault) if fault.code.status() >= 500 => return Err(Failed(fault)),
            Err(fault) => (Stored::refused(&fault, &call.correlation_id), None),
        };
        tx.record_key(scope, &self.key_record(&stored, compact, *request_hash, call, now))?;
        Ok(stored)
    }

    fn key_record(
        &self,
        stored: &Stored,
        compact: Option<Value>,
        request_hash: Sha256Hash,
        call: &Call,
        now: Timestamp,
    ) -> KeyRecord {
        let truncated = stored.body.len() > KeyRecord::MAX_BODY_BYTES;
        KeyRecord {
            request_hash,
            response_status: stored.status,
            response_code: stored.error.map(|code| code.to_string()),
            response_hash: Sha256Hash::of(stored.body.as_bytes()),
            response_body: match compact {
                Some(compact) if truncated => compact.to_string(),
                _ => stored.body.clone(),
            },
            response_size_bytes: stored.body.len() as u64,
            response_truncated: truncated,
            created_at: now,
            expires_at: now.plus(self.settings.idempotency_ttl),
            correlation_id: call.correlation_id.clone(),
        }
    }
}

/// Everything that is checked before the store is asked.
fn prepare<O: Operation>(call: &Call, params: Value) -> Result<Prepared<O::Params>, Fault> {
    call.actor.require_access(match O::EFFECT {
        Effect::Read => Access::Read,
        Effect::Write => Access::Write,
    })?;
    require_schema_version(&params)?;
    if O::EFFECT == Effect::Write {
        refuse_secrets(&params)?;
        if O::KEY == KeyUse::Required && call.idempotency_key.is_none() {
            return Err(Fault::new(
                ErrorCode::MissingIdempotencyKey,
                format!("{} needs an idempotency key", O::NAME),
            )
            .hint("send a fresh UUID in the Idempotency-Key header, and the same one when you repeat the request"));
        }
    }
    let key = match &call.idempotency_key {
        Some(key) if O::EFFECT == Effect::Write => {
            let canonical = Canonical::of(&params).map_err(|error| match &error {
                CanonicalError::IntegerWouldRound { path, .. } => Fault::invalid(path, &error),
                CanonicalError::Write { .. } => Fault::new(ErrorCode::InvalidRequest, error.to_string()),
            })?;
            let scope =
                KeyScope { actor_key_id: call.actor.key_id.clone(), operation: O::NAME, key: key.clone() };
            Some((scope, canonical.hash()))
        }
        _ => None,
    };
    let params: O::Params =
        serde_path_to_error::deserialize(params).map_err(|error| invalid_params(&error))?;
    O::validate(&params)?;
    Ok(Prepared { params, key })
}

/// A call that is refused before it is known what it would have done.
#[derive(Debug, Clone)]
pub struct RefusedCall {
    /// The face it came through.
    pub face: Face,
    /// Its correlation id.
    pub correlation_id: CorrelationId,
    /// The credential, when there was a valid one.
    pub actor_key_id: Option<baton_core::ActorKeyId>,
}

/// Parameters that passed every check, and the key they came with.
struct Prepared<P> {
    params: P,
    key: Option<(KeyScope, Sha256Hash)>,
}

/// A call between its start and its answer. It is logged however it ends, also when the client goes away.
struct OpenCall {
    app: App,
    call: Call,
    started_at: Timestamp,
    record: Option<RequestRecord>,
}

impl OpenCall {
    fn close(mut self, answer: Result<Stored, Fault>) -> Reply {
        let correlation_id = self.call.correlation_id.clone();
        let (reply, message) = match answer {
            Ok(stored) => {
                let Stored { status, error, body, replayed, truncated, message } = stored;
                (Reply { status, error, body, replayed, truncated, correlation_id }, message)
            }
            Err(fault) => {
                if fault.code.status() >= 500 {
                    let source = fault.source.as_ref().map(|source| format!("{source:?}"));
                    tracing::error!(%correlation_id, code = %fault.code, message = %fault.message, source, "a call failed");
                }
                (Reply::fault(&fault, correlation_id), Some(fault.to_string()))
            }
        };
        if let Some(record) = &mut self.record {
            record.status_code = reply.status;
            record.error_message = message.map(|message| clip(&message, MAX_MESSAGE));
            record.idempotency_hit = reply.replayed;
        }
        reply
    }
}

impl Drop for OpenCall {
    fn drop(&mut self) {
        if let Some(mut record) = self.record.take() {
            let now = self.app.now();
            record.duration_ms = (now.as_millis() - self.started_at.as_millis()).max(0);
            self.app.log(now, |id| RequestRecord { id, ..record });
        }
    }
}

impl Stored {
    const fn ok(body: String) -> Self {
        Self { status: 200, error: None, body, replayed: false, truncated: false, message: None }
    }

    fn refused(fault: &Fault, correlation_id: &CorrelationId) -> Self {
        Self {
            status: fault.code.status(),
            error: Some(fault.code),
            body: error_body(fault, correlation_id),
            replayed: false,
            truncated: false,
            message: Some(fault.to_string()),
        }
    }

    fn replay(record: KeyRecord) -> Self {
        let error = record.response_code.as_deref().and_then(ErrorCode::from_wire);
        Self {
            status: record.response_status,
            error,
            message: error.map(|code| format!("{code}: replayed")),
            body: record.response_body,
            replayed: true,
            truncated: record.response_truncated,
        }
    }
}

fn body_of(output: &impl serde::Serialize) -> Result<String, Failed> {
    serde_json::to_string(output).map_err(|error| {
        Failed(Fault::new(ErrorCode::Internal, "the answer could not be written").caused_by(error))
    })
}

fn endpoint_of(face: &Face, operation: &str) -> (String, String) {
    match face {
        Face::Http { method, path } => (clip(path, 255), clip(method, 16)),
        Face::Mcp => (operation.to_owned(), "MCP".to_owned()),
        Face::Cli => (operation.to_owned(), "CLI".to_owned()),
        Face::Internal => (operation.to_owned(), "INTERNAL".to_owned()),
    }
}

/// Makes text from outside fit for the log: bounded, and without control characters, which not every database takes.
fn clip(text: &str, chars: usize) -> String {
    text.chars().take(chars).map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

fn require_schema_version(params: &Value) -> Result<(), Fault> {
    match params.get("schema_version") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(version)) if SCHEMA_VERSIONS.contains(&version.as_str()) => Ok(()),
        Some(Value::String(version)) => Err(Fault::new(
            ErrorCode::UnsupportedSchemaVersion,
            format!("schema_version `{}` is not supported", clip(version, 32)),
        )
        .hint("send one of `supported`, or leave it out")
        .details(json!({ "supported": SCHEMA_VERSIONS }))),
        Some(_) => Err(Fault::invalid("schema_version", "must be a string, like \"1.0\"")),
    }
}

fn refuse_secrets(params: &Value) -> Result<(), Fault> {
    let findings = secrets::scan_json(params);
    if findings.is_empty() {
        return Ok(());
    }
    Err(Fault::new(
        ErrorCode::SecretFound,
        "what was sent looks like it holds a credential; nothing was stored",
    )
    .hint("take it out at the places named in details, then send it again; if it was real, revoke it")
    .details(json!({ "findings": findings })))
}

fn invalid_params(error: &serde_path_to_error::Error<serde_json::Error>) -> Fault {
    let path = error.path().to_string();
    let problem = clip(&error.inner().to_string(), MAX_MESSAGE);
    if path == "." { Fault::new(ErrorCode::InvalidRequest, problem) } else { Fault::invalid(&path, problem) }
}
