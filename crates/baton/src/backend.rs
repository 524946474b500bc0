//! Backend of a verb: the local store, or a server over HTTP. Both return the same response.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use baton_app::id::FindIds;
use baton_app::observation::{Hook, Intake, Report};
use baton_app::request_params::encode;
use baton_app::{
    AnyOperation, App, Attachment, Call, Clock, Face, KeyUse, Method, OnStore, Operation, Reply, RequestLog,
    Route, Settings, SystemClock, SystemEntropy, operation, read_error, routes,
};
use baton_checkpoint::SavedContext;
use baton_core::{Actor, ErrorCode, HeartbeatPolicy, IdempotencyKey, Liveness};
use baton_store::{LockTimeout, PostgresTimeouts, Store, StoreConfig, StoreError, Target, Threads};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;
use ureq::{Agent, SendBody};

use crate::config::Config;
use crate::data_dir::DataDir;
use crate::exit::Exit;
use crate::machine::ThisMachine;
use crate::output::{Answer, Failure, print_message, warn};
use crate::{checkpoints, observations, short_id};

/// Opens the store and creates the application.
pub(crate) fn open_app(config: &Config, threads: Threads) -> Result<App, Failure> {
    let store = Store::open(&store_config(config, threads)).map_err(|error| store_failure(&error))?;
    app_on(store, config, threads)
}

/// Opens the store. If that fails, creates an application without a store: checkpoints and notes are saved to
/// the outbox, and all other operations fail.
pub(crate) fn open_app_or_degrade(config: &Config, threads: Threads) -> Result<App, Failure> {
    let location = store_config(config, threads);
    let store = Store::open(&location).unwrap_or_else(|error| {
        let failure = store_failure(&error);
        warn(&format!(
            "{}; checkpoints and notes are saved to the outbox (spill/) until the store is available",
            failure.message
        ));
        if let Some(hint) = &failure.hint {
            print_message(&format!("next: {hint}"));
        }
        Store::open_later(&location, &error)
    });
    app_on(store, config, threads)
}

fn app_on(store: Store, config: &Config, threads: Threads) -> Result<App, Failure> {
    let log = match threads {
        Threads::Caller => RequestLog::at_end(),
        Threads::Background => RequestLog::in_background(store.clone(), config.request_log_max_records)
            .map_err(|error| Failure::internal(format!("cannot start the request log: {error}")))?,
    };
    Ok(App::new(store, settings(config)?, SystemClock, SystemEntropy, log))
}

/// Returns an error if a server is configured, for verbs that work on the store directly.
pub(crate) fn require_local(config: &Config, what: &str) -> Result<(), Failure> {
    let Some(url) = &config.server else { return Ok(()) };
    let message = format!("cannot use the server {url}: {what} requires direct access to the store");
    Err(Failure::usage(message)
        .hint("run it on the machine with the store, without --server (client.server, BATON_SERVER)"))
}

/// Returns the location and options of the configured store.
pub(crate) fn store_config(config: &Config, threads: Threads) -> StoreConfig {
    match &config.database_url {
        Some(url) => StoreConfig::Postgres {
            url: url.expose().to_owned(),
            threads,
            connections: config.postgres_connections,
            timeouts: config.postgres_timeouts(),
        },
        None => StoreConfig::Sqlite { path: DataDir::at(&config.data_dir).database(), threads },
    }
}

/// Returns the store that hook reports are for: the configured server, or else the local store.
pub(crate) fn target(config: &Config) -> Target {
    match &config.server {
        Some(url) => Target::server(url),
        None => store_config(config, Threads::Caller).target(),
    }
}

