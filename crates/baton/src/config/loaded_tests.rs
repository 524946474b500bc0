use super::*;
use crate::config::settings::{Preset, SETTINGS, find};
use crate::config::sources::{Flag, UserFolders};

fn sources(environment: &[(&str, &str)]) -> Sources {
    let places =
        UserFolders { home: "/nowhere".into(), config: "/nowhere/c".into(), data: "/nowhere/d".into() };
    Sources {
        environment: environment.iter().map(|(name, value)| ((*name).into(), value.into())).collect(),
        places: Some(places),
        ..Sources::default()
    }
}

fn load(environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    Config::load(&sources(environment)).map(|(config, _)| config)
}

fn entry(config: &Config, key: &str) -> Entry {
    config.entries().into_iter().find(|entry| entry.key == key).unwrap()
}

#[test]
fn defaults_apply_without_files_or_variables() {
    let (config, warnings) = Config::load(&sources(&[])).unwrap();
    assert_eq!(warnings, []);
    assert_eq!(config.data_dir, PathBuf::from("/nowhere/d"));
    assert_eq!(config.database_url, None);
    assert_eq!(config.postgres_connections, 8);
    assert_eq!(config.listen, "127.0.0.1:7333");
    assert_eq!(config.relay_key, None);
    assert_eq!(config.server, None);
    assert_eq!(config.venture.as_str(), "local");
    assert_eq!(config.agent, None);
    assert_eq!((config.stale_minutes, config.abandon_hours), (45, 24));
    assert_eq!((config.heartbeat_interval_seconds, config.heartbeat_jitter_seconds), (600, 120));
    assert_eq!((config.idempotency_ttl_seconds, config.request_log_retention_days), (3600, 7));
    assert_eq!(config.rate_limit_per_minute, Some(3_000_000));
    assert_eq!((config.log_level.as_str(), config.log_file.clone()), ("warn", None));
    assert_eq!(config.log_format, LogFormat::Text);
}

