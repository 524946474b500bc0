//! What a user asked for: hosts also report texts as prompts that programs wrote.

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
    let is_written = WRITTEN_BY_PROGRAMS.iter().any(|start| request.starts_with(start));
    let first = request.split_whitespace().next().unwrap_or_default();
    let is_request =
        !first.is_empty() && !is_written && !is_interruption(&request) && !CONTROL_COMMANDS.contains(&first);
    is_request.then_some(request)
}

/// Returns true if a request describes a task: it is neither a short question nor a few words that refer to what was said
/// before.
pub fn is_task(request: &str) -> bool {
    let words = request.split_whitespace().count();
    let is_command = request.starts_with('/') && words > 1;
    words >= 10 || words >= 5 && !request.trim_end().ends_with('?') || is_command
}

/// Returns true if a prompt is the note of Claude Code that the user interrupted the agent.
pub fn is_interruption(prompt: &str) -> bool {
    prompt.trim_start().starts_with(INTERRUPTION)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_programs_and_control_commands_are_no_requests() {
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
}