pub(crate) fn settings(config: &Config) -> Result<Settings, Failure> {
    Ok(Settings {
        liveness: Liveness {
            stale_after: Duration::from_secs(config.stale_minutes * 60),
            abandon_after: Duration::from_secs(config.abandon_hours * 3_600),
        },
        heartbeat: HeartbeatPolicy {
            interval_seconds: config.heartbeat_interval_seconds,
            jitter_seconds: config.heartbeat_jitter_seconds,
        },
        idempotency_ttl: Duration::from_secs(config.idempotency_ttl_seconds),
        request_retention: Duration::from_secs(config.request_log_retention_days * 86_400),
        request_log_max_records: config.request_log_max_records,
        default_venture: config.venture.clone(),
        outbox: Some(checkpoints::outbox(config)),
        checkpoints: checkpoints::settings(config)?,
        observations: observations::settings(config),
        machine: Some(ThisMachine::new(config)),
        started_at: SystemClock.now(),
    })
}

/// Converts a store error to a failure with a hint. All causes are included, because local users may see them.
pub(crate) fn store_failure(error: &StoreError) -> Failure {
    let mut message = error.to_string();
    let mut last = message.clone();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        let text = inner.to_string();
        // Some errors contain the text of their cause, or the reverse.
        if !message.contains(&text) && !text.contains(&last) {
            message = format!("{message}: {text}");
            last = text;
        }
        cause = inner.source();
    }
    let hint = match error {
        StoreError::NewerSchema { .. } => {
            "use the version of baton that wrote it, or another database (BATON_DATA_DIR, BATON_DATABASE_URL)"
        }
        StoreError::OlderSchema { .. } => {
            "run baton worker start or any other baton command; it upgrades the database"
        }
        StoreError::ForeignDatabase { .. } => {
            "move the file away, or use another database (BATON_DATA_DIR, BATON_DATABASE_URL)"
        }
        StoreError::Folder { .. } => "make it writable for you, or point BATON_DATA_DIR at a folder that is",
        StoreError::Full => "free some space, then repeat the command",
        StoreError::ReadOnly => {
            "make the data folder and the files in it writable, or set BATON_DATA_DIR to another folder"
        }
        StoreError::Busy | StoreError::Overloaded => {
            "try again in a moment; another process holds the database"
        }
        _ => "check BATON_DATABASE_URL and BATON_DATA_DIR with baton config show, then run baton doctor",
    };
    Failure::new(Exit::StoreUnavailable, ErrorCode::StoreUnavailable.as_str(), message).hint(hint)
}

/// Maximum size of a response: a context of 16 MiB with JSON escapes, and the fields around it.
const MAX_ANSWER_BYTES: u64 = 128 * 1024 * 1024;

/// Timeout of a request to a server.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);

/// Timeout of a request whose result the verb does not need, such as an update of the task index.
const SIDE_REQUEST_TIMEOUT: Duration = Duration::from_secs(2);

/// Maximum timeout of a hook for a connection to PostgreSQL, and for each statement.
const HOOK_STORE_TIMEOUT: Duration = Duration::from_secs(1);

/// Timeout of a hook's request while reports of earlier hooks are in the outbox.
const RETRY_TIMEOUT: Duration = Duration::from_secs(1);

/// Backend that runs operations.
pub(crate) enum Backend {
    /// The local store.
    Local(Box<App>),
    /// A server.
    Remote(Box<Remote>),
}

/// HTTP client of a server.
pub(crate) struct Remote {
    agent: Agent,
    url: String,
    key: Option<String>,
}

impl Backend {
    /// Uses the configured server, or opens the local store.
    pub(crate) fn open(config: &Config) -> Result<Self, Failure> {
        match &config.server {
            Some(url) => Ok(Self::Remote(Box::new(Remote::new(url, config, REQUEST_TIMEOUT)))),
            None => Ok(Self::Local(Box::new(open_app(config, Threads::Caller)?))),
        }
    }

    /// Like `open`, with a short timeout for requests whose result the verb does not need.
    pub(crate) fn open_briefly(config: &Config) -> Result<Self, Failure> {
        match &config.server {
            Some(url) => Ok(Self::Remote(Box::new(Remote::new(url, config, SIDE_REQUEST_TIMEOUT)))),
            None => Self::open(config),
        }
    }

