//! Tools that show and find files.

use serde_json::json;

use super::{detail, observe};

#[test]
fn read_file_is_outlined() {
    let source: String = (1..60).map(|i| format!("impl Store {{\n    pub fn save_{i}(&self, input_value: &InputValue) -> SavedRow {{ self.write_row(input_value) }}\n}}\n\n")).collect();
    let content =
        format!("pub struct Store;\n\n/// Frees what the store holds.\nfn free_function() {{}}\n\n{source}");
    let seen = observe(
        "Read",
        json!({ "file_path": "/home/dev/app/src/store.rs" }),
        json!({ "type": "text", "file": { "filePath": "/home/dev/app/src/store.rs", "content": content, "numLines": 242, "startLine": 1, "totalLines": 242 } }),
    );
    assert_eq!(seen.title, "Read src/store.rs: Store and 60 more");
    assert_eq!(seen.summary, "Read all 241 lines of src/store.rs: 60 functions, 1 type.");
    let detail = detail(&seen);
    assert!(
        detail
            .starts_with("Types: Store:1\nFunctions: free_function:4\nStore methods: save_1:7, save_2:11, "),
        "{detail}"
    );
    assert!(detail.contains("\n/// Frees what the store holds.\n"), "{detail}");
    assert!(seen.files_touched.is_empty());
    assert!((seen.title.len() + seen.summary.len() + detail.len()) * 10 <= content.len());
}

#[test]
fn text_file_is_described_by_its_headings() {
    let content = format!(
        "     1→# Guide\n     2→\n     3→## Install\n     4→Run `make_install` in scripts/setup.sh.\n{}",
        (5..80).map(|line| format!("    {line}→Some words that fill the page.\n")).collect::<String>()
    );
    let seen = observe("Read", json!({ "file_path": "/home/dev/app/docs/guide.md" }), json!(content));
    assert_eq!(seen.title, "Read docs/guide.md: Guide");
    let detail = detail(&seen);
    assert!(
        detail.contains("## Install\n")
            && detail.contains("scripts/setup.sh")
            && detail.contains("make_install"),
        "{detail}"
    );
}

#[test]
fn search_lists_files_and_lines() {
    let content = "/home/dev/app/src/a.rs:12:    handle_request(x);\n/home/dev/app/src/a.rs-13-    next();\n/home/dev/app/src/b.rs:3:fn handle_request() {\n";
    let seen = observe(
        "Grep",
        json!({ "pattern": "handle_request", "path": "/home/dev/app/src", "output_mode": "content", "-n": true, "-A": 1 }),
        json!({ "mode": "content", "numFiles": 0, "filenames": [], "content": content, "numLines": 3 }),
    );
    assert_eq!(seen.title, "Search for 'handle_request' in src: 2 hits in 2 files");
    assert_eq!(
        detail(&seen),
        "src/:\na.rs:\n12: handle_request(x);\n|     next();\nb.rs:\n3: fn handle_request() {"
    );
    let none = observe(
        "Grep",
        json!({ "pattern": "nothing" }),
        json!({ "mode": "content", "content": "No matches found", "filenames": [] }),
    );
    assert_eq!(none.title, "Search for 'nothing': no hits");
    let files = observe(
        "Grep",
        json!({ "pattern": "x", "path": "/home/dev/app" }),
        json!({ "mode": "files_with_matches", "numFiles": 2, "filenames": ["/home/dev/app/src/a.rs", "/home/dev/app/src/b.rs"] }),
    );
    assert_eq!((files.title.as_str(), detail(&files)), ("Search for 'x': 2 files", "src/: a.rs, b.rs"));
}

#[test]
fn many_hits_are_listed_by_line_number() {
    let content: String = (1..300)
        .map(|line| {
            format!(
                "src/module_{}.rs:{line}:    let some_value = other_call_{}(argument);\n",
                line % 5,
                line % 9
            )
        })
        .collect();
    let seen =
        observe("Grep", json!({ "pattern": "some_value" }), json!({ "mode": "content", "content": content }));
    assert_eq!(seen.title, "Search for 'some_value': 299 hits in 5 files");
    let detail = detail(&seen);
    assert!(detail.contains("module_1.rs: 1, 6, 11, 16"), "{detail}");
    assert!((seen.title.len() + seen.summary.len() + detail.len()) * 10 <= content.len());
}

#[test]
fn files_are_listed_by_folder() {
    let seen = observe(
        "Glob",
        json!({ "pattern": "**/*.rs" }),
        json!({ "filenames": ["/home/dev/app/src/a.rs", "/home/dev/app/src/b.rs", "/home/dev/app/build.rs"], "numFiles": 3, "truncated": false }),
    );
    assert_eq!(
        (seen.title.as_str(), detail(&seen)),
        ("List files matching '**/*.rs': 3 entries", "src/: a.rs, b.rs\nbuild.rs")
    );
}

