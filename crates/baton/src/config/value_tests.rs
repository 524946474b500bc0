use super::*;

fn read(kind: Kind, text: &str) -> Option<Value> {
    kind.read(Raw::Os(text.as_ref()), Folders::default())
}

fn read_toml(kind: Kind, text: &str) -> Option<Value> {
    let table: toml::Table = format!("x = {text}").parse().unwrap();
    kind.read(Raw::Toml(&table["x"]), Folders::default())
}

#[test]
fn integers_outside_their_limits_are_rejected() {
    let kind = Kind::Integer { min: 1, max: 200 };
    assert_eq!(read(kind, " 200 "), Some(Value::Integer(200)));
    assert_eq!(read_toml(kind, "1"), Some(Value::Integer(1)));
    for wrong in ["0", "201", "", "abc", "1.5", "99999999999999999999"] {
        assert_eq!(read(kind, wrong), None, "{wrong}");
    }
    for wrong in ["0", "\"45\"", "1.0", "true", "[1]", "{}"] {
        assert_eq!(read_toml(kind, wrong), None, "{wrong}");
    }
}

#[test]
fn addresses_have_a_host_and_a_port() {
    for right in ["127.0.0.1:7333", "[::1]:80", "localhost:0", "my-host.example.com:65535"] {
        assert!(read(Kind::Address, right).is_some(), "{right}");
    }
    for wrong in
        ["7333", ":7333", "localhost", "localhost:", "localhost:65536", "localhost:+1", "::1:80x", "a b:1"]
    {
        assert!(read(Kind::Address, wrong).is_none(), "{wrong}");
    }
}

#[test]
fn server_urls_are_http_without_credentials() {
    for right in [
        "http://127.0.0.1:7333",
        "https://baton.example.com",
        "https://h/base/",
        "http://[::1]:80",
        "http://[::1]",
    ] {
        assert!(read(Kind::Url, right).is_some(), "{right}");
    }
    for wrong in [
        "localhost:7333",
        "ftp://h",
        "http://",
        "http:///x",
        "http://u:p@h",
        "http://h:99999",
        "http://h?x=1",
        "http://[::g]",
        "http://a b",
    ] {
        assert!(read(Kind::Url, wrong).is_none(), "{wrong}");
    }
}

#[test]
fn database_urls_are_postgres() {
    assert!(read(Kind::DatabaseUrl, "postgres://u:p@h/db").is_some());
    assert!(read(Kind::DatabaseUrl, "postgresql:///db?host=/run/pg").is_some());
    for wrong in ["mysql://h/db", "postgres://", "host=h password=p", "postgres://a b"] {
        assert!(read(Kind::DatabaseUrl, wrong).is_none(), "{wrong}");
    }
}

#[test]
fn names_words_and_text_are_checked() {
    assert!(read(Kind::Venture, "local").is_some());
    assert!(read(Kind::Venture, "-x").is_none());
    assert!(read(Kind::Venture, &"a".repeat(65)).is_none());
    assert!(read(Kind::Agent, &"a".repeat(128)).is_some());
    assert!(read(Kind::Agent, "two words").is_none());
    assert!(read(Kind::Choice(&["text", "json"]), "json").is_some());
    assert!(read(Kind::Choice(&["text", "json"]), "JSON").is_none());
    assert!(read(Kind::Text, "warn,baton_store=debug").is_some());
    assert!(read(Kind::Text, " ").is_none());
    assert!(read(Kind::Text, "a\nb").is_none());
    assert!(read(Kind::Secret, "with space").is_none());
    assert!(read_toml(Kind::Text, "1").is_none());
}

#[test]
fn name_rules_match_those_of_baton_core() {
    let rule = |must: String| must.split_once(": ").map(|(_, rule)| format!("must be {rule}"));
    let venture = "-".parse::<Venture>().unwrap_err().to_string();
    let agent = "-".parse::<Agent>().unwrap_err().to_string();
    assert_eq!(rule(Kind::Venture.must()), Some(venture));
    assert_eq!(rule(Kind::Agent.must()), Some(agent));
}

