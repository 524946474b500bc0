//! Summaries of sessions.

use baton_core::observation::{Digest, SessionMaterial};
use baton_llm::{CompressError, TokenUsage};
use baton_testkit::model_server::Behaviour;

use crate::fixture::with_both;

fn material(titles: &[&str]) -> SessionMaterial {
    let digest = |title: &&str| Digest {
        tool_name: "Edit".to_owned(),
        title: (*title).to_owned(),
        summary: "because".to_owned(),
        files_touched: Vec::new(),
        functions_changed: Vec::new(),
    };
    SessionMaterial { digests: titles.iter().map(digest).collect(), ..SessionMaterial::default() }
}

#[test]
fn session_is_summarized_from_its_observations() {
    with_both(|server, compressor| {
        let summarization = compressor.summarize(&material(&["Add item-4", "Fix it"])).unwrap();
        assert_eq!(summarization.summary.summary, "Summary of item-4");
        assert_eq!(summarization.summary.key_files, ["src/lib.rs"]);
        assert_eq!(summarization.summary.key_decisions, ["Kept it small"]);
        assert_eq!(summarization.prompt_version, "summarize-v1");
        assert!(summarization.usage.tokens_in > 0);
        let request = &server.requests()[0];
        assert_eq!(request.json()["max_tokens"], 512);
        let lines = "- [Edit] Add item-4: because\n- [Edit] Fix it: because\n</observations_";
        assert!(request.prompt().contains(lines), "{}", request.prompt());
    });
}

#[test]
fn session_without_observations_is_summarized_without_a_call() {
    with_both(|server, compressor| {
        let summarization = compressor.summarize(&SessionMaterial::default()).unwrap();
        assert_eq!(summarization.summary.summary, "No observations captured.");
        assert_eq!(summarization.usage, TokenUsage::default());
        assert_eq!(server.received(), 0);
    });
}

#[test]
fn summaries_fail_like_observations() {
    with_both(|server, compressor| {
        server.behave(Behaviour::WrongTypes);
        let error = compressor.summarize(&material(&["a"])).unwrap_err();
        assert!(error.to_string().starts_with("`key_files` is not a list but a number"), "{error}");
        server.behave(Behaviour::rate_limited(3));
        assert!(matches!(compressor.summarize(&material(&["a"])), Err(CompressError::Outage { .. })));
    });
}
