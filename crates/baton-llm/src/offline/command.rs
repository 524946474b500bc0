//! Command lines: the programs that they run, the most relevant of them, and a description in words.
//!
//! Splits command lines as far as descriptions need it. Respects quoting; does not expand variables.

use baton_core::{is_any, shorten, starts_with_any};

use super::text::{head, one_line};

/// Maximum number of bytes of a command that are examined.
const MAX_COMMAND_BYTES: usize = 16_000;
/// Maximum number of steps that are examined.
const MAX_STEPS: usize = 40;

/// A parsed command line.
#[derive(Debug, Default)]
pub(super) struct CommandLine {
    pub(super) steps: Vec<Step>,
    /// Content of here-documents.
    pub(super) documents: Vec<String>,
}

/// One program and its arguments.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Step {
    pub(super) words: Vec<String>,
    /// Whether the step reads the output of the previous step.
    pub(super) is_filter: bool,
    /// Whether the step may run after the previous step failed: after `;`, a line end, `||` or `&`.
    pub(super) is_independent: bool,
    /// Whether the step works in another folder: `git -C folder`.
    pub(super) is_elsewhere: bool,
    /// Files to which the output of the step is redirected.
    pub(super) writes_to: Vec<String>,
}

/// Purpose of a step, in increasing order of relevance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Purpose {
    /// Has no effect of interest: `cd`, `echo`.
    Setup,
    /// Reads something: `cat`, `ls`, `git status`.
    Inspect,
    /// Creates, moves or deletes files, usually in support of another step: `rm`, `mkdir`.
    FileOperation,
    /// Anything else.
    Other,
    /// Changes sources or history: `git commit`, `sed -i`.
    Change,
    /// Builds, lints or formats.
    Check,
    /// Runs tests.
    Test,
}

/// The part of an output that filters such as `tail` and `grep` leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Shown {
    All,
    End,
    /// The beginning, or lines from anywhere.
    Selected,
}

impl CommandLine {
    pub(super) fn read(command: &str) -> Self {
        let (command, documents) = without_documents(head(command, MAX_COMMAND_BYTES));
        Self { steps: split(&command), documents }
    }

    /// Returns the most relevant steps, without filters.
    pub(super) fn main_steps(&self) -> Vec<&Step> {
        let steps = || self.steps.iter().filter(|step| !step.is_filter);
        let Some(most) = steps().map(Step::purpose).max() else { return Vec::new() };
        let floor = if most >= Purpose::Check { Purpose::Check } else { most };
        steps().filter(|step| step.purpose() >= floor).collect()
    }

    /// Whether the exit status says nothing about a main step: a filter or an independent step comes after it.
    pub(super) fn hides_status(&self) -> bool {
        let main = self.main_steps();
        let Some(first) = self.steps.iter().position(|step| main.first().is_some_and(|main| *main == step))
        else {
            return false;
        };
        let keeps_failures = self.steps.iter().any(|step| step.has("pipefail"));
        self.steps.iter().skip(first + 1).any(|step| step.is_filter && !keeps_failures || step.is_independent)
    }

    /// Which part of the output of the main steps is shown.
    pub(super) fn shown_output(&self, output: &str) -> Shown {
        let lines = output.lines().count();
        let main = self.main_steps();
        let filters = self.steps.iter().skip_while(|step| !main.contains(step)).filter(|step| step.is_filter);
        let shown = |step: &Step| match step.program() {
            "tee" | "cat" => Shown::All,
            "head" | "tail" if step.line_limit().is_some_and(|limit| lines < limit) => Shown::All,
            "tail" => Shown::End,
            _ => Shown::Selected,
        };
        filters.map(shown).max().unwrap_or(Shown::All)
    }

    /// Whether the command ends with a search, whose status 1 means that there was no match.
    pub(super) fn ends_with_search(&self) -> bool {
        self.steps.last().is_some_and(|step| matches!(step.program(), "grep" | "egrep" | "rg" | "ag"))
    }
}

impl Step {
    pub(super) fn program(&self) -> &str {
        self.words.first().map_or("", |word| word.rsplit('/').next().unwrap_or(word))
    }

    /// Whether one of its words is in a list: `--hard|--soft`.
    pub(super) fn has(&self, words: &str) -> bool {
        self.words.iter().any(|word| is_any(word, words))
    }