#[test]
fn paths_are_relative_to_their_folder_or_home() {
    let folders = Folders { base: Some(Path::new("/base")), home: Some(Path::new("/home/me")) };
    let read = |text: &str| Kind::Path.read(Raw::Os(text.as_ref()), folders);
    assert_eq!(read("/abs"), Some(Value::Path("/abs".into())));
    assert_eq!(read("rel/x"), Some(Value::Path("/base/rel/x".into())));
    assert_eq!(read("~/x"), Some(Value::Path("/home/me/x".into())));
    assert_eq!(read("~other/x"), Some(Value::Path("/base/~other/x".into())));
    assert_eq!(read(""), None);
}

#[cfg(unix)]
#[test]
fn only_paths_may_contain_non_unicode_bytes() {
    use std::os::unix::ffi::OsStrExt;
    let odd = OsStr::from_bytes(b"/x/\xff");
    assert_eq!(Kind::Path.read(Raw::Os(odd), Folders::default()), Some(Value::Path(PathBuf::from(odd))));
    assert_eq!(Kind::Text.read(Raw::Os(odd), Folders::default()), None);
    assert_eq!(Kind::Integer { min: 0, max: 1 }.read(Raw::Os(odd), Folders::default()), None);
}

#[test]
fn passwords_in_addresses_are_masked() {
    for (url, shown) in [
        ("postgres://u:p@h/db", "postgres://u:***@h/db"),
        ("postgres://u:p@q:r@h:1/db?sslmode=require", "postgres://u:***@h:1/db?sslmode=require"),
        ("postgres://u@h/db", "postgres://u@h/db"),
        ("postgres:///db?host=/run/pg", "postgres:///db?host=/run/pg"),
        ("postgres://h/db?password=p&x=1", "postgres://h/db?password=***&x=1"),
        ("postgres://h?x=1&Password=p=q", "postgres://h?x=1&Password=***"),
        ("postgres://h/db?p%61ssword=p", "postgres://h/db?p%61ssword=***"),
        ("postgres://h/db?sslpassword=p", "postgres://h/db?sslpassword=***"),
        ("postgres://u:p/q@h/db", "postgres://***"),
        ("postgres://u:p?q@h/db", "postgres://***"),
        ("postgres://u:p#q@h/db", "postgres://***"),
        ("postgres://h/db?password=p@q", "postgres://***"),
    ] {
        assert_eq!(mask_url(url), shown, "{url}");
    }
}

#[test]
fn debug_output_does_not_contain_the_secret() {
    let secret = Value::Secret(SecretText::new("hunter2"));
    assert_eq!(format!("{secret:?}"), "Secret(SecretText(set, 7 characters))");
    assert_eq!(secret.shown(), "set, 7 characters");
    assert!(!format!("{:?}", Value::DatabaseUrl(SecretText::new("postgres://u:p@h"))).contains("p@"));
}

#[test]
fn messages_truncate_invalid_values_and_omit_secrets() {
    let long = "x".repeat(500);
    let shown = Kind::Text.found(Raw::Os(long.as_ref())).unwrap();
    assert_eq!(shown.chars().count(), SHOWN_CHARACTERS);
    assert_eq!(Kind::Text.found(Raw::Os("a\u{1b}[2Jb".as_ref())).unwrap(), "a [2Jb");
    assert_eq!(Kind::Secret.found(Raw::Os("a b".as_ref())), None);
    assert_eq!(Kind::DatabaseUrl.found(Raw::Os("mysql://u:p@h".as_ref())), None);
    assert_eq!(Kind::Url.found(Raw::Os("http://u:p@h".as_ref())), None);
    assert_eq!(Kind::Url.found(Raw::Os("h:1".as_ref())).unwrap(), "h:1");
}
