//! Builders of stored values with unique ids, and a deterministic random source.

use std::sync::Mutex;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use baton_core::checkpoint::{Checkpoint, CheckpointStatus, Labels, Place, Workflow};
use baton_core::observation::{CompressedObservation, Observation, Provenance};
use baton_core::recall::{Document, DocumentText, ItemKind};
use baton_core::{
    ActorKeyId, CheckpointId, EndReason, Handoff, HandoffAuthor, HandoffId, IdempotencyKey, KeyRecord,
    KeyScope, ObservationId, RequestRecord, Session, SessionFacts, SessionId, SessionStatus, SessionTuple,
    Sha256Hash, Timestamp, Track, UlidSequence,
};
use baton_store::{Encoding, Frame, FrameBody, NewQueueItem, RawOutput, StoreError};
use serde_json::json;

/// Current time of every check.
pub const NOW: Timestamp = Timestamp::from_millis(1_768_644_000_000);

/// Text that an engine would change if it counted bytes, folded case or stopped at a quote.
pub const AWKWARD: &str = "naïve ☕ 接力棒 👩‍💻 \"quoted\" 'single' \\ \t\n $1 ?1 %";

/// Returns the time this many seconds after [`NOW`].
pub fn later(seconds: u64) -> Timestamp {
    NOW.plus(Duration::from_secs(seconds))
}

/// Returns the time this many seconds before [`NOW`].
pub fn earlier(seconds: u64) -> Timestamp {
    NOW.minus(Duration::from_secs(seconds))
}

static IDS: Mutex<UlidSequence> = Mutex::new(UlidSequence::new());

/// Returns an id greater than all previous ones of this process.
pub fn session_id() -> SessionId {
    SessionId::new(IDS.lock().unwrap().next(NOW, 0))
}

/// Returns an id greater than all previous ones of this process.
pub fn handoff_id() -> HandoffId {
    HandoffId::new(IDS.lock().unwrap().next(NOW, 0))
}

/// Returns an id greater than all previous ones of this process.
pub fn checkpoint_id() -> CheckpointId {
    CheckpointId::new(IDS.lock().unwrap().next(NOW, 0))
}

/// Returns an id greater than all previous ones of this process.
pub fn observation_id() -> ObservationId {
    ObservationId::new(IDS.lock().unwrap().next(NOW, 0))
}

/// Creates a tuple without track and client session.
pub fn tuple(agent: &str) -> SessionTuple {
    SessionTuple {
        agent: agent.parse().unwrap(),
        venture: "vc".parse().unwrap(),
        repo: "owner/repo".parse().unwrap(),
        track: None,
        client_session_id: None,
    }
}

pub fn track(number: i64) -> Track {
    Track::try_from(number).unwrap()
}

/// Creates an active session with only the required fields.
pub fn session(tuple: SessionTuple) -> Session {
    Session {
        id: session_id(),
        tuple,
        facts: SessionFacts::default(),
        status: SessionStatus::Active,
        created_at: NOW,
        last_heartbeat_at: NOW,
        ended_at: None,
        end_reason: None,
        schema_version: "1.0".into(),
        actor_key_id: ActorKeyId::of("fixture"),
        creation_correlation_id: "corr_fixture".parse().unwrap(),
        meta: None,
    }
}

