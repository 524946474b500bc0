use std::fs;

use tempfile::TempDir;

use super::*;
use crate::config::sources::{Flag, UserFolders};

/// A temporary home folder with a project, and an environment that is independent of the process.
struct Fixture {
    root: TempDir,
    sources: Sources,
}

impl Fixture {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let home = root.path().join("home");
        let cwd = home.join("project");
        fs::create_dir_all(cwd.join(".git")).unwrap();
        let places = UserFolders { config: home.join("config"), data: home.join("data"), home };
        fs::create_dir_all(&places.config).unwrap();
        let sources = Sources { cwd: Some(cwd), places: Some(places), ..Sources::default() };
        Self { root, sources }
    }

    fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    fn write(&self, path: &str, text: &str) -> PathBuf {
        let path = self.home().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn user_file(&self, text: &str) -> PathBuf {
        self.write("config/config.toml", text)
    }

    fn project_file(&self, text: &str) -> PathBuf {
        self.write("project/.baton.toml", text)
    }

    fn env(&mut self, name: &str, value: &str) {
        self.sources.environment.insert(name.into(), value.into());
    }

    fn read(&self) -> Layers {
        Layers::read(&self.sources).unwrap()
    }

    fn error(&self) -> ConfigError {
        Layers::read(&self.sources).unwrap_err()
    }

    fn warnings(&self) -> Vec<String> {
        self.read().take_warnings().iter().map(ToString::to_string).collect()
    }

    fn stale(&self) -> (String, Origin) {
        shown(&self.read(), "session.stale_minutes")
    }
}

fn shown(layers: &Layers, key: &str) -> (String, Origin) {
    let (value, origin) = layers.get(key).unwrap();
    (value.shown(), origin.clone())
}

#[test]
fn each_layer_overrides_the_previous_ones() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.stale(), ("45".into(), Origin::Default));
    let user = fixture.user_file("[session]\nstale_minutes = 1\n");
    assert_eq!(fixture.stale(), ("1".into(), Origin::UserFile(user)));
    let project = fixture.project_file("session.stale_minutes = 2");
    assert_eq!(fixture.stale(), ("2".into(), Origin::ProjectFile(project)));
    fixture.env("BATON_SESSION_STALE_MINUTES", "3");
    assert_eq!(fixture.stale(), ("3".into(), Origin::Environment("BATON_SESSION_STALE_MINUTES")));
    fixture.sources.flags.extend(Flag::given("--stale-minutes", "session.stale_minutes", Some("4")));
    assert_eq!(fixture.stale(), ("4".into(), Origin::Flag("--stale-minutes")));
    assert_eq!(fixture.warnings(), [""; 0]);
}

#[test]
fn alternative_variable_names_work_and_baton_names_take_precedence() {
    for (name, key, value) in [
        ("WORKRAIL_DATA_DIR", "data_dir", "/elsewhere"),
        ("CONTEXT_SESSION_STALE_MINUTES", "session.stale_minutes", "30"),
        ("HEARTBEAT_INTERVAL_SECONDS", "heartbeat.interval_seconds", "60"),
        ("HEARTBEAT_JITTER_SECONDS", "heartbeat.jitter_seconds", "6"),
        ("IDEMPOTENCY_TTL_SECONDS", "idempotency.ttl_seconds", "7"),
    ] {
        let mut fixture = Fixture::new();
        fixture.env(name, value);
        assert_eq!(shown(&fixture.read(), key), (value.into(), Origin::Environment(name)));
    }
    let mut fixture = Fixture::new();
    fixture.env("CONTEXT_RELAY_KEY", "abc");
    fixture.env("BATON_RELAY_KEY", "abcdef");
    let expected = ("set, 6 characters".into(), Origin::Environment("BATON_RELAY_KEY"));
    assert_eq!(shown(&fixture.read(), "server.relay_key"), expected);
}

#[test]
fn an_empty_variable_counts_as_not_set() {
    let mut fixture = Fixture::new();
    fixture.env("BATON_SESSION_STALE_MINUTES", "");
    fixture.env("BATON_NONSENSE", "");
    assert_eq!(fixture.stale(), ("45".into(), Origin::Default));
    fixture.env("CONTEXT_SESSION_STALE_MINUTES", "9");
    assert_eq!(fixture.stale(), ("9".into(), Origin::Environment("CONTEXT_SESSION_STALE_MINUTES")));
    assert_eq!(fixture.warnings(), [""; 0]);
}

#[test]
fn the_environment_can_name_another_user_file() {
    let mut fixture = Fixture::new();
    fixture.user_file("session.stale_minutes = 1");
    let other = fixture.write("other.toml", "session.stale_minutes = 5\ndata_dir = 'here'");
    for name in [other.to_str().unwrap(), "../other.toml", "~/other.toml"] {
        fixture.env("BATON_CONFIG", name);
        assert_eq!(fixture.stale().0, "5", "{name}");
    }
    fixture.env("BATON_CONFIG", "/dev/null");
    assert_eq!(fixture.stale(), ("45".into(), Origin::Default));
    fixture.env("BATON_CONFIG", "/nowhere/x.toml");
    assert_eq!(fixture.stale(), ("45".into(), Origin::Default));
    assert_eq!(
        fixture.warnings(),
        ["BATON_CONFIG names /nowhere/x.toml, which does not exist; it is ignored"]
    );
}

