use super::*;

/// Returns every visible command with its full name, for example `baton session start`.
fn commands() -> Vec<(String, clap::Command)> {
    let mut found = Vec::new();
    let mut remaining = vec![("baton".to_owned(), documented_command())];
    while let Some((name, command)) = remaining.pop() {
        for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set() && verb.get_name() != "help")
        {
            remaining.push((format!("{name} {}", verb.get_name()), verb.clone()));
        }
        found.push((name, command));
    }
    found
}

#[test]
fn man_writes_a_page_for_every_command() {
    let folder = tempfile::tempdir().unwrap();
    let cli = Cli::try_parse_from(["baton", "man", folder.path().to_str().unwrap()]).unwrap();
    dispatch(cli).unwrap();
    for (name, command) in commands() {
        let page =
            std::fs::read_to_string(folder.path().join(format!("{}.1", name.replace(' ', "-")))).unwrap();
        let about = command.get_about().unwrap().to_string();
        let first = about.split(['-', '\'', '.']).next().unwrap();
        assert!(page.contains(first), "the page of `{name}` lacks its description");
        assert_eq!(page.contains("data\\-dir"), name == "baton", "global options in the page of `{name}`");
    }
}

/// Returns the `baton` commands that a help text shows, as words; everything after a pipe, redirection or comment is cut.
fn examples(help: &str) -> Vec<Vec<String>> {
    let joined = help.replace("\\\n", " ");
    let commands = joined.lines().filter_map(|line| line.trim_start().strip_prefix("$ "));
    commands.filter_map(|line| line.find("baton ").map(|at| words(&line[at..]))).collect()
}

/// Splits a shell command into words, with quotes but without expansions.
fn words(command: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for character in command.chars() {
        match (quote, character) {
            (None, '\'' | '"') => quote = Some(character),
            (Some(open), _) if character == open => quote = None,
            (None, ' ') => words.push(String::new()),
            (None, '|' | '<' | '>' | '#' | ')') => break,
            _ => words.last_mut().unwrap().push(character),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn help_of_every_group_and_verb_has_an_example_that_parses() {
    for (name, command) in commands() {
        let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
        let examples = examples(&help);
        assert!(!examples.is_empty(), "the help of `{name}` has no example");
        for example in examples {
            if example[1] != "hook" {
                Cli::try_parse_from(&example).unwrap_or_else(|error| panic!("{example:?}: {error}"));
            }
        }
    }
}