#[test]
fn definitions_of_a_large_file_are_not_counted() {
    let content: String =
        (0..1_500).map(|index| format!("func f{index}() {{\n\twork({index})\n}}\n\n")).collect();
    let seen = observe(
        "Read",
        json!({ "file_path": "/home/dev/app/a.go" }),
        json!({ "type": "text", "file": { "filePath": "/home/dev/app/a.go", "content": content, "startLine": 1, "totalLines": 6000 } }),
    );
    assert_eq!(seen.title, "Read a.go: f0 and others");
    assert_eq!(seen.summary, "Read all 6000 lines of a.go.");
}

#[test]
fn limits_and_counts_of_a_search_are_stated() {
    let grep = |input: serde_json::Value, response: serde_json::Value| observe("Grep", input, response).title;
    let content = "src/a.ts:4:login()\nsrc/b.ts:11:login()\n";
    assert_eq!(
        grep(
            json!({ "pattern": "login" }),
            json!({ "mode": "content", "content": content, "appliedLimit": 2 })
        ),
        "Search for 'login': first 2 hits in 2 files"
    );
    assert_eq!(
        grep(
            json!({ "pattern": "login" }),
            json!({ "mode": "files_with_matches", "filenames": ["src/a.ts"], "appliedLimit": 1 })
        ),
        "Search for 'login': first 1 file"
    );
    assert_eq!(
        grep(
            json!({ "pattern": "login" }),
            json!({ "mode": "count", "content": "src/a.ts:4\nsrc/b.ts:11", "filenames": [] })
        ),
        "Search for 'login': 15 hits in 2 files"
    );
}

#[test]
fn hits_are_listed_below_their_own_folder() {
    let content = "src/a.rs:1:x()\ndocs/b.rs:2:x()\nsrc/c.rs:3:x()\ndocs/d.rs:4:x()\ne.rs:5:x()\n";
    let seen = observe("Grep", json!({ "pattern": "x" }), json!({ "mode": "content", "content": content }));
    assert_eq!(
        detail(&seen),
        "e.rs:\n5: x()\nsrc/:\na.rs:\n1: x()\nc.rs:\n3: x()\ndocs/:\nb.rs:\n2: x()\nd.rs:\n4: x()"
    );
}

#[test]
fn part_of_a_file_is_shown_from_its_start_to_its_end() {
    let body: String = (0..80).map(|line| format!("\tcall_number_{line}(argument)\n")).collect();
    let content = format!("\"fmt\"\n{body}\tlast()\n");
    let seen = observe(
        "Read",
        json!({ "file_path": "/home/dev/app/a.go", "offset": 150, "limit": 83 }),
        json!({ "type": "text", "file": { "filePath": "/home/dev/app/a.go", "content": content, "numLines": 83, "startLine": 150, "totalLines": 400 } }),
    );
    assert_eq!(seen.title, "Read a.go lines 150-232");
    let detail = detail(&seen);
    assert!(detail.starts_with("\"fmt\"\ncall_number_0(argument)\n"), "{detail}");
    assert!(detail.contains("call_number_41(argument)") && detail.contains("lines left out]"), "{detail}");
}

#[test]
fn constants_and_variables_are_shown_with_their_values() {
    let rest: String = (0..60).map(|line| format!("\nfunc f{line}() {{\n\twork()\n}}\n")).collect();
    let content = format!("package a\n\nconst maxRetries = 3\n\nvar retries int\n{rest}");
    let seen = observe(
        "Read",
        json!({ "file_path": "/home/dev/app/a.go" }),
        json!({ "type": "text", "file": { "filePath": "/home/dev/app/a.go", "content": content, "startLine": 1 } }),
    );
    assert!(seen.summary.ends_with(": 60 functions, 2 globals."), "{}", seen.summary);
    assert!(detail(&seen).starts_with("const maxRetries = 3\nvar retries int\n"), "{seen:?}");
}

#[test]
fn file_that_is_read_up_to_a_limit_is_not_called_whole() {
    let read = |limit: u32| {
        observe(
            "Read",
            json!({ "file_path": "/home/dev/app/a.txt", "limit": limit }),
            json!("     1→one\n     2→two\n"),
        )
        .summary
    };
    assert_eq!(read(2), "Read lines 1-2 of a.txt.");
    assert_eq!(read(3), "Read all 2 lines of a.txt.");
    let listed =
        observe("Glob", json!({ "pattern": "*.rs" }), json!({ "filenames": ["a.rs"], "truncated": true }));
    assert_eq!(listed.title, "List files matching '*.rs': first 1 entry");
}