    /// Like `open`, for a hook: does not migrate an older database and uses short timeouts for locks and
    /// PostgreSQL, so that there is time to save the report to the outbox before the hook's time limit.
    pub(crate) fn open_for_hook(config: &Config, lock_timeout: LockTimeout) -> Result<Self, Failure> {
        if let Some(url) = &config.server {
            let timeout = if lock_timeout == LockTimeout::Minimal { RETRY_TIMEOUT } else { REQUEST_TIMEOUT };
            return Ok(Self::Remote(Box::new(Remote::new(url, config, timeout))));
        }
        let mut location = store_config(config, Threads::Caller);
        match &mut location {
            StoreConfig::Sqlite { .. } => {
                DataDir::open(&config.data_dir)?;
            }
            StoreConfig::Postgres { timeouts: PostgresTimeouts { connect, statement }, .. } => {
                *connect = HOOK_STORE_TIMEOUT.min(*connect);
                *statement = HOOK_STORE_TIMEOUT.min(*statement);
            }
        }
        let store = Store::open_current(&location, lock_timeout).map_err(|error| store_failure(&error))?;
        Ok(Self::Local(Box::new(app_on(store, config, Threads::Caller)?)))
    }

    /// Uses the configured server, or opens the local store. If the store cannot be opened, checkpoints and
    /// notes are saved to the outbox.
    pub(crate) fn open_or_degrade(config: &Config) -> Result<Self, Failure> {
        match &config.server {
            Some(_) => Self::open(config),
            None => Ok(Self::Local(Box::new(open_app_or_degrade(config, Threads::Caller)?))),
        }
    }

    /// Opens the local store, for operations that are not available over the network.
    pub(crate) fn local(config: &Config, what: &str) -> Result<Self, Failure> {
        require_local(config, what)?;
        Ok(Self::Local(Box::new(open_app(config, Threads::Caller)?)))
    }

    /// Calls an operation.
    pub(crate) fn call<O: Operation<OnStore>>(
        &self,
        params: &impl Serialize,
        key: Option<&str>,
    ) -> Result<O::Output, Failure> {
        read_answer(&self.request(operation::<O>(), to_value(params)?, None, key)?)
    }

    /// Calls an operation with its parameters and an optional context, and returns the body of the response.
    fn request(
        &self,
        operation: &'static AnyOperation,
        mut params: Value,
        context: Option<SavedContext>,
        key: Option<&str>,
    ) -> Result<String, Failure> {
        if let Value::Object(map) = &mut params {
            map.retain(|_, value| !value.is_null());
            short_id::complete(map, |short| {
                self.call::<FindIds>(&FindIds { prefix: short.as_str().to_owned() }, None)
            })?;
        }
        let key = key.map(IdempotencyKey::parse).transpose()?;
        match self {
            Self::Local(app) => {
                let attachment = context.map(|context| Attachment::Context(Arc::new(context)));
                call_local(app, operation, params, key, attachment)
            }
            Self::Remote(remote) => {
                let name = operation.request.context_param;
                let body = context.map(|context| with_context(&params, name, &context));
                remote.send(operation, params, key, body)
            }
        }
    }

    /// Sends a hook report and returns the response as JSON.
    pub(crate) fn report(
        &self,
        report: &Report,
        key: Option<&str>,
        intake: &Intake,
    ) -> Result<Value, Failure> {
        let key = key.map(IdempotencyKey::parse).transpose()?;
        let params = Value::Object(report.fields.clone());
        let hook = operation::<Hook>();
        let body = match self {
            Self::Local(app) => {
                let output = report.output.clone().map(Attachment::Output);
                call_local(app, hook, params, key, output)?
            }
            Self::Remote(remote) => {
                let document = report.output.as_ref().map(|_| intake.document(report)).transpose()?;
                remote.send(hook, params, key, document)?
            }
        };
        read_answer(&body)
    }

