//! `request.list`: the request log.

use baton_core::{ActorKeyId, LoggedRequest, SessionId, Since, StatusFilter};
use baton_store::RequestFilter;

use crate::page::limit_of;
use crate::prelude::*;

/// Filters of the request log. All of them must match.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
pub struct ListRequests {
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
    pub requests: Vec<LoggedRequest>,
    /// Value of `before` for the next page, or null on the last page.
    pub next_before: Option<i64>,
}

impl Operation<OnStore> for ListRequests {
    const NAME: &'static str = "request.list";
    const SUMMARY: &'static str =
        "List the request log, newest first: which calls were made and how they ended.";
    const EFFECT: Effect = Effect::Read;
    // A client that follows the log would otherwise mostly read its own requests.
    const REQUEST_LOGGING: RequestLogging = RequestLogging::Counted;
    type Output = ListRequestsOutput;
    params_and!(u32, |params| {
        let fits = params.endpoint.as_ref().is_none_or(|path| (1..=255).contains(&path.chars().count()));
        let ((), limit) = Fault::both(
            Fault::require(fits, "endpoint", "must be 1 to 255 characters"),
            limit_of(params.limit, 50),
        )?;
        Ok(limit)
    });

    fn run(context: &Context<'_>, tx: &mut dyn Tx, input: &Self::Input) -> Result<Self::Output, Fault> {
        let (params, limit) = input;
        let filter = RequestFilter {
            status: params.status,
            actor_key_id: params.actor.clone(),
            session_id: params.session_id,
            endpoint: params.endpoint.clone(),
            ventures: context.readable_ventures(None)?,
            since: params.since.map(|since| since.resolve(context.now)),
            after: params.after,
            before: params.before,
        };
        let page = tx.find_requests(&filter, *limit)?;
        Ok(ListRequestsOutput { requests: page.requests, next_before: page.next_before })
    }
}
