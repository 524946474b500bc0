//! First part of a call: all checks that need no transaction.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use baton_core::{
    Access, Canonical, ErrorCode, Fault, KeyScope, Sha256Hash, Venture, printable, require_no_nul,
};
use serde_json::{Value, json};

use crate::any_operation::AnyOperation;
use crate::call::{Attachment, Call};
use crate::context::Context;
use crate::input::Input;
use crate::operation::{KeyUse, Privacy, RequestFormat};

/// Supported request schema versions.
const SCHEMA_VERSIONS: [&str; 1] = ["1.0"];

/// Maximum number of secret findings named in the message; the details list all of them.
const NAMED_FINDINGS: usize = 3;

/// Checked input of an operation, and the scope and request hash of the call's idempotency key.
pub(crate) struct Prepared {
    pub(crate) input: Arc<dyn Input>,
    pub(crate) key: Option<(KeyScope, Sha256Hash)>,
}

/// Checks a call before its transaction starts.
pub(crate) fn prepare(
    operation: &AnyOperation,
    call: &Call,
    context: &Context<'_>,
    params: Value,
) -> Result<Prepared, Fault> {
    if let (Some(Attachment::Spooled(entry)), Some(read)) = (&call.attachment, operation.read_spooled) {
        // A retry of the original request gets the response of the replay, because both have the same hash.
        let key = key_scope(operation, call).zip(entry.write.request_hash);
        return Ok(Prepared { input: read(context, entry)?, key });
    }
    let CheckedParams { params, earlier_checks, key } = check(operation, call, context, params)?;
    Ok(Prepared { input: (operation.read_input)(context, params, earlier_checks)?, key })
}

fn key_scope(operation: &AnyOperation, call: &Call) -> Option<KeyScope> {
    let (actor_key_id, key) = (call.actor.key_id.clone(), call.idempotency_key.clone()?);
    Some(KeyScope { actor_key_id, operation: operation.name, key })
}

/// Parameters that can be read into their type.
struct CheckedParams {
    params: Value,
    /// Result of the checks of the texts and of the schema version. It is reported together with unreadable parameters.
    earlier_checks: Result<(), Fault>,
    key: Option<(KeyScope, Sha256Hash)>,
}

/// Does the checks of a call that do not depend on the types of its operation.
fn check(
    operation: &AnyOperation,
    call: &Call,
    context: &Context<'_>,
    mut params: Value,
) -> Result<CheckedParams, Fault> {
    let (is_write, request) = (operation.effect.is_write(), operation.request);
    call.actor.require_access(if is_write { Access::Write } else { Access::Read })?;
    if let Some(repair) = request.repair {
        repair(&mut params);
    }
    let text_check = match (&params, request.privacy) {
        (Value::Object(members), Privacy::Refuse) => require_no_nul(members, request.context_param),
        _ => Ok(()),
    };
    let earlier_checks = Fault::all([require_schema_version(&params), text_check]);
    if is_write {
        match request.privacy {
            Privacy::Refuse => check_secrets(&request, &mut params, context)?,
            Privacy::Redact(redact) => redact(&mut params),
        }
        if operation.key == KeyUse::Required && call.idempotency_key.is_none() {
            return Err(Fault::new(
                ErrorCode::MissingIdempotencyKey,
                format!("{} requires an idempotency key", operation.name),
            )
            .hint(
                "send a new UUID in the Idempotency-Key header, and the same UUID when you retry the request",
            ));
        }
    }
    let key = match key_scope(operation, call) {
        Some(scope) if is_write => {
            let params = request_hash(&request, &params)?;
            Some((scope, hash_with_attachment(params, context)?))
        }
        _ => None,
    };
    let default = take_default_venture(&mut params).then_some(&context.settings.default_venture);
    if let Some(venture) = call.actor.only_venture().or(default) {
        add_venture(operation, &mut params, venture);
    }
    Ok(CheckedParams { params, earlier_checks, key })
}

/// Sets `venture` if the operation has this parameter and the call omits it.
fn add_venture(operation: &AnyOperation, params: &mut Value, venture: &Venture) {
    static TAKES_VENTURE: Mutex<BTreeMap<&str, bool>> = Mutex::new(BTreeMap::new());
    let Value::Object(members) = params else { return };
    if members.get("venture").is_some_and(|named| !named.is_null()) {
        return;
    }
    let mut known = TAKES_VENTURE.lock().unwrap_or_else(PoisonError::into_inner);
    // Cached because generating a schema is slow.
    let takes_venture = *known
        .entry(operation.name)
        .or_insert_with(|| operation.params_schema()["properties"].get("venture").is_some());
    if takes_venture {
        members.insert("venture".to_owned(), venture.as_str().into());
    }
}

