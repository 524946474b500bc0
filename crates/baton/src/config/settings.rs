//! The table of settings: field, key, environment variables, default, limits, and whether a project file may set it.

use self::Kind::{Address, Choice, DatabaseUrl, Integer, Path, Secret, Url};
use self::Preset::{DataFolder, Nothing, Text};
use self::ProjectFile::{May, MayNot};

#[derive(Debug)]
pub(super) struct Setting {
    /// Dotted key, as in a configuration file.
    pub(super) key: &'static str,
    /// Environment variables, highest precedence first: Baton's own, then other accepted names.
    pub(super) env: &'static [&'static str],
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
    Venture,
    Agent,
    /// Integer from `min` to `max`.
    Integer {
        min: i64,
        max: i64,
    },
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

const MOVES_DATA: ProjectFile = MayNot("it decides where data or keys go");
const SHARED: ProjectFile = MayNot("it affects everyone who uses the same store");
const REACHABILITY: ProjectFile = MayNot("it decides who can reach the server");
const READS_OUTPUT: ProjectFile = MayNot("it decides who reads tool output, and what that costs");

/// Passes all settings, in the order in which they are shown, to a macro: the field of the configuration and how it is
/// read, the key, the environment variables, the default, the type of the value, whether a project file may set it, and
/// the description.
macro_rules! with_settings {
    ($then:ident) => { $then! {
        data_dir: PathBuf = required(path), "data_dir", ["BATON_DATA_DIR", "WORKRAIL_DATA_DIR"],
            DataFolder, Path, MOVES_DATA, "folder for the database, blobs, logs and the relay key";
        database_url: Option<SecretText> = optional(secret), "store.database_url", ["BATON_DATABASE_URL"],
            Nothing, DatabaseUrl, MOVES_DATA, "PostgreSQL database, used instead of the SQLite file in data_dir";
        postgres_connections: usize = required(integer), "store.postgres_connections",
            ["BATON_POSTGRES_CONNECTIONS"], Text("8"), Integer { min: 1, max: 200 }, SHARED,
            "maximum number of PostgreSQL connections of a server";
        connect_timeout: Duration = required(seconds), "store.connect_timeout_seconds",
            ["BATON_STORE_CONNECT_TIMEOUT_SECONDS"], Text("5"), Integer { min: 1, max: 300 }, SHARED,
            "timeout for a connection to PostgreSQL, in seconds";
        statement_timeout: Duration = required(seconds), "store.statement_timeout_seconds",
            ["BATON_STORE_STATEMENT_TIMEOUT_SECONDS"], Text("10"), Integer { min: 1, max: 3_600 }, SHARED,
            "timeout for one PostgreSQL statement, in seconds";
        listen: String = required(text), "server.listen", ["BATON_LISTEN"],
            Text("127.0.0.1:7333"), Address, REACHABILITY, "address of `baton serve`, as host:port";
        allowed_hosts: Vec<String> = or_default(list), "server.allowed_hosts", ["BATON_ALLOWED_HOSTS"],
            Nothing, Kind::Text, REACHABILITY, "additional host names of the server, separated by commas";
        max_connections: usize = required(integer), "server.max_connections", ["BATON_MAX_CONNECTIONS"],
            Text("1024"), Integer { min: 64, max: 65_536 }, SHARED,
            "maximum number of open connections, limited by the number of open files";
        body_memory_mb: usize = required(integer), "server.body_memory_mb", ["BATON_BODY_MEMORY_MB"],
            Text("128"), Integer { min: 16, max: 65_536 }, SHARED,
            "memory for request bodies in progress, in MiB; further requests wait, then get 503";
        relay_key: Option<SecretText> = optional(secret), "server.relay_key",
            ["BATON_RELAY_KEY", "CONTEXT_RELAY_KEY"], Nothing, Secret, MOVES_DATA,
            "shared key of clients and server; if not set, relay.key in data_dir is used";
        server: Option<String> = optional(text), "client.server", ["BATON_SERVER"], Nothing, Url, MOVES_DATA,
            "server that commands use instead of the local store";
        venture: Venture = required(parsed), "session.venture", ["BATON_VENTURE"],
            Text("local"), Kind::Venture, May, "default venture";
        agent: Option<Agent> = optional(parsed), "session.agent", ["BATON_AGENT"], Nothing, Kind::Agent, May,
            "default agent";
        stale_minutes: u64 = required(integer), "session.stale_minutes",
            ["BATON_SESSION_STALE_MINUTES", "CONTEXT_SESSION_STALE_MINUTES"],
            Text("45"), Integer { min: 1, max: 100_000 }, May,
            "minutes without a heartbeat after which a session is stale";
        abandon_hours: u64 = required(integer), "session.abandon_hours", ["BATON_SESSION_ABANDON_HOURS"],
            Text("24"), Integer { min: 0, max: 87_600 }, SHARED,
            "hours after which a stale session is marked as abandoned";
        heartbeat_interval_seconds: u32 = required(integer), "heartbeat.interval_seconds",
            ["BATON_HEARTBEAT_INTERVAL_SECONDS", "HEARTBEAT_INTERVAL_SECONDS"],
            Text("600"), Integer { min: 1, max: 86_400 }, May,
            "interval between heartbeats that clients are asked to use, in seconds";
        heartbeat_jitter_seconds: u32 = required(integer), "heartbeat.jitter_seconds",
            ["BATON_HEARTBEAT_JITTER_SECONDS", "HEARTBEAT_JITTER_SECONDS"],
            Text("120"), Integer { min: 0, max: 86_399 }, May,
            "random variation of the heartbeat interval, in seconds; less than the interval";
        idempotency_ttl_seconds: u64 = required(integer), "idempotency.ttl_seconds",
            ["BATON_IDEMPOTENCY_TTL_SECONDS", "IDEMPOTENCY_TTL_SECONDS"],
            Text("3600"), Integer { min: 1, max: 2_592_000 }, SHARED,
            "lifetime of an idempotency key, in seconds";
        request_log_retention_days: u64 = required(integer), "request_log.retention_days",
            ["BATON_REQUEST_LOG_RETENTION_DAYS"], Text("7"), Integer { min: 1, max: 3_650 }, SHARED,
            "retention of the request log, in days";
        request_log_max_records: u64 = required(integer), "request_log.max_records",
            ["BATON_REQUEST_LOG_MAX_RECORDS"],
            Text("1000000"), Integer { min: 1_000, max: 1_000_000_000 }, SHARED,
            "maximum number of records in the request log; the oldest are deleted first";
        rate_limit_per_minute: Option<u32> = limit(integer), "rate_limit.per_minute",
            ["BATON_RATE_LIMIT_PER_MINUTE"], Text("3000000"), Integer { min: 0, max: 100_000_000 }, SHARED,
            "requests per minute of one credential; 0 means no limit";
        rate_limit_failed_per_minute: Option<u32> = limit(integer), "rate_limit.failed_per_minute",
            ["BATON_RATE_LIMIT_FAILED_PER_MINUTE"], Text("300"), Integer { min: 0, max: 100_000_000 }, SHARED,
            "failed authentications per minute from one address; 0 means no limit";
        checkpoint_max_per_workflow: u64 = required(integer), "checkpoint.max_per_workflow",
            ["BATON_CHECKPOINT_MAX_PER_WORKFLOW"], Text("1000"), Integer { min: 1, max: 1_000_000 }, SHARED,
            "maximum number of checkpoints of a workflow; the oldest unnamed are deleted first";
        checkpoint_max_total_bytes: u64 = required(integer), "checkpoint.max_total_bytes",
            ["BATON_CHECKPOINT_MAX_TOTAL_BYTES"], Text("1073741824"), Integer { min: 1, max: i64::MAX }, SHARED,
            "maximum size of all checkpoints together, in bytes";
        checkpoint_retention_days: u64 = required(integer), "checkpoint.retention_days",
            ["BATON_CHECKPOINT_RETENTION_DAYS"], Text("30"), Integer { min: 1, max: 36_500 }, SHARED,
            "days after which an unused workflow keeps only its latest and its named checkpoints";
        checkpoint_compression: Effort = required(choice), "checkpoint.compression",
            ["BATON_CHECKPOINT_COMPRESSION"],
            Text("standard"), Choice(&["off", "basic", "standard", "aggressive"]), SHARED,
            "compression level of stored contexts";
        checkpoint_min_size_for_compression: usize = required(integer), "checkpoint.min_size_for_compression",
            ["BATON_CHECKPOINT_MIN_SIZE_FOR_COMPRESSION"],
            Text("1024"), Integer { min: 0, max: 16_777_216 }, SHARED,
            "size in bytes below which a context is not compressed";
        checkpoint_rules_file: Option<PathBuf> = optional(path), "checkpoint.rules_file",
            ["BATON_CHECKPOINT_RULES_FILE"], Nothing, Path, MayNot("it decides which file is read"),
            "TOML or JSON file with additional classification rules";
        checkpoint_heuristics: bool = required(on_or_off), "checkpoint.heuristics",
            ["BATON_CHECKPOINT_HEURISTICS"], Text("on"), Choice(&["on", "off"]), May,
            "`on`: the built-in rules inspect keys and values; `off`: keys only";
        encryption: EncryptionMode = required(choice), "encryption.mode",
            ["BATON_ENCRYPTION", "WORKRAIL_ENCRYPTION"],
            Text("off"), Choice(&["off", "preferred", "required", "enabled", "disabled"]),
            MayNot("it decides whether data can be read by others"),
            "encryption of checkpoints; `enabled` means preferred, `disabled` means off";
        encryption_key_file: Option<PathBuf> = optional(path), "encryption.key_file",
            ["BATON_ENCRYPTION_KEY_FILE"], Nothing, Path, MOVES_DATA,
            "file with the keys: 32 bytes, or hex or base64 lines; if not set, the keychain";
        compressor: CompressorKind = required(choice), "compressor.kind", ["BATON_COMPRESSOR"],
            Text("auto"), Choice(&["auto", "anthropic", "openai", "offline"]), READS_OUTPUT,
            "what creates observations; `auto`: anthropic if there is a key, otherwise offline";
        compressor_model: Option<String> = optional(text), "compressor.model", ["BATON_COMPRESSOR_MODEL"],
            Nothing, Kind::Text, READS_OUTPUT, "model name; required for openai, the other kinds have a default";
        anthropic_api_key: Option<SecretText> = optional(secret), "compressor.anthropic_api_key",
            ["BATON_ANTHROPIC_API_KEY", "ANTHROPIC_API_KEY"], Nothing, Secret, READS_OUTPUT,
            "key of the Anthropic API";
        anthropic_base_url: String = required(text), "compressor.anthropic_base_url",
            ["BATON_ANTHROPIC_BASE_URL", "ANTHROPIC_BASE_URL"],
            Text("https://api.anthropic.com"), Url, READS_OUTPUT, "address of the Anthropic API";
        openai_api_key: Option<SecretText> = optional(secret), "compressor.openai_api_key",
            ["BATON_OPENAI_API_KEY", "OPENAI_API_KEY"], Nothing, Secret, READS_OUTPUT,
            "key of the OpenAI-compatible endpoint, if it needs one";
        openai_base_url: String = required(text), "compressor.openai_base_url",
            ["BATON_OPENAI_BASE_URL", "OPENAI_BASE_URL"], Text("http://127.0.0.1:11434/v1"), Url, READS_OUTPUT,
            "address of an OpenAI-compatible endpoint, for example Ollama, vLLM or LM Studio";
        compressor_timeout_seconds: u64 = required(integer), "compressor.timeout_seconds",
            ["BATON_COMPRESSOR_TIMEOUT_SECONDS"], Text("60"), Integer { min: 1, max: 600 }, SHARED,
            "timeout of a model request, in seconds";
        compressor_ca_file: Option<PathBuf> = optional(path), "compressor.ca_file", ["BATON_COMPRESSOR_CA_FILE"],
            Nothing, Path, READS_OUTPUT, "PEM file with certificates to trust instead of the public ones";
        input_cents: Option<u64> = optional(integer), "compressor.input_cents", ["BATON_COMPRESSOR_INPUT_CENTS"],
            Nothing, Integer { min: 0, max: 1_000_000 }, SHARED,
            "price of a million prompt tokens in US cents, for models without a built-in price";
        output_cents: Option<u64> = optional(integer), "compressor.output_cents",
            ["BATON_COMPRESSOR_OUTPUT_CENTS"], Nothing, Integer { min: 0, max: 1_000_000 }, SHARED,
            "price of a million output tokens in US cents";
        worker_concurrency: usize = required(integer), "worker.concurrency", ["BATON_WORKER_CONCURRENCY"],
            Text("4"), Integer { min: 1, max: 64 }, SHARED,
            "number of tool uses that are compressed at the same time";
        daily_token_budget: Option<u64> = limit(integer), "worker.daily_token_budget",
            ["BATON_WORKER_DAILY_TOKEN_BUDGET"], Text("0"), Integer { min: 0, max: i64::MAX }, SHARED,
            "maximum model tokens per day, beyond it offline; 0 means no limit";
        worker_idle_minutes: u64 = required(integer), "worker.idle_minutes", ["BATON_WORKER_IDLE_MINUTES"],
            Text("30"), Integer { min: 1, max: 100_000 }, SHARED,
            "minutes without requests or work after which a worker exits";
        worker_autostart: bool = required(on_or_off), "worker.autostart", ["BATON_WORKER_AUTOSTART"],
            Text("on"), Choice(&["on", "off"]), SHARED, "`on`: a hook starts a worker if none is running";
        is_capture_enabled: bool = required(on_or_off), "capture.enabled", ["BATON_CAPTURE"],
            Text("on"), Choice(&["on", "off"]), May, "`off`: hooks record nothing and add nothing to chats";
        recall_on_prompt: bool = required(on_or_off), "recall.on_prompt", ["BATON_RECALL_ON_PROMPT"],
            Text("off"), Choice(&["on", "off"]), May,
            "`on`: a prompt adds up to three closely related items to the chat";
        recall_before_edit: bool = required(on_or_off), "recall.before_edit", ["BATON_RECALL_BEFORE_EDIT"],
            Text("off"), Choice(&["on", "off"]), May,
            "`on`: the first edit of a file adds a line about earlier work on it";
        embedding_url: Option<String> = optional(text), "embedding.url", ["BATON_EMBEDDING_URL"],
            Nothing, Url, READS_OUTPUT, "OpenAI-compatible endpoint for search by meaning, for example Ollama";
        embedding_model: Option<String> = optional(text), "embedding.model", ["BATON_EMBEDDING_MODEL"],
            Nothing, Kind::Text, READS_OUTPUT, "embedding model; required with embedding.url";
        embedding_api_key: Option<SecretText> = optional(secret), "embedding.api_key",
            ["BATON_EMBEDDING_API_KEY"], Nothing, Secret, READS_OUTPUT,
            "key of the embedding endpoint, if it needs one";
        embedding_ca_file: Option<PathBuf> = optional(path), "embedding.ca_file", ["BATON_EMBEDDING_CA_FILE"],
            Nothing, Path, READS_OUTPUT, "PEM file with certificates to trust instead of the public ones";
        worker_lease_seconds: u64 = required(integer), "worker.lease_seconds", ["BATON_WORKER_LEASE_SECONDS"],
            Text("300"), Integer { min: 1, max: 86_400 }, SHARED,
            "lease of a claimed queue item, in seconds; longer than the model timeout";
        worker_max_attempts: u32 = required(integer), "worker.max_attempts", ["BATON_WORKER_MAX_ATTEMPTS"],
            Text("3"), Integer { min: 1, max: 100 }, SHARED, "attempts before a queue item fails";
        raw_retention_days: u64 = required(integer), "observation.raw_retention_days",
            ["BATON_OBSERVATION_RAW_RETENTION_DAYS"], Text("7"), Integer { min: 0, max: 36_500 }, SHARED,
            "retention of raw tool output after it became an observation, in days";
        log_level: String = required(text), "log.level", ["BATON_LOG"], Text("warn"), Kind::Text, May,
            "log level, or a filter such as `warn,baton_store=debug`";
        log_file: Option<PathBuf> = optional(path), "log.file", ["BATON_LOG_FILE"],
            Nothing, Path, MayNot("it decides which file is written"), "log file, used instead of standard error";
        log_format: LogFormat = required(choice), "log.format", ["BATON_LOG_FORMAT"],
            Text("text"), Choice(&["text", "json"]), May, "format of log lines";
    } };
}
pub(super) use with_settings;

