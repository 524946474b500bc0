//! `note.create`: records one fact while an agent works.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use baton_core::{
    Agent, ErrorCode, Note, NoteId, NoteKind, Repo, SessionId, SessionTuple, Timestamp, Venture,
    VentureScope, note_file, note_text,
};
use baton_observation::make_private;
use baton_store::{Outbox, OutboxEntry};

use super::view::NoteView;
use crate::prelude::*;
use crate::spool::{NewWrite, spool, spooled_earlier};

/// The note to record.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "CreateNoteParams")]
pub struct CreateNote {
    /// Request schema version. Defaults to `1.0`.
    pub schema_version: Option<String>,
    /// One fact, with its reason, for example: Cookies instead of tokens, because the proxy drops headers. At most 2,000
    /// characters.
    #[schemars(length(min = 1, max = 2000))]
    pub text: String,
    /// `decision`, `rejected` (an approach that was rejected), `gotcha` (a surprise), `todo` or `fact`. Defaults to `fact`.
    pub kind: Option<NoteKind>,
    /// File that the note is about, for example `src/auth.rs`.
    pub file: Option<String>,
    /// Id of your session. Defaults to your newest active session.
    pub session_id: Option<SessionId>,
    /// Agent that records the note, for example `claude-1`. Defaults to the agent of the session.
    pub agent: Option<Agent>,
    /// Venture of a note without a session. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Repository of a note without a session, as owner/name.
    pub repo: Option<Repo>,
}

/// The recorded note.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CreateNoteOutput {
    /// The note as it is stored.
    pub note: NoteView,
    /// True if the database was unavailable and the note was saved to the outbox. It is stored in the
    /// database later.
    #[serde(default)]
    pub degraded: bool,
}

/// A note after its parameters were checked.
#[derive(Debug, Clone)]
pub struct NewNote {
    /// The parameters as the caller sent them.
    params: CreateNote,
    text: String,
    file: Option<String>,
    /// Id of the note, once it is chosen. If the outcome of a commit is unknown, the note is saved to the outbox under the
    /// same id, so that its replay finds a note that was stored.
    id: Arc<Mutex<Option<NoteId>>>,
    recorded_at: Timestamp,
}

/// A note in the outbox.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct SpooledNote {
    note_id: NoteId,
    request: CreateNote,
}

impl NewNote {
    fn of(params: CreateNote, id: Option<NoteId>, recorded_at: Timestamp) -> Result<Self, Fault> {
        let file = params.file.as_deref().map(note_file).transpose();
        let (text, file) = Fault::both(note_text(&params.text), file)?;
        if params.session_id.is_none() && params.repo.is_none() {
            return Err(needs_repository());
        }
        Ok(Self { params, text, file, id: Arc::new(Mutex::new(id)), recorded_at })
    }

    fn id(&self) -> MutexGuard<'_, Option<NoteId>> {
        self.id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a note is this one. Another process may have given the same id to its own note, if both wrote in the
    /// same millisecond.
    fn is_recorded_as(&self, note: &Note) -> bool {
        note.created_at == self.recorded_at && (note.updated_at.is_some() || note.text == self.text)
    }

    fn note(&self, context: &Context<'_>, id: NoteId, owner: NoteOwner) -> Note {
        Note {
            id,
            session_id: owner.session_id,
            venture: owner.venture,
            repo: owner.repo,
            agent: owner.agent,
            kind: self.params.kind.unwrap_or_default(),
            text: self.text.clone(),
            file: self.file.clone(),
            created_at: self.recorded_at,
            updated_at: None,
            actor_key_id: context.actor.key_id.clone(),
        }
    }

    /// Returns the note as it is shown while it is in the outbox: its session is not looked up.
    pub(super) fn note_without_store(&self, context: &Context<'_>) -> Result<Note, Fault> {
        let mut owner = self.owner_without_session(context)?;
        owner.session_id = self.params.session_id;
        let chosen = *self.id();
        let id = chosen.map_or_else(|| context.note_id_without_store(), Ok)?;
        *self.id() = Some(id);
        Ok(self.note(context, id, owner))
    }

    /// Returns the owner of a note that belongs to no session.
    fn owner_without_session(&self, context: &Context<'_>) -> Result<NoteOwner, Fault> {
        let CreateNote { venture, repo, agent, .. } = &self.params;
        let venture = context.venture(venture.as_ref())?;
        let repo = repo.clone().ok_or_else(needs_repository)?;
        Ok(NoteOwner { session_id: None, venture, repo, agent: agent.clone() })
    }

