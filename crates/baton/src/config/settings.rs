//! The table of settings: key, environment variables, default, limits, and whether a project file may set it.

/// One setting.
#[derive(Debug)]
pub(super) struct Setting {
    /// Dotted key, as in a configuration file.
    pub(super) key: &'static str,
    /// Environment variables, highest precedence first: Baton's own, then other accepted names.
    pub(super) env: &'static [&'static str],
    /// Default value.
    pub(super) default: Preset,
    /// Type and limits of the value.
    pub(super) kind: Kind,
    /// Whether a project file may set it.
    pub(super) project_file: ProjectFile,
    /// One-line description.
    pub(super) help: &'static str,
}

impl Setting {
    /// Returns the name of Baton's own environment variable.
    pub(super) fn env_name(&self) -> &'static str {
        self.env.first().copied().unwrap_or_default()
    }
}

/// Default value of a setting.
#[derive(Debug, Clone, Copy)]
pub(super) enum Preset {
    /// No default; the setting may have no value.
    Nothing,
    /// Baton's folder in the data folder of the platform.
    DataFolder,
    /// Text, parsed like the value of an environment variable.
    Text(&'static str),
}

/// Type of a value, with limits.
#[derive(Debug, Clone, Copy)]
pub(super) enum Kind {
    /// Text on one line.
    Text,
    /// The name of a venture.
    Venture,
    /// The name of an agent.
    Agent,
    /// Integer from `min` to `max`.
    Integer { min: i64, max: i64 },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A file or folder.
    Path,
    /// A `host:port` to listen on.
    Address,
    /// An `http://` or `https://` address without a password.
    Url,
    /// A `postgres://` address, shown without its password.
    DatabaseUrl,
    /// A key or token, never shown.
    Secret,
}

/// Whether a project file may set a setting. A cloned repository must not decide where data and keys go, nor what is
/// deleted from a shared store.
#[derive(Debug, Clone, Copy)]
pub(super) enum ProjectFile {
    /// Allowed: the setting affects only work in that folder.
    May,
    /// Not allowed, with the reason.
    MayNot(&'static str),
}

const MOVES_DATA: ProjectFile = ProjectFile::MayNot("it decides where data or keys go");
const SHARED: ProjectFile = ProjectFile::MayNot("it affects everyone who uses the same store");

/// All settings, in the order in which they are shown.
pub(super) const SETTINGS: &[Setting] = &[
    Setting {
        key: "data_dir",
        env: &["BATON_DATA_DIR", "WORKRAIL_DATA_DIR"],
        default: Preset::DataFolder,
        kind: Kind::Path,
        project_file: MOVES_DATA,
        help: "folder for the database, blobs, logs and the relay key",
    },
    Setting {
        key: "store.database_url",
        env: &["BATON_DATABASE_URL"],
        default: Preset::Nothing,
        kind: Kind::DatabaseUrl,
        project_file: MOVES_DATA,
        help: "PostgreSQL database, used instead of the SQLite file in data_dir",
    },
    Setting {
        key: "store.postgres_connections",
        env: &["BATON_POSTGRES_CONNECTIONS"],
        default: Preset::Text("8"),
        kind: Kind::Integer { min: 1, max: 200 },
        project_file: SHARED,
        help: "maximum number of PostgreSQL connections of a server",
    },
    Setting {
        key: "store.connect_timeout_seconds",
        env: &["BATON_STORE_CONNECT_TIMEOUT_SECONDS"],
        default: Preset::Text("5"),
        kind: Kind::Integer { min: 1, max: 300 },
        project_file: SHARED,
        help: "timeout for a connection to PostgreSQL, in seconds",
    },
    Setting {
        key: "store.statement_timeout_seconds",
        env: &["BATON_STORE_STATEMENT_TIMEOUT_SECONDS"],
        default: Preset::Text("10"),
        kind: Kind::Integer { min: 1, max: 3_600 },
        project_file: SHARED,
        help: "timeout for one PostgreSQL statement, in seconds",
    },
    Setting {
        key: "server.listen",
        env: &["BATON_LISTEN"],
        default: Preset::Text("127.0.0.1:7333"),
        kind: Kind::Address,
        project_file: ProjectFile::MayNot("it decides who can reach the server"),
        help: "address of `baton serve`, as host:port",
    },
    Setting {
        key: "server.allowed_hosts",
        env: &["BATON_ALLOWED_HOSTS"],
        default: Preset::Nothing,
        kind: Kind::Text,
        project_file: ProjectFile::MayNot("it decides who can reach the server"),
        help: "additional host names of the server, separated by commas",
    },
    Setting {
        key: "server.max_connections",
        env: &["BATON_MAX_CONNECTIONS"],
        default: Preset::Text("1024"),
        kind: Kind::Integer { min: 64, max: 65_536 },
        project_file: SHARED,
        help: "maximum number of open connections, limited by the number of open files",
    },
    Setting {
        key: "server.body_memory_mb",
        env: &["BATON_BODY_MEMORY_MB"],
        default: Preset::Text("128"),
        kind: Kind::Integer { min: 16, max: 65_536 },
        project_file: SHARED,
        help: "memory for request bodies in progress, in MiB; further requests wait, then get 503",
    },
    Setting {
        key: "server.relay_key",
        env: &["BATON_RELAY_KEY", "CONTEXT_RELAY_KEY"],
        default: Preset::Nothing,
        kind: Kind::Secret,
        project_file: MOVES_DATA,
        help: "shared key of clients and server; if not set, relay.key in data_dir is used",
    },
    Setting {
        key: "client.server",
        env: &["BATON_SERVER"],
        default: Preset::Nothing,
        kind: Kind::Url,
        project_file: MOVES_DATA,
        help: "server that commands use instead of the local store",
    },
    Setting {
        key: "session.venture",
        env: &["BATON_VENTURE"],
        default: Preset::Text("local"),
        kind: Kind::Venture,
        project_file: ProjectFile::May,
        help: "default venture",
    },
    Setting {
        key: "session.agent",
        env: &["BATON_AGENT"],
        default: Preset::Nothing,
        kind: Kind::Agent,
        project_file: ProjectFile::May,
        help: "default agent",
    },
    Setting {
        key: "session.stale_minutes",
        env: &["BATON_SESSION_STALE_MINUTES", "CONTEXT_SESSION_STALE_MINUTES"],
        default: Preset::Text("45"),
        kind: Kind::Integer { min: 1, max: 100_000 },
        project_file: ProjectFile::May,
        help: "minutes without a heartbeat after which a session is stale",
    },
    Setting {
        key: "session.abandon_hours",
        env: &["BATON_SESSION_ABANDON_HOURS"],
        default: Preset::Text("24"),
        kind: Kind::Integer { min: 0, max: 87_600 },
        project_file: SHARED,
        help: "hours after which a stale session is marked as abandoned",
    },
    Setting {
        key: "heartbeat.interval_seconds",
        env: &["BATON_HEARTBEAT_INTERVAL_SECONDS", "HEARTBEAT_INTERVAL_SECONDS"],
        default: Preset::Text("600"),
        kind: Kind::Integer { min: 1, max: 86_400 },
        project_file: ProjectFile::May,
        help: "interval between heartbeats that clients are asked to use, in seconds",
    },
    Setting {
        key: "heartbeat.jitter_seconds",
        env: &["BATON_HEARTBEAT_JITTER_SECONDS", "HEARTBEAT_JITTER_SECONDS"],
        default: Preset::Text("120"),
        kind: Kind::Integer { min: 0, max: 86_399 },
        project_file: ProjectFile::May,
        help: "random variation of the heartbeat interval, in seconds; less than the interval",
    },
    Setting {
        key: "idempotency.ttl_seconds",
        env: &["BATON_IDEMPOTENCY_TTL_SECONDS", "IDEMPOTENCY_TTL_SECONDS"],
        default: Preset::Text("3600"),
        kind: Kind::Integer { min: 1, max: 2_592_000 },
        project_file: SHARED,
        help: "lifetime of an idempotency key, in seconds",
    },
    Setting {
        key: "request_log.retention_days",
        env: &["BATON_REQUEST_LOG_RETENTION_DAYS"],
        default: Preset::Text("7"),
        kind: Kind::Integer { min: 1, max: 3_650 },
        project_file: SHARED,
        help: "retention of the request log, in days",
    },
    Setting {
        key: "request_log.max_records",
        env: &["BATON_REQUEST_LOG_MAX_RECORDS"],
        default: Preset::Text("1000000"),
        kind: Kind::Integer { min: 1_000, max: 1_000_000_000 },
        project_file: SHARED,
        help: "maximum number of records in the request log; the oldest are deleted first",
    },
    Setting {
        key: "rate_limit.per_minute",
        env: &["BATON_RATE_LIMIT_PER_MINUTE"],
        default: Preset::Text("3000000"),
        kind: Kind::Integer { min: 0, max: 100_000_000 },
        project_file: SHARED,
        help: "requests per minute of one credential; 0 means no limit",
    },
    Setting {
        key: "rate_limit.failed_per_minute",
        env: &["BATON_RATE_LIMIT_FAILED_PER_MINUTE"],
        default: Preset::Text("300"),
        kind: Kind::Integer { min: 0, max: 100_000_000 },
        project_file: SHARED,
        help: "failed authentications per minute from one address; 0 means no limit",
    },
    Setting {
        key: "checkpoint.max_per_workflow",
        env: &["BATON_CHECKPOINT_MAX_PER_WORKFLOW"],
        default: Preset::Text("1000"),
        kind: Kind::Integer { min: 1, max: 1_000_000 },
        project_file: SHARED,
        help: "maximum number of checkpoints of a workflow; the oldest unnamed are deleted first",
    },
    Setting {
        key: "checkpoint.max_total_bytes",
        env: &["BATON_CHECKPOINT_MAX_TOTAL_BYTES"],
        default: Preset::Text("1073741824"),
        kind: Kind::Integer { min: 1, max: i64::MAX },
        project_file: SHARED,
        help: "maximum size of all checkpoints together, in bytes",
    },
    Setting {
        key: "checkpoint.retention_days",
        env: &["BATON_CHECKPOINT_RETENTION_DAYS"],
        default: Preset::Text("30"),
        kind: Kind::Integer { min: 1, max: 36_500 },
        project_file: SHARED,
        help: "days after which an unused workflow keeps only its latest and its named checkpoints",
    },
    Setting {
        key: "checkpoint.compression",
        env: &["BATON_CHECKPOINT_COMPRESSION"],
        default: Preset::Text("standard"),
        kind: Kind::Choice(&["off", "basic", "standard", "aggressive"]),
        project_file: SHARED,
        help: "compression level of stored contexts",
    },
    Setting {
        key: "checkpoint.min_size_for_compression",
        env: &["BATON_CHECKPOINT_MIN_SIZE_FOR_COMPRESSION"],
        default: Preset::Text("1024"),
        kind: Kind::Integer { min: 0, max: 16_777_216 },
        project_file: SHARED,
        help: "size in bytes below which a context is not compressed",
    },
    Setting {
        key: "checkpoint.rules_file",
        env: &["BATON_CHECKPOINT_RULES_FILE"],
        default: Preset::Nothing,
        kind: Kind::Path,
        project_file: ProjectFile::MayNot("it decides which file is read"),
        help: "TOML or JSON file with additional classification rules",
    },
    Setting {
        key: "checkpoint.heuristics",
        env: &["BATON_CHECKPOINT_HEURISTICS"],
        default: Preset::Text("on"),
        kind: Kind::Choice(&["on", "off"]),
        project_file: ProjectFile::May,
        help: "`on`: the built-in rules inspect keys and values; `off`: keys only",
    },
    Setting {
        key: "encryption.mode",
        env: &["BATON_ENCRYPTION", "WORKRAIL_ENCRYPTION"],
        default: Preset::Text("off"),
        kind: Kind::Choice(&["off", "preferred", "required", "enabled", "disabled"]),
        project_file: ProjectFile::MayNot("it decides whether data can be read by others"),
        help: "encryption of checkpoints; `enabled` means preferred, `disabled` means off",
    },
    Setting {
        key: "encryption.key_file",
        env: &["BATON_ENCRYPTION_KEY_FILE"],
        default: Preset::Nothing,
        kind: Kind::Path,
        project_file: MOVES_DATA,
        help: "file with the keys: 32 bytes, or hex or base64 lines; if not set, the keychain",
    },
    Setting {
        key: "compressor.kind",
        env: &["BATON_COMPRESSOR"],
        default: Preset::Text("auto"),
        kind: Kind::Choice(&["auto", "anthropic", "openai", "offline"]),
        project_file: ProjectFile::MayNot("it decides who reads tool output, and what that costs"),
        help: "what creates observations; `auto`: anthropic if there is a key, otherwise offline",
    },
    Setting {
        key: "compressor.model",
        env: &["BATON_COMPRESSOR_MODEL"],
        default: Preset::Nothing,
        kind: Kind::Text,
        project_file: ProjectFile::MayNot("it decides who reads tool output, and what that costs"),
        help: "model name; required for openai, the other kinds have a default",
    },
    Setting {
        key: "compressor.anthropic_api_key",
        env: &["BATON_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"],
        default: Preset::Nothing,
        kind: Kind::Secret,
        project_file: ProjectFile::MayNot("it decides who reads tool output, and what that costs"),
        help: "key of the Anthropic API",
    },
    Setting {
        key: "compressor.anthropic_base_url",
        env: &["BATON_ANTHROPIC_BASE_URL", "ANTHROPIC_BASE_URL"],
        default: Preset::Text("https://api.anthropic.com"),
        kind: Kind::Url,
        project_file: ProjectFile::MayNot("it decides who reads tool output, and what that costs"),
        help: "address of the Anthropic API",
    },
    Setting {
        key: "compressor.openai_api_key",
        env: &["BATON_OPENAI_API_KEY", "OPENAI_API_KEY"],
        default: Preset::Nothing,
        kind: Kind::Secret,
        project_file: ProjectFile::MayNot("it decides who reads tool output, and what that costs"),
        help: "key of the OpenAI-compatible endpoint, if it needs one",
    },
    Setting {
        key: "compressor.openai_base_url",
        env: &["BATON_OPENAI_BASE_URL", "OPENAI_BASE_URL"],
        default: Preset::Text("http://127.0.0.1:11434/v1"),
        kind: Kind::Url,
        project_file: ProjectFile::MayNot("it decides who reads tool output, and what that costs"),
        help: "address of an OpenAI-compatible endpoint, for example Ollama, vLLM or LM Studio",
    },
    Setting {
        key: "compressor.timeout_seconds",
        env: &["BATON_COMPRESSOR_TIMEOUT_SECONDS"],
        default: Preset::Text("60"),
        kind: Kind::Integer { min: 1, max: 600 },
        project_file: SHARED,
        help: "timeout of a model request, in seconds",
    },
    Setting {
        key: "compressor.ca_file",
        env: &["BATON_COMPRESSOR_CA_FILE"],
        default: Preset::Nothing,
        kind: Kind::Path,
        project_file: ProjectFile::MayNot("it decides who reads tool output, and what that costs"),
        help: "PEM file with certificates to trust instead of the public ones",
    },
    Setting {
        key: "compressor.input_cents",
        env: &["BATON_COMPRESSOR_INPUT_CENTS"],
        default: Preset::Nothing,
        kind: Kind::Integer { min: 0, max: 1_000_000 },
        project_file: SHARED,
        help: "price of a million prompt tokens in US cents, for models without a built-in price",
    },
    Setting {
        key: "compressor.output_cents",
        env: &["BATON_COMPRESSOR_OUTPUT_CENTS"],
        default: Preset::Nothing,
        kind: Kind::Integer { min: 0, max: 1_000_000 },
        project_file: SHARED,
        help: "price of a million output tokens in US cents",
    },
    Setting {
        key: "worker.concurrency",
        env: &["BATON_WORKER_CONCURRENCY"],
        default: Preset::Text("4"),
        kind: Kind::Integer { min: 1, max: 64 },
        project_file: SHARED,
        help: "number of tool uses that are compressed at the same time",
    },
    Setting {
        key: "worker.daily_token_budget",
        env: &["BATON_WORKER_DAILY_TOKEN_BUDGET"],
        default: Preset::Text("0"),
        kind: Kind::Integer { min: 0, max: i64::MAX },
        project_file: SHARED,
        help: "maximum model tokens per day, beyond it offline; 0 means no limit",
    },
    Setting {
        key: "worker.idle_minutes",
        env: &["BATON_WORKER_IDLE_MINUTES"],
        default: Preset::Text("30"),
        kind: Kind::Integer { min: 1, max: 100_000 },
        project_file: SHARED,
        help: "minutes without requests or work after which a worker exits",
    },
    Setting {
        key: "worker.autostart",
        env: &["BATON_WORKER_AUTOSTART"],
        default: Preset::Text("on"),
        kind: Kind::Choice(&["on", "off"]),
        project_file: SHARED,
        help: "`on`: a hook starts a worker if none is running",
    },
    Setting {
        key: "capture.enabled",
        env: &["BATON_CAPTURE"],
        default: Preset::Text("on"),
        kind: Kind::Choice(&["on", "off"]),
        project_file: ProjectFile::May,
        help: "`off`: hooks record nothing and add nothing to chats",
    },
    Setting {
        key: "recall.on_prompt",
        env: &["BATON_RECALL_ON_PROMPT"],
        default: Preset::Text("off"),
        kind: Kind::Choice(&["on", "off"]),
        project_file: ProjectFile::May,
        help: "`on`: a prompt adds up to three closely related items to the chat",
    },
    Setting {
        key: "recall.before_edit",
        env: &["BATON_RECALL_BEFORE_EDIT"],
        default: Preset::Text("off"),
        kind: Kind::Choice(&["on", "off"]),
        project_file: ProjectFile::May,
        help: "`on`: the first edit of a file adds a line about earlier work on it",
    },
    Setting {
        key: "worker.lease_seconds",
        env: &["BATON_WORKER_LEASE_SECONDS"],
        default: Preset::Text("300"),
        kind: Kind::Integer { min: 1, max: 86_400 },
        project_file: SHARED,
        help: "lease of a claimed queue item, in seconds; longer than the model timeout",
    },
    Setting {
        key: "worker.max_attempts",
        env: &["BATON_WORKER_MAX_ATTEMPTS"],
        default: Preset::Text("3"),
        kind: Kind::Integer { min: 1, max: 100 },
        project_file: SHARED,
        help: "attempts before a queue item fails",
    },
    Setting {
        key: "observation.raw_retention_days",
        env: &["BATON_OBSERVATION_RAW_RETENTION_DAYS"],
        default: Preset::Text("7"),
        kind: Kind::Integer { min: 0, max: 36_500 },
        project_file: SHARED,
        help: "retention of raw tool output after it became an observation, in days",
    },
    Setting {
        key: "log.level",
        env: &["BATON_LOG"],
        default: Preset::Text("warn"),
        kind: Kind::Text,
        project_file: ProjectFile::May,
        help: "log level, or a filter such as `warn,baton_store=debug`",
    },
    Setting {
        key: "log.file",
        env: &["BATON_LOG_FILE"],
        default: Preset::Nothing,
        kind: Kind::Path,
        project_file: ProjectFile::MayNot("it decides which file is written"),
        help: "log file, used instead of standard error",
    },
    Setting {
        key: "log.format",
        env: &["BATON_LOG_FORMAT"],
        default: Preset::Text("text"),
        kind: Kind::Choice(&["text", "json"]),
        project_file: ProjectFile::May,
        help: "format of log lines",
    },
];

/// Environment variable with the path of the user file. It is not a setting, because a file cannot name its own path.
pub(super) const USER_FILE_ENV: &str = "BATON_CONFIG";

/// Finds the setting of a key.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

/// Returns all environment variables that Baton reads.
pub(super) fn env_names() -> impl Iterator<Item = &'static str> {
    SETTINGS.iter().flat_map(|setting| setting.env).copied().chain([USER_FILE_ENV])
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::value::{Folders, Raw};