    /// Returns the verb of git: `commit`. `None` for other programs.
    pub(super) fn git_verb(&self) -> Option<&str> {
        self.arguments().next().filter(|_| self.program() == "git")
    }

    /// Returns the words after the program that are not flags.
    pub(super) fn arguments(&self) -> impl Iterator<Item = &str> {
        self.words
            .iter()
            .skip(1)
            .map(String::as_str)
            .filter(|word| !word.starts_with('-') && !word.is_empty())
    }

    /// Returns the number of lines that `head` or `tail` prints: `-20`, `-n 20` or `-n20`. `None` if its limit is not a
    /// number of lines: `tail -n +20` skips lines.
    pub(super) fn line_limit(&self) -> Option<usize> {
        let mut flags = self.words.iter().skip(1).filter(|word| word.starts_with(['-', '+']));
        let Some(flag) = flags.next() else { return Some(10) };
        let number = match flag.trim_start_matches('-').trim_start_matches('n') {
            "" => self.flag(&["-n"])?,
            number => number,
        };
        number.parse().ok().filter(|_| !number.starts_with('+'))
    }

    /// Returns the pattern of `grep`, `rg` or `ag` and the places that are searched, without the values of flags.
    pub(super) fn pattern_and_places(&self) -> Option<(&str, Vec<&str>)> {
        const WITH_VALUE: &str = "-f|-g|-t|-T|-d|-j|--include|--exclude|--exclude-dir|--glob|--type|\
            --type-not|--context|--after-context|--before-context|--max-count";
        let mut given = None;
        let mut others = Vec::new();
        let mut words = self.words.iter().skip(1).map(String::as_str).peekable();
        while let Some(word) = words.next() {
            if matches!(word, "-e" | "--regexp") {
                given = given.or(words.next());
            } else if is_any(word, WITH_VALUE) {
                words.next();
            } else if word.starts_with('-') && word.len() > 1 {
                // `-A 3`, `-rnC 2`
                let is_number = |next: &&str| next.bytes().all(|byte| byte.is_ascii_digit());
                if !word.starts_with("--") && word.ends_with(['A', 'B', 'C', 'm']) {
                    words.next_if(is_number);
                }
            } else if !word.is_empty() {
                others.push(word);
            }
        }
        let pattern = given.or_else(|| (!others.is_empty()).then(|| others.remove(0)))?;
        Some((pattern, others))
    }

    /// Returns the value of a flag: of `-m text`, `--message text` or `--message=text`.
    pub(super) fn flag(&self, names: &[&str]) -> Option<&str> {
        self.flags(names).first().copied()
    }

    /// Returns the values of a flag that may be given more than once.
    pub(super) fn flags(&self, names: &[&str]) -> Vec<&str> {
        let value = |(index, word): (usize, &'_ String)| {
            if names.contains(&word.as_str()) {
                return self.words.get(index + 1).map(String::as_str);
            }
            let (name, value) = self.words.get(index)?.split_once('=')?;
            names.contains(&name).then_some(value)
        };
        self.words.iter().enumerate().filter_map(value).collect()
    }

