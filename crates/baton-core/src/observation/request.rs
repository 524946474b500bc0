//! Requests of users. Clients also report texts of programs as prompts; they are not requests.

/// Start of the text that Claude Code records if the user interrupts the agent.
const INTERRUPTION: &str = "[Request interrupted";
/// Starts of other texts that programs wrote.
const WRITTEN_BY_PROGRAMS: [&str; 4] =
    ["<", "Caveat:", "This session is being continued", "Operation stopped by hook"];
/// Slash commands that control the agent.
const CONTROL_COMMANDS: [&str; 14] = [
    "/clear", "/compact", "/config", "/context", "/cost", "/exit", "/help", "/login", "/logout", "/mcp",
    "/model", "/quit", "/resume", "/status",
];

/// Returns what the user asked for: a slash command with its arguments, or the text. `None` for a prompt that a program
/// wrote and for a command that controls the agent.
pub fn user_request(prompt: &str) -> Option<String> {
    let prompt = prompt.trim();
    let tagged = |tag: &str| {
        let (_, rest) = prompt.split_once(&format!("<{tag}>"))?;
        rest.split_once(&format!("</{tag}>")).map(|(text, _)| text.trim())
    };
    let request = match tagged("command-name").filter(|_| prompt.starts_with('<')) {
        Some(command) => {
            format!("{command} {}", tagged("command-args").unwrap_or_default()).trim().to_owned()
        }
        None => prompt.to_owned(),
    };
    let is_by_program = WRITTEN_BY_PROGRAMS.iter().any(|start| request.starts_with(start));
    let first_word = request.split_whitespace().next().unwrap_or_default();
    let is_request = !first_word.is_empty()
        && !is_by_program
        && !is_interruption(&request)
        && !CONTROL_COMMANDS.contains(&first_word);
    is_request.then_some(request)
}

/// Returns true if a request describes a task: it is neither a short question nor a few words that refer to what was said
/// before.
pub fn is_task(request: &str) -> bool {
    let words = request.split_whitespace().count();
    let is_command = request.starts_with('/') && words > 1;
    words >= 10 || words >= 5 && !request.trim_end().ends_with('?') || is_command
}

/// Words of requests that only agree, thank, or tell the agent to go on.
const CONSENT: [&str; 40] = [
    "yes", "yeah", "yep", "yup", "y", "ok", "okay", "k", "sure", "go", "ahead", "on", "for", "it", "do",
    "that", "this", "please", "thanks", "thank", "you", "continue", "proceed", "sounds", "looks", "good",
    "great", "perfect", "nice", "cool", "right", "correct", "exactly", "agreed", "lgtm", "fine", "alright",
    "to", "me", "awesome",
];

/// Returns true if a request only agrees to what the agent proposed, chooses an option by its number, thanks the agent, or
/// tells it to go on.
pub fn is_consent(request: &str) -> bool {
    let mut words =
        request.split(|letter: char| !letter.is_alphanumeric()).filter(|word| !word.is_empty()).peekable();
    let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
    words.peek().is_some()
        && words.all(|word| is_number(word) || CONSENT.iter().any(|known| word.eq_ignore_ascii_case(known)))
}

/// Removes the lines that a user quoted with `>` from a request, unless there are no others.
pub(super) fn without_quoted_lines(request: String) -> String {
    let is_own = |line: &&str| !line.trim_start().starts_with('>');
    if request.lines().all(|line| is_own(&line)) {
        return request;
    }
    let own = request.lines().filter(is_own).collect::<Vec<_>>().join("\n");
    if own.trim().is_empty() { request } else { own.trim().to_owned() }
}

/// Returns true if a prompt is the note of Claude Code that the user interrupted the agent.
pub fn is_interruption(prompt: &str) -> bool {
    prompt.trim_start().starts_with(INTERRUPTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_programs_and_control_commands_are_not_requests() {
        for prompt in [
            "",
            " ",
            "/exit",
            "<command-name>/clear</command-name>\n<command-args></command-args>",
            "<command-name>/compact</command-name> <command-args>for a review</command-args>",
            "<local-command-stdout>Bye!</local-command-stdout>",
            "[Request interrupted by user for tool use]",
            "Operation stopped by hook: Another session is active",
            "This session is being continued from a previous conversation that ran out of context.",
        ] {
            assert_eq!(user_request(prompt), None, "{prompt}");
        }
        assert_eq!(user_request(" Fix it. ").as_deref(), Some("Fix it."));
        assert_eq!(
            user_request("/review the open pull request").as_deref(),
            Some("/review the open pull request")
        );
        let tagged = "<command-message>review</command-message>\n<command-name>/review</command-name>\n\
                      <command-args>PR 7</command-args>";
        assert_eq!(user_request(tagged).as_deref(), Some("/review PR 7"));
    }

    #[test]
    fn agreement_and_thanks_are_consent_and_short_requests_are_not() {
        for consent in
            ["yes", "Yes, go for it!", "ok thanks", "looks good to me", "go ahead", "continue please", "2"]
        {
            assert!(is_consent(consent), "{consent}");
        }
        for request in [
            "",
            "commit it",
            "lint fail",
            "merge conflicts...",
            "yes, but keep the old name",
            "why?",
            "let's do 1",
        ] {
            assert!(!is_consent(request), "{request}");
        }
    }

    #[test]
    fn quoted_lines_are_removed_from_requests() {
        let own = |request: &str| without_quoted_lines(request.to_owned());
        assert_eq!(own("> it defaults to main\n\nIs this the gap?\n> really"), "Is this the gap?");
        assert_eq!(own("> only a quote"), "> only a quote");
        assert_eq!(own("a -> b\nc > d"), "a -> b\nc > d");
    }
}
