//! Keys and payload appear in the request and nowhere else.

use baton_llm::{Anthropic, AnthropicConfig, ApiKey, EndpointError, OpenAi};
use baton_testkit::model_server::Behaviour;

use crate::fixture::{KEY, anthropic_config, bash, openai_config, with_both};

#[test]
fn errors_contain_neither_key_nor_payload() {
    // Words, not digits: an error may show the port of the server, which can be any number.
    let payload = "the customer's name is Ada Lovelace and her password is marigold";
    for behaviour in [
        Behaviour::Unauthorized,
        Behaviour::Forbidden,
        Behaviour::BadRequest,
        Behaviour::ServerError,
        Behaviour::Overloaded,
        Behaviour::rate_limited(1),
        Behaviour::Garbage,
        Behaviour::TruncatedJson,
        Behaviour::MaxTokens,
        Behaviour::CloseConnection,
        Behaviour::RefuseStructuredOutput,
        Behaviour::Status(418),
        Behaviour::Status(404),
        Behaviour::Redirect("http://127.0.0.1:1/".to_owned()),
    ] {
        with_both(|server, compressor| {
            server.behave(behaviour.clone());
            let result = compressor.compress(&bash(payload));
            let shown = format!("{result:?}");
            assert!(!shown.contains(KEY) && !shown.contains("0123456789"), "{behaviour:?}: {shown}");
            assert!(!shown.contains("Lovelace") && !shown.contains("marigold"), "{behaviour:?}: {shown}");
        });
    }
}

#[test]
fn debug_output_of_the_configuration_hides_the_key() {
    let shown = format!("{:?} {:?}", anthropic_config("http://x"), openai_config("http://x"));
    assert!(!shown.contains(KEY) && shown.contains("ApiKey(***)"), "{shown}");
}

#[test]
fn invalid_key_is_rejected_without_printing_it() {
    let config = AnthropicConfig { api_key: ApiKey::new("sk-\nbad"), ..anthropic_config("http://x") };
    let Err(error) = Anthropic::new(&config) else { panic!("the key was accepted") };
    assert!(matches!(error, EndpointError::Key { compressor: "anthropic" }));
    assert!(!format!("{error} {error:?}").contains("bad"));
    let padded = ApiKey::new(" sk-padded\n");
    assert!(Anthropic::new(&AnthropicConfig { api_key: padded, ..anthropic_config("http://x") }).is_ok());
}

#[test]
fn invalid_address_or_address_with_password_is_rejected() {
    for url in ["", "api.anthropic.com", "ftp://x", "http://", "https://user:hunter2@host", "http://a b"] {
        let Err(error) = OpenAi::new(&openai_config(url)) else { panic!("{url} was accepted") };
        assert!(matches!(error, EndpointError::BaseUrl { compressor: "openai" }), "{url}");
        assert!(!error.to_string().contains("hunter2"));
        assert!(Anthropic::new(&anthropic_config(url)).is_err(), "{url}");
    }
}

#[test]
fn invalid_certificates_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ca.pem");
    let mut config = anthropic_config("https://x");
    config.ca_file = Some(path.clone());
    let problem = |config: &AnthropicConfig| Anthropic::new(config).err().unwrap().to_string();
    assert!(problem(&config).starts_with(&format!("cannot use the certificates in {}: ", path.display())));
    std::fs::write(&path, "nothing of the kind").unwrap();
    assert!(problem(&config).ends_with("the file has none"));
    std::fs::write(&path, "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n").unwrap();
    assert!(problem(&config).ends_with("the file is not PEM"), "{}", problem(&config));
}
