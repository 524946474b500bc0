//! `observation.import`: stores finished observations of another program.

use std::collections::BTreeMap;

use baton_core::observation::{
    CompressedObservation, MAX_SUMMARY_CHARS, MAX_TITLE_CHARS, Observation, Provenance,
};
use baton_core::{
    Agent, ClientSessionId, ErrorCode, ObservationId, Repo, SessionFacts, SessionId, SessionTuple, Timestamp,
    Venture, one_line, shorten, without_control_characters,
};
use serde_json::{Map, Value};

use super::imported::{self, ImportPeriod, NewSession, redact_items};
use crate::prelude::*;
use crate::recall::index_stored;

/// Maximum number of observations in one request.
pub const MAX_IMPORTED_OBSERVATIONS: usize = 1_000;
/// Maximum size of a request in bytes.
const MAX_BYTES: usize = 16 * 1024 * 1024;
/// Maximum length of a text in bytes.
const MAX_TEXT_BYTES: usize = 64 * 1024;
/// Maximum number of files of one observation.
const MAX_FILES: usize = 1_000;
/// Tool name, compressor and client of imported observations.
const IMPORT: &str = "import";

/// Observations to import.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ImportObservationsParams")]
pub struct ImportObservations {
    /// Venture. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Repository of observations without one, as owner/name.
    pub repo: Repo,
    /// Observations to import, at most 1,000.
    pub observations: Vec<ImportedObservation>,
}

/// An observation to import.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ImportedObservation {
    /// Title, for example "Fix the race in the session store".
    pub title: String,
    /// What happened and why, in 1 to 3 sentences.
    pub summary: String,
    /// Further details, for example error messages or measured values.
    pub detail: Option<String>,
    /// Changed files, as paths relative to the checkout, for example `src/auth.rs`.
    pub files_touched: Option<Vec<String>>,
    /// Id in the other program. An observation of the same repository and session with a known id is skipped. Without
    /// an id, an observation with known content is skipped.
    pub external_id: Option<String>,
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Option<Repo>,
    /// Session id in the other program. Observations with the same session id belong to one session.
    pub session: Option<String>,
    /// Agent that worked. Defaults to `import`.
    pub agent: Option<Agent>,
    /// Time of the work. Defaults to the current time.
    pub created_at: Option<Timestamp>,
}

impl ImportedObservation {
    /// Checks the lengths of the texts.
    ///
    /// # Errors
    ///
    /// `invalid_request` with the name of the field.
    pub fn check(&self) -> Result<(), Fault> {
        for (field, text) in [("title", &self.title), ("summary", &self.summary)] {
            if text.trim().is_empty() {
                return Err(Fault::invalid(field, "must not be empty"));
            }
        }
        let external_id = self.external_id.as_deref().unwrap_or("-");
        if external_id.is_empty() || external_id.chars().count() > 200 {
            return Err(Fault::invalid("external_id", "must have 1 to 200 characters"));
        }
        let files = self.files_touched.as_deref().unwrap_or_default();
        if files.len() > MAX_FILES {
            return Err(Fault::invalid("files_touched", format!("must have at most {MAX_FILES} files")));
        }
        let texts =
            [&self.title, &self.summary].into_iter().chain(&self.detail).chain(&self.session).chain(files);
        if texts.map(String::len).max().unwrap_or(0) > MAX_TEXT_BYTES {
            return Err(Fault::invalid(
                "observations",
                format!("texts must have at most {MAX_TEXT_BYTES} bytes"),
            ));
        }
        Ok(())
    }

    /// Returns the content. The end of a long title or summary is moved to the detail.
    fn content(&self) -> CompressedObservation {
        let title = without_control_characters(&self.title);
        let summary = without_control_characters(&self.summary);
        let is_long = |text: &str, max: usize| text.chars().count() > max;
        let mut detail: Vec<String> = Vec::new();
        detail.extend(is_long(&title, MAX_TITLE_CHARS).then(|| title.clone()));
        detail.extend(is_long(&summary, MAX_SUMMARY_CHARS).then(|| summary.clone()));
        detail.extend(self.detail.as_deref().map(without_control_characters));
        let files = self.files_touched.iter().flatten();
        CompressedObservation {
            title: one_line(&title, MAX_TITLE_CHARS),
            summary: shorten(&summary, MAX_SUMMARY_CHARS),
            detail: Some(detail.join("\n")).filter(|detail| !detail.is_empty()),
            files_touched: files.map(|file| without_control_characters(file).replace('\n', "")).collect(),
            functions_changed: Vec::new(),
        }
    }
}

/// Number of imported observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ImportObservationsOutput {
    /// Number of new observations.
    #[schemars(with = "i64")]
    pub added: u64,
    /// Number of observations that were already stored.
    #[schemars(with = "i64")]
    pub unchanged: u64,
}

