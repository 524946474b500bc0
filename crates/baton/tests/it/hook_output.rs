//! Tool output of every size and kind, and concurrent hooks: everything is stored and can be read back.

use baton_testkit::contract::fixture::Dice;
use serde_json::json;

use crate::hooked::{CHAT, Hooked, files_below};
use crate::served::with;

/// Returns words that do not look like a secret and compress badly.
fn prose(bytes: usize) -> String {
    const PART: usize = 1024 * 1024;
    let mut dice = Dice::new(bytes as u64);
    let part: String = (0..bytes.min(PART))
        .map(|place| if place % 9 == 8 { ' ' } else { char::from(b'a' + dice.below(26) as u8) })
        .collect();
    // The repetition is outside the window of the compressor, so it does not compress.
    part.repeat(bytes.div_ceil(PART))
}

#[test]
fn output_of_any_size_is_stored_and_can_be_read() {
    let hooked = Hooked::new();
    for (bytes, is_file) in [(0, false), (10 * 1024, false), (1024 * 1024, true), (50 * 1024 * 1024, true)] {
        let output = prose(bytes);
        let report = hooked.bash("cat", "HERE").to_string().replace("HERE", &output);
        // A report that exceeds the time limit is saved to the outbox, and the worker stores it.
        assert_eq!(hooked.call(&["post-tool-use"], report.as_bytes()).stdout, "");
        assert_eq!(hooked.work(), 1, "{bytes}: {:?}", hooked.troubles());
        let seen = hooked.observations().remove(0);
        assert!(seen["raw_bytes"].as_u64().unwrap() >= bytes as u64, "{}", seen["raw_bytes"]);
        let show = ["observation", "show", seen["id"].as_str().unwrap(), "--raw", "--format", "json"];
        let shown = hooked.home.run(&show).stdout;
        let whole = format!("\"stdout\":\"{output}\"");
        assert!(shown.contains(&whole), "the output of {bytes} bytes changed");
        let blobs = files_below(&hooked.home.data_dir().join("blobs"));
        let sizes: Vec<u64> = blobs.iter().map(|blob| std::fs::metadata(blob).unwrap().len()).collect();
        let (least, most) = (bytes as u64 / 3, bytes as u64 * 3 / 4);
        let fits = sizes.iter().any(|size| (least..most).contains(size));
        assert_eq!(fits, is_file, "large output must be a compressed blob: {sizes:?} for {bytes}");
    }
    let database = std::fs::metadata(hooked.home.data_dir().join("baton.db")).unwrap().len();
    assert!(database < 2 * 1024 * 1024, "{database} bytes");
    assert_eq!((hooked.queue(), hooked.spilled().len()), ([0, 0, 4, 0], 0));
}

#[test]
fn output_over_the_limit_is_replaced_by_a_note() {
    for hooked in Hooked::each() {
        let mut report = hooked.claude("PostToolUse", json!({ "tool_name": "Read", "tool_use_id": "" }));
        report["tool_input"] = json!({ "file_path": "/srv/huge.bin" });
        report["tool_response"] = json!({ "file": { "content": "x".repeat(66 * 1024 * 1024) } });
        // Some agents send this field after the output.
        report["tool_use_id"] = json!("toolu_after");
        hooked.hook("post-tool-use", &report);
        assert_eq!((hooked.work(), hooked.troubles()), (1, Vec::new()));
        let seen = hooked.observations().remove(0);
        assert_eq!((&seen["tool_name"], &seen["files"]), (&json!("Read"), &json!(["/srv/huge.bin"])));
        let raw = hooked.raw(&seen);
        assert_eq!(raw["tool_input"], json!({ "file_path": "/srv/huge.bin" }));
        let output = raw["tool_response"].as_str().unwrap();
        let bytes = report.to_string().len().to_string();
        assert!(output.contains("not kept") && output.contains(&bytes), "{output}");
        let blobs = crate::hooked::files_below(&hooked.home.data_dir().join("blobs"));
        assert!(blobs.is_empty(), "{blobs:?}");
    }
}

/// Terminal escapes, NULs and partial characters: agents truncate output anywhere.
#[test]
fn invalid_text_is_repaired_and_stored() {
    for hooked in Hooked::each() {
        let cases: [(&[u8], &str); 9] = [
            (
                br"\u001b[31mred\u001b[0m \u001b]52;c;aGk=\u0007",
                "\u{1b}[31mred\u{1b}[0m \u{1b}]52;c;aGk=\u{7}",
            ),
            (br"nul \u0000 inside", "nul \0 inside"),
            (b"raw \x1b[2J and \x00 and \t", "raw \u{1b}[2J and \0 and \t"),
            (b"bad \xff\xfe bytes", "bad \u{fffd}\u{fffd} bytes"),
            (b"cut \xe6\x8e", "cut \u{fffd}"),
            (br"cut \ud83d", "cut \u{fffd}"),
            (br"low \ude00 first", "low \u{fffd} first"),
            (br"whole \ud83d\ude00", "whole 😀"),
            (br"C:\dir \d+", "C:\\dir \\d+"),
        ];
        let chat = json!(CHAT).to_string();
        for (written, expected) in cases {
            let input = [
                br#"{"session_id":"#.as_slice(),
                chat.as_bytes(),
                br#","tool_name":"Bash","tool_input":{"command":""#,
                written,
                br#""},"tool_response":{"stdout":""#,
                written,
                br#"","stderr":""}}"#,
            ];
            let finished = hooked.call(&["post-tool-use"], &input.concat());
            assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""));
            assert_eq!(hooked.work(), 1, "{expected:?}: {:?}", hooked.troubles());
            let seen = hooked.observations().remove(0);
            let raw = hooked.raw(&seen);
            assert_eq!(raw["tool_response"]["stdout"], expected);
            assert_eq!(raw["tool_input"]["command"], expected);
            let shown = ["title", "summary"].map(|field| seen[field].as_str().unwrap());
            let is_plain = |text: &str| text.chars().all(|c| !c.is_control() || c == '\n' || c == '\t');
            assert!(shown.into_iter().all(is_plain), "{shown:?}");
            let prompt = [br#"{"prompt":""#.as_slice(), written, br#""}"#].concat();
            assert_eq!(hooked.call(&["user-prompt-submit"], &prompt).stdout, "");
        }
        for event in ["pre-compact", "session-end"] {
            hooked.hook(
                event,
                &json!({ "session_id": CHAT, "custom_instructions": "\0\u{1b}[0m", "reason": "\0" }),
            );
            hooked.hook(event, &json!({ "custom_instructions": "\0\u{1b}[0m", "reason": "\0" }));
        }
        assert!(hooked.troubles().is_empty(), "{:?}", hooked.troubles());
        assert!(hooked.sessions().is_empty());
    }
}

