//! Conversion of replies to MCP tool results and errors.

use baton_app::Reply;
use baton_core::ErrorCode;
use rmcp::ErrorData;
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

/// Converts a reply to a tool result. `text_from` names the field that is shown as text instead of the whole
/// response.
///
/// An error is sent as text only: clients check structured content against the output schema of the tool, which an
/// error does not match, and would report that mismatch instead of the error.
pub(crate) fn tool_result(reply: &Reply, text_from: Option<&str>) -> CallToolResult {
    if let Some(error) = error_of(reply) {
        let text = serde_json::to_string(&error).unwrap_or_default();
        return CallToolResult::error(vec![ContentBlock::text(text)]);
    }
    let body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let text = match text_from.and_then(|field| body.get(field)) {
        Some(part) => part.to_string(),
        None => reply.body.clone(),
    };
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(body);
    result
}

/// Converts an error of reading a resource. Unknown and invalid URIs become "not found".
pub(crate) fn resource_error(uri: &str, code: ErrorCode, error: &ErrorBody) -> ErrorData {
    let mut error = serde_json::to_value(error).unwrap_or_default();
    let message = error["message"].as_str().unwrap_or_default().to_owned();
    error["uri"] = uri.into();
    match code.status() {
        400 | 404 => ErrorData::resource_not_found(message, Some(error)),
        status if status < 500 => ErrorData::invalid_request(message, Some(error)),
        _ => ErrorData::internal_error(message, Some(error)),
    }
}

/// The body of an error. The fields that a model needs come first.
#[derive(Debug, Serialize)]
pub(crate) struct ErrorBody {
    code: String,
    message: Value,
    suggestion: Value,
    retry: Value,
    details: Value,
    correlation_id: Value,
}

/// Returns the body of an error, or `None` for a successful reply.
pub(crate) fn error_of(reply: &Reply) -> Option<ErrorBody> {
    let code = reply.error?;
    let mut body: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    let mut field = |name: &str| body.get_mut(name).map(Value::take).unwrap_or_default();
    Some(ErrorBody {
        code: mcp_code(code),
        message: field("message"),
        suggestion: field("hint"),
        retry: if reply.must_not_retry() { never() } else { retry(code) },
        details: field("details"),
        correlation_id: field("correlation_id"),
    })
}

/// Returns the code in the spelling of MCP. The checkpoint specification defines some names that differ.
fn mcp_code(code: ErrorCode) -> String {
    match code {
        ErrorCode::StoreUnavailable => "STORAGE_UNAVAILABLE".to_owned(),
        other => other.as_str().to_ascii_uppercase(),
    }
}

/// Returns whether the same call may succeed later.
fn retry(code: ErrorCode) -> Value {
    match code {
        ErrorCode::Overloaded | ErrorCode::StoreUnavailable | ErrorCode::RateLimited => {
            json!({ "kind": "after", "afterMs": 1_000 })
        }
        ErrorCode::Internal => json!({ "kind": "once", "afterMs": 0 }),
        ErrorCode::InvalidJson
        | ErrorCode::InvalidRequest
        | ErrorCode::UnsupportedSchemaVersion
        | ErrorCode::MissingIdempotencyKey
        | ErrorCode::Unauthorized
        | ErrorCode::Forbidden
        | ErrorCode::NotFound
        | ErrorCode::SessionNotFound
        | ErrorCode::HandoffNotFound
        | ErrorCode::CheckpointNotFound
        | ErrorCode::CheckpointCorrupt
        | ErrorCode::TaskNotFound
        | ErrorCode::TaskExists
        | ErrorCode::TaskConflict
        | ErrorCode::DriftDetected
        | ErrorCode::TaskBlocked
        | ErrorCode::TaskCorrupt
        | ErrorCode::GitUnavailable
        | ErrorCode::MethodNotAllowed
        | ErrorCode::SessionEnded
        | ErrorCode::HandoffConflict
        | ErrorCode::PayloadTooLarge
        | ErrorCode::StorageQuotaExceeded
        | ErrorCode::IdempotencyMismatch
        | ErrorCode::SecretFound => never(),
    }
}

fn never() -> Value {
    json!({ "kind": "never", "afterMs": Value::Null })
}

#[cfg(test)]
mod tests {
    use baton_core::{CorrelationId, Fault};

    use super::*;

    fn reply(body: &Value) -> Reply {
        let correlation_id: CorrelationId = "corr_1".parse().unwrap();
        let fault = Reply::fault(&Fault::new(ErrorCode::Internal, ""), correlation_id);
        Reply { status: 200, error: None, body: body.to_string(), ..fault }
    }

    fn text_of(result: &CallToolResult) -> Value {
        let content = serde_json::to_value(&result.content).unwrap();
        serde_json::from_str(content[0]["text"].as_str().unwrap()).unwrap()
    }

    #[test]
    fn one_field_can_be_shown_as_text() {
        let body = json!({ "checkpoints": [{ "id": 1 }], "more": false });
        let whole = tool_result(&reply(&body), None);
        assert_eq!((text_of(&whole), whole.structured_content), (body.clone(), Some(body.clone())));
        let part = tool_result(&reply(&body), Some("checkpoints"));
        assert_eq!((text_of(&part), part.structured_content), (json!([{ "id": 1 }]), Some(body.clone())));
        // An absent field must not leave the model without a response.
        assert_eq!(text_of(&tool_result(&reply(&body), Some("nothing"))), body);
    }

    #[test]
    fn errors_are_text_of_fixed_shape_without_structured_content() {
        for (code, spelling) in [
            (ErrorCode::SessionNotFound, "SESSION_NOT_FOUND"),
            (ErrorCode::StoreUnavailable, "STORAGE_UNAVAILABLE"),
            (ErrorCode::InvalidRequest, "INVALID_REQUEST"),
        ] {
            let fault = Fault::new(code, "no").hint("do that");
            let result = tool_result(&Reply::fault(&fault, "corr_1".parse().unwrap()), Some("x"));
            assert_eq!(result.is_error, Some(true));
            assert_eq!(result.structured_content, None);
            let expected = json!({
                "code": spelling, "message": "no", "suggestion": "do that", "retry": retry(code), "details": null,
                "correlation_id": "corr_1",
            });
            assert_eq!(text_of(&result), expected);
            let content = serde_json::to_value(&result.content).unwrap();
            let start = format!(r#"{{"code":"{spelling}","message":"no","#);
            assert!(content[0]["text"].as_str().unwrap().starts_with(&start), "{content}");
        }
    }

    #[test]
    fn full_disk_errors_are_not_retryable() {
        let unavailable = Fault::new(ErrorCode::StoreUnavailable, "no");
        let retry = |fault: &Fault| error_of(&Reply::fault(fault, "corr_1".parse().unwrap())).unwrap().retry;
        assert_eq!(retry(&unavailable), json!({ "kind": "after", "afterMs": 1_000 }));
        let full = unavailable.details(json!({ "reason": "disk_full", "retryable": false }));
        assert_eq!(retry(&full), json!({ "kind": "never", "afterMs": null }));
    }

    #[test]
    fn unknown_and_invalid_uris_are_not_found() {
        let code = |code: ErrorCode| {
            let error = error_of(&Reply::fault(&Fault::new(code, "m"), "corr_1".parse().unwrap())).unwrap();
            resource_error("baton://x", code, &error).code.0
        };
        assert_eq!([code(ErrorCode::HandoffNotFound), code(ErrorCode::InvalidRequest)], [-32002, -32002]);
        assert_eq!([code(ErrorCode::Forbidden), code(ErrorCode::StoreUnavailable)], [-32600, -32603]);
    }
}