    /// Calls an operation and formats its output.
    pub(crate) fn answer<O: Operation<OnStore>>(
        &self,
        params: &impl Serialize,
        key: Option<&str>,
        describe: impl FnOnce(&O::Output) -> String,
    ) -> Result<Answer, Failure> {
        let output = self.call::<O>(params, key)?;
        Answer::new(&output, describe(&output))
    }

    /// Calls an operation that takes or returns a context, without parsing the context into a JSON tree.
    pub(crate) fn answer_with_context<O: Operation<OnStore>>(
        &self,
        params: &impl Serialize,
        context: Option<SavedContext>,
        key: Option<&str>,
        describe: impl FnOnce(&O::Output) -> String,
    ) -> Result<Answer, Failure> {
        let body = self.request(operation::<O>(), to_value(params)?, context, key)?;
        let text = describe(&read_answer(&body)?);
        Ok(Answer::of_json(RawValue::from_string(body).map_err(unreadable)?, text))
    }
}

/// Builds a request body from parameters and a context. The context is inserted as text.
fn with_context(params: &Value, name: Option<&str>, context: &SavedContext) -> Box<dyn Read + Send> {
    let fields = params.to_string();
    let rest = fields.strip_prefix('{').unwrap_or(&fields);
    let comma = if rest == "}" { "" } else { "," };
    let body = format!("{{\"{}\":{}{comma}{rest}", name.unwrap_or_default(), context.to_sent_text());
    Box::new(std::io::Cursor::new(body))
}

fn to_value(params: &impl Serialize) -> Result<Value, Failure> {
    serde_json::to_value(params).map_err(unreadable)
}

fn read_answer<T: DeserializeOwned>(body: &str) -> Result<T, Failure> {
    serde_json::from_str(body).map_err(unreadable)
}

fn unreadable(error: serde_json::Error) -> Failure {
    Failure::internal(format!("cannot read the response: {error}"))
}

/// Calls an operation on the local store and returns the body of the response.
fn call_local(
    app: &App,
    operation: &'static AnyOperation,
    params: Value,
    key: Option<IdempotencyKey>,
    attachment: Option<Attachment>,
) -> Result<String, Failure> {
    let correlation_id = app.correlation_id()?;
    let idempotency_key = match key {
        None if operation.key == KeyUse::Required => Some(IdempotencyKey::parse(correlation_id.as_str())?),
        key => key,
    };
    let call = Call { actor: Actor::local(), face: Face::Cli, correlation_id, idempotency_key, attachment };
    let Reply { status, error, body, .. } = app.call_blocking(operation, call, params);
    Failure::unless_ok(status, error, body)
}