#[test]
fn paths_in_a_file_are_relative_to_it_and_in_the_environment_to_the_working_folder() {
    let mut fixture = Fixture::new();
    fixture.user_file("data_dir = 'mine'\nlog.file = '~/log'");
    let layers = fixture.read();
    assert_eq!(layers.get("data_dir").unwrap().0, Value::Path(fixture.home().join("config/mine")));
    assert_eq!(layers.get("log.file").unwrap().0, Value::Path(fixture.home().join("log")));
    fixture.env("BATON_DATA_DIR", "mine");
    assert_eq!(fixture.read().get("data_dir").unwrap().0, Value::Path(fixture.home().join("project/mine")));
}

#[test]
fn the_nearest_project_file_within_the_repository_is_used() {
    let mut fixture = Fixture::new();
    fixture.write(".baton.toml", "session.stale_minutes = 1");
    fixture.project_file("session.stale_minutes = 2");
    let deep = fixture.write("project/a/b/.keep", "").parent().unwrap().to_owned();
    fixture.sources.cwd = Some(deep);
    assert_eq!(fixture.stale().0, "2");
    fixture.write("project/a/.baton.toml", "session.stale_minutes = 3");
    assert_eq!(fixture.stale().0, "3");
    fs::remove_file(fixture.home().join("project/a/.baton.toml")).unwrap();
    fixture.write("project/a/.git", "gitdir: elsewhere");
    assert_eq!(fixture.stale().1, Origin::Default);
}

#[test]
fn the_search_for_a_project_file_ends_at_home() {
    let mut fixture = Fixture::new();
    fs::write(fixture.root.path().join(".baton.toml"), "session.stale_minutes = 1").unwrap();
    fs::remove_dir(fixture.home().join("project/.git")).unwrap();
    assert_eq!(fixture.stale().1, Origin::Default);
    let file = fixture.write(".baton.toml", "session.stale_minutes = 2");
    assert_eq!(fixture.stale(), ("2".into(), Origin::ProjectFile(file)));
    fixture.sources.cwd = None;
    assert_eq!(fixture.stale().1, Origin::Default);
}

#[test]
fn a_project_file_cannot_set_restricted_settings_even_with_invalid_values() {
    for setting in &SETTINGS {
        let ProjectFile::MayNot(reason) = setting.project_file else { continue };
        let fixture = Fixture::new();
        let before = fixture.read().get(setting.key).cloned();
        let file = fixture.project_file(&format!("{} = true", setting.key));
        assert_eq!(fixture.read().get(setting.key).cloned(), before, "{}", setting.key);
        let (key, path, env) = (setting.key, file.display(), setting.env_name());
        let expected = format!(
            "`{key}` in {path} is ignored: a project file may not set it, because {reason}; \
             set it in your user file or with {env}"
        );
        assert_eq!(fixture.warnings(), [expected]);
    }
}

#[test]
fn unknown_keys_cause_a_warning_with_a_suggestion() {
    let fixture = Fixture::new();
    let file = fixture.project_file(
        "stale_minutes = 1\nfruit = 'apple'\n[sesion]\nstale_minutes = 2\n[session]\nagnet = 'x'\n\"\\u001b[2J\" = 1",
    );
    let path = file.display();
    assert_eq!(
        fixture.warnings(),
        [
            format!("unknown setting `fruit` in {path}; run baton config show for the list"),
            format!(
                "unknown setting `sesion.stale_minutes` in {path}; did you mean `session.stale_minutes`?"
            ),
            format!("unknown setting `session. [2J` in {path}; run baton config show for the list"),
            format!("unknown setting `session.agnet` in {path}; did you mean `session.agent`?"),
            format!("unknown setting `stale_minutes` in {path}; did you mean `session.stale_minutes`?"),
        ]
    );
}

#[test]
fn unknown_variables_cause_a_warning_with_a_suggestion() {
    let mut fixture = Fixture::new();
    for name in [
        "BATON_DATADIR",
        "BATON_STALE_MINUTES",
        "BATON_FRUIT",
        "BATON_TEST_X",
        "BATON_BENCH_X",
        "BATON_COMMIT",
        "OTHER",
    ] {
        fixture.env(name, "x");
    }
    assert_eq!(
        fixture.warnings(),
        [
            "unknown environment variable BATON_DATADIR; did you mean `BATON_DATA_DIR`?",
            "unknown environment variable BATON_FRUIT; run baton config show for the list",
            "unknown environment variable BATON_STALE_MINUTES; did you mean `BATON_SESSION_STALE_MINUTES`?",
        ]
    );
}

