//! Strict parsing of JSON-RPC messages. Invalid messages are answered with an error.
//!
//! Owns the limits of a message and the JSON-RPC errors for violations. The SDK would use the last of two duplicate
//! keys and silently drop messages that it cannot parse.

use baton_core::{ErrorCode, JsonErrorKind, MAX_DEPTH, json_tokens, read_strict_within};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, JsonRpcError, RequestId};
use serde_json::{Map, Value, json};

/// Maximum size of a message in bytes.
pub const MAX_MESSAGE_BYTES: usize = 20 * 1024 * 1024;
/// The arguments are inside `params` inside the message, and may be nested as deep as any other document.
const MAX_MESSAGE_DEPTH: usize = MAX_DEPTH + 2;

/// A message that is rejected before its request is processed.
#[derive(Debug)]
pub struct RejectedMessage {
    /// The JSON-RPC response.
    pub(crate) error: JsonRpcError,
    /// The same error as an error code of the other interfaces.
    pub code: ErrorCode,
}

impl RejectedMessage {
    fn new(id: Option<RequestId>, code: ErrorCode, error: ErrorData) -> Self {
        Self { error: JsonRpcError::new(id, error), code }
    }

    /// Rejects an oversized message. Only its beginning was kept.
    pub fn too_large(beginning: &[u8]) -> Self {
        let message = format!("the message is larger than {MAX_MESSAGE_BYTES} bytes");
        let data = json!({ "allowed_bytes": MAX_MESSAGE_BYTES });
        let error = ErrorData::invalid_request(message, Some(data));
        Self::new(request_id(beginning), ErrorCode::PayloadTooLarge, error)
    }

    /// Returns the error message.
    pub fn text(&self) -> &str {
        &self.error.error.message
    }

    /// Returns the JSON-RPC response.
    pub fn to_json(&self) -> Vec<u8> {
        serde_json::to_vec(&self.error).unwrap_or_default()
    }
}

/// Parses one message.
pub(crate) fn read_message(bytes: &[u8]) -> Result<ClientJsonRpcMessage, RejectedMessage> {
    if bytes.len() > MAX_MESSAGE_BYTES {
        return Err(RejectedMessage::too_large(bytes));
    }
    let mut value = read_strict_within(bytes, MAX_MESSAGE_DEPTH).map_err(|error| {
        let (message, place) = (error.to_string(), json!({ "path": error.path, "column": error.column }));
        let answer = match error.kind {
            // Valid JSON, but ambiguous: parsers read it differently.
            JsonErrorKind::DuplicateKey(_)
            | JsonErrorKind::TooDeep(_)
            | JsonErrorKind::NumberOutOfRange
            | JsonErrorKind::IntegerWouldRound(_) => ErrorData::invalid_request(message, Some(place)),
            JsonErrorKind::Empty
            | JsonErrorKind::Syntax(_)
            | JsonErrorKind::TrailingCharacters
            | JsonErrorKind::InvalidUtf8
            | JsonErrorKind::LoneSurrogate
            | JsonErrorKind::ControlCharacter
            | JsonErrorKind::Truncated => {
                ErrorData::parse_error(format!("the message is not valid JSON: {message}"), Some(place))
            }
        };
        RejectedMessage::new(request_id(bytes), ErrorCode::InvalidJson, answer)
    })?;
    let id = value.get("id").and_then(|id| serde_json::from_value(id.clone()).ok());
    // The SDK copies a message several times to find its type. The arguments, which may be a whole context, are taken
    // out before.
    let arguments = take_arguments(&mut value);
    let mut message = serde_json::from_value(value).map_err(|_| {
        let answer = ErrorData::invalid_request("this is not a JSON-RPC 2.0 request or notification", None);
        RejectedMessage::new(id, ErrorCode::InvalidRequest, answer)
    })?;
    if let (Some(arguments), ClientJsonRpcMessage::Request(request)) = (arguments, &mut message)
        && let ClientRequest::CallToolRequest(call) = &mut request.request
    {
        call.params.arguments = Some(arguments);
    }
    Ok(message)
}

/// Takes the arguments out of a tool call.
fn take_arguments(message: &mut Value) -> Option<Map<String, Value>> {
    if message.get("method").and_then(Value::as_str) != Some("tools/call") {
        return None;
    }
    let params = message.get_mut("params")?.as_object_mut()?;
    match params.remove("arguments")? {
        Value::Object(arguments) => Some(arguments),
        other => {
            params.insert("arguments".into(), other);
            None
        }
    }
}

