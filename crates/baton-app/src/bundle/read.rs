//! `context.read`: context for a new chat.

use baton_core::{Agent, Label, Repo, SessionId, Track, Venture, one_line};

use super::gather::build;
use super::layout::{BundleLimits, BundleLine, DEFAULT_BUNDLE_TOKENS, MAX_BUNDLE_TOKENS, MIN_BUNDLE_TOKENS};
use super::request::{BundleRequest, BundleScope};
use crate::page::number_within;
use crate::prelude::*;
use crate::recall::index_before_reading;

/// Maximum length of the request in bytes.
const MAX_PROMPT_BYTES: usize = 100 * 1024;

/// Maximum number of omitted lines that are listed.
const MAX_OMITTED: usize = 50;
/// Maximum length of the text of a listed line in characters.
const MAX_OMITTED_CHARS: usize = 160;

/// Repository, request and budget.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ReadContext {
    /// Repository as owner/name, for example acme/webshop.
    pub repo: Repo,
    /// Venture. Defaults to the configured venture.
    pub venture: Option<Venture>,
    /// Track number, for example 2.
    pub track: Option<Track>,
    /// Request of the user, for example "fix the login". Files and items that match it come first.
    pub prompt: Option<String>,
    /// Current branch, for example `feature/login`. Work on the same branch comes first.
    pub branch: Option<Label>,
    /// Maximum number of tokens, 200 to 100,000. Defaults to 2,000.
    #[schemars(range(min = 200, max = 100_000))]
    pub max_tokens: Option<i64>,
    /// Program that receives the context, for example `claude-code` or `codex`. Its own limit applies as well.
    pub client: Option<Label>,
    /// Agent that receives the context, for example `codex-2`. Its own sessions are not listed as other
    /// agents.
    pub agent: Option<Agent>,
    /// Session that receives the context (`sess_…`).
    pub session_id: Option<SessionId>,
    /// Active session (`sess_…`) whose work is included as if a handoff had been written.
    pub unrecorded_session: Option<SessionId>,
}

/// Context for a new chat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReadContextOutput {
    /// The context as text.
    pub context: String,
    /// Estimated number of tokens, not more than `max_tokens`.
    #[schemars(with = "i64")]
    pub tokens: u64,
    /// Number of omitted lines.
    #[schemars(with = "i64")]
    pub left_out: u64,
    /// The first 50 omitted lines, each with its section.
    pub omitted: Vec<String>,
}

impl Operation<OnStore> for ReadContext {
    const NAME: &'static str = "context.read";
    const SUMMARY: &'static str = "Return what a new chat should know about a repository: last handoff, blockers, next \
        actions, open work, other agents, relevant files and recent sessions, within a token budget.";
    const EFFECT: Effect = Effect::Read;
    // Waits for the store while it indexes new items.
    const REQUEST: RequestFormat = RequestFormat { is_slow: true, ..RequestFormat::STRICT };
    const REPLAY_FIRST: ReplayFirst = ReplayFirst::IfPossible(|_| true);
    type Input = (Self, BundleLimits);
    type Output = ReadContextOutput;
    erased!();

    fn prepare(context: &Context<'_>, params: Self) -> Result<Self::Input, Fault> {
        let fits = params.prompt.as_ref().is_none_or(|prompt| prompt.len() <= MAX_PROMPT_BYTES);
        let tokens = MIN_BUNDLE_TOKENS..=MAX_BUNDLE_TOKENS;
        let ((), max_tokens) = Fault::both(
            Fault::require(fits, "prompt", format!("must have at most {MAX_PROMPT_BYTES} bytes")),
            number_within("max_tokens", params.max_tokens, DEFAULT_BUNDLE_TOKENS, tokens),
        )?;
        let limits = BundleLimits::of(Some(max_tokens), params.client.as_ref().map(Label::as_str));
        if params.prompt.is_some() {
            index_before_reading(context);
        }
        Ok((params, limits))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, limits) = input;
        let venture = context.venture(params.venture.as_ref())?;
        let session = params.session_id.map(|id| context.session(tx, id)).transpose()?;
        let unrecorded = params.unrecorded_session.map(|id| context.session(tx, id)).transpose()?;
        let request = BundleRequest {
            venture: &venture,
            repo: &params.repo,
            track: params.track,
            session: session.as_ref(),
            unrecorded: unrecorded.as_ref(),
            agent: params.agent.as_ref(),
            branch: params.branch.as_ref().map(Label::as_str),
            prompt: params.prompt.as_deref(),
            scope: BundleScope::Repository,
            limits: *limits,
        };
        let bundle = build(context, tx, &request)?;
        Ok(ReadContextOutput {
            context: bundle.text,
            tokens: bundle.tokens as u64,
            left_out: bundle.omitted.len() as u64,
            omitted: bundle.omitted.iter().take(MAX_OMITTED).map(describe).collect(),
        })
    }
}

/// Describes an omitted line.
fn describe(line: &BundleLine) -> String {
    format!("{}: {} [{}]", line.section.heading(), one_line(&line.text, MAX_OMITTED_CHARS), line.id)
}