    #[test]
    fn keys_are_unique_and_no_key_is_a_prefix_of_another() {
        let keys: BTreeSet<_> = SETTINGS.iter().map(|setting| setting.key).collect();
        assert_eq!(keys.len(), SETTINGS.len());
        for key in &keys {
            assert!(!keys.iter().any(|other| other.starts_with(&format!("{key}."))), "{key}");
            assert!(key.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'_' | b'.')), "{key}");
        }
    }

    #[test]
    fn environment_names_are_unique_and_baton_names_come_first() {
        let names: Vec<_> = env_names().collect();
        assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len());
        for setting in SETTINGS {
            assert!(setting.env_name().starts_with("BATON_"), "{}", setting.key);
            assert!(setting.env.iter().skip(1).all(|name| !name.starts_with("BATON_")), "{}", setting.key);
        }
    }

    #[test]
    fn defaults_pass_their_own_check() {
        for setting in SETTINGS {
            if let Preset::Text(text) = setting.default {
                let value = setting.kind.read(Raw::Os(text.as_ref()), Folders::default());
                assert_eq!(value.map(|value| value.shown()).as_deref(), Some(text), "{}", setting.key);
            }
        }
    }

    #[test]
    fn project_files_cannot_set_paths_addresses_or_secrets() {
        for setting in SETTINGS {
            let moves = matches!(
                setting.kind,
                Kind::Path | Kind::Address | Kind::Url | Kind::DatabaseUrl | Kind::Secret
            );
            let refused = matches!(setting.project_file, ProjectFile::MayNot(_));
            assert!(!moves || refused, "{}", setting.key);
        }
    }

    #[test]
    fn help_is_one_line() {
        for setting in SETTINGS {
            assert!(!setting.help.is_empty() && setting.help.len() < 90, "{}", setting.key);
            assert!(!setting.help.contains('\n') && !setting.help.ends_with('.'), "{}", setting.key);
        }
    }
}