/// Creates an ended session with every field set, to values that no other builder uses.
pub fn full_session() -> Session {
    let meta = json!({ AWKWARD: [1, -2.5, null, true, { "deep": AWKWARD }], "": {} });
    Session {
        tuple: SessionTuple {
            agent: "A.full_agent-1".parse().unwrap(),
            venture: "other.venture".parse().unwrap(),
            repo: "other/repo_2".parse().unwrap(),
            track: Some(track(Track::MAX)),
            client_session_id: Some("chat~{1}".parse().unwrap()),
        },
        facts: SessionFacts {
            client: Some(AWKWARD.into()),
            client_version: Some("1.2.3-β".into()),
            host: Some(String::new()),
            issue_number: Some(i64::MAX),
            branch: Some(format!("feature/{AWKWARD}")),
            commit_sha: Some("0123456789abcdef".into()),
        },
        status: SessionStatus::Ended,
        created_at: earlier(100),
        last_heartbeat_at: later(7),
        ended_at: Some(later(8)),
        end_reason: Some(EndReason::Superseded),
        schema_version: "2.0".into(),
        actor_key_id: ActorKeyId::of("full"),
        creation_correlation_id: "corr:full.1".parse().unwrap(),
        meta: meta.as_object().cloned(),
        ..session(tuple("unused"))
    }
}

/// Creates the handoff that ends a session, with only the required fields.
pub fn handoff(of: &Session) -> Handoff {
    Handoff {
        id: handoff_id(),
        session_id: of.id,
        venture: of.tuple.venture.clone(),
        repo: of.tuple.repo.clone(),
        track: of.tuple.track,
        issue_number: None,
        branch: None,
        commit_sha: None,
        from_agent: of.tuple.agent.clone(),
        to_agent: None,
        status_label: None,
        summary: "done".into(),
        payload_json: "{}".into(),
        payload_hash: Sha256Hash::of(b"{}"),
        schema_version: "1.0".into(),
        ends_session: true,
        late: false,
        written_by: HandoffAuthor::Agent,
        workflow_id: None,
        checkpoint_id: None,
        automatic_json: None,
        incomplete: false,
        withdrawn_at: None,
        acknowledged_at: None,
        acknowledged_by: None,
        acknowledged_session_id: None,
        created_at: NOW,
        actor_key_id: ActorKeyId::of("fixture"),
        creation_correlation_id: "corr_fixture".parse().unwrap(),
    }
}

/// Creates the scope of a key of the fixture's actor for one operation.
pub fn key_scope(key: &str) -> KeyScope {
    KeyScope {
        actor_key_id: ActorKeyId::of("fixture"),
        operation: "session.start",
        key: IdempotencyKey::parse(key).unwrap(),
    }
}

/// Creates the response to a keyed request, valid for an hour.
pub fn key_record(body: &str) -> KeyRecord {
    KeyRecord {
        request_hash: Sha256Hash::of(b"request"),
        response_status: 200,
        response_code: None,
        response_hash: Sha256Hash::of(body.as_bytes()),
        response_body: body.into(),
        response_size_bytes: body.len() as u64,
        response_truncated: false,
        created_at: NOW,
        expires_at: later(3600),
        correlation_id: "corr_fixture".parse().unwrap(),
    }
}

/// Creates a request record with only the required fields.
pub fn request(timestamp: Timestamp) -> RequestRecord {
    RequestRecord {
        timestamp,
        correlation_id: "corr_fixture".parse().unwrap(),
        endpoint: "/active".into(),
        method: "GET".into(),
        actor_key_id: None,
        session_id: None,
        agent: None,
        venture: None,
        repo: None,
        track: None,
        issue_number: None,
        status_code: 200,
        duration_ms: 0,
        error_message: None,
        idempotency_key: None,
        idempotency_hit: false,
        request_count: 1,
    }
}

/// Creates a unique queue item that is due at this time.
pub fn queue_item(run_at: Timestamp) -> NewQueueItem {
    static COUNT: AtomicI64 = AtomicI64::new(0);
    let number = COUNT.fetch_add(1, Ordering::Relaxed);
    NewQueueItem {
        session_id: session_id(),
        venture: "vc".parse().unwrap(),
        repo: "owner/repo".parse().unwrap(),
        tool_name: "Bash".into(),
        tool_use_id: None,
        files_touched: Vec::new(),
        raw: RawOutput::Row(format!("output {number}").into_bytes()),
        raw_bytes: 9,
        run_at,
        created_at: NOW,
    }
}