    pub(super) fn purpose(&self) -> Purpose {
        const TESTS: &str = "test|tests|nextest|pytest|jest|vitest|unittest|check-tests";
        const CHECKS: &str =
            "build|check|clippy|lint|vet|fmt|format|tsc|typecheck|compile|doc|eslint|ruff|mypy";
        let first = self.arguments().next().unwrap_or_default();
        let all = || self.words.iter().skip(1).map(String::as_str);
        let is_test = |word: &str| {
            is_any(word, TESTS)
                || starts_with_any(word, "test:|test-")
                || self.program() == "node" && word == "--test"
        };
        match self.program() {
            "cd" | "echo" | "export" | "set" | "source" | "." | "sleep" | "true" | "pushd" | "popd"
            | "printf" | "unset" | "wait" | "fi" | "done" | "if" | "then" | "else" | "for" | "do"
            | "while" | "" => Purpose::Setup,
            "pytest" | "jest" | "vitest" | "nextest" | "tox" | "rspec" | "phpunit" | "ctest" | "mocha" => {
                Purpose::Test
            }
            "cargo" | "go" | "npm" | "pnpm" | "yarn" | "bun" | "make" | "just" | "mise" | "task"
            | "gradle" | "gradlew" | "mvn" | "mvnw" | "dotnet" | "deno" | "swift" | "npx" | "uv"
            | "poetry" | "python" | "python3" | "node" | "rake" | "bazel" | "mix" => {
                if all().any(is_test) {
                    Purpose::Test
                } else if all().any(|word| is_any(word.split(':').next().unwrap_or(word), CHECKS)) {
                    Purpose::Check
                } else {
                    Purpose::Other
                }
            }
            "tsc" | "eslint" | "ruff" | "mypy" | "golangci-lint" | "gofmt" | "rustfmt" | "prettier"
            | "black" | "shellcheck" | "flake8" | "pylint" | "biome" | "gcc" | "clang" | "rustc"
            | "javac" => Purpose::Check,
            "git" => match first {
                "status" | "diff" | "log" | "show" | "branch" | "blame" | "rev-parse" | "remote"
                | "ls-files" | "merge-base" | "grep" | "describe" | "config" | "reflog" | "cat-file"
                | "ls-tree" | "worktree" | "fsck" | "ls-remote" | "shortlog" | "for-each-ref"
                | "verify-pack" | "count-objects" | "check-ignore" | "show-ref" | "rev-list" => {
                    Purpose::Inspect
                }
                _ => Purpose::Change,
            },
            "rm" | "mv" | "cp" | "mkdir" | "touch" | "ln" | "chmod" | "chown" | "tee" | "patch" => {
                Purpose::FileOperation
            }
            "sed" if all().any(|word| word.starts_with("-i")) => Purpose::Change,
            "cat" | "head" | "tail" | "sed" | "less" | "nl" | "bat" | "ls" | "tree" | "find" | "fd"
            | "grep" | "rg" | "ag" | "wc" | "jq" | "awk" | "which" | "file" | "stat" | "du" | "df" | "ps"
            | "env" | "pwd" | "sort" | "diff" => Purpose::Inspect,
            _ => Purpose::Other,
        }
    }

    /// Describes the step in words.
    pub(super) fn phrase(&self) -> String {
        let arguments: Vec<&str> = self.arguments().collect();
        let first = arguments.first().copied().unwrap_or_default();
        let last = arguments.last().copied().unwrap_or_default();
        match self.program() {
            "cat" | "bat" | "less" | "nl" => format!("Show file {}", first_arguments(&arguments)),
            "head" | "tail" | "wc" | "stat" | "file" => {
                let value = self.flag(&["-n", "-c"]);
                let files: Vec<&str> = arguments.into_iter().filter(|word| Some(*word) != value).collect();
                format!("Show {} of {}", self.program(), first_arguments(&files))
            }
            "sed" if self.purpose() == Purpose::Inspect => format!("Show part of {}", one_line(last, 60)),
            "sed" => format!("Replace text in {}", first_arguments(arguments.get(1..).unwrap_or_default())),
            "ls" | "tree" if first.is_empty() => "List current folder".into(),
            "ls" | "tree" => format!("List folder {}", first_arguments(&arguments)),
            "find" | "fd" => {
                let named = self
                    .flag(&["-name", "-iname", "-path"])
                    .map(|name| format!(" named '{name}'"))
                    .unwrap_or_default();
                format!("Find files{named} in {}", if first.is_empty() { "." } else { first })
            }
            "grep" | "rg" | "ag" => match self.pattern_and_places() {
                None => "Search with grep".into(),
                Some((pattern, places)) if places.is_empty() => {
                    format!("Search for '{}'", one_line(pattern, 50))
                }
                Some((pattern, places)) => {
                    format!("Search for '{}' in {}", one_line(pattern, 50), first_arguments(&places))
                }
            },
            "rm" => format!("Delete path {}", first_arguments(&arguments)),
            program @ ("mv" | "cp") => {
                let verb = if program == "mv" { "Move" } else { "Copy" };
                let sources = arguments.split_last().map_or([].as_slice(), |(_, sources)| sources);
                format!("{verb} {} to {}", first_arguments(sources), one_line(last, 60))
            }
            "mkdir" => format!("Create folder {}", first_arguments(&arguments)),
            "touch" => format!("Create file {}", first_arguments(&arguments)),
            "curl" | "wget" => {
                let url = arguments.iter().find(|word| word.contains("://")).copied().unwrap_or(last);
                format!("Fetch {}", one_line(url, 80))
            }
            "python" | "python3" | "node" | "ruby" | "perl" | "deno" | "bun"
                if self.words.len() == 1
                    || self.words.get(1).is_some_and(|word| word == "-")
                    || self.flag(&["-c", "-e"]).is_some() =>
            {
                format!("Run inline {} code", self.program())
            }
            _ if self.words.len() == 1 => format!("Run command {}", self.short()),
            _ => format!("Run {}", self.short()),
        }
    }

