use super::*;

fn phrases(command: &str) -> Vec<String> {
    CommandLine::read(command).main_steps().iter().map(|step| step.phrase()).collect()
}

#[test]
fn most_relevant_step_is_described() {
    assert_eq!(phrases("cd /x && RUST_LOG=1 cargo test -p app 2>&1 | tail -5"), ["Run cargo test -p app"]);
    assert_eq!(phrases("mise run fmt && mise run lint 2>&1"), ["Run mise run fmt", "Run mise run lint"]);
    assert_eq!(phrases("echo hi; cat a.txt b.txt"), ["Show file a.txt and b.txt"]);
    assert_eq!(phrases("head -n 5 a.txt b.txt"), ["Show head of a.txt and b.txt"]);
    assert_eq!(phrases("wc -l a.txt"), ["Show wc of a.txt"]);
    assert_eq!(phrases("rg -n 'foo bar' src | head"), ["Search for 'foo bar' in src"]);
    assert_eq!(phrases("grep -rnA 3 --include '*.go' foo src"), ["Search for 'foo' in src"]);
    assert_eq!(phrases("rg -e foo -g '*.rs' src"), ["Search for 'foo' in src"]);
    assert_eq!(phrases("go test -race -run TestX ./..."), ["Run go test -run TestX ./..."]);
    assert!(phrases("").is_empty());
}

#[test]
fn here_documents_are_separated() {
    let line =
        CommandLine::read("git commit -m \"$(cat <<'EOF'\nSubject's line\n\nBody\nEOF\n)\" && git push");
    assert_eq!(line.documents, ["Subject's line\n\nBody"]);
    assert_eq!(line.steps.last().unwrap().words, ["git", "push"]);
}

#[test]
fn a_pipe_or_a_later_step_hides_the_status() {
    for (command, hides) in [
        ("cargo test", false),
        ("cd x && cargo test 2>&1", false),
        ("echo start; cargo test", false),
        ("cargo test 2>&1 | tail -5", true),
        ("set -o pipefail; cargo test | tail -5", false),
        ("cargo test; echo done", true),
        ("cargo test || true", true),
        ("cargo fmt &&\n cargo test", false),
        ("cargo test\n", false),
    ] {
        assert_eq!(CommandLine::read(command).hides_status(), hides, "{command}");
    }
}

#[test]
fn output_is_complete_only_if_it_is_shorter_than_the_limit() {
    for (filter, shown) in [
        ("tail -n 20", Shown::All),
        ("tail -20", Shown::All),
        ("tail -n 2", Shown::End),
        ("tail -n +100", Shown::End),
        ("tail -n+100", Shown::End),
        ("tail +100", Shown::End),
        ("tail -c 100", Shown::End),
        ("head", Shown::All),
        ("head -n -5", Shown::Selected),
    ] {
        let line = CommandLine::read(&format!("cargo test | {filter}"));
        assert_eq!(line.shown_output("one\ntwo\n"), shown, "{filter}");
    }
}

#[test]
fn a_redirect_target_may_be_quoted() {
    for (command, target) in [
        ("echo hi > \"a b.txt\"; rm x", "a b.txt"),
        ("echo hi >'a;b.txt'; rm x", "a;b.txt"),
        ("echo hi > \"$HOME/my notes\"/a.txt; rm x", "$HOME/my notes/a.txt"),
        (r"echo hi >> a\ b.txt && rm x", "a b.txt"),
        (r#"echo hi > "a \"b\".txt"; rm x"#, "a \"b\".txt"),
        ("echo hi >a.txt& rm x", "a.txt"),
    ] {
        let line = CommandLine::read(command);
        assert_eq!(line.steps.len(), 2, "{command}: {:?}", line.steps);
        assert_eq!(line.steps[0].writes_to, [target], "{command}");
        assert_eq!(line.steps[1].words, ["rm", "x"], "{command}");
    }
}

#[test]
fn options_before_the_verb_of_git_are_left_out() {
    let line = CommandLine::read("git -C /x -c a=b --no-pager log -1 && git --git-dir=/y rm old.rs");
    assert_eq!(line.steps[0].words, ["git", "log", "-1"]);
    assert!(line.steps.iter().flat_map(Step::changed_files).next().is_none());
}

#[test]
fn changed_files_are_read_from_the_words() {
    let line = CommandLine::read(
        "cat <<EOF > out/a.txt\nx\nEOF\nsed -i 's/a/b/' src/a.rs; rm -f old.rs *.tmp; ls > /dev/null 2>&1",
    );
    let files: Vec<&str> = line.steps.iter().flat_map(Step::changed_files).collect();
    assert_eq!(files, ["out/a.txt", "src/a.rs", "old.rs"]);
}
