//! `note.create`: records one fact while an agent works.

use baton_core::observation::make_private;
use baton_core::{Agent, Fault, Note, NoteKind, Repo, SessionId, Venture, note_file, note_text};
use baton_store::Tx;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::view::NoteView;
use crate::context::Context;
use crate::operation::{Effect, Operation, Privacy, RequestFormat};

/// Records a note.
#[derive(Debug)]
pub struct CreateNote;

/// The note to record.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CreateNoteParams {
    /// Request schema version. Defaults to `1.0`.
    #[serde(default)]
    pub schema_version: Option<String>,
    /// One fact, with its reason, for example: Cookies instead of tokens, because the proxy drops headers. At most 2,000
    /// characters.
    #[schemars(length(min = 1, max = 2000))]
    pub text: String,
    /// `decision`, `rejected` (an approach that was rejected), `gotcha` (a surprise), `todo` or `fact`. Defaults to `fact`.
    #[serde(default)]
    pub kind: Option<NoteKind>,
    /// File that the note is about, for example `src/auth.rs`.
    #[serde(default)]
    pub file: Option<String>,
    /// Id of your session. Defaults to your live session in the current checkout.
    #[serde(default)]
    pub session_id: Option<SessionId>,
    /// Agent that records the note. Defaults to that of the session.
    #[serde(default)]
    pub agent: Option<Agent>,
    /// Venture of a note without a session. Defaults to the configured venture.
    #[serde(default)]
    pub venture: Option<Venture>,
    /// Repository of a note without a session, as owner/name.
    #[serde(default)]
    pub repo: Option<Repo>,
}

/// The recorded note.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct CreateNoteOutput {
    /// The note.
    pub note: NoteView,
}

impl Operation for CreateNote {
    const NAME: &'static str = "note.create";
    const SUMMARY: &'static str = "Record one decision, rejected approach, gotcha, todo or fact while you work. Notes \
        survive a crash and appear in summaries, handoffs and checkpoints.";
    const EFFECT: Effect = Effect::Create;
    // A note with a secret is worth keeping without the secret.
    const REQUEST: RequestFormat =
        RequestFormat { privacy: Privacy::Redact(make_private), ..RequestFormat::STRICT };
    type Params = CreateNoteParams;
    type Input = CreateNoteParams;
    type Output = CreateNoteOutput;

    fn prepare(_: &Context<'_>, mut params: Self::Params) -> Result<Self::Input, Fault> {
        let file = params.file.as_deref().map(note_file).transpose();
        (params.text, params.file) = Fault::both(note_text(&params.text), file)?;
        if params.session_id.is_none() && params.repo.is_none() {
            return Err(Fault::invalid("repo", "is needed without a session")
                .hint("run the command in a checkout, or give the session or the repository"));
        }
        Ok(params)
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let session = match params.session_id {
            Some(id) => Some(context.lock_session(tx, id)?),
            None => None,
        };
        let (venture, repo, agent) = match (&session, &params.repo) {
            (Some(session), _) => {
                let agent = params.agent.clone().unwrap_or_else(|| session.tuple.agent.clone());
                (session.tuple.venture.clone(), session.tuple.repo.clone(), Some(agent))
            }
            (None, Some(repo)) => {
                let venture = params.venture.as_ref().unwrap_or(&context.settings.default_venture);
                context.actor.require_venture(venture)?;
                (venture.clone(), repo.clone(), params.agent.clone())
            }
            (None, None) => return Err(Fault::invalid("repo", "is needed without a session")),
        };
        if let Some(mut session) = session.filter(|session| session.require_active().is_ok()) {
            session.beat(context.now)?;
            tx.beat_session(session.id, session.last_heartbeat_at)?;
        }
        let note = Note {
            id: context.note_id(tx)?,
            session_id: params.session_id,
            venture,
            repo,
            agent,
            kind: params.kind.unwrap_or_default(),
            text: params.text.clone(),
            file: params.file.clone(),
            created_at: context.now,
            updated_at: None,
            actor_key_id: context.actor.key_id.clone(),
        };
        tx.insert_note(&note)?;
        Ok(CreateNoteOutput { note: note.into() })
    }
}
