//! The transcripts that clients keep of chats: their folders, and the closing message of a turn.
//!
//! The path of a transcript comes from a hook report. Only regular files of this user in the transcript folder of a known client are read,
//! and only their end.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use baton_app::TurnPeriod;
use baton_core::Timestamp;
use baton_observation::transcript::{TranscriptFormat, TranscriptParser};
use serde_json::Value;

/// Number of bytes that are read from the end of a transcript.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// Returns the folder in which a client stores its chats.
pub(crate) fn transcript_folder(format: TranscriptFormat) -> Option<PathBuf> {
    let (variable, folder, below) = match format {
        TranscriptFormat::ClaudeCode => ("CLAUDE_CONFIG_DIR", ".claude", "projects"),
        TranscriptFormat::Codex => ("CODEX_HOME", ".codex", "sessions"),
        TranscriptFormat::Gemini => ("GEMINI_CLI_HOME", "", ".gemini/tmp"),
        TranscriptFormat::OpenCode => ("XDG_DATA_HOME", ".local/share", "opencode"),
        TranscriptFormat::Cursor if cfg!(target_os = "macos") => {
            ("", "Library/Application Support", "Cursor/User")
        }
        TranscriptFormat::Cursor => ("XDG_CONFIG_HOME", ".config", "Cursor/User"),
    };
    let given = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let home = given(variable).or_else(|| Some(given("HOME")?.join(folder)))?;
    Some(home.join(below))
}

/// Returns the last text of the agent in a period of a transcript; `None` if there is none.
///
/// # Errors
///
/// Why the file is not read: it is missing, belongs to another user, or is not in the transcript folder of a client.
pub(crate) fn read_closing(path: &Path, period: TurnPeriod) -> Result<Option<String>, String> {
    let real = path.canonicalize().map_err(|error| format!("cannot read the transcript: {error}"))?;
    let formats = [TranscriptFormat::ClaudeCode, TranscriptFormat::Codex];
    let is_inside = |format: &TranscriptFormat| {
        transcript_folder(*format)
            .and_then(|folder| folder.canonicalize().ok())
            .is_some_and(|folder| real.starts_with(folder))
    };
    let format = formats
        .into_iter()
        .find(is_inside)
        .ok_or_else(|| "the transcript is not in the transcript folder of a known client".to_owned())?;
    let mut file = File::open(&real).map_err(|error| format!("cannot open the transcript: {error}"))?;
    let metadata = file.metadata().map_err(|error| format!("cannot read the transcript: {error}"))?;
    if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
        return Err("the transcript is not a regular file of this user".to_owned());
    }
    let start = metadata.len().saturating_sub(MAX_BYTES);
    file.seek(SeekFrom::Start(start)).map_err(|error| format!("cannot read the transcript: {error}"))?;
    Ok(last_text(BufReader::new(file.take(MAX_BYTES)), start > 0, format, period))
}

/// Returns the last closing message in a period. Lines that are cut off or not JSON are skipped.
fn last_text(
    lines: impl BufRead,
    starts_within_a_line: bool,
    format: TranscriptFormat,
    period: TurnPeriod,
) -> Option<String> {
    let mut parser = TranscriptParser::new(format);
    for line in lines.split(b'\n').skip(usize::from(starts_within_a_line)).map_while(Result::ok) {
        if let Ok(line) = serde_json::from_slice::<Value>(&line) {
            parser.line(&line);
        }
    }
    parser.finish();
    let closed = |report: &Value| {
        let at: Timestamp = report["reported_at"].as_str()?.parse().ok()?;
        let is_in_period = at >= period.from && period.until.is_none_or(|until| at <= until);
        is_in_period.then(|| report["last_assistant_message"].as_str().map(str::to_owned))?
    };
    parser.take_reports().iter().rev().find_map(closed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn said(at: &str, text: &str) -> String {
        let content = json!([{ "type": "text", "text": text }]);
        json!({
            "type": "assistant", "timestamp": at, "sessionId": "chat",
            "message": { "role": "assistant", "content": content },
        })
        .to_string()
    }

    fn asked(at: &str, text: &str) -> String {
        json!({
            "type": "user", "timestamp": at, "sessionId": "chat", "message": { "role": "user", "content": text },
        })
        .to_string()
    }

    fn period(from: &str, until: Option<&str>) -> TurnPeriod {
        TurnPeriod { from: from.parse().unwrap(), until: until.map(|until| until.parse().unwrap()) }
    }

    #[test]
    fn finds_the_last_text_of_the_period() {
        let transcript = [
            asked("2026-11-16T08:00:00.000Z", "Make it fast"),
            said("2026-11-16T08:01:00.000Z", "I will look."),
            said("2026-11-16T08:02:00.000Z", "It is fast."),
            asked("2026-11-16T09:00:00.000Z", "And now?"),
            said("2026-11-16T09:01:00.000Z", "Now it is safe."),
            "{\"type\":\"assistant\",\"trunca".to_owned(),
        ]
        .join("\n");
        let read = |from, until, within| {
            last_text(transcript.as_bytes(), within, TranscriptFormat::ClaudeCode, period(from, until))
        };
        let first = ("2026-11-16T08:00:00.000Z", Some("2026-11-16T09:00:00.000Z"));
        assert_eq!(read(first.0, first.1, false).as_deref(), Some("It is fast."));
        assert_eq!(read("2026-11-16T09:00:00.000Z", None, true).as_deref(), Some("Now it is safe."));
        assert_eq!(read("2026-11-16T10:00:00.000Z", None, false), None);
    }

    #[test]
    fn refuses_files_outside_the_folders_of_clients() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("chat.jsonl");
        let from = period("2026-11-16T08:00:00.000Z", None);
        assert!(read_closing(&file, from).unwrap_err().contains("cannot read"));
        std::fs::write(&file, said("2026-11-16T09:00:00.000Z", "secret")).unwrap();
        assert!(read_closing(&file, from).unwrap_err().contains("not in the transcript folder"));
        assert!(read_closing(Path::new("/etc/passwd"), from).is_err());
    }
}