#[test]
fn an_invalid_value_is_an_error_with_its_origin_and_a_hint() {
    let mut fixture = Fixture::new();
    let file = fixture.user_file("session.stale_minutes = \"45\"");
    let error = fixture.error();
    assert_eq!(
        error.to_string(),
        format!(
            "`session.stale_minutes` (user file {}) must be a whole number from 1 to 100000, but is `\"45\"`",
            file.display()
        )
    );
    assert_eq!(error.hint(), format!("correct it in {}, or remove it to use `45`", file.display()));

    fixture.user_file("[data_dir]\nx = 1");
    assert!(fixture.error().to_string().contains("`data_dir`"));

    fixture.user_file("");
    fixture.env("BATON_LISTEN", "7333");
    let error = fixture.error();
    assert_eq!(
        error.to_string(),
        "`server.listen` (environment BATON_LISTEN) must be a host and a port like 127.0.0.1:7333, but is `7333`"
    );
    assert_eq!(
        error.hint(),
        "correct the environment variable BATON_LISTEN, or remove it to use `127.0.0.1:7333`"
    );

    fixture.env("BATON_LISTEN", "");
    fixture.sources.flags.extend(Flag::given("--log-format", "log.format", Some("xml")));
    let error = fixture.error();
    assert_eq!(
        error.to_string(),
        "`log.format` (flag --log-format) must be one of `text`, `json`, but is `xml`"
    );
    assert_eq!(error.hint(), "correct --log-format, or remove it to use `text`");
}

#[test]
fn errors_do_not_repeat_an_invalid_secret() {
    let mut fixture = Fixture::new();
    fixture.env("BATON_DATABASE_URL", "mysql://u:hunter2@h");
    let error = fixture.error();
    assert!(!format!("{error} {error:?} {}", error.hint()).contains("hunter2"));
    fixture.env("BATON_DATABASE_URL", "");
    fixture.user_file("server.relay_key = ['hunter2']");
    let error = fixture.error();
    assert!(!format!("{error} {error:?} {}", error.hint()).contains("hunter2"));
}

#[test]
fn toml_syntax_errors_have_line_and_column_and_do_not_repeat_the_text() {
    let fixture = Fixture::new();
    let file = fixture.user_file("# ü\nserver.relay_key = 'hunter2'\nlog.level = 'ü' oops\n");
    let error = fixture.error();
    let ConfigError::Syntax { line, column, .. } = &error else { panic!("{error}") };
    assert_eq!((*line, *column), (3, 17));
    let message = error.to_string();
    assert!(message.starts_with(&format!("{}, line 3, column 17: ", file.display())), "{message}");
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[test]
fn an_existing_unreadable_file_is_an_error() {
    let fixture = Fixture::new();
    let user = fixture.home().join("config/config.toml");
    fs::create_dir(&user).unwrap();
    let error = fixture.error();
    assert!(error.to_string().starts_with(&format!("cannot read {}: ", user.display())), "{error}");
    assert_eq!(error.hint(), format!("make {} a file that you can read, or remove it", user.display()));
    fs::remove_dir(&user).unwrap();

    fs::write(&user, b"x = '\xff'").unwrap();
    assert!(matches!(fixture.error(), ConfigError::Unreadable { .. }));
    fs::write(&user, "#".repeat(MAX_FILE_BYTES as usize)).unwrap();
    assert_eq!(fixture.warnings(), [""; 0]);
    fs::write(&user, "#".repeat(MAX_FILE_BYTES as usize + 1)).unwrap();
    assert!(fixture.error().to_string().ends_with("it is longer than 65536 bytes"));
}

#[cfg(unix)]
#[test]
fn a_project_file_must_be_a_regular_file() {
    let fixture = Fixture::new();
    let link = fixture.home().join("project/.baton.toml");
    for target in ["/dev/zero", "/nowhere/at/all"] {
        std::os::unix::fs::symlink(target, &link).unwrap();
        assert!(matches!(fixture.error(), ConfigError::Unreadable { .. }), "{target}");
        fs::remove_file(&link).unwrap();
    }
}

#[test]
fn missing_files_and_folders_are_not_an_error() {
    let mut fixture = Fixture::new();
    assert_eq!(fixture.warnings(), [""; 0]);
    if let Some(places) = &mut fixture.sources.places {
        places.config = "/dev/null/config".into();
    }
    assert_eq!(fixture.warnings(), [""; 0]);
    fixture.sources.places = None;
    assert_eq!(fixture.warnings(), [""; 0]);
}

#[test]
fn a_flag_for_an_unknown_setting_is_an_error() {
    let mut fixture = Fixture::new();
    fixture.sources.flags.extend(Flag::given("--fruit", "fruit", Some("x")));
    assert_eq!(fixture.error().to_string(), "--fruit sets `fruit`, which is not a setting");
}
