//! Capture can be disabled: on the machine, for one chat and for one project.

use baton_testkit::binary::Home;
use serde_json::json;

use crate::hooked::Hooked;

fn ask(hooked: &Hooked) -> String {
    hooked.response("user-prompt-submit", &hooked.claude("UserPromptSubmit", json!({ "prompt": "Fix it" })))
}

#[test]
fn hooks_record_nothing_while_capture_is_paused() {
    let hooked = Hooked::new();
    assert_eq!(hooked.data(&["status"])["capture"], json!({ "state": "on" }));
    let paused = hooked.data(&["pause"]);
    assert_eq!(paused["capture"]["state"], "paused");
    assert_eq!(hooked.data(&["pause"]), paused, "a second pause keeps the time of the first");
    assert_eq!(ask(&hooked), "");
    assert_eq!(hooked.response("session-start", &hooked.claude("SessionStart", json!({}))), "");
    assert!(hooked.sessions().is_empty());
    let status = hooked.data(&["status"]);
    assert_eq!((&status["capture"], &status["next"]), (&paused["capture"], &"baton pause --end".into()));
    let text = hooked.home.run(&["status"]).stdout;
    assert!(text.contains("capture  paused since "), "{text}");
    assert_eq!(hooked.data(&["pause", "--end"])["capture"]["state"], "on");
    assert_eq!(hooked.data(&["pause", "--end"])["capture"]["state"], "on");
    ask(&hooked);
    assert_eq!(hooked.sessions().len(), 1);
}

#[test]
fn hooks_record_nothing_if_the_environment_or_the_project_disables_capture() {
    let off =
        Hooked::at(Home::new(env!("CARGO_BIN_EXE_baton")).working_in("shop").with("BATON_CAPTURE", "off"));
    ask(&off);
    assert!(off.sessions().is_empty());
    let status = off.data(&["status"]);
    assert_eq!(status["capture"], json!({ "state": "off" }));
    assert_eq!(status["next"], "baton config show", "`baton pause --end` would change nothing");

    let project = Hooked::new();
    let folder = project.home.working_folder().to_owned();
    std::fs::create_dir(folder.join(".git")).unwrap();
    std::fs::write(folder.join(".baton.toml"), "[capture]\nenabled = \"off\"\n").unwrap();
    ask(&project);
    assert!(project.sessions().is_empty());
}