/// Finds the id of a request that cannot be parsed: the only `id` of the outermost object.
fn request_id(bytes: &[u8]) -> Option<RequestId> {
    let (mut found, mut depth) = (None, 0_usize);
    let mut tokens = json_tokens(bytes);
    while let Some(token) = tokens.next() {
        match token {
            b"{" | b"[" => depth += 1,
            b"}" | b"]" => depth = depth.saturating_sub(1),
            b"\"id\"" if depth == 1 => {
                let mut after = tokens.clone();
                if after.next() == Some(b":")
                    && let Some(id) = after.next().and_then(|id| serde_json::from_slice(id).ok())
                    && found.replace(id).is_some()
                {
                    // Two ids are ambiguous.
                    return None;
                }
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn refused(bytes: &[u8]) -> (i32, Option<Value>, ErrorCode) {
        let RejectedMessage { error, code } = read_message(bytes).unwrap_err();
        (error.error.code.0, error.id.map(RequestId::into_json_value), code)
    }

    const PARSE_ERROR: i32 = -32700;
    const INVALID_REQUEST: i32 = -32600;

    #[test]
    fn arguments_may_be_nested_as_deep_as_other_documents() {
        let call = |depth: usize| {
            let deep = format!("{}1{}", "{\"k\":".repeat(depth), "}".repeat(depth));
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"x","arguments":{deep}}}}}"#
            )
        };
        assert!(read_message(call(MAX_DEPTH).as_bytes()).is_ok());
        let beyond = refused(call(MAX_DEPTH + 1).as_bytes());
        assert_eq!(beyond, (INVALID_REQUEST, Some(json!(1)), ErrorCode::InvalidJson));
    }

    #[test]
    fn invalid_messages_are_rejected_with_their_id() {
        let deep = format!(r#"{{"id":"a","params":{}"#, "[".repeat(10_000));
        let cases: &[(&[u8], i32, Option<Value>)] = &[
            (b"", PARSE_ERROR, None),
            (b"nonsense", PARSE_ERROR, None),
            (br#"{"jsonrpc":"2.0","id":7,"method":"ping""#, PARSE_ERROR, Some(json!(7))),
            (b"{\"id\":8,\"method\":\"\xff\"}", PARSE_ERROR, Some(json!(8))),
            (br#"{"method":"ping","method":"ping","id" : -9 }"#, INVALID_REQUEST, Some(json!(-9))),
            (br#"{"a":{"id":1,"b":1,"b":2},"id":"out\"er"}"#, INVALID_REQUEST, Some(json!("out\"er"))),
            (br#"{"id":1,"id":2}"#, INVALID_REQUEST, None),
            (deep.as_bytes(), INVALID_REQUEST, Some(json!("a"))),
            (br#"{"id":1.5,"a":1,"a":2}"#, INVALID_REQUEST, None),
            (br#"{"id":3,"n":123456789012345678901}"#, INVALID_REQUEST, Some(json!(3))),
            (br#"["id",{"id":4},1]"#, INVALID_REQUEST, None),
            (br#"{"id":5}"#, INVALID_REQUEST, Some(json!(5))),
            (br#"{"jsonrpc":"1.0","id":6,"method":"ping"}"#, INVALID_REQUEST, Some(json!(6))),
        ];
        let rejected = read_message(b"not json").unwrap_err();
        assert!(rejected.text().starts_with("the message is not valid JSON: "), "{}", rejected.text());
        for (bytes, code, id) in cases {
            let (found_code, found_id, _) = refused(bytes);
            assert_eq!((found_code, &found_id), (*code, id), "{}", String::from_utf8_lossy(bytes));
        }
    }

    #[test]
    fn oversized_messages_are_rejected_before_parsing() {
        let mut large = br#"{"id":1,"x":""#.to_vec();
        large.resize(MAX_MESSAGE_BYTES + 1, b'x');
        assert_eq!(refused(&large), (INVALID_REQUEST, Some(json!(1)), ErrorCode::PayloadTooLarge));
    }

    #[test]
    fn incomplete_ids_are_ignored() {
        for text in
            ["{\"id\"", "{\"id\":", "{\"id\":\"", "{\"id\":\"\\", "{\"id\":1", "\"", "\"\\", "{\"id\":-"]
        {
            assert_eq!(request_id(text.as_bytes()), None, "{text}");
        }
    }
}