#[test]
fn every_value_reaches_its_field() {
    let config = load(&[
        ("BATON_DATA_DIR", "/data"),
        ("BATON_DATABASE_URL", "postgres://u:p@h/db"),
        ("BATON_POSTGRES_CONNECTIONS", "9"),
        ("BATON_STORE_CONNECT_TIMEOUT_SECONDS", "28"),
        ("BATON_STORE_STATEMENT_TIMEOUT_SECONDS", "29"),
        ("BATON_LISTEN", "[::1]:1"),
        ("BATON_ALLOWED_HOSTS", "a.example, b.example,"),
        ("BATON_RELAY_KEY", "key"),
        ("BATON_SERVER", "http://h"),
        ("BATON_VENTURE", "vc"),
        ("BATON_AGENT", "me"),
        ("BATON_SESSION_STALE_MINUTES", "10"),
        ("BATON_SESSION_ABANDON_HOURS", "11"),
        ("BATON_HEARTBEAT_INTERVAL_SECONDS", "12"),
        ("BATON_HEARTBEAT_JITTER_SECONDS", "0"),
        ("BATON_IDEMPOTENCY_TTL_SECONDS", "13"),
        ("BATON_REQUEST_LOG_RETENTION_DAYS", "14"),
        ("BATON_RATE_LIMIT_PER_MINUTE", "0"),
        ("BATON_RATE_LIMIT_FAILED_PER_MINUTE", "30"),
        ("BATON_REQUEST_LOG_MAX_RECORDS", "1001"),
        ("BATON_MAX_CONNECTIONS", "65"),
        ("BATON_BODY_MEMORY_MB", "31"),
        ("BATON_CHECKPOINT_MAX_PER_WORKFLOW", "15"),
        ("BATON_CHECKPOINT_MAX_TOTAL_BYTES", "16"),
        ("BATON_CHECKPOINT_RETENTION_DAYS", "17"),
        ("BATON_CHECKPOINT_COMPRESSION", "aggressive"),
        ("BATON_CHECKPOINT_MIN_SIZE_FOR_COMPRESSION", "18"),
        ("BATON_CHECKPOINT_RULES_FILE", "/rules"),
        ("BATON_CHECKPOINT_HEURISTICS", "off"),
        ("BATON_ENCRYPTION", "enabled"),
        ("BATON_ENCRYPTION_KEY_FILE", "/keys"),
        ("BATON_COMPRESSOR", "openai"),
        ("BATON_COMPRESSOR_MODEL", "small"),
        ("BATON_ANTHROPIC_API_KEY", "a-key"),
        ("BATON_ANTHROPIC_BASE_URL", "http://a"),
        ("BATON_OPENAI_API_KEY", "o-key"),
        ("BATON_OPENAI_BASE_URL", "http://o"),
        ("BATON_COMPRESSOR_TIMEOUT_SECONDS", "19"),
        ("BATON_COMPRESSOR_CA_FILE", "/ca"),
        ("BATON_COMPRESSOR_INPUT_CENTS", "26"),
        ("BATON_COMPRESSOR_OUTPUT_CENTS", "27"),
        ("BATON_WORKER_CONCURRENCY", "20"),
        ("BATON_WORKER_DAILY_TOKEN_BUDGET", "21"),
        ("BATON_WORKER_IDLE_MINUTES", "22"),
        ("BATON_WORKER_AUTOSTART", "off"),
        ("BATON_CAPTURE", "off"),
        ("BATON_RECALL_ON_PROMPT", "on"),
        ("BATON_RECALL_BEFORE_EDIT", "on"),
        ("BATON_EMBEDDING_URL", "http://e"),
        ("BATON_EMBEDDING_MODEL", "small"),
        ("BATON_EMBEDDING_API_KEY", "e-key"),
        ("BATON_EMBEDDING_CA_FILE", "/e.pem"),
        ("BATON_WORKER_LEASE_SECONDS", "23"),
        ("BATON_WORKER_MAX_ATTEMPTS", "24"),
        ("BATON_OBSERVATION_RAW_RETENTION_DAYS", "25"),
        ("BATON_LOG", "debug"),
        ("BATON_LOG_FILE", "/log"),
        ("BATON_LOG_FORMAT", "json"),
    ])
    .unwrap();
    assert_eq!(config.data_dir, PathBuf::from("/data"));
    assert_eq!(config.database_url.as_ref().map(SecretText::expose), Some("postgres://u:p@h/db"));
    assert_eq!((config.postgres_connections, config.listen.as_str()), (9, "[::1]:1"));
    let timeouts = config.postgres_timeouts();
    assert_eq!((timeouts.connect.as_secs(), timeouts.statement.as_secs()), (28, 29));
    assert_eq!(config.relay_key.as_ref().map(SecretText::expose), Some("key"));
    assert_eq!(config.allowed_hosts, ["a.example", "b.example"]);
    assert_eq!(config.server.as_deref(), Some("http://h"));
    assert_eq!((config.venture.as_str(), config.agent.as_ref().map(Agent::as_str)), ("vc", Some("me")));
    assert_eq!((config.stale_minutes, config.abandon_hours), (10, 11));
    assert_eq!((config.heartbeat_interval_seconds, config.heartbeat_jitter_seconds), (12, 0));
    assert_eq!((config.idempotency_ttl_seconds, config.request_log_retention_days), (13, 14));
    assert_eq!((config.request_log_max_records, config.rate_limit_failed_per_minute), (1_001, Some(30)));
    assert_eq!((config.max_connections, config.body_memory_mb), (65, 31));
    assert_eq!((config.rate_limit_per_minute, config.log_level.as_str()), (None, "debug"));
    assert_eq!((config.checkpoint_max_per_workflow, config.checkpoint_max_total_bytes), (15, 16));
    assert_eq!((config.checkpoint_retention_days, config.checkpoint_min_size_for_compression), (17, 18));
    assert_eq!(config.checkpoint_compression, baton_store::Effort::Aggressive);
    assert_eq!(
        (config.checkpoint_rules_file.clone(), config.checkpoint_heuristics),
        (Some("/rules".into()), false)
    );
    assert_eq!(config.encryption, crate::keys::Mode::Preferred);
    assert_eq!(config.encryption_key_file.clone(), Some("/keys".into()));
    assert_eq!(config.compressor, crate::config::CompressorKind::OpenAi);
    assert_eq!(config.compressor_model.as_deref(), Some("small"));
    assert_eq!(config.anthropic_api_key.as_ref().map(SecretText::expose), Some("a-key"));
    assert_eq!(config.openai_api_key.as_ref().map(SecretText::expose), Some("o-key"));
    assert_eq!(
        (config.anthropic_base_url.as_str(), config.openai_base_url.as_str()),
        ("http://a", "http://o")
    );
    assert_eq!(
        (config.compressor_timeout_seconds, config.compressor_ca_file.clone()),
        (19, Some("/ca".into()))
    );
    assert_eq!(config.price().map(|price| (price.input_cents, price.output_cents)), Some((26, 27)));
    assert_eq!((config.worker_concurrency, config.daily_token_budget), (20, Some(21)));
    assert_eq!((config.worker_idle_minutes, config.worker_lease_seconds), (22, 23));
    assert!(!config.worker_autostart && !config.is_capture_enabled);
    assert!(config.recall_on_prompt && config.recall_before_edit);
    assert_eq!((config.worker_max_attempts, config.raw_retention_days), (24, 25));
    let embedding = (config.embedding_url.as_deref(), config.embedding_model.as_deref());
    assert_eq!(embedding, (Some("http://e"), Some("small")));
    assert_eq!(config.embedding_api_key.as_ref().map(|key| key.expose()), Some("e-key"));
    assert_eq!(config.embedding_ca_file.as_deref(), Some("/e.pem".as_ref()));
    assert_eq!((config.log_file.clone(), config.log_format), (Some("/log".into()), LogFormat::Json));
    assert!(config.entries().iter().all(|entry| matches!(entry.origin, Origin::Environment(_))));
}

