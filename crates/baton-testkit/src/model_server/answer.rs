//! Answers of the server, in the format of either API.

use serde_json::{Value, json};

use super::agent::answer_agent;
use super::behaviour::Behaviour;
use super::http::{Request, Response, find};

/// The API of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wire {
    Anthropic,
    OpenAi,
    Embeddings,
}

/// How the model's answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Done,
    CutOff,
    Declined,
}

/// Creates the answer of a behaviour; `None` if the server does not answer.
pub(super) fn answer(behaviour: &Behaviour, request: &Request) -> Option<Response> {
    if let Behaviour::Agent(script) = behaviour {
        return Some(answer_agent(script, request));
    }
    let wire = match request.path.as_str() {
        "/v1/messages" => Wire::Anthropic,
        "/v1/chat/completions" => Wire::OpenAi,
        "/v1/embeddings" => Wire::Embeddings,
        path => return Some(error(404, "not_found_error", &format!("no such path: {path}"))),
    };
    let good = || model_answer(wire, request, &content(request).to_string(), Ending::Done);
    let half = || {
        let content = content(request).to_string();
        content[..content.len() / 2].to_owned()
    };
    Some(match behaviour {
        Behaviour::StatusOn(status, text) if request.has(text) => error(*status, "fake_error", "as asked"),
        Behaviour::Good | Behaviour::Slow(_) | Behaviour::SlowUpTo(_) | Behaviour::StatusOn(..) => good(),
        Behaviour::Fenced => {
            let text = format!("Here is the object:\n\n```json\n{:#}\n```\nAnything else?", content(request));
            model_answer(wire, request, &text, Ending::Done)
        }
        Behaviour::RateLimited { retry_after } => {
            let mut response = error(429, "rate_limit_error", "slow down");
            response.headers.extend(retry_after.iter().map(|value| ("retry-after", value.clone())));
            response
        }
        // Some endpoints repeat part of the key.
        Behaviour::Unauthorized => {
            let key = request.header("x-api-key").or_else(|| request.header("authorization"));
            error(401, "authentication_error", &format!("invalid key: {}", key.unwrap_or_default()))
        }
        Behaviour::Forbidden => error(403, "permission_error", "not allowed"),
        Behaviour::ServerError => error(500, "api_error", "internal error"),
        Behaviour::Overloaded => error(529, "overloaded_error", "overloaded"),
        Behaviour::BadRequest => error(400, "invalid_request_error", "prompt is too long"),
        Behaviour::OutOfCredit => {
            error(400, "invalid_request_error", "Your credit balance is too low to access the API.")
        }
        Behaviour::RefuseStructuredOutput if request.has(field(wire)) => refused_field(wire),
        Behaviour::RefuseJsonSchema if request.has("\"json_schema\"") => refused_field(wire),
        Behaviour::RefuseMaxTokens if request.has("\"max_tokens\"") => {
            error(400, "invalid_request_error", "Unsupported parameter: use 'max_completion_tokens' instead.")
        }
        Behaviour::RefuseStructuredOutput | Behaviour::RefuseJsonSchema | Behaviour::RefuseMaxTokens => {
            good()
        }
        Behaviour::Status(status) => error(*status, "fake_error", "as asked"),
        Behaviour::Redirect(to) => {
            Response { status: 302, headers: vec![("location", to.clone())], body: String::new() }
        }
        Behaviour::Garbage => ok("<html><body>It works!</body></html>".to_owned()),
        Behaviour::Body(body) => ok(body.clone()),
        Behaviour::Says(text) => model_answer(wire, request, text, Ending::Done),
        Behaviour::MissingTitle => model_answer(wire, request, r#"{"summary":"no title"}"#, Ending::Done),
        Behaviour::WrongTypes => {
            let text = r#"{"title":"t","summary":"s","files_touched":"a.rs","key_files":7}"#;
            model_answer(wire, request, text, Ending::Done)
        }
        Behaviour::TruncatedJson => model_answer(wire, request, &half(), Ending::Done),
        Behaviour::MaxTokens => model_answer(wire, request, &half(), Ending::CutOff),
        Behaviour::Refusal => model_answer(wire, request, "", Ending::Declined),
        Behaviour::Agent(_) | Behaviour::Hang | Behaviour::CloseConnection => return None,
    })
}

/// Returns the request member that asks for structured output.
const fn field(wire: Wire) -> &'static str {
    match wire {
        Wire::Anthropic => "\"output_config\"",
        Wire::OpenAi | Wire::Embeddings => "\"response_format\"",
    }
}

