//! `transcript.import`: imports a part of a chat that its client recorded.
//!
//! The caller converts the transcript to hook reports. They are stored as if hooks had reported them, with their
//! original times. Tool uses become observations immediately: without a model and without a queue item.

use baton_core::observation::Observation;
use baton_core::{
    Agent, ClientSessionId, ErrorCode, Label, ObservationId, Repo, Session, SessionFacts, SessionId,
    SessionTuple, Timestamp, Venture,
};
use baton_llm::{Compression, TokenUsage};
use baton_observation::{HookEvent, ToolUse, files_of, redact_observation};
use baton_store::StoreError;
use serde_json::{Map, Value, json};

use super::capture::clean_name;
use super::hook::{agent_of, prompt_text, repo_of};
use super::hook_params::Hook;
use super::imported::{self, ImportPeriod, NewSession, redact_items};
use super::raw::error_response;
use super::repair::repair;

use crate::model_usage::provenance;
use crate::prelude::*;

/// Maximum size of a request in bytes.
pub const MAX_TRANSCRIPT_BYTES: usize = 48 * 1024 * 1024;
/// Field of the state with the progress of each file.
const FILES: &str = "files";

/// The chat and its reports, in order.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "ImportTranscriptParams")]
pub struct ImportTranscript {
    /// Chat id assigned by the client, for example `chat-7`.
    pub client_session_id: ClientSessionId,
    /// Program that recorded the chat, for example `claude-code` or `codex`.
    pub client: Label,
    /// Agent name. Defaults to a name derived from the client.
    pub agent: Option<Agent>,
    /// Venture. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Repository as owner/name. Defaults to `local/` and the folder name of `cwd`.
    pub repo: Option<Repo>,
    /// First working directory of the chat, for example `/home/ada/webshop`.
    pub cwd: Option<String>,
    /// Branch at the start of the chat, for example `feature/login`.
    pub branch: Option<Label>,
    /// Time of the first record of the chat.
    pub started_at: Timestamp,
    /// Progress in the transcript file after these reports.
    pub progress: Option<TranscriptProgress>,
    /// Reports of requests, tool uses and closing messages, each with `reported_at`. Without reports, the call only
    /// returns the progress of earlier imports.
    pub reports: Vec<Hook>,
}

/// Progress of the import of one transcript file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptProgress {
    /// Name of the file.
    pub file: String,
    /// Number of bytes of the file that were imported.
    #[schemars(with = "i64")]
    pub position: u64,
    /// Size of the file in bytes; null until the whole file has been read.
    #[serde(default)]
    #[schemars(with = "Option<i64>")]
    pub size: Option<u64>,
}

/// Result of the import.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ImportTranscriptOutput {
    /// Session of the chat. It exists only if reports were stored.
    pub session_id: SessionId,
    /// Number of new turns.
    #[schemars(with = "i64")]
    pub turns: u64,
    /// Number of new observations.
    #[schemars(with = "i64")]
    pub observations: u64,
    /// Progress of all files of the chat.
    pub progress: Vec<TranscriptProgress>,
}

/// A report, with its observation if it is a tool use.
#[derive(Debug)]
pub struct PreparedReport {
    report: Hook,
    tool_use: Option<(Compression, Vec<String>, u64)>,
}

impl Operation<OnStore> for ImportTranscript {
    const NAME: &'static str = "transcript.import";
    const SUMMARY: &'static str = "Import a part of a recorded chat as hook reports with original times.";
    const EFFECT: Effect = Effect::Write;
    const REQUEST: RequestFormat = RequestFormat {
        max_bytes: MAX_TRANSCRIPT_BYTES,
        privacy: Privacy::Redact(|params| redact_items(params, "reports")),
        repair: Some(repair_each),
        is_slow: true,
        ..RequestFormat::STRICT
    };
    const REQUEST_LOGGING: RequestLogging = RequestLogging::OnFailure;
    type Input = (Self, Vec<PreparedReport>);
    type Output = ImportTranscriptOutput;
    erased!();

