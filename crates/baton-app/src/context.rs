//! The context of a call: what an operation can use besides the transaction.

use std::sync::{Mutex, PoisonError};

use baton_core::{
    Actor, CheckpointId, CorrelationId, ErrorCode, Fault, Handoff, HandoffId, KeyScope, Note, NoteId,
    Session, SessionId, Sha256Hash, Timestamp, Ulid, UlidSequence, Venture, VentureScope,
};
use baton_store::{Store, Tx};

use crate::call::{Attachment, Call};
use crate::clock::Entropy;
use crate::effects::CallEffects;
use crate::settings::Settings;

/// State shared by all calls of a process. Work that is queued in the store holds this and not the
/// application, so that the store never keeps itself alive.
pub(crate) struct Environment {
    pub(crate) settings: Settings,
    pub(crate) entropy: Box<dyn Entropy>,
    pub(crate) sequence: Mutex<UlidSequence>,
}

impl Environment {
    pub(crate) fn context<'a>(
        &'a self,
        call: &'a Call,
        now: Timestamp,
        effects: &'a CallEffects,
    ) -> Context<'a> {
        Context {
            actor: &call.actor,
            correlation_id: &call.correlation_id,
            key: None,
            attachment: call.attachment.as_ref(),
            now,
            settings: &self.settings,
            environment: self,
            effects,
            attempt: Attempt::First,
            store: None,
        }
    }
}

/// Which run of a call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The first run.
    First,
    /// The second run, after the disk was full or a blob was missing.
    Second { is_disk_full: bool },
}

/// What an operation can use besides the transaction.
pub struct Context<'a> {
    /// Credential of the call.
    pub actor: &'a Actor,
    /// Correlation id of the call.
    pub correlation_id: &'a CorrelationId,
    /// Scope of the idempotency key of the call and hash of the request. `None` also while the parameters are checked.
    pub(crate) key: Option<&'a (KeyScope, Sha256Hash)>,
    /// Parameter of the call that is too large to be passed as a tree, or the write that is replayed.
    pub attachment: Option<&'a Attachment>,
    /// Time of the call.
    pub now: Timestamp,
    /// Settings of the process.
    pub settings: &'a Settings,
    pub(crate) environment: &'a Environment,
    /// Effects of the call besides its transaction.
    pub(crate) effects: &'a CallEffects,
    /// Which run of the call this is.
    pub(crate) attempt: Attempt,
    /// The store, while the operation prepares; inside a transaction there is only the transaction.
    pub(crate) store: Option<&'a Store>,
}

