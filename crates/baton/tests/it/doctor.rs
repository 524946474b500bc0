//! `baton doctor`: findings, fixes, and data folders and databases that cannot be read.

use std::os::unix::fs::PermissionsExt;

use crate::checkpoint_cli::without_privilege;
use crate::cli::home;

#[test]
fn doctor_reports_open_modes_with_a_fix() {
    let home = home();
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let healthy = home.run(&["doctor", "--format", "json"]);
    assert_eq!((healthy.code, &healthy.json()["data"]["healthy"]), (0, &true.into()));
    std::fs::set_permissions(home.data_dir(), PermissionsExt::from_mode(0o755)).unwrap();
    let loose = home.run(&["doctor"]);
    assert!(loose.stdout.contains("has mode 0755"), "{}", loose.stdout);
    assert!(loose.stdout.contains("fix: chmod 700"), "{}", loose.stdout);
}

#[test]
fn doctor_checks_the_local_queue_although_a_server_is_configured() {
    let home = home();
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let found = home.run(&["--server", "http://127.0.0.1:9", "doctor", "--format", "json"]).json();
    assert_eq!(finding(&found, "observations")["level"], "ok");
}

/// Returns the finding of `baton doctor` with this name.
#[track_caller]
fn finding<'a>(doctor: &'a serde_json::Value, check: &str) -> &'a serde_json::Value {
    let findings = doctor["data"]["findings"].as_array().unwrap();
    findings.iter().find(|finding| finding["check"] == check).unwrap()
}

#[test]
fn doctor_checks_the_configured_server() {
    let home = home();
    let doctor = |server: &[&str]| {
        let found = home.run(&[server, &["doctor", "--format", "json"]].concat());
        (found.code, found.json())
    };
    assert!(!doctor(&[]).1.to_string().contains("\"server\""));
    let (code, missing) = doctor(&["--server", "http://127.0.0.1:9"]);
    let server = finding(&missing, "server");
    assert_eq!((code, &server["level"]), (1, &"error".into()), "{missing}");
    assert!(server["fix"].as_str().unwrap().contains("baton serve"), "{missing}");

    let served = home.serve();
    let url = served.url().to_owned();
    let (code, accepted) = doctor(&["--server", &url]);
    let message = format!("{url} responds and accepts the credential");
    assert_eq!((code, &finding(&accepted, "server")["message"]), (0, &message.into()), "{accepted}");
    let wrong = home
        .command()
        .env("BATON_RELAY_KEY", "wrong-relay-key-0123456789")
        .args(["--server", &url, "doctor"])
        .output();
    let wrong = String::from_utf8(wrong.unwrap().stdout).unwrap();
    assert!(wrong.contains("ERROR    server: "), "{wrong}");
}

#[test]
fn an_inaccessible_data_folder_is_not_a_missing_one() {
    let home = home();
    let sealed = home.path().join("sealed");
    std::fs::create_dir(&sealed).unwrap();
    for data_dir in [sealed.join("data"), sealed.clone()] {
        std::fs::set_permissions(&sealed, PermissionsExt::from_mode(0o000)).unwrap();
        let run = |arguments: &[&str]| {
            let output = without_privilege(&home).env("BATON_DATA_DIR", &data_dir).args(arguments).output();
            let output = output.unwrap();
            (output.status.code(), String::from_utf8([output.stdout, output.stderr].concat()).unwrap())
        };
        for arguments in [&["status"][..], &[]] {
            let (code, text) = run(arguments);
            assert_eq!(code, Some(9), "{arguments:?}: {text}");
            assert!(text.contains("next: ") && text.contains("point BATON_DATA_DIR at"), "{text}");
        }
        let (code, doctor) = run(&["doctor", "--deep", "--format", "json"]);
        std::fs::set_permissions(&sealed, PermissionsExt::from_mode(0o700)).unwrap();
        let doctor = serde_json::from_str(&doctor).unwrap();
        assert_eq!((code, &finding(&doctor, "data folder")["level"]), (Some(1), &"error".into()));
        for check in ["database", "observations", "hooks", "agents", "checkpoints"] {
            assert_eq!(finding(&doctor, check)["level"], "skipped", "{check}");
        }
    }
}

#[test]
fn doctor_names_a_fix_for_the_data_folder_of_another_user() {
    use std::os::unix::fs::{MetadataExt, chown};

    let home = home();
    std::fs::create_dir(home.data_dir()).unwrap();
    let is_root = std::fs::metadata(home.data_dir()).unwrap().uid() == 0;
    let folder = if is_root { home.data_dir() } else { "/".into() };
    if is_root {
        chown(&folder, Some(65_534), None).unwrap();
    }
    let output = home.command().env("BATON_DATA_DIR", &folder).args(["doctor", "--format", "json"]).output();
    let doctor = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    let fix = finding(&doctor, "data folder")["fix"].as_str().unwrap();
    assert!(fix.starts_with("sudo chown -R") && fix.contains("BATON_DATA_DIR"), "{fix}");
}

#[test]
fn doctor_and_verbs_reject_a_damaged_database() {
    let home = home();
    std::fs::create_dir(home.data_dir()).unwrap();
    std::fs::write(home.data_dir().join("baton.db"), b"this is not a database, not at all").unwrap();
    let doctor = home.run(&["doctor", "--format", "json"]);
    assert_eq!(doctor.code, 1);
    let database = finding(&doctor.json(), "database").clone();
    assert_eq!(database["message"], "the database is unavailable: the file is not a Baton database");
    let fix = database["fix"].as_str().unwrap();
    assert!(fix.starts_with("restore a backup") && !fix.contains("baton doctor"), "{fix}");
    assert_eq!(finding(&doctor.json(), "observations")["level"], "skipped");
    let verb = home.run(&["session", "list", "--format", "json"]);
    assert_eq!((verb.code, &verb.json()["error"]["code"]), (9, &"store_unavailable".into()));
    assert!(verb.json()["error"]["hint"].is_string());
    let bytes = std::fs::read(home.data_dir().join("baton.db")).unwrap();
    assert_eq!(bytes, b"this is not a database, not at all", "a rejected file must not be changed");
}

#[test]
fn doctor_reads_every_page_only_with_deep() {
    let home = home();
    home.run(&["session", "start", "--agent", "a", "--repo", "o/r"]);
    let path = home.data_dir().join("baton.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let page = u16::from_be_bytes([bytes[16], bytes[17]]) as usize;
    // The quick check does not read the last page.
    let last = bytes.len() - page;
    bytes[last..].fill(0x55);
    std::fs::write(&path, bytes).unwrap();
    let found = |arguments: &[&str]| {
        let output = home.run(&[arguments, &["--format", "json"]].concat()).json();
        let findings = output["data"]["findings"].as_array().unwrap().clone();
        let database = findings.into_iter().find(|finding| finding["check"] == "database").unwrap();
        database["level"].as_str().unwrap().to_owned()
    };
    assert_eq!((found(&["doctor"]), found(&["doctor", "--deep"])), ("ok".into(), "error".into()));
}