/// Returns a client that treats every status as a response.
pub(crate) fn http_agent(timeout: Duration) -> Agent {
    let tls = ureq::tls::TlsConfig::builder()
        .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .build();
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(timeout))
        .tls_config(tls)
        .user_agent(concat!("baton/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

impl Remote {
    fn new(url: &str, config: &Config, timeout: Duration) -> Self {
        let agent = http_agent(timeout);
        let key = match &config.relay_key {
            Some(key) => Some(key.expose().to_owned()),
            None => DataDir::at(&config.data_dir).read_relay_key(),
        };
        Self { agent, url: url.trim_end_matches('/').to_owned(), key }
    }

    /// Sends a request and returns the body of the response. The body of the request is `document`, streamed, or
    /// otherwise the parameters.
    fn send(
        &self,
        operation: &'static AnyOperation,
        params: Value,
        key: Option<IdempotencyKey>,
        document: Option<Box<dyn Read + Send>>,
    ) -> Result<String, Failure> {
        let name = operation.name;
        let route = routes().into_iter().find(|route| route.operation.name == name);
        let route = route.ok_or_else(|| Failure::internal(format!("{name} has no HTTP route")))?;
        let key = match key {
            None if operation.key == KeyUse::Required => {
                let mut random = [0; 16];
                getrandom::fill(&mut random).map_err(|error| Failure::internal(error.to_string()))?;
                Some(format!("cli-{:032x}", u128::from_le_bytes(random)))
            }
            key => key.map(|key| key.to_string()),
        };
        let (path, params) = fill_path(&route, params);
        let mut request = ureq::http::Request::builder().method(route.method.as_str());
        if let Some(key) = &self.key {
            request = request.header("x-relay-key", key);
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let (uri, body) = match route.method {
            Method::Get | Method::Delete => (format!("{}{path}{}", self.url, query(&params)), String::new()),
            Method::Post if document.is_some() => (format!("{}{path}", self.url), String::new()),
            Method::Post => (format!("{}{path}", self.url), params.to_string()),
        };
        let request = request.uri(uri).header("content-type", "application/json");
        let unusable = |error: ureq::http::Error| {
            Failure::new(Exit::Usage, "invalid_config", format!("server {}: {error}", self.url))
        };
        let sent = match document {
            Some(document) => {
                self.agent.run(request.body(SendBody::from_owned_reader(document)).map_err(unusable)?)
            }
            None => self.agent.run(request.body(body).map_err(unusable)?),
        };
        let mut response = sent.map_err(|error| self.unreachable(&error))?;
        let body = response.body_mut().with_config().limit(MAX_ANSWER_BYTES).read_to_string();
        let body = body.map_err(|error| self.unreachable(&error))?;
        match response.status().as_u16() {
            200 => Ok(body),
            status => Err(self.refused(status, &body)),
        }
    }

    /// Converts the body of an error response. A proxy in front of the server sends pages of its own.
    fn refused(&self, status: u16, body: &str) -> Failure {
        let parsed: Value = serde_json::from_str(body).unwrap_or_default();
        match parsed["error"].as_str() {
            // A newer server may have codes that this version does not know.
            Some(code) => Failure {
                code: code.to_owned(),
                ..read_error(ErrorCode::from_wire(code).unwrap_or(ErrorCode::Internal), body).into()
            },
            None => {
                let (exit, code) = match status {
                    500.. => (Exit::StoreUnavailable, "server_unreachable"),
                    _ => (Exit::Failure, "unexpected_response"),
                };
                let message = format!(
                    "cannot use the server {}: HTTP status {status} without an error of Baton",
                    self.url
                );
                Failure::new(exit, code, message)
                    .hint("check the address, and that baton serve runs behind the proxy that answered")
            }
        }
    }

    fn unreachable(&self, error: &ureq::Error) -> Failure {
        Failure::new(
            Exit::StoreUnavailable,
            "server_unreachable",
            format!("cannot reach the server {}: {error}", self.url),
        )
        .hint("check that baton serve runs there, or omit --server to use the local store")
    }
}

/// Inserts path parameters into the path; returns the path and the remaining parameters.
fn fill_path(route: &Route, params: Value) -> (String, Value) {
    let mut rest = params;
    let mut path = String::new();
    for part in route.path.split_inclusive('/') {
        let (name, slash) = part.strip_suffix('/').map_or((part, ""), |name| (name, "/"));
        match name.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
            Some(name) => {
                let value = rest.as_object_mut().and_then(|map| map.remove(name)).unwrap_or_default();
                path.push_str(&encode(&text_of(&value)));
            }
            None => path.push_str(name),
        }
        path.push_str(slash);
    }
    (path, rest)
}

fn query(params: &Value) -> String {
    let pairs: Vec<String> = params
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| format!("{}={}", encode(name), encode(&text_of(value))))
        .collect();
    if pairs.is_empty() { String::new() } else { format!("?{}", pairs.join("&")) }
}

fn text_of(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