    /// Returns the session and the repository of the note. Records a heartbeat of the session.
    fn find_owner(&self, context: &Context<'_>, tx: &mut dyn Tx) -> Result<NoteOwner, Fault> {
        let Some(id) = self.params.session_id else { return self.owner_without_session(context) };
        let mut session = match context.lock_session(tx, id) {
            // A replayed note is stored even if its session does not exist, because its caller received a success
            // response.
            Err(fault)
                if fault.code == ErrorCode::SessionNotFound
                    && context.is_replay()
                    && self.params.repo.is_some() =>
            {
                return self.owner_without_session(context);
            }
            session => session?,
        };
        if session.require_active().is_ok() && !context.is_replay() {
            session.beat(context.now)?;
            tx.beat_session(session.id, session.last_heartbeat_at)?;
        }
        let SessionTuple { venture, repo, agent, .. } = session.tuple;
        let agent = Some(self.params.agent.clone().unwrap_or(agent));
        Ok(NoteOwner { session_id: Some(id), venture, repo, agent })
    }

    /// Saves the note to the outbox, unless an earlier request with the same key has saved it.
    fn spool(&self, context: &Context<'_>, outbox: &Outbox) -> Result<Note, Fault> {
        if let Some(earlier) = spooled_earlier(context, outbox)? {
            return CreateNote::read_spooled(context, &earlier)?.note_without_store(context);
        }
        let note = self.note_without_store(context)?;
        let params = SpooledNote { note_id: note.id, request: self.params.clone() };
        let write = NewWrite { operation: CreateNote::NAME, id: note.id.to_string(), params, body: &[] };
        spool(context, outbox, write)?;
        Ok(note)
    }
}

/// What a note belongs to: a repository, and the session in which it was recorded.
struct NoteOwner {
    session_id: Option<SessionId>,
    venture: Venture,
    repo: Repo,
    agent: Option<Agent>,
}

impl Operation<OnStore> for CreateNote {
    const NAME: &'static str = "note.create";
    const SUMMARY: &'static str = "Record one decision, rejected approach, gotcha, todo or fact while you work. Notes \
        survive a crash and appear in summaries, handoffs and checkpoints.";
    const EFFECT: Effect = Effect::Create;
    // A note with a secret is worth keeping without the secret.
    const REQUEST: RequestFormat =
        RequestFormat { privacy: Privacy::Redact(make_private), ..RequestFormat::STRICT };
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::Always;
    type Input = NewNote;
    type Output = CreateNoteOutput;
    erased!(erase_spooling);

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        NewNote::of(params, None, context.now)
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, new: &Self::Input) -> Result<Self::Output, Fault> {
        let spooled = (*new.id()).filter(|_| context.is_replay());
        let stored = spooled.map(|id| tx.note(id)).transpose()?.flatten();
        // The write may have been committed before it was spooled, or by a replay that was killed before it removed the file.
        if let Some(note) = stored.clone().filter(|note| new.is_recorded_as(note)) {
            return Ok(CreateNoteOutput { note: note.into(), degraded: false });
        }
        let owner = new.find_owner(context, tx)?;
        // A run that is repeated chooses again: another process may have used the id in between.
        let id = spooled.filter(|_| stored.is_none()).map_or_else(|| context.note_id(tx), Ok)?;
        *new.id() = Some(id);
        let note = new.note(context, id, owner);
        tx.insert_note(&note)?;
        Ok(CreateNoteOutput { note: note.into(), degraded: false })
    }

    /// Saves the note to the outbox. That is not possible without a repository, and for a session that the credential may
    /// not be allowed to access, which cannot be checked without the database.
    fn without_store(context: &Context<'_>, new: &Self::Input) -> Option<Result<Self::Output, Fault>> {
        let outbox = context.settings.outbox.as_ref()?;
        let CreateNote { repo, session_id, .. } = &new.params;
        if repo.is_none() || (session_id.is_some() && context.actor.ventures != VentureScope::All) {
            return None;
        }
        let spooled = new.spool(context, outbox);
        Some(spooled.map(|note| CreateNoteOutput { note: note.into(), degraded: true }))
    }
}

impl Spooling for CreateNote {
    fn read_spooled(_: &Context<'_>, entry: &OutboxEntry) -> Result<NewNote, Fault> {
        let SpooledNote { note_id, request } =
            serde_json::from_value(entry.write.params.clone()).map_err(|error| {
                Fault::new(ErrorCode::InvalidRequest, format!("cannot read a note in the outbox: {error}"))
            })?;
        NewNote::of(request, Some(note_id), entry.write.at)
    }
}

fn needs_repository() -> Fault {
    Fault::invalid("repo", "is required for a note without a session")
        .hint("run the command in a checkout, or give the session or the repository")
}