/// Removes the parameter `default_venture` and returns true if it was set. It selects the configured venture for an
/// operation that otherwise covers all ventures.
fn take_default_venture(params: &mut Value) -> bool {
    let removed = params.as_object_mut().and_then(|members| members.remove("default_venture"));
    removed.is_some_and(|flag| flag == true || flag == "true")
}

/// Combines the hash of the parameters with the hash of the attachment, if there is one.
fn hash_with_attachment(params: Sha256Hash, context: &Context<'_>) -> Result<Sha256Hash, Fault> {
    let attached = match context.attachment {
        None | Some(Attachment::Spooled(_)) => return Ok(params),
        Some(Attachment::Output(output)) => output.hash(context.settings.checkpoints.storage.blobs())?,
        Some(Attachment::Context(context)) => context.hash(),
    };
    Ok(Sha256Hash::of(&[params.as_bytes().as_slice(), attached.as_bytes()].concat()))
}

/// Returns the hash that distinguishes requests with the same idempotency key.
fn request_hash(request: &RequestFormat, params: &Value) -> Result<Sha256Hash, Fault> {
    match Canonical::of(params) {
        Ok(canonical) => Ok(canonical.hash()),
        // Hook reports come from third-party agents, so integers out of range are kept instead of being rejected. The
        // text can be hashed because a retried report is identical byte for byte.
        Err(_) if matches!(request.privacy, Privacy::Redact(_)) => {
            Ok(Sha256Hash::of(params.to_string().as_bytes()))
        }
        Err(rounded) => Err(Fault::invalid(&rounded.path, &rounded)),
    }
}

fn require_schema_version(params: &Value) -> Result<(), Fault> {
    match params.get("schema_version") {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(version)) if SCHEMA_VERSIONS.contains(&version.as_str()) => Ok(()),
        Some(Value::String(version)) => Err(Fault::new(
            ErrorCode::UnsupportedSchemaVersion,
            format!("schema_version `{}` is not supported", printable(version, 32)),
        )
        .hint("send one of the versions in `supported`, or omit schema_version")
        .details(json!({ "supported": SCHEMA_VERSIONS }))),
        Some(_) => Err(Fault::invalid("schema_version", "must be a string, like \"1.0\"")),
    }
}

/// Rejects parameters that contain a secret, or redacts them if the caller requested that. The operation redacts an
/// attached context itself.
fn check_secrets(request: &RequestFormat, params: &mut Value, context: &Context<'_>) -> Result<(), Fault> {
    let mut findings = baton_secrets::scan_json(params);
    if request.redact_param.is_some_and(|name| params[name] == true) {
        if !findings.is_empty() {
            baton_secrets::redact_json(params);
        }
        return Ok(());
    }
    if let (Some(attached), Some(name)) =
        (context.attachment.and_then(Attachment::context), request.context_param)
    {
        let found = baton_secrets::scan_json_text(name, attached.text()).map_err(|error| {
            Fault::new(ErrorCode::Internal, "cannot read the context that was sent").caused_by(error)
        })?;
        findings.extend(found);
    }
    if findings.is_empty() {
        return Ok(());
    }
    let named: Vec<String> = findings
        .iter()
        .take(NAMED_FINDINGS)
        .map(|finding| format!("{} ({})", finding.path, finding.rule.id()))
        .collect();
    let more = if findings.len() > NAMED_FINDINGS { ", …" } else { "" };
    Err(Fault::new(
        ErrorCode::SecretFound,
        format!("the input appears to contain a secret: {}{more}; nothing was stored", named.join(", ")),
    )
    .hint(secret_hint(request.redact_param))
    .details(json!({ "findings": findings })))
}

fn secret_hint(redact_param: Option<&str>) -> String {
    let redact = redact_param.map_or_else(String::new, |name| {
        format!(", or add {name}: true (--redact-secrets) to store the text with [redacted:…] in its place")
    });
    format!(
        "replace it with a placeholder such as [redacted] and send the request again{redact}; revoke it if it is real"
    )
}