impl Context<'_> {
    /// Returns true if the call is replayed from the outbox. Its caller has received a success response.
    pub(crate) const fn is_replay(&self) -> bool {
        matches!(self.attachment, Some(Attachment::Spooled(_)))
    }

    /// Returns true if the disk is full: a write must delete at least as much as it stores.
    pub(crate) fn must_free_space(&self) -> bool {
        self.attempt == Attempt::Second { is_disk_full: true }
    }

    /// Returns 64 random bits.
    pub fn random(&self) -> Result<u64, Fault> {
        Ok((self.random_bits()? >> 64) as u64)
    }

    /// Returns 128 random bits.
    pub fn random_bits(&self) -> Result<u128, Fault> {
        self.environment.entropy.bits()
    }

    /// Creates the id of a new session. It sorts after the stored ones, even if the clock was set back or the
    /// clock of another server is ahead.
    pub fn session_id(&self, tx: &mut dyn Tx) -> Result<SessionId, Fault> {
        self.next_ulid(tx.newest_session_id()?.map(SessionId::ulid)).map(SessionId::new)
    }

    /// Creates the id of a new handoff. It sorts after the stored ones, like the id of a session.
    pub fn handoff_id(&self, tx: &mut dyn Tx) -> Result<HandoffId, Fault> {
        self.next_ulid(tx.newest_handoff_id()?.map(HandoffId::ulid)).map(HandoffId::new)
    }

    /// Creates the id of a new note. It sorts after the stored ones, like the id of a session.
    pub fn note_id(&self, tx: &mut dyn Tx) -> Result<NoteId, Fault> {
        self.next_ulid(tx.newest_note_id()?.map(NoteId::ulid)).map(NoteId::new)
    }

    /// Creates the id of a note that is recorded in the outbox.
    pub fn note_id_without_store(&self) -> Result<NoteId, Fault> {
        self.next_ulid(None).map(NoteId::new)
    }

    /// Creates the id of a new checkpoint. Checkpoints are ordered by their place in the workflow, not by id.
    pub fn checkpoint_id(&self) -> Result<CheckpointId, Fault> {
        self.next_ulid(None).map(CheckpointId::new)
    }

    fn next_ulid(&self, newest: Option<Ulid>) -> Result<Ulid, Fault> {
        let random = self.random_bits()?;
        let mut sequence = self.environment.sequence.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(newest) = newest {
            sequence.skip_past(newest);
        }
        Ok(sequence.next(self.now, random))
    }

    /// Finds a session of a venture that the caller may access, and locks it.
    pub fn lock_session(&self, tx: &mut dyn Tx, id: SessionId) -> Result<Session, Fault> {
        let found = tx.lock_session(id)?;
        self.accessible_session(found, id)
    }

    /// Finds a session of a venture that the caller may access.
    pub fn session(&self, tx: &mut dyn Tx, id: SessionId) -> Result<Session, Fault> {
        let found = tx.session(id)?;
        self.accessible_session(found, id)
    }

    fn accessible_session(&self, found: Option<Session>, id: SessionId) -> Result<Session, Fault> {
        let accessible = found.filter(|session| self.actor.may_access(&session.tuple.venture));
        let session = accessible.ok_or_else(|| {
            Fault::new(ErrorCode::SessionNotFound, format!("there is no session {id}"))
                .hint(
                    "list sessions with session_history (GET /sessions, baton session history), or start one with \
                     session_start (POST /sod, baton session start)",
                )
        })?;
        self.log_session(&session);
        Ok(session)
    }

    /// Finds a handoff of a venture that the caller may access.
    pub fn handoff(&self, tx: &mut dyn Tx, id: HandoffId) -> Result<Handoff, Fault> {
        let found = tx.handoff(id)?;
        let handoff = found.filter(|handoff| self.actor.may_access(&handoff.venture)).ok_or_else(|| {
            Fault::new(ErrorCode::HandoffNotFound, format!("there is no handoff {id}"))
                .hint("list handoffs with handoff_list (GET /handoffs, baton handoff list)")
        })?;
        self.effects.set_session(handoff.session_id, &handoff.venture);
        Ok(handoff)
    }

    /// Finds a note of a venture that the caller may access.
    pub fn note(&self, tx: &mut dyn Tx, id: NoteId) -> Result<Note, Fault> {
        let found = tx.note(id)?.filter(|note| self.actor.may_access(&note.venture));
        found.ok_or_else(|| {
            Fault::new(ErrorCode::NotFound, format!("there is no note {id}"))
                .hint("list notes with note_list (GET /api/notes, baton note list)")
        })
    }

    /// Returns the given or the configured venture. Fails if the caller may not access it.
    pub fn venture(&self, named: Option<&Venture>) -> Result<Venture, Fault> {
        let venture = named.unwrap_or(&self.settings.default_venture).clone();
        self.actor.require_venture(&venture)?;
        Ok(venture)
    }

    /// Returns the ventures to list: the requested one, or all that the caller has access to. `None` means no filter.
    pub fn readable_ventures(&self, requested: Option<&Venture>) -> Result<Option<Vec<Venture>>, Fault> {
        match requested {
            Some(venture) => {
                self.actor.require_venture(venture)?;
                Ok(Some(vec![venture.clone()]))
            }
            None => Ok(match &self.actor.ventures {
                VentureScope::All => None,
                VentureScope::Only(ventures) => Some(ventures.clone()),
            }),
        }
    }

    /// Records in the request log which session the call concerns.
    pub(crate) fn log_session(&self, session: &Session) {
        self.effects.set_session(session.id, &session.tuple.venture);
    }
}