#[test]
fn minimum_and_maximum_of_every_range_fit_the_field_type() {
    for setting in &SETTINGS {
        let crate::config::settings::Kind::Integer { min, max } = setting.kind else { continue };
        for number in [min, max] {
            let number = number.to_string();
            let loaded = load(&[
                ("BATON_HEARTBEAT_INTERVAL_SECONDS", "86400"),
                ("BATON_HEARTBEAT_JITTER_SECONDS", "0"),
                (setting.env_name(), number.as_str()),
            ]);
            assert!(loaded.is_ok(), "{} = {number}: {:?}", setting.key, loaded.err());
        }
    }
}

#[test]
fn the_jitter_must_be_less_than_the_interval() {
    let error = load(&[("HEARTBEAT_INTERVAL_SECONDS", "120")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`heartbeat.jitter_seconds` is 120 (default) and must be less than `heartbeat.interval_seconds`, \
         which is 120 (environment HEARTBEAT_INTERVAL_SECONDS)"
    );
    assert!(error.hint().contains("BATON_HEARTBEAT_JITTER_SECONDS"));
    assert!(load(&[("HEARTBEAT_INTERVAL_SECONDS", "121")]).is_ok());
}

#[test]
fn without_a_home_folder_data_dir_is_required() {
    let homeless = Sources::default();
    let error = Config::load(&homeless).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`data_dir` has no value, and its default cannot be determined without a home folder"
    );
    assert_eq!(error.hint(), "set BATON_DATA_DIR, or HOME");
    let named = Sources {
        flags: Flag::given("--data-dir", "data_dir", Some("/d")).into_iter().collect(),
        ..homeless
    };
    assert!(Config::load(&named).is_ok());
}

#[test]
fn settings_without_a_default_have_no_value_except_data_dir() {
    let homeless = Sources {
        flags: Flag::given("-", "data_dir", Some("/d")).into_iter().collect(),
        ..Sources::default()
    };
    let (config, _) = Config::load(&homeless).unwrap();
    for entry in config.entries() {
        let none = matches!(find(entry.key).unwrap().default, Preset::Nothing);
        assert_eq!(entry.value.is_none(), none, "{}", entry.key);
    }
}

