//! `request.list`: the request log.

use baton_core::{ActorKeyId, Fault, RequestRecord, SessionId, Since, StatusFilter, Timestamp};
use baton_store::{LoggedRequest, RequestFilter, Tx};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::context::Context;
use crate::operation::{Effect, Operation, RequestLogging};
use crate::page::limit_of;

const DEFAULT_LIMIT: u32 = 50;

/// Lists the request log.
#[derive(Debug)]
pub struct ListRequests;

/// Filters of the request log. All of them must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListRequestsParams {
    /// Status code (`404`), class (`4xx`), or `error` for every status from 400.
    pub status: Option<StatusFilter>,
    /// Credential, as the 16 hex digits of `actor_key_id`.
    #[schemars(with = "Option<String>", regex(pattern = "^[0-9a-f]{16}$"))]
    pub actor: Option<ActorKeyId>,
    /// Session that the request named, started or resumed (`sess_…`).
    #[serde(alias = "session")]
    pub session_id: Option<SessionId>,
    /// Path of an HTTP request (`/heartbeat`), or operation of an MCP or CLI call (`session.heartbeat`). Compared exactly.
    #[schemars(length(min = 1, max = 255))]
    pub endpoint: Option<String>,
    /// Earliest time: RFC 3339, or a duration before now such as `90s`, `15m`, `2h` or `7d`.
    pub since: Option<Since>,
    /// List only records with an id higher than this, for example the highest id read so far.
    pub after: Option<i64>,
    /// List only records with an id lower than this: `next_before` of the previous page.
    pub before: Option<i64>,
    /// Maximum number of records, 1 to 200. Defaults to 50.
    #[schemars(range(min = 1, max = 200))]
    pub limit: Option<i64>,
}

/// One page of the request log, last written first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ListRequestsOutput {
    /// Records of the page.
    pub requests: Vec<RequestView>,
    /// Value of `before` for the next page, or null on the last page.
    pub next_before: Option<i64>,
}

/// A record of the request log. Absent values are `null`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequestView {
    /// Id of the record. Later records have higher ids.
    pub id: i64,
    /// Time at which the request arrived.
    pub timestamp: Timestamp,
    /// Correlation id of the request and its response.
    pub correlation_id: String,
    /// Path of an HTTP request, or operation of any other call.
    pub endpoint: String,
    /// HTTP method, or `MCP`, `CLI` or `INTERNAL`.
    pub method: String,
    /// Credential; `null` for a request without a valid one.
    pub actor_key_id: Option<String>,
    /// Session that the request named, started or resumed (`sess_…`).
    pub session_id: Option<SessionId>,
    /// Agent given in the request, otherwise the agent of the session.
    pub agent: Option<String>,
    /// Venture given in the request, otherwise the venture of the session.
    pub venture: Option<String>,
    /// Repository given in the request, otherwise the repository of the session.
    pub repo: Option<String>,
    /// Track given in the request, otherwise the track of the session.
    pub track: Option<i64>,
    /// Issue given in the request.
    pub issue_number: Option<i64>,
    /// HTTP status of the response. Calls over MCP or the command line have the status that the same response
    /// would have over HTTP. 499 means that the client closed the connection before the response.
    pub status_code: u16,
    /// Time from the request to its response, in milliseconds.
    pub duration_ms: i64,
    /// Error code and message of the response.
    pub error_message: Option<String>,
    /// Idempotency key of the request.
    pub idempotency_key: Option<String>,
    /// True if the response was the stored response to an earlier request with the same idempotency key.
    pub idempotency_hit: bool,
    /// Number of requests that the record counts. It exceeds 1 for requests without a valid credential and
    /// for repeated requests to endpoints such as `/healthz`, which are combined for up to a minute.
    pub request_count: u32,
}

impl From<LoggedRequest> for RequestView {
    fn from(LoggedRequest { id, record }: LoggedRequest) -> Self {
        let RequestRecord { timestamp, correlation_id, endpoint, method, actor_key_id, .. } = record;
        Self {
            id,
            timestamp,
            correlation_id: correlation_id.into(),
            endpoint,
            method,
            actor_key_id: actor_key_id.map(Into::into),
            session_id: record.session_id,
            agent: record.agent,
            venture: record.venture,
            repo: record.repo,
            track: record.track,
            issue_number: record.issue_number,
            status_code: record.status_code,
            duration_ms: record.duration_ms,
            error_message: record.error_message,
            idempotency_key: record.idempotency_key,
            idempotency_hit: record.idempotency_hit,
            request_count: record.request_count,
        }
    }
}

impl Operation for ListRequests {
    const NAME: &'static str = "request.list";
    const SUMMARY: &'static str =
        "List the request log, newest first: which calls were made and how they ended.";
    const EFFECT: Effect = Effect::Read;
    // A client that follows the log would otherwise mostly read its own requests.
    const REQUEST_LOGGING: RequestLogging = RequestLogging::Counted;
    type Params = ListRequestsParams;
    type Input = (ListRequestsParams, u32);
    type Output = ListRequestsOutput;

    fn prepare(_: &Context<'_>, params: Self::Params) -> Result<Self::Input, Fault> {
        let fits = params.endpoint.as_ref().is_none_or(|path| (1..=255).contains(&path.chars().count()));
        let ((), limit) = Fault::both(
            Fault::require(fits, "endpoint", "must be 1 to 255 characters"),
            limit_of(params.limit, DEFAULT_LIMIT),
        )?;
        Ok((params, limit))
    }

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, limit) = input;
        let filter = RequestFilter {
            status: params.status,
            actor_key_id: params.actor.clone(),
            session_id: params.session_id,
            endpoint: params.endpoint.clone(),
            ventures: context.readable_ventures(None)?,
            since: params.since.map(|since| since.before(context.now)),
            after: params.after,
            before: params.before,
        };
        let page = tx.find_requests(&filter, *limit)?;
        let requests = page.requests.into_iter().map(Into::into).collect();
        Ok(ListRequestsOutput { requests, next_before: page.next_before })
    }
}