    fn prepare(context: &Context<'_>, mut params: Self) -> Result<Self::Input, Fault> {
        let reports = std::mem::take(&mut params.reports).into_iter();
        let prepared = reports.map(|report| compress(context, report)).collect::<Result<_, _>>()?;
        Ok((params, prepared))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, reports) = input;
        let venture = context.venture(params.venture.as_ref())?;
        let origin =
            imported::origin(&[params.client.as_str(), venture.as_str(), params.client_session_id.as_str()]);
        let session_id = imported::session_id(Some(params.started_at), &origin);
        let known = tx.session(session_id)?;
        let mut output = ImportTranscriptOutput {
            session_id,
            turns: 0,
            observations: 0,
            progress: known.as_ref().map(progress_of).transpose()?.unwrap_or_default(),
        };
        // Hooks captured the chat from the start of its first session. Only what happened before is imported.
        let live = tx.first_session_of_chat(&venture, &params.client_session_id, session_id)?;
        let is_new = |report: &&PreparedReport| {
            live.as_ref().is_none_or(|live| report.report.time(context) < live.created_at)
        };
        let reports: Vec<&PreparedReport> = reports.iter().filter(is_new).collect();
        let period = ImportPeriod::of(reports.iter().map(|report| report.report.time(context)));
        let Some(period) = period.or_else(|| known.as_ref().map(ImportPeriod::of_session)) else {
            return Ok(output);
        };
        if reports.is_empty() && params.progress.is_none() {
            return Ok(output);
        }
        if let Some(progress) = &params.progress {
            output.progress.retain(|known| known.file != progress.file);
            output.progress.push(progress.clone());
        }
        let state = json!({ "from": params.client, FILES: output.progress });
        let Value::Object(state) = state else {
            return Err(Fault::new(ErrorCode::Internal, "cannot build the state of the import"));
        };
        let new =
            NewSession { tuple: tuple_of(params, venture)?, facts: facts_of(params), period, state: &state };
        let session = imported::store_session(context, tx, session_id, new)?;
        context.log_session(&session);
        store_reports(context, tx, &session, &reports, &mut output)?;
        if params.progress.as_ref().is_some_and(|progress| progress.size.is_some()) {
            tx.abandon_turn(session.id, period.last)?;
        }
        if output.turns + output.observations > 0 {
            tx.request_summary(session.id, context.now, context.now)?;
        }
        Ok(output)
    }
}

fn progress_of(session: &Session) -> Result<Vec<TranscriptProgress>, StoreError> {
    let Some(files) = imported::import_state(session).remove(FILES) else { return Ok(Vec::new()) };
    serde_json::from_value(files).map_err(|error| {
        StoreError::corrupt("sessions", format!("the import progress of {} is invalid: {error}", session.id))
    })
}

fn tuple_of(params: &ImportTranscript, venture: Venture) -> Result<SessionTuple, Fault> {
    let agent = match &params.agent {
        Some(agent) => agent.clone(),
        None => agent_of(Some(&params.client))?,
    };
    let repo = repo_of(params.repo.as_ref(), params.cwd.as_deref())?;
    let client_session_id = Some(params.client_session_id.clone());
    Ok(SessionTuple { agent, venture, repo, track: None, client_session_id })
}

fn facts_of(params: &ImportTranscript) -> SessionFacts {
    let text = |label: &Label| String::from(label.clone());
    SessionFacts {
        client: Some(text(&params.client)),
        branch: params.branch.as_ref().map(text),
        ..SessionFacts::default()
    }
}

/// Creates the observation of a tool use. Tool uses of Baton itself have none.
fn compress(context: &Context<'_>, mut report: Hook) -> Result<PreparedReport, Fault> {
    if report.event != HookEvent::PostToolUse || report.is_own_call() {
        return Ok(PreparedReport { report, tool_use: None });
    }
    let folder = report.root.clone().or_else(|| report.cwd.clone());
    let input = report.tool_input.take().unwrap_or_default();
    let files = files_of(&input, folder.as_deref());
    let response = report.tool_response.take().unwrap_or_default();
    let response = match report.error.take().filter(|error| !error.is_empty()) {
        Some(error) => error_response(error, response),
        None => response,
    };
    let raw_bytes = response.as_str().map_or_else(|| response.to_string().len(), str::len) as u64;
    let tool_name = clean_name(report.tool_name.as_deref().unwrap_or_default());
    let tool_use = ToolUse { tool_name, tool_input: input, tool_response: response, cwd: folder, turn: None };
    let compression = context.settings.observations.offline.compress(&tool_use).map_err(|error| {
        Fault::new(ErrorCode::Internal, "cannot create an observation of a tool use").caused_by(error)
    })?;
    Ok(PreparedReport { report, tool_use: Some((compression, files, raw_bytes)) })
}