#[test]
fn context_lines_are_no_hits_whatever_their_path() {
    // Claude Code makes the path relative only in lines with a colon.
    let content = "src/a.go:403:type Summary struct {\nsrc/a.go-404-\tID string `json:\"id\"`\n/home/dev/app/src/a.go-405-}\n/home/dev/app/src/a.go-406-\n--\n../lib/b.go:7:type Summary struct {\n/home/dev/lib/b.go-8-}\n";
    let seen = observe(
        "Grep",
        json!({ "pattern": "type Summary", "path": "/home/dev/app/src", "output_mode": "content", "-A": 3 }),
        json!({ "mode": "content", "numFiles": 0, "filenames": [], "content": content, "numLines": 7 }),
    );
    assert_eq!(seen.title, "Search for 'type Summary' in src: 2 hits in 2 files");
    assert!(
        detail(&seen).contains("403: type Summary struct {") && !detail(&seen).contains("404"),
        "{seen:?}"
    );
}

#[test]
fn search_that_lists_no_files_has_no_hits() {
    let seen = observe(
        "Grep",
        json!({ "pattern": "parse_header", "output_mode": "files_with_matches", "glob": "*.rs" }),
        json!({ "mode": "files_with_matches", "filenames": [], "numFiles": 0 }),
    );
    assert_eq!(seen.title, "Search for 'parse_header' in *.rs files: no hits");
    assert_eq!(seen.detail, None);
}

#[test]
fn hits_in_one_file_are_shown_with_their_text() {
    let content: String = (1..60)
        .map(|line| {
            format!("{}:func step_{line}(input *Input) error {{\n{}-\treturn nil\n", line * 10, line * 10 + 1)
        })
        .collect();
    let seen = observe(
        "Grep",
        json!({ "pattern": "^func", "path": "src/a.go", "output_mode": "content", "-A": 1 }),
        json!({ "mode": "content", "content": content, "filenames": [] }),
    );
    assert_eq!(seen.title, "Search for '^func' in src/a.go: 59 hits");
    let detail = detail(&seen);
    assert!(detail.starts_with("src/a.go:\n10: func step_1("), "{detail}");
    assert!(detail.ends_with("of 59 hits left out]") && !detail.contains("return nil"), "{detail}");
}

#[test]
fn large_script_is_described_by_its_comments() {
    let script: String = (1..60)
        .map(|step| format!("# Step {step} of the release copies files\ncp \"$FROM_{step}\" \"$TO_{step}\" && echo \"copied number {step} of all the files\"\nsleep 1\n"))
        .collect();
    let seen = observe(
        "Read",
        json!({ "file_path": "/home/dev/app/release.sh" }),
        json!({ "type": "text", "file": { "filePath": "/home/dev/app/release.sh", "content": script, "numLines": 177, "startLine": 1, "totalLines": 177 } }),
    );
    assert!(detail(&seen).starts_with("# Step 1 of the release copies files\n"), "{seen:?}");
}

fn read_go(content: &str, start: usize, total: usize) -> baton_core::observation::CompressedObservation {
    let path = "/home/dev/app/src/hooks.go";
    let lines = content.lines().count();
    observe(
        "Read",
        json!({ "file_path": path, "offset": start, "limit": lines }),
        json!({ "type": "text", "file": { "filePath": path, "content": content, "numLines": lines, "startLine": start, "totalLines": total } }),
    )
}

#[test]
fn part_of_a_function_is_not_named_after_what_follows_it() {
    let steps: String =
        (0..80).map(|n| format!("\t// Write the summary of step {n} to disk\n\tif err := write({n}); err != nil {{\n\t\treturn err\n\t}}\n")).collect();
    let seen = read_go(
        &format!("{steps}\treturn nil\n}}\n\nfunc handlePostTodo() error {{\n\treturn nil\n}}\n"),
        400,
        1_000,
    );
    assert_eq!(seen.title, "Read src/hooks.go lines 400-725");
    assert!(detail(&seen).contains("// Write the summary of step 0 to disk"), "{}", detail(&seen));
}

#[test]
fn file_is_described_by_the_comment_at_its_start() {
    let source = "// Package hooks runs the hooks of all agents.\n// It has no state.\npackage hooks\n\nfunc Run() {}\n";
    let seen = read_go(source, 1, 5);
    assert_eq!(
        seen.summary,
        "Read all 5 lines of src/hooks.go: 1 function. Says: \"Package hooks runs the hooks of all agents\"."
    );
    let seen = read_go("// Copyright 2026 The authors of this file\npackage hooks\n\nfunc Run() {}\n", 1, 4);
    assert_eq!(seen.summary, "Read all 4 lines of src/hooks.go: 1 function.");
}