    /// Returns the program and its words, without flags. A flag before a word is kept, because the word may be its value,
    /// and so are long flags if there is no other word: `node --test`.
    pub(super) fn short(&self) -> String {
        let is_flag = |word: &String| word.starts_with('-');
        let has_words = self.arguments().next().is_some();
        let mut words: Vec<String> = vec![self.program().to_owned()];
        for (index, word) in self.words.iter().enumerate().skip(1) {
            let may_have_value = || {
                word != "--"
                    && !word.contains('=')
                    && self.words.get(index + 1).is_some_and(|next| !is_flag(next))
            };
            if !is_flag(word) || may_have_value() || !has_words && word.starts_with("--") {
                words.push(shorten(word.lines().next().unwrap_or_default(), 48));
            }
            if words.len() >= 7 {
                break;
            }
        }
        words.join(" ")
    }

    /// Whether the step prints only faults and exits with 0 even if there are some: `gofmt -l`, `gofmt -d`.
    pub(super) fn prints_only_faults(&self) -> bool {
        matches!(self.program(), "gofmt" | "goimports" | "gofumpt") && self.has("-l|-d")
    }

    /// Whether the step passes on only the lines that match a pattern.
    pub(super) fn is_line_filter(&self) -> bool {
        self.is_filter && matches!(self.program(), "grep" | "egrep" | "rg" | "ag")
    }

    /// Returns the files that the step changes, as far as its words show. Patterns and variables are omitted.
    pub(super) fn changed_files(&self) -> Vec<&str> {
        let arguments: Vec<&str> = self.arguments().collect();
        let first = arguments.first().copied().unwrap_or_default();
        let mut files: Vec<&str> = self.writes_to.iter().map(String::as_str).collect();
        match self.program() {
            "git" if self.is_elsewhere => {}
            "rm" | "mv" | "touch" | "tee" => files.extend(&arguments),
            "cp" => files.extend(arguments.last()),
            "sed" if self.purpose() == Purpose::Change => files.extend(arguments.iter().skip(1)),
            "git" if matches!(first, "rm" | "mv") => files.extend(arguments.iter().skip(1)),
            _ => {}
        }
        files
            .retain(|file| !file.contains(['*', '$', '?', '`', '{', '&', '~']) && !file.starts_with("/dev/"));
        files
    }
}

/// Formats a few arguments and the number of the others.
fn first_arguments(arguments: &[&str]) -> String {
    match arguments {
        [] => "files".into(),
        [one] => one_line(one, 70),
        [one, two] => format!("{} and {}", one_line(one, 60), one_line(two, 60)),
        [one, rest @ ..] => format!("{} and {} more", one_line(one, 60), rest.len()),
    }
}

/// Removes here-documents from a command.
fn without_documents(command: &str) -> (String, Vec<String>) {
    let mut kept = String::with_capacity(command.len());
    let mut documents = Vec::new();
    let mut lines = command.lines();
    while let Some(line) = lines.next() {
        kept.push_str(line);
        kept.push('\n');
        let Some((_, rest)) = line.split_once("<<").filter(|(_, rest)| !rest.starts_with('<')) else {
            continue;
        };
        let word: String = rest
            .trim_start_matches(['-', ' ', '\'', '"', '\\'])
            .chars()
            .take_while(|letter| letter.is_alphanumeric() || *letter == '_')
            .collect();
        if word.is_empty() || word.starts_with(|letter: char| letter.is_ascii_digit()) {
            continue;
        }
        let body: Vec<&str> = lines.by_ref().take_while(|line| line.trim() != word).collect();
        documents.push(body.join("\n"));
    }
    (kept, documents)
}