/// Stores turns and observations. Turns are stored in chronological order, so that one that is not later than the latest
/// stored turn is known already.
fn store_reports(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    reports: &[&PreparedReport],
    output: &mut ImportTranscriptOutput,
) -> Result<(), Fault> {
    let mut latest = tx.turns(session.id, None, 1)?.pop().map(|turn| turn.started_at);
    let mut observations = Vec::new();
    for (place, PreparedReport { report, tool_use }) in reports.iter().enumerate() {
        let at = report.time(context);
        match report.event {
            HookEvent::UserPromptSubmit => {
                let Some(prompt) = prompt_text(report.prompt.as_deref().unwrap_or_default()) else {
                    continue;
                };
                if latest.is_none_or(|latest| at > latest) {
                    tx.start_turn(session.id, &prompt, at)?;
                    output.turns += 1;
                    latest = Some(at);
                }
            }
            HookEvent::Stop if latest.is_none_or(|latest| at >= latest) => {
                tx.end_turn(session.id, &report.turn_end(context, session))?
            }
            HookEvent::PostToolUse => {
                if let Some(tool_use) = tool_use {
                    observations.push(observation(context, session, report, tool_use, place)?);
                }
            }
            _ => {}
        }
    }
    output.observations = imported::store_observations(tx, &observations)?;
    Ok(())
}

fn observation(
    context: &Context<'_>,
    session: &Session,
    report: &Hook,
    (compression, files, raw_bytes): &(Compression, Vec<String>, u64),
    place: usize,
) -> Result<Observation, Fault> {
    let mut compressed = compression.observation.clone();
    redact_observation(&mut compressed);
    let mut files = files.clone();
    files.extend(
        compressed.files_touched.iter().filter(|file| !files.contains(file)).cloned().collect::<Vec<_>>(),
    );
    let captured_at = report.time(context);
    let tool_name = clean_name(report.tool_name.as_deref().unwrap_or_default());
    let tool_use_id = report.tool_use_id.as_deref().map(clean_name).filter(|id| !id.is_empty());
    // A forked chat repeats the tool uses of its origin; they are imported once. Without an id the content counts.
    let (at, venture) = (captured_at.to_string(), session.tuple.venture.as_str());
    let origin = match &tool_use_id {
        Some(id) => imported::origin(&[venture, &tool_name, id, &at]),
        None => imported::origin(&[venture, &tool_name, "", &at, &session.id.to_string(), &compressed.title]),
    };
    let offline = context.settings.observations.offline.as_ref();
    Ok(Observation {
        id: ObservationId::new(imported::observation_ulid(context, captured_at, place)?),
        queue_id: imported::queue_id(&origin),
        session_id: session.id,
        venture: session.tuple.venture.clone(),
        repo: session.tuple.repo.clone(),
        tool_name,
        tool_use_id,
        compressed,
        files,
        provenance: provenance(offline, compression.prompt_version, TokenUsage::default()),
        raw_bytes: *raw_bytes,
        captured_at,
        compressed_at: context.now,
    })
}

/// Repairs each report, and the chat id.
fn repair_each(params: &mut Value) {
    if let Some(reports) = params.get_mut("reports").and_then(Value::as_array_mut) {
        reports.iter_mut().for_each(repair);
    }
    let Some(fields) = params.as_object_mut() else { return };
    let mut chat = Map::new();
    chat.extend(fields.remove("client_session_id").map(|id| ("session_id".to_owned(), id)));
    let mut chat = Value::Object(chat);
    repair(&mut chat);
    fields.extend(chat["session_id"].as_str().map(|id| ("client_session_id".to_owned(), Value::from(id))));
}