impl Operation<OnStore> for ImportObservations {
    const NAME: &'static str = "observation.import";
    const SUMMARY: &'static str = "Import finished observations of another program.";
    const EFFECT: Effect = Effect::Write;
    const REQUEST: RequestFormat = RequestFormat {
        max_bytes: MAX_BYTES,
        privacy: Privacy::Redact(|params| redact_items(params, "observations")),
        ..RequestFormat::STRICT
    };
    const REQUEST_LOGGING: RequestLogging = RequestLogging::OnFailure;
    type Output = ImportObservationsOutput;
    params_as_input!(|params| {
        let fits = params.observations.len() <= MAX_IMPORTED_OBSERVATIONS;
        let message = format!("must have at most {MAX_IMPORTED_OBSERVATIONS} observations");
        Fault::require(fits, "observations", message)?;
        params.observations.iter().enumerate().try_for_each(|(place, one)| {
            one.check().map_err(|fault| {
                Fault::new(ErrorCode::InvalidRequest, format!("observations[{place}]: {}", fault.message))
            })
        })
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, params: &Self::Input) -> Result<Self::Output, Fault> {
        let venture = context.venture(params.venture.as_ref())?;
        let mut by_session: BTreeMap<(&str, &str), Vec<(usize, &ImportedObservation)>> = BTreeMap::new();
        for (place, one) in params.observations.iter().enumerate() {
            let repo = one.repo.as_ref().unwrap_or(&params.repo).as_str();
            let session = one.session.as_deref().unwrap_or_default();
            by_session.entry((repo, session)).or_default().push((place, one));
        }
        let mut added = 0;
        for ((repo, session), observations) in by_session {
            let repo = repo.parse().map_err(|problem| Fault::invalid("repo", problem))?;
            let group = Group { venture: venture.clone(), repo, session };
            added += group.store(context, tx, &observations)?;
        }
        index_stored(tx, added)?;
        Ok(ImportObservationsOutput { added, unchanged: params.observations.len() as u64 - added })
    }
}

/// Observations of one session.
struct Group<'a> {
    venture: Venture,
    repo: Repo,
    session: &'a str,
}

impl Group<'_> {
    fn store(
        &self,
        context: &Context<'_>,
        tx: &mut dyn Tx,
        observations: &[(usize, &ImportedObservation)],
    ) -> Result<u64, Fault> {
        let Self { venture, repo, session } = self;
        let at = |one: &ImportedObservation| one.created_at.unwrap_or(context.now).min(context.now);
        let Some(period) = ImportPeriod::of(observations.iter().map(|(_, one)| at(one))) else {
            return Ok(0);
        };
        let origin = imported::origin(&[IMPORT, venture.as_str(), repo.as_str(), session]);
        let session_id = imported::session_id(None, &origin);
        let agent = observations.iter().find_map(|(_, one)| one.agent.clone());
        let tuple = SessionTuple {
            agent: agent
                .map_or_else(|| IMPORT.parse().map_err(|problem| Fault::invalid("agent", problem)), Ok)?,
            venture: venture.clone(),
            repo: repo.clone(),
            track: None,
            client_session_id: client_session_id(session),
        };
        let facts = SessionFacts { client: Some(IMPORT.to_owned()), ..SessionFacts::default() };
        let state = Map::from_iter([("from".to_owned(), Value::from("observations"))]);
        imported::store_session(context, tx, session_id, NewSession { tuple, facts, period, state: &state })?;
        let mut rows = Vec::with_capacity(observations.len());
        for (place, one) in observations {
            rows.push(self.observation(context, session_id, *place, one, at(one))?);
        }
        imported::store_observations(tx, &rows)
    }

    /// Makes an observation of the session. `place` is its place in the request.
    fn observation(
        &self,
        context: &Context<'_>,
        session_id: SessionId,
        place: usize,
        one: &ImportedObservation,
        captured_at: Timestamp,
    ) -> Result<Observation, Fault> {
        let Self { venture, repo, session } = self;
        let content = one.content();
        let created_at = one.created_at.map(|at| at.to_string()).unwrap_or_default();
        let detail = content.detail.as_deref().unwrap_or_default();
        let known_by = match &one.external_id {
            Some(id) => imported::origin(&[venture.as_str(), repo.as_str(), session, id]),
            None => imported::origin(&[
                venture.as_str(),
                repo.as_str(),
                session,
                &content.title,
                &content.summary,
                detail,
                &created_at,
            ]),
        };
        Ok(Observation {
            id: ObservationId::new(imported::observation_ulid(context, captured_at, place)?),
            queue_id: imported::queue_id(&known_by),
            session_id,
            venture: venture.clone(),
            repo: repo.clone(),
            tool_name: IMPORT.to_owned(),
            tool_use_id: one.external_id.clone(),
            files: content.files_touched.clone(),
            compressed: content,
            provenance: Provenance {
                compressor: IMPORT.to_owned(),
                prompt_version: "import-v1".to_owned(),
                ..Provenance::default()
            },
            raw_bytes: 0,
            captured_at,
            compressed_at: context.now,
        })
    }
}

/// Returns the session name as a chat id; a name that is not a valid id is replaced with its hash.
fn client_session_id(session: &str) -> Option<ClientSessionId> {
    let hashed = || format!("chat-{}", imported::origin(&[session])).parse().ok();
    if session.is_empty() { None } else { session.parse().ok().or_else(hashed) }
}