#[test]
fn entries_mask_secrets_and_show_their_origin() {
    let key = "k".repeat(43);
    let config = load(&[
        ("CONTEXT_RELAY_KEY", key.as_str()),
        ("BATON_DATABASE_URL", "postgres://baton:hunter2@db/baton"),
    ])
    .unwrap();
    let relay_key = entry(&config, "server.relay_key");
    assert_eq!(relay_key.value.as_deref(), Some("set, 43 characters"));
    assert_eq!(relay_key.origin.to_string(), "environment CONTEXT_RELAY_KEY");
    assert_eq!(relay_key.env, "BATON_RELAY_KEY");
    let database = entry(&config, "store.database_url");
    assert_eq!(database.value.as_deref(), Some("postgres://baton:***@db/baton"));
    assert_eq!(entry(&config, "client.server").value, None);
    assert_eq!(config.entries().len(), SETTINGS.len());

    let debug = format!("{config:?} {:?}", config.entries());
    assert!(!debug.contains("hunter2") && !debug.contains(&key));
}

#[test]
fn an_entry_serializes_to_json() {
    let entry = entry(&load(&[("BATON_LOG", "info")]).unwrap(), "log.level");
    assert_eq!(
        serde_json::to_value(&entry).unwrap(),
        serde_json::json!({
            "key": "log.level",
            "value": "info",
            "origin": "environment BATON_LOG",
            "env": "BATON_LOG",
            "help": "log level, or a filter such as `warn,baton_store=debug`",
        })
    );
}

#[test]
fn origins_are_formatted_as_text() {
    for (origin, text) in [
        (Origin::Default, "default"),
        (Origin::UserFile("/u/config.toml".into()), "user file /u/config.toml"),
        (Origin::ProjectFile("/p/.baton.toml".into()), "project file /p/.baton.toml"),
        (Origin::Environment("BATON_LOG"), "environment BATON_LOG"),
        (Origin::Flag("--listen"), "flag --listen"),
    ] {
        assert_eq!(origin.to_string(), text);
    }
}

#[test]
fn the_openai_compressor_requires_a_model() {
    let error = Config::load(&sources(&[("BATON_COMPRESSOR", "openai")])).unwrap_err();
    assert_eq!(
        error.to_string(),
        "`compressor.kind` is openai (environment BATON_COMPRESSOR), which requires `compressor.model`, but that is not set"
    );
    assert!(error.hint().contains("BATON_COMPRESSOR_MODEL"));
    let both = [("BATON_COMPRESSOR", "openai"), ("BATON_COMPRESSOR_MODEL", "qwen3")];
    assert!(Config::load(&sources(&both)).is_ok());
    let (config, wrong) = Config::load_for_capture(&sources(&both[..1])).unwrap();
    assert_eq!((config.compressor, wrong.len()), (CompressorKind::Auto, 1));
}

#[test]
fn an_embedding_endpoint_requires_a_model() {
    let both = [("BATON_EMBEDDING_URL", "http://127.0.0.1:1/v1"), ("BATON_EMBEDDING_MODEL", "small")];
    let error = Config::load(&sources(&both[..1])).unwrap_err();
    let expected = "`embedding.url` is set (environment BATON_EMBEDDING_URL), which requires `embedding.model`, but that is not set";
    assert_eq!(error.to_string(), expected);
    assert!(error.hint().contains("BATON_EMBEDDING_MODEL"));
    assert!(Config::load(&sources(&both)).is_ok());
    let (config, wrong) = Config::load_for_capture(&sources(&both[..1])).unwrap();
    assert_eq!((config.embedding_url, wrong.len()), (None, 1));
}

#[test]
fn load_for_capture_ignores_invalid_settings_that_do_not_affect_capture() {
    let wrong = [
        ("BATON_COMPRESSOR", "bogus"),
        ("BATON_HEARTBEAT_INTERVAL_SECONDS", "10"),
        ("BATON_HEARTBEAT_JITTER_SECONDS", "60"),
        ("BATON_WORKER_CONCURRENCY", "many"),
    ];
    let (config, ignored) = Config::load_for_capture(&sources(&wrong)).unwrap();
    assert_eq!((config.compressor, ignored.len()), (CompressorKind::Auto, 3), "{ignored:?}");
    for affecting in
        [("BATON_VENTURE", "a b"), ("BATON_SERVER", "nowhere"), ("BATON_DATABASE_URL", "mysql://x")]
    {
        assert!(Config::load_for_capture(&sources(&[affecting])).is_err(), "{affecting:?}");
    }
}