#[test]
fn concurrent_hooks_store_every_report() {
    for hooked in Hooked::each() {
        std::thread::scope(|scope| {
            for number in 0..32 {
                let hooked = &hooked;
                scope.spawn(move || {
                    let mut report = hooked.bash(&format!("echo {number}"), &number.to_string());
                    if number % 2 == 0 {
                        report = with(report, json!({ "tool_use_id": format!("toolu_{number}") }));
                    }
                    // On a busy machine a report may be saved to the outbox.
                    let finished = hooked.call(&["post-tool-use"], report.to_string().as_bytes());
                    assert_eq!(finished.stdout, "");
                });
            }
        });
        assert_eq!(hooked.queue()[0] as usize + hooked.spilled().len(), 32, "{:?}", hooked.troubles());
        assert_eq!(hooked.work(), 32);
        assert_eq!((hooked.queue(), hooked.spilled().len()), ([0, 0, 32, 0], 0));
        let seen = hooked.observations();
        let mut output: Vec<u64> = seen
            .iter()
            .map(|one| hooked.raw(one)["tool_response"]["stdout"].as_str().unwrap().parse().unwrap())
            .collect();
        output.sort_unstable();
        assert_eq!(output, (0..32).collect::<Vec<_>>());
        assert_eq!(hooked.sessions().len(), 1, "one chat must be one session");
    }
}

#[test]
fn control_characters_in_names_are_removed_from_output() {
    let hooked = Hooked::new();
    let report = hooked.claude(
        "PostToolUse",
        json!({
            "tool_name": "Re\u{202e}ad\u{1b}[31m", "tool_input": { "file_path": "a\u{1b}]0;owned\u{7}\u{1b}[2Jb.rs" },
            "tool_response": "text",
        }),
    );
    hooked.hook("post-tool-use", &report);
    let listed = hooked.home.run(&["queue", "list"]).stdout;
    assert!(listed.contains("Read") && listed.contains("ab.rs"), "{listed:?}");
    assert_eq!(hooked.work(), 1);
    let id = hooked.observations()[0]["id"].as_str().unwrap().to_owned();
    for arguments in
        [&["queue", "list", "--status", "done"][..], &["observation", "list"], &["observation", "show", &id]]
    {
        let shown = hooked.home.run(arguments).stdout;
        assert!(!shown.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{arguments:?}: {shown:?}");
    }
    let raw = hooked.home.run(&["observation", "show", &id, "--raw"]).stdout;
    assert!(raw.ends_with("output\ntext\n"), "{raw:?}");
}

#[test]
fn empty_raw_output_is_distinct_from_deleted_raw_output() {
    let hooked = Hooked::new();
    hooked.hook("post-tool-use", &hooked.claude("PostToolUse", json!({ "tool_name": "Touch" })));
    assert_eq!(hooked.work(), 1);
    let id = hooked.observations()[0]["id"].as_str().unwrap().to_owned();
    let shown = hooked.home.run(&["observation", "show", &id, "--raw"]).stdout;
    assert!(shown.trim_end().ends_with("the tool returned no output"), "{shown}");
    assert_eq!(hooked.data(&["observation", "show", &id, "--raw"])["raw_kept"], true);
    hooked.data(&["queue", "purge"]);
    let shown = hooked.home.run(&["observation", "show", &id, "--raw"]).stdout;
    assert!(shown.trim_end().ends_with("the raw output is no longer kept"), "{shown}");
    assert_eq!(hooked.data(&["observation", "show", &id])["raw_kept"], json!(null));
}

#[test]
fn observations_are_found_by_any_form_of_their_file_path() {
    let hooked = Hooked::new();
    let folder = hooked.home.working_folder();
    std::fs::create_dir_all(folder.join("src")).unwrap();
    let file = folder.join("src/a.rs");
    hooked.hook(
        "post-tool-use",
        &hooked.claude("PostToolUse", json!({ "tool_name": "Read", "tool_input": { "file_path": file } })),
    );
    assert_eq!(hooked.work(), 1);
    for written in ["a.rs", "src/a.rs", "./src/a.rs", file.to_str().unwrap()] {
        let found = hooked.data(&["observation", "list", "--file", written])["observations"].clone();
        assert_eq!(found.as_array().unwrap().len(), 1, "{written}");
    }
    for other in ["b.rs", "/src/a.rs", "rc/a.rs"] {
        let found = hooked.data(&["observation", "list", "--file", other])["observations"].clone();
        assert_eq!(found, json!([]), "{other}");
    }
}
