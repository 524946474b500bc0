//! Structured output: used if the endpoint supports it, disabled permanently if not.

use baton_llm::Compressor;
use baton_testkit::model_server::{Behaviour, ModelServer};

use crate::fixture::{anthropic, bash, openai, unusable};

/// Returns the formats that the requests so far asked for.
fn formats(server: &ModelServer) -> Vec<String> {
    let format = |request: &baton_testkit::model_server::Request| {
        let body = request.json();
        let kind = body["output_config"]["format"]["type"].as_str();
        kind.or_else(|| body["response_format"]["type"].as_str()).unwrap_or("none").to_owned()
    };
    server.requests().iter().map(format).collect()
}

#[test]
fn messages_fall_back_to_plain_text_and_remember() {
    let server = ModelServer::start();
    server.behave(Behaviour::RefuseStructuredOutput);
    let compressor = anthropic(&server);
    for item in ["item-1", "item-2"] {
        assert_eq!(compressor.compress(&bash(item)).unwrap().observation.title, format!("Compressed {item}"));
    }
    assert_eq!(formats(&server), ["json_schema", "none", "none"]);
}

#[test]
fn messages_keep_structured_output_after_other_errors() {
    let server = ModelServer::start();
    server.script([Behaviour::BadRequest]);
    let compressor = anthropic(&server);
    unusable(&compressor);
    compressor.compress(&bash("x")).unwrap();
    assert_eq!(formats(&server), ["json_schema", "json_schema"]);
}

#[test]
fn messages_keep_structured_output_if_the_fallback_fails() {
    let server = ModelServer::start();
    server.script([Behaviour::RefuseStructuredOutput, Behaviour::BadRequest]);
    let compressor = anthropic(&server);
    unusable(&compressor);
    compressor.compress(&bash("x")).unwrap();
    assert_eq!(formats(&server), ["json_schema", "none", "json_schema"]);
}

#[test]
fn chat_completions_fall_back_to_an_object_and_remember() {
    let server = ModelServer::start();
    server.behave(Behaviour::RefuseJsonSchema);
    let compressor = openai(&server);
    for _ in 0..2 {
        compressor.compress(&bash("x")).unwrap();
    }
    assert_eq!(formats(&server), ["json_schema", "json_object", "json_object"]);
}

#[test]
fn chat_completions_fall_back_to_nothing_and_remember() {
    let server = ModelServer::start();
    server.behave(Behaviour::RefuseStructuredOutput);
    let compressor = openai(&server);
    for _ in 0..2 {
        compressor.compress(&bash("x")).unwrap();
    }
    assert_eq!(formats(&server), ["json_schema", "json_object", "none", "none"]);
}

#[test]
fn chat_completions_keep_the_schema_if_every_format_is_rejected() {
    let server = ModelServer::start();
    server.script([Behaviour::BadRequest, Behaviour::BadRequest, Behaviour::BadRequest]);
    let compressor = openai(&server);
    unusable(&compressor);
    compressor.compress(&bash("x")).unwrap();
    assert_eq!(formats(&server), ["json_schema", "json_object", "none", "json_schema"]);
}

#[test]
fn chat_completions_learn_max_completion_tokens() {
    let server = ModelServer::start();
    server.behave(Behaviour::RefuseMaxTokens);
    let compressor = openai(&server);
    for _ in 0..2 {
        compressor.compress(&bash("x")).unwrap();
    }
    assert_eq!(formats(&server), ["json_schema"; 3]);
    let limits: Vec<_> =
        server.requests().iter().map(|request| request.json()["max_completion_tokens"].clone()).collect();
    assert_eq!(limits, [serde_json::Value::Null, 1024.into(), 1024.into()]);
}
