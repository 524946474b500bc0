//! Backend of a verb: the local store, or a server over HTTP. Both return the same response.

use std::sync::Arc;
use std::time::Duration;

use baton_app::id::FindIds;
use baton_app::observation::{Hook, Intake, Report};
use baton_app::{AnyOperation, App, Attachment, Call, Face, KeyUse, OnStore, Operation, Reply, operation};
use baton_checkpoint::SavedContext;
use baton_core::{Actor, IdempotencyKey};
use baton_store::{LockTimeout, PostgresTimeouts, Store, StoreConfig, Threads};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::app::{app_on, open_app, open_app_or_degrade};
use crate::config::Config;
use crate::data_dir::DataDir;
use crate::output::{Answer, Failure};
use crate::remote::{Remote, with_context};
use crate::short_id;
use crate::store::{require_local, store_config, store_failure};

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