/// Splits a command into its steps.
fn split(command: &str) -> Vec<Step> {
    let mut steps = Vec::new();
    let mut step = Step::default();
    let mut word = String::new();
    let mut quote: Option<char> = None;
    // A quoted word is kept even if it is empty.
    let mut is_quoted = false;
    let mut letters = command.chars().peekable();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some('"'), '\\') => word.extend(letters.next()),
            (Some(_), _) => word.push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                is_quoted = true;
            }
            (None, '\\') => {
                if let Some(next) = letters.next().filter(|next| *next != '\n') {
                    word.push(next);
                }
            }
            (None, '>') => {
                letters.next_if_eq(&'>');
                // The digits directly before `>` are a file descriptor.
                if !word.bytes().all(|byte| byte.is_ascii_digit() || byte == b'&') {
                    step.words.push(std::mem::take(&mut word));
                }
                word.clear();
                is_quoted = false;
                if let Some(target) = redirect_target(&mut letters) {
                    step.writes_to.push(target);
                }
            }
            (None, '#') if word.is_empty() && !is_quoted => {
                while letters.next_if(|next| *next != '\n').is_some() {}
            }
            (None, ';' | '\n' | '|' | '&') => {
                let is_pipe = letter == '|' && letters.next_if_eq(&'|').is_none();
                let is_and = letter == '&' && letters.next_if_eq(&'&').is_some();
                finish_word(&mut step, &mut word, &mut is_quoted);
                let is_end = finish_step(&mut steps, &mut step);
                step.is_filter = is_pipe && !steps.is_empty();
                // Empty lines and a line end after `&&` or `|` change nothing.
                step.is_independent = if is_end { !is_pipe && !is_and } else { step.is_independent };
                if steps.len() >= MAX_STEPS {
                    return steps;
                }
            }
            (None, '(' | ')') if word.is_empty() && !is_quoted => {}
            (None, _) if letter.is_whitespace() => finish_word(&mut step, &mut word, &mut is_quoted),
            (None, _) => word.push(letter),
        }
    }
    finish_word(&mut step, &mut word, &mut is_quoted);
    finish_step(&mut steps, &mut step);
    steps
}

/// Reads the file name after `>`, of which all or a part may be quoted. Returns `None` for a file descriptor.
fn redirect_target(letters: &mut std::iter::Peekable<std::str::Chars<'_>>) -> Option<String> {
    while letters.next_if(|letter| *letter == ' ').is_some() {}
    let mut target = String::new();
    let mut quote: Option<char> = None;
    while let Some(letter) = letters.next_if(|letter| {
        let ends_target = match letter {
            // `&1` is a file descriptor; a later `&` ends the command.
            '&' => !target.is_empty(),
            ';' | '|' | ')' => true,
            _ => letter.is_whitespace(),
        };
        quote.is_some() || !ends_target
    }) {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (None | Some('"'), '\\') => target.extend(letters.next()),
            (None, '\'' | '"') => quote = Some(letter),
            _ => target.push(letter),
        }
    }
    (!target.is_empty() && !target.starts_with('&')).then_some(target)
}

fn finish_word(step: &mut Step, word: &mut String, is_quoted: &mut bool) {
    if !word.is_empty() || *is_quoted {
        step.words.push(std::mem::take(word));
    }
    *is_quoted = false;
}

/// Ends a step and removes variables, `sudo` and similar words before its program. Returns false if the step is empty.
fn finish_step(steps: &mut Vec<Step>, step: &mut Step) -> bool {
    let mut finished = std::mem::take(step);
    let is_prefix = |word: &String| {
        let assigns = word.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
        });
        assigns
            || matches!(
                word.as_str(),
                "sudo" | "time" | "nohup" | "env" | "command" | "exec" | "nice" | "{" | "!" | "then" | "do"
            )
    };
    let start = finished.words.iter().take_while(|word| is_prefix(word)).count();
    finished.words.drain(..start);
    if finished.program() == "timeout" {
        finished.words.drain(..2.min(finished.words.len()));
    }
    if finished.program() == "git" {
        remove_git_options(&mut finished);
    }
    let is_step = !finished.words.is_empty() || !finished.writes_to.is_empty();
    if is_step {
        steps.push(finished);
    } else {
        step.is_independent = finished.is_independent;
    }
    is_step
}

/// Removes the options between `git` and its verb.
fn remove_git_options(step: &mut Step) {
    while let Some(option) = step.words.get(1).filter(|word| word.starts_with('-')) {
        let has_value = matches!(option.as_str(), "-C" | "-c" | "--git-dir" | "--work-tree");
        step.is_elsewhere |= option.starts_with("-C") || option.starts_with("--git-dir");
        step.words.drain(1..(2 + usize::from(has_value)).min(step.words.len()));
    }
}

#[cfg(test)]
#[path = "command_tests.rs"]
mod tests;