#[test]
fn different_hits_and_definitions_are_shown_first() {
    let uses: String = (1..40)
        .map(|n| format!("src/a_test.go:{n}:\tif err := strategy.EnsureSetup(); err != nil {{\n"))
        .collect();
    let content = format!(
        "{uses}src/a.go:7:func (s *Auto) EnsureSetup() error {{\nsrc/b.go:9:\t// EnsureSetup is called once\n"
    );
    let seen = observe(
        "Grep",
        json!({ "pattern": "EnsureSetup", "output_mode": "content" }),
        json!({ "mode": "content", "content": content, "numLines": 41 }),
    );
    let text = detail(&seen);
    let definition = text.find("a.go:7: func (s *Auto) EnsureSetup() error {");
    let usage = text.find("a_test.go:1: if err");
    assert!(definition.is_some() && definition < usage, "{text}");
    assert!(text.contains("b.go:9: // EnsureSetup is called once"), "{text}");
    assert_eq!(text.matches("strategy.EnsureSetup()").count(), 1, "{text}");
}

#[test]
fn lines_after_a_hit_are_shown_before_lines_far_above_it() {
    let above: String = (1..80).map(|n| format!("{n}-\timported line number {n} of the file\n")).collect();
    let seen = observe(
        "Grep",
        json!({ "pattern": "TestAgent", "path": "/home/dev/app/a_test.go", "output_mode": "content", "-C": 80 }),
        json!({ "mode": "content", "content": format!("{above}80:func TestAgent(t *testing.T) {{\n81-\tstore := newStore(t)\n"), "numLines": 81 }),
    );
    assert!(
        detail(&seen).contains("80: func TestAgent(t *testing.T) {\n| \tstore := newStore(t)"),
        "{}",
        detail(&seen)
    );
}

#[test]
fn imports_are_left_out_of_a_part_of_a_file() {
    let imports = "package hooks\n\nimport (\n\t\"os\"\n\t\"example.com/app/paths\"\n)\n\n";
    let steps: String =
        (0..60).map(|n| format!("\tstore.Write({n}, \"the summary of the step\")\n")).collect();
    let seen = read_go(&format!("{imports}func Save() {{\n{steps}}}\n"), 1, 900);
    assert!(!detail(&seen).contains("example.com/app/paths"), "{}", detail(&seen));
    assert!(detail(&seen).contains("store.Write(0, "), "{}", detail(&seen));
}

#[test]
fn document_that_is_read_says_what_it_is_about() {
    let filler = "| column | other column of the table |\n".repeat(200);
    let text = format!(
        "# Wingman\n\nWingman reviews the changes of an agent after each commit.\n\n## Summary table\n\n{filler}"
    );
    let seen = observe(
        "Read",
        json!({ "file_path": "/home/dev/app/docs/wingman.md" }),
        json!({ "type": "text", "file": { "filePath": "/home/dev/app/docs/wingman.md", "content": text, "numLines": 206, "startLine": 1, "totalLines": 206 } }),
    );
    assert!(
        seen.summary.ends_with("Says: \"Wingman reviews the changes of an agent after each commit\"."),
        "{}",
        seen.summary
    );
    assert!(
        detail(&seen).contains("\nWingman reviews the changes of an agent after each commit."),
        "{}",
        detail(&seen)
    );
}

#[test]
fn omitted_context_lines_are_counted_and_texts_of_many_hits_come_first() {
    let after: String = (11..120).map(|n| format!("{n}-\tMethod{n}(argument string) error\n")).collect();
    let one = observe(
        "Grep",
        json!({ "pattern": "type Strategy", "path": "/home/dev/app/a.go", "output_mode": "content", "-A": 110 }),
        json!({ "mode": "content", "content": format!("10:type Strategy interface {{\n{after}"), "numLines": 110 }),
    );
    assert!(detail(&one).ends_with("lines left out]"), "{}", detail(&one));
    let hits: String = (1..200)
        .map(|n| format!("/home/dev/app/src/a{}.go:{n}:\tgit.PlainInit(dir{}, false)\n", n % 9, n % 3))
        .collect();
    let many = observe(
        "Grep",
        json!({ "pattern": "PlainInit", "output_mode": "content", "-n": true }),
        json!({ "mode": "content", "content": hits, "numLines": 199 }),
    );
    assert!(detail(&many).contains("git.PlainInit(dir0, false)"), "{}", detail(&many));
}

#[test]
fn definitions_of_a_part_are_not_counted() {
    let body = "\twork()\n".repeat(12);
    let seen = read_go(
        &format!("type a struct {{\n\tx int\n}}\n\nfunc one() {{\n{body}}}\n\ntype cut struct {{\n\ty int\n"),
        1,
        900,
    );
    assert_eq!(seen.title, "Read src/hooks.go lines 1-21: a and others");
    assert!(seen.summary.ends_with(" in src/hooks.go."), "{}", seen.summary);
}
