use std::fs;

use tempfile::TempDir;

use super::*;
use crate::config::sources::{Flag, Places};

/// A home with a project in it, on disk, and an environment that is not the process's.
struct World {
    root: TempDir,
    sources: Sources,
}

impl World {
    fn new() -> Self {
        let root = TempDir::new().unwrap();
        let home = root.path().join("home");
        let cwd = home.join("project");
        fs::create_dir_all(cwd.join(".git")).unwrap();
        let places = Places { config: home.join("config"), data: home.join("data"), home };
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
fn every_layer_wins_over_the_one_before() {
    let mut world = World::new();
    assert_eq!(world.stale(), ("45".into(), Origin::Default));
    let user = world.user_file("[session]\nstale_minutes = 1\n");
    assert_eq!(world.stale(), ("1".into(), Origin::UserFile(user)));
    let project = world.project_file("session.stale_minutes = 2");
    assert_eq!(world.stale(), ("2".into(), Origin::ProjectFile(project)));
    world.env("BATON_SESSION_STALE_MINUTES", "3");
    assert_eq!(world.stale(), ("3".into(), Origin::Environment("BATON_SESSION_STALE_MINUTES")));
    world.sources.flags.extend(Flag::given("--stale-minutes", "session.stale_minutes", Some("4")));
    assert_eq!(world.stale(), ("4".into(), Origin::Flag("--stale-minutes")));
    assert_eq!(world.warnings(), [""; 0]);
}

#[test]
fn the_specifications_names_work_and_ours_win_over_them() {
    for (name, key, value) in [
        ("WORKRAIL_DATA_DIR", "data_dir", "/elsewhere"),
        ("CONTEXT_SESSION_STALE_MINUTES", "session.stale_minutes", "30"),
        ("HEARTBEAT_INTERVAL_SECONDS", "heartbeat.interval_seconds", "60"),
        ("HEARTBEAT_JITTER_SECONDS", "heartbeat.jitter_seconds", "6"),
        ("IDEMPOTENCY_TTL_SECONDS", "idempotency.ttl_seconds", "7"),
    ] {
        let mut world = World::new();
        world.env(name, value);
        assert_eq!(shown(&world.read(), key), (value.into(), Origin::Environment(name)));
    }
    let mut world = World::new();
    world.env("CONTEXT_RELAY_KEY", "abc");
    world.env("BATON_RELAY_KEY", "abcdef");
    let expected = ("set, 6 characters".into(), Origin::Environment("BATON_RELAY_KEY"));
    assert_eq!(shown(&world.read(), "server.relay_key"), expected);
}

#[test]
fn an_empty_variable_is_not_set() {
    let mut world = World::new();
    world.env("BATON_SESSION_STALE_MINUTES", "");
    world.env("BATON_NONSENSE", "");
    assert_eq!(world.stale(), ("45".into(), Origin::Default));
    world.env("CONTEXT_SESSION_STALE_MINUTES", "9");
    assert_eq!(world.stale(), ("9".into(), Origin::Environment("CONTEXT_SESSION_STALE_MINUTES")));
    assert_eq!(world.warnings(), [""; 0]);
}

#[test]
fn the_environment_can_name_another_user_file() {
    let mut world = World::new();
    world.user_file("session.stale_minutes = 1");
    let other = world.write("other.toml", "session.stale_minutes = 5\ndata_dir = 'here'");
    for name in [other.to_str().unwrap(), "../other.toml", "~/other.toml"] {
        world.env("BATON_CONFIG", name);
        assert_eq!(world.stale().0, "5", "{name}");
    }
    world.env("BATON_CONFIG", "/dev/null");
    assert_eq!(world.stale(), ("45".into(), Origin::Default));
    world.env("BATON_CONFIG", "/nowhere/x.toml");
    assert_eq!(world.stale(), ("45".into(), Origin::Default));
    assert_eq!(
        world.warnings(),
        ["BATON_CONFIG names /nowhere/x.toml, which does not exist; it is left out"]
    );
}

#[test]
fn paths_in_a_file_are_relative_to_it_and_in_the_environment_to_the_working_folder() {
    let mut world = World::new();
    world.user_file("data_dir = 'mine'\nlog.file = '~/log'");
    let layers = world.read();
    assert_eq!(layers.get("data_dir").unwrap().0, Value::Path(world.home().join("config/mine")));
    assert_eq!(layers.get("log.file").unwrap().0, Value::Path(world.home().join("log")));
    world.env("BATON_DATA_DIR", "mine");
    assert_eq!(world.read().get("data_dir").unwrap().0, Value::Path(world.home().join("project/mine")));
}

#[test]
fn the_nearest_project_file_counts_up_to_the_repository() {
    let mut world = World::new();
    world.write(".baton.toml", "session.stale_minutes = 1");
    world.project_file("session.stale_minutes = 2");
    let deep = world.write("project/a/b/.keep", "").parent().unwrap().to_owned();
    world.sources.cwd = Some(deep);
    assert_eq!(world.stale().0, "2");
    world.write("project/a/.baton.toml", "session.stale_minutes = 3");
    assert_eq!(world.stale().0, "3");
    fs::remove_file(world.home().join("project/a/.baton.toml")).unwrap();
    world.write("project/a/.git", "gitdir: elsewhere");
    assert_eq!(world.stale().1, Origin::Default);
}

#[test]
fn the_search_for_a_project_file_ends_at_home() {
    let mut world = World::new();
    fs::write(world.root.path().join(".baton.toml"), "session.stale_minutes = 1").unwrap();
    fs::remove_dir(world.home().join("project/.git")).unwrap();
    assert_eq!(world.stale().1, Origin::Default);
    let file = world.write(".baton.toml", "session.stale_minutes = 2");
    assert_eq!(world.stale(), ("2".into(), Origin::ProjectFile(file)));
    world.sources.cwd = None;
    assert_eq!(world.stale().1, Origin::Default);
}

#[test]
fn a_project_file_cannot_set_what_is_refused_to_it_not_even_wrongly() {
    for setting in SETTINGS {
        let ProjectFile::MayNot(reason) = setting.project_file else { continue };
        let world = World::new();
        let before = world.read().get(setting.key).cloned();
        let file = world.project_file(&format!("{} = true", setting.key));
        assert_eq!(world.read().get(setting.key).cloned(), before, "{}", setting.key);
        let (key, path, env) = (setting.key, file.display(), setting.env_name());
        let expected = format!(
            "`{key}` in {path} is ignored: a project file may not set it, because {reason}; \
             set it in your user file or with {env}"
        );
        assert_eq!(world.warnings(), [expected]);
    }
}

#[test]
fn unknown_keys_are_warned_of_with_the_nearest() {
    let world = World::new();
    let file = world.project_file(
        "stale_minutes = 1\nfruit = 'apple'\n[sesion]\nstale_minutes = 2\n[session]\nagnet = 'x'\n\"\\u001b[2J\" = 1",
    );
    let path = file.display();
    assert_eq!(
        world.warnings(),
        [
            format!("unknown setting `fruit` in {path}; `baton config show` lists those there are"),
            format!(
                "unknown setting `sesion.stale_minutes` in {path}; did you mean `session.stale_minutes`?"
            ),
            format!("unknown setting `session. [2J` in {path}; `baton config show` lists those there are"),
            format!("unknown setting `session.agnet` in {path}; did you mean `session.agent`?"),
            format!("unknown setting `stale_minutes` in {path}; did you mean `session.stale_minutes`?"),
        ]
    );
}

#[test]
fn unknown_variables_are_warned_of_with_the_nearest() {
    let mut world = World::new();
    for name in [
        "BATON_DATADIR",
        "BATON_STALE_MINUTES",
        "BATON_FRUIT",
        "BATON_TEST_X",
        "BATON_BENCH_X",
        "BATON_COMMIT",
        "OTHER",
    ] {
        world.env(name, "x");
    }
    assert_eq!(
        world.warnings(),
        [
            "unknown environment variable BATON_DATADIR; did you mean `BATON_DATA_DIR`?",
            "unknown environment variable BATON_FRUIT; `baton config show` lists those there are",
            "unknown environment variable BATON_STALE_MINUTES; did you mean `BATON_SESSION_STALE_MINUTES`?",
        ]
    );
}

#[test]
fn a_wrong_value_is_an_error_that_says_where_and_what_to_do() {
    let mut world = World::new();
    let file = world.user_file("session.stale_minutes = \"45\"");
    let error = world.error();
    assert_eq!(
        error.to_string(),
        format!(
            "`session.stale_minutes` (user file {}) must be a whole number from 1 to 100000, but is `\"45\"`",
            file.display()
        )
    );
    assert_eq!(error.hint(), format!("correct it in {}, or leave it out to use `45`", file.display()));

    world.user_file("[data_dir]\nx = 1");
    assert!(world.error().to_string().contains("`data_dir`"));

    world.user_file("");
    world.env("BATON_LISTEN", "7333");
    let error = world.error();
    assert_eq!(
        error.to_string(),
        "`server.listen` (environment BATON_LISTEN) must be a host and a port like 127.0.0.1:7333, but is `7333`"
    );
    assert_eq!(
        error.hint(),
        "correct the environment variable BATON_LISTEN, or leave it out to use `127.0.0.1:7333`"
    );

    world.env("BATON_LISTEN", "");
    world.sources.flags.extend(Flag::given("--log-format", "log.format", Some("xml")));
    let error = world.error();
    assert_eq!(
        error.to_string(),
        "`log.format` (flag --log-format) must be one of `text`, `json`, but is `xml`"
    );
    assert_eq!(error.hint(), "correct --log-format, or leave it out to use `text`");
}

#[test]
fn a_wrong_secret_is_not_repeated() {
    let mut world = World::new();
    world.env("BATON_DATABASE_URL", "mysql://u:hunter2@h");
    let error = world.error();
    assert!(!format!("{error} {error:?} {}", error.hint()).contains("hunter2"));
    world.env("BATON_DATABASE_URL", "");
    world.user_file("server.relay_key = ['hunter2']");
    let error = world.error();
    assert!(!format!("{error} {error:?} {}", error.hint()).contains("hunter2"));
}

#[test]
fn a_mistake_in_toml_is_found_by_line_and_column_without_repeating_the_text() {
    let world = World::new();
    let file = world.user_file("# ü\nserver.relay_key = 'hunter2'\nlog.level = 'ü' oops\n");
    let error = world.error();
    let ConfigError::Syntax { line, column, .. } = &error else { panic!("{error}") };
    assert_eq!((*line, *column), (3, 17));
    let message = error.to_string();
    assert!(message.starts_with(&format!("{}, line 3, column 17: ", file.display())), "{message}");
    assert!(!format!("{error:?}").contains("hunter2"));
}

#[test]
fn a_file_that_is_there_and_cannot_be_read_is_an_error() {
    let world = World::new();
    let user = world.home().join("config/config.toml");
    fs::create_dir(&user).unwrap();
    let error = world.error();
    assert!(error.to_string().starts_with(&format!("could not read {}: ", user.display())), "{error}");
    assert_eq!(error.hint(), format!("make {} a file that you can read, or remove it", user.display()));
    fs::remove_dir(&user).unwrap();

    fs::write(&user, b"x = '\xff'").unwrap();
    assert!(matches!(world.error(), ConfigError::Unreadable { .. }));
    fs::write(&user, "#".repeat(MAX_FILE_BYTES as usize)).unwrap();
    assert_eq!(world.warnings(), [""; 0]);
    fs::write(&user, "#".repeat(MAX_FILE_BYTES as usize + 1)).unwrap();
    assert!(world.error().to_string().ends_with("it is longer than 65536 bytes"));
}

#[cfg(unix)]
#[test]
fn a_project_file_must_be_a_regular_file() {
    let world = World::new();
    let link = world.home().join("project/.baton.toml");
    for target in ["/dev/zero", "/nowhere/at/all"] {
        std::os::unix::fs::symlink(target, &link).unwrap();
        assert!(matches!(world.error(), ConfigError::Unreadable { .. }), "{target}");
        fs::remove_file(&link).unwrap();
    }
}

#[test]
fn missing_files_and_folders_are_fine() {
    let mut world = World::new();
    assert_eq!(world.warnings(), [""; 0]);
    if let Some(places) = &mut world.sources.places {
        places.config = "/dev/null/config".into();
    }
    assert_eq!(world.warnings(), [""; 0]);
    world.sources.places = None;
    assert_eq!(world.warnings(), [""; 0]);
}

#[test]
fn a_flag_for_no_setting_is_found_at_once() {
    let mut world = World::new();
    world.sources.flags.extend(Flag::given("--fruit", "fruit", Some("x")));
    assert_eq!(world.error().to_string(), "--fruit sets `fruit`, which is not a setting");
}
