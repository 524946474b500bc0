//! Finds the chats of clients: their folders and transcript files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use baton_observation::transcript::TranscriptFormat;

/// Maximum depth of folders below the start.
const MAX_DEPTH: usize = 16;

/// Returns the transcripts at a path: the file itself, or all files below a folder with the name of a transcript, in the
/// order of their paths. Links to folders are not followed.
pub(super) fn find(format: TranscriptFormat, path: &Path) -> io::Result<Vec<PathBuf>> {
    if !fs::metadata(path)?.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut found = Vec::new();
    let mut open = vec![(path.to_owned(), 0)];
    while let Some((folder, depth)) = open.pop() {
        for entry in fs::read_dir(&folder)? {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() && depth < MAX_DEPTH {
                open.push((entry.path(), depth + 1));
            } else if !kind.is_dir() && is_transcript(format, &entry.file_name().to_string_lossy()) {
                found.push(entry.path());
            }
        }
    }
    found.sort();
    Ok(found)
}

fn is_transcript(format: TranscriptFormat, name: &str) -> bool {
    match format {
        TranscriptFormat::ClaudeCode => name.ends_with(".jsonl"),
        TranscriptFormat::Codex => name.starts_with("rollout-") && name.ends_with(".jsonl"),
        TranscriptFormat::Gemini => {
            name.ends_with(".jsonl") || name.starts_with("session-") && name.ends_with(".json")
        }
        TranscriptFormat::OpenCode | TranscriptFormat::Cursor => false,
    }
}

/// Returns the folder of a chat of Gemini CLI, which is recorded beside the folder of the chats.
pub(super) fn project_folder(format: TranscriptFormat, transcript: &Path) -> Option<String> {
    let mut folders = transcript.ancestors().skip(2).take(2).filter(|_| format == TranscriptFormat::Gemini);
    let text = folders.find_map(|folder| fs::read_to_string(folder.join(".project_root")).ok())?;
    Some(text.trim().to_owned()).filter(|folder| !folder.is_empty())
}

/// Returns the transcript of the chat that a sub-agent worked for. With Claude Code it has the id of the chat and is
/// beside the file of the sub-agent, or beside the folder that contains it. With Gemini CLI its name ends with the start
/// of the chat's id, which is the name of the folder.
pub(super) fn parent_of(subagent: &Path, session_id: &str) -> Option<PathBuf> {
    let name = format!("{session_id}.jsonl");
    let candidates = subagent.ancestors().skip(1).take(4).map(|folder| folder.join(&name));
    let parent = candidates.into_iter().find(|path| path != subagent && path.is_file());
    parent.or_else(|| {
        let folder = subagent.parent()?;
        let ending = format!("-{}.jsonl", folder.file_name()?.to_str()?.get(..8)?);
        let beside = fs::read_dir(folder.parent()?).ok()?.flatten().map(|entry| entry.path());
        let is_parent = |path: &PathBuf| path.to_str().is_some_and(|path| path.ends_with(&ending));
        beside.into_iter().find(is_parent)
    })
}
