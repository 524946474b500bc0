//! Both compressors, each with its own fake model server.

use std::time::Duration;

use baton_llm::{Anthropic, AnthropicConfig, ApiKey, CompressError, Compressor, OpenAi, OpenAiConfig};
use baton_observation::ToolUse;
use baton_testkit::model_server::ModelServer;
use serde_json::json;

/// Key of all compressors in these tests.
pub(crate) const KEY: &str = "sk-test-0123456789abcdef";

pub(crate) fn anthropic_config(url: &str) -> AnthropicConfig {
    AnthropicConfig { base_url: url.to_owned(), ..AnthropicConfig::new(ApiKey::new(KEY)) }
}

pub(crate) fn openai_config(url: &str) -> OpenAiConfig {
    OpenAiConfig { api_key: Some(ApiKey::new(KEY)), ..OpenAiConfig::new(url, "small-model") }
}

pub(crate) fn anthropic(server: &ModelServer) -> Anthropic {
    Anthropic::new(&anthropic_config(&server.url())).unwrap()
}

pub(crate) fn openai(server: &ModelServer) -> OpenAi {
    OpenAi::new(&openai_config(&server.url())).unwrap()
}

/// Runs a test with each compressor and a new server.
pub(crate) fn with_both(test: impl Fn(&ModelServer, &dyn Compressor)) {
    with_both_within(baton_llm::DEFAULT_TIMEOUT, test);
}

/// Runs a test with each compressor, with this call timeout, and a new server.
pub(crate) fn with_both_within(timeout: Duration, test: impl Fn(&ModelServer, &dyn Compressor)) {
    let server = ModelServer::start();
    test(&server, &Anthropic::new(&AnthropicConfig { timeout, ..anthropic_config(&server.url()) }).unwrap());
    let server = ModelServer::start();
    test(&server, &OpenAi::new(&OpenAiConfig { timeout, ..openai_config(&server.url()) }).unwrap());
}

/// Creates a tool use of a command with this output.
pub(crate) fn bash(output: &str) -> ToolUse {
    ToolUse {
        tool_name: "Bash".to_owned(),
        tool_input: json!({ "command": "cargo test" }),
        tool_response: json!({ "stdout": output, "stderr": "" }),
        cwd: None,
        turn: None,
    }
}

/// Fields of an outage error.
pub(crate) struct Outage {
    pub(crate) message: String,
    pub(crate) retry_after: Option<Duration>,
    pub(crate) needs_attention: bool,
    pub(crate) may_be_caused_by_item: bool,
}

/// Compresses an item and expects an outage.
pub(crate) fn outage(compressor: &dyn Compressor) -> Outage {
    match compressor.compress(&bash("item-1")) {
        Err(CompressError::Outage { message, retry_after, needs_attention, may_be_caused_by_item }) => {
            Outage { message, retry_after, needs_attention, may_be_caused_by_item }
        }
        other => panic!("{}: not an outage: {other:?}", compressor.name()),
    }
}

/// Compresses an item and expects an unusable error. Returns its message and token counts.
pub(crate) fn unusable(compressor: &dyn Compressor) -> (String, baton_llm::TokenUsage) {
    match compressor.compress(&bash("item-1")) {
        Err(CompressError::Unusable { message, usage }) => (message, usage),
        other => panic!("{}: not unusable: {other:?}", compressor.name()),
    }
}