fn refused_field(wire: Wire) -> Response {
    match wire {
        Wire::Anthropic => {
            error(400, "invalid_request_error", "output_config: Extra inputs are not permitted")
        }
        Wire::OpenAi | Wire::Embeddings => {
            error(400, "invalid_request_error", "This response_format type is unavailable now")
        }
    }
}

/// Returns the content of a valid answer: a summary if one was requested, otherwise an observation.
fn content(request: &Request) -> Value {
    let item = item(&request.body);
    // Only summary requests have this token limit. In a prompt the quote would be escaped.
    if request.has("_tokens\":512") {
        return json!({
            "summary": format!("Summary of {item}"),
            "key_files": ["src/lib.rs"],
            "key_decisions": ["Kept it small"],
        });
    }
    json!({
        "title": format!("Compressed {item}"),
        "summary": format!("What happened in {item}, and why."),
        "detail": null,
        "files_touched": [format!("src/{item}.rs")],
        "functions_changed": [{ "file": format!("src/{item}.rs"), "name": "f", "action": "modified" }],
    })
}

/// Returns the first `item-<n>` in a request.
fn item(body: &[u8]) -> String {
    let mark = b"item-";
    let mut rest = body;
    while let Some(at) = find(rest, mark) {
        rest = &rest[at + mark.len()..];
        let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 {
            return format!("item-{}", String::from_utf8_lossy(&rest[..digits]));
        }
    }
    "something".to_owned()
}

/// Creates an answer in the format of an API, with this text of the model.
fn model_answer(wire: Wire, request: &Request, text: &str, ending: Ending) -> Response {
    // About four bytes per token.
    let (tokens_in, tokens_out) = (request.body.len() / 4, text.len() / 4);
    ok(match wire {
        Wire::Embeddings => embeddings(&request.json()),
        Wire::Anthropic => json!({
            "id": "msg_fake",
            "type": "message",
            "role": "assistant",
            "model": "fake",
            "content": [{ "type": "text", "text": text }],
            "stop_reason": match ending {
                Ending::Done => "end_turn",
                Ending::CutOff => "max_tokens",
                Ending::Declined => "refusal",
            },
            "stop_sequence": null,
            "usage": { "input_tokens": tokens_in, "output_tokens": tokens_out },
        }),
        Wire::OpenAi => json!({
            "id": "chatcmpl-fake",
            "object": "chat.completion",
            "created": 0,
            "model": "fake",
            "choices": [{
                "index": 0,
                "message": match ending {
                    Ending::Declined => json!({ "role": "assistant", "content": null, "refusal": "I cannot." }),
                    _ => json!({ "role": "assistant", "content": text }),
                },
                "finish_reason": if ending == Ending::CutOff { "length" } else { "stop" },
            }],
            "usage": {
                "prompt_tokens": tokens_in,
                "completion_tokens": tokens_out,
                "total_tokens": tokens_in + tokens_out,
            },
        }),
    }
    .to_string())
}

/// Words with the same meaning. Each row is a dimension of the embeddings.
const MEANINGS: [&[&str]; 3] =
    [&["login", "sign in"], &["lease", "expire", "ran out"], &["queue", "backlog", "waiting work"]];

/// Returns an embedding for each text: texts that use words of the same meaning are similar. Vectors of a model whose name
/// contains `wide` have one more dimension.
fn embeddings(request: &Value) -> Value {
    let is_wide = request["model"].as_str().is_some_and(|model| model.contains("wide"));
    let texts = request["input"].as_array().cloned().unwrap_or_default();
    let embedding = |text: &Value| {
        let text = text.as_str().unwrap_or_default().to_lowercase();
        let share = |words: &&[&str]| f64::from(words.iter().any(|word| text.contains(word)));
        let mut numbers: Vec<f64> = MEANINGS.iter().map(share).collect();
        numbers.push(0.1);
        numbers.extend(is_wide.then_some(0.1));
        numbers
    };
    let data: Vec<Value> = texts
        .iter()
        .enumerate()
        .map(|(index, text)| json!({ "object": "embedding", "index": index, "embedding": embedding(text) }))
        .collect();
    json!({ "object": "list", "data": data, "usage": { "prompt_tokens": texts.len(), "total_tokens": texts.len() } })
}

fn ok(body: String) -> Response {
    Response { status: 200, headers: Vec::new(), body }
}

/// Creates an error in a format that both APIs share.
fn error(status: u16, kind: &str, message: &str) -> Response {
    let body = json!({ "type": "error", "error": { "type": kind, "message": message } });
    Response { status, headers: Vec::new(), body: body.to_string() }
}