/// Creates the observation of a queue item, with only the required fields.
pub fn observation(queue_id: i64) -> Observation {
    Observation {
        id: observation_id(),
        queue_id,
        session_id: session_id(),
        venture: "vc".parse().unwrap(),
        repo: "owner/repo".parse().unwrap(),
        tool_name: "Bash".into(),
        tool_use_id: None,
        compressed: CompressedObservation {
            title: "Run a command".into(),
            summary: "It ran.".into(),
            ..CompressedObservation::default()
        },
        files: Vec::new(),
        provenance: Provenance {
            compressor: "offline".into(),
            prompt_version: "offline-v1".into(),
            ..Provenance::default()
        },
        raw_bytes: 0,
        captured_at: NOW,
        compressed_at: NOW,
    }
}

/// Creates a workflow of `vc` without name and checkpoints.
pub fn workflow(id: &str) -> Workflow {
    Workflow {
        venture: "vc".parse().unwrap(),
        id: id.parse().unwrap(),
        name: None,
        repo: None,
        created_at: NOW,
        last_saved_at: NOW,
        last_accessed_at: NOW,
        checkpoint_count: 0,
        unnamed_count: 0,
        stored_bytes: 0,
        critical_keys: Vec::new(),
    }
}

/// Creates a checkpoint of a workflow with only the required fields, for use with [`frame`].
pub fn checkpoint(of: &Workflow, series: u32, position: u32) -> Checkpoint {
    Checkpoint {
        id: checkpoint_id(),
        venture: of.venture.clone(),
        workflow_id: of.id.clone(),
        place: Place { series, position },
        status: CheckpointStatus::Active,
        labels: Labels::default(),
        session_id: None,
        agent: None,
        created_at: NOW,
        context_bytes: 2,
        context_hash: Sha256Hash::of(b"{}"),
        restores_size: false,
        stored_bytes: 2,
    }
}

/// Creates the frame of an empty context.
pub fn frame() -> Frame {
    Frame {
        encoding: Encoding::Plain,
        key_id: None,
        hash: Sha256Hash::of(b"{}"),
        size_bytes: 2,
        body: FrameBody::Row(b"{}".to_vec()),
    }
}

/// Why work failed.
#[derive(Debug)]
pub enum WorkError {
    /// The store failed.
    Store(StoreError),
    /// The work itself returned an error.
    Own,
}

impl From<StoreError> for WorkError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Panics without printing a message to the test output.
pub fn panic_silently() -> ! {
    std::panic::resume_unwind(Box::new("a panic that a check causes"))
}

/// A deterministic sequence of pseudo-random numbers.
#[derive(Debug)]
pub struct Dice(u64);

impl Dice {
    /// Creates the sequence of a seed.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number from 0 to one less than `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)) % end
    }

    /// Returns a random element.
    pub fn pick<T: Clone>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize].clone()
    }

    /// Returns the value or, in half of the cases, `None`.
    pub fn maybe<T>(&mut self, value: T) -> Option<T> {
        (self.below(2) == 0).then_some(value)
    }

    pub fn shuffle<T>(&mut self, values: &mut [T]) {
        for end in (1..values.len()).rev() {
            values.swap(end, self.below(end as u64 + 1) as usize);
        }
    }
}

/// Returns an entry of the search index for a note without files, in venture `v`.
pub fn document(item: &str, text: &str) -> Document {
    Document {
        kind: ItemKind::Note,
        item: item.to_owned(),
        external_id: None,
        venture: "v".parse().unwrap(),
        repo: Some("o/r".parse().unwrap()),
        session_id: None,
        branch: None,
        agent: None,
        author: None,
        turn: None,
        is_conversational: false,
        changes_files: false,
        is_pinned: false,
        created_at: NOW,
        text: DocumentText::of("", &[text], &[]),
        files: Vec::new(),
    }
}