macro_rules! table {
    ($($field:ident: $type:ty = $read:ident($convert:path), $key:literal, $env:expr,
        $default:expr, $kind:expr, $project_file:expr, $help:literal;)+) => {
        const COUNT: usize = [$($key),+].len();

        pub(super) static SETTINGS: [Setting; COUNT] = [$(Setting {
            key: $key,
            env: &$env,
            default: $default,
            kind: $kind,
            project_file: $project_file,
            help: $help,
        },)+];
    };
}
with_settings!(table);

/// Environment variable with the path of the user file. It is not a setting, because a file cannot name its own path.
pub(super) const USER_FILE_ENV: &str = "BATON_CONFIG";

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
        for setting in &SETTINGS {
            assert!(setting.env_name().starts_with("BATON_"), "{}", setting.key);
            assert!(setting.env.iter().skip(1).all(|name| !name.starts_with("BATON_")), "{}", setting.key);
        }
    }

    #[test]
    fn defaults_pass_their_own_check() {
        for setting in &SETTINGS {
            if let Preset::Text(text) = setting.default {
                let value = setting.kind.read(Raw::Os(text.as_ref()), Folders::default());
                assert_eq!(value.map(|value| value.shown()).as_deref(), Some(text), "{}", setting.key);
            }
        }
    }

    #[test]
    fn project_files_cannot_set_paths_addresses_or_secrets() {
        for setting in &SETTINGS {
            let moves = matches!(
                setting.kind,
                Kind::Path | Kind::Address | Kind::Url | Kind::DatabaseUrl | Kind::Secret
            );
            let refused = matches!(setting.project_file, ProjectFile::MayNot(_));
            assert!(!moves || refused, "{}", setting.key);
        }
    }

    #[test]
    fn documentation_lists_every_setting_with_its_variables_and_default() {
        let text = std::fs::read_to_string("../../docs/configuration.md").unwrap();
        let section = text.split("\n## ").find(|section| section.starts_with("Settings\n")).unwrap();
        let rows = section.lines().filter(|line| line.starts_with('|')).skip(2);
        let documented: Vec<String> = rows
            .map(|row| row.split('|').skip(1).take(3).map(str::trim).collect::<Vec<_>>().join(" | "))
            .collect();
        let declared: Vec<String> = SETTINGS
            .iter()
            .map(|setting| {
                let mark = if matches!(setting.project_file, ProjectFile::May) { " \\*" } else { "" };
                let names: Vec<String> = setting.env.iter().map(|name| format!("`{name}`")).collect();
                let default = match setting.default {
                    Preset::Nothing => String::new(),
                    Preset::DataFolder => "`~/.local/share/baton`".to_owned(),
                    Preset::Text(text) => format!("`{text}`"),
                };
                format!("`{}`{mark} | {} | {default}", setting.key, names.join(", "))
            })
            .collect();
        let (documented, declared) = (BTreeSet::from_iter(documented), BTreeSet::from_iter(declared));
        let missing: Vec<_> = declared.difference(&documented).collect();
        let unknown: Vec<_> = documented.difference(&declared).collect();
        assert!(
            missing.is_empty() && unknown.is_empty(),
            "docs/configuration.md, table of settings: missing {missing:#?}, not declared {unknown:#?}"
        );
    }

    #[test]
    fn help_is_one_line() {
        for setting in &SETTINGS {
            assert!(!setting.help.is_empty() && setting.help.len() < 90, "{}", setting.key);
            assert!(!setting.help.contains('\n') && !setting.help.ends_with('.'), "{}", setting.key);
        }
    }
}
