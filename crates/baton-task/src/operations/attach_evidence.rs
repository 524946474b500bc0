//! `task.attach_evidence`

use baton_core::task::{EvidenceKind, TaskId};
use baton_core::{Fault, Sha256Hash, counted};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::artifact::Compress;
use crate::draft::{Draft, WriteOptions};
use crate::environment::TaskEnvironment;
use crate::named_file::read_in_checkout;
use crate::operation::{Effect, OnCheckout, Operation, params_as_input};
use crate::rules::{Evidence, unix_line_ends};

/// Attaches a file, or some of its lines, as evidence that roles can cite by a short id.
#[derive(Debug, Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AttachEvidence {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// Type of evidence: `plan`, `design`, `excerpt` or another word.
    #[serde(rename = "type")]
    pub kind: EvidenceKind,
    /// Path of the file, relative to the root of the checkout, for example `plan.md`.
    pub path: String,
    /// Lines to store as an excerpt, for example `10-24`. Defaults to the whole file.
    pub lines: Option<String>,
    /// Actor to record. Defaults to the agent or user name.
    pub actor: Option<String>,
    /// Store the text even if it appears to contain a secret (recorded in the audit log). Defaults to false.
    #[serde(default)]
    pub force_secrets: bool,
}

/// Output of `task.attach_evidence`.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AttachEvidenceOutput {
    /// Task id, for example `TASK-0824`.
    pub task_id: TaskId,
    /// The attached evidence. Refer to it by its id.
    pub evidence: Evidence,
    /// True if the same content was already attached.
    pub known: bool,
    /// Command that continues the task.
    pub next: String,
    /// Problems that did not prevent the operation, for example `no acceptance criteria`.
    pub warnings: Vec<String>,
}

impl Operation<OnCheckout> for AttachEvidence {
    const NAME: &'static str = "task.attach_evidence";
    const SUMMARY: &'static str = "Attach a file or some of its lines to a task with a SHA-256 hash. Cite \
        the returned id instead of pasting the text.";
    const EFFECT: Effect = Effect::Write;
    type Output = AttachEvidenceOutput;
    params_as_input!();

    fn run((): &(), environment: &TaskEnvironment, params: &Self) -> Result<Self::Output, Fault> {
        let file = read_in_checkout(environment.root(), "path", &params.path)?;
        let excerpt = params.lines.as_deref().map(|lines| extract(&file.bytes, lines)).transpose()?;
        let options = WriteOptions::of::<Self>(&params.actor).accepting_secrets(params.force_secrets);
        let mut draft = Draft::open(environment, &params.task_id, &options)?;
        draft.context.require_no_drift()?;
        let (lines, bytes) = match &excerpt {
            Some(excerpt) => (Some(excerpt.span.clone()), excerpt.text.as_bytes()),
            None => (None, file.bytes.as_slice()),
        };
        let sha256 = Sha256Hash::of(bytes);
        let identity =
            format!("{}\n{}\n{}\n{sha256}", params.kind, file.path, lines.as_deref().unwrap_or("all"));
        let digits = Sha256Hash::of(identity.as_bytes()).to_string();
        let id = format!("ev_{}", digits.get(..12).unwrap_or(&digits));
        let known = draft.context.evidence.iter().find(|evidence| evidence.id == id).cloned();
        let is_known = known.is_some();
        let (evidence, (context, warnings)) = if let Some(known) = known {
            (known, (draft.context, draft.warnings))
        } else {
            draft.scan().bytes(&file.path, bytes);
            let kept = match &excerpt {
                Some(excerpt) => {
                    Some(draft.keep(&id, "txt", excerpt.text.as_bytes(), Compress::WhenLarge)?)
                }
                None => None,
            };
            let evidence = Evidence {
                id,
                kind: params.kind.clone(),
                path: file.path,
                lines,
                sha256,
                excerpt: kept,
                attached_at: draft.now,
                attached_by: draft.actor.clone(),
            };
            draft.context.evidence.push(evidence.clone());
            (evidence, draft.save()?)
        };
        let next = context.next_command();
        Ok(AttachEvidenceOutput { task_id: context.task_id, evidence, known: is_known, next, warnings })
    }
}

struct Excerpt {
    span: String,
    text: String,
}

/// Extracts the lines `10-24`, `L10-L24` or `10` of a file.
fn extract(bytes: &[u8], lines: &str) -> Result<Excerpt, Fault> {
    let wrong = || Fault::invalid("lines", format!("{lines:?} must be like 10-24"));
    let text =
        std::str::from_utf8(bytes).map_err(|_| Fault::invalid("path", "is not UTF-8 text; omit lines"))?;
    let number = |text: &str| text.trim().trim_start_matches('L').parse::<usize>().map_err(|_| wrong());
    let (first, last) = match lines.split_once('-') {
        Some((first, last)) => (number(first)?, number(last)?),
        None => (number(lines)?, number(lines)?),
    };
    let text = unix_line_ends(text);
    let all: Vec<&str> = text.lines().collect();
    if first == 0 || first > last {
        return Err(wrong());
    }
    let slice = all.get(first - 1..last).ok_or_else(|| {
        let has = counted(all.len() as u64, "line");
        Fault::invalid("lines", format!("the file has {has}; {lines:?} is out of range"))
    })?;
    Ok(Excerpt { span: format!("L{first}-L{last}"), text: slice.join("\n") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_ranges_are_extracted() {
        let extract =
            |lines: &str| extract(b"a\r\nb\nc", lines).map(|excerpt| (excerpt.span, excerpt.text)).ok();
        assert_eq!(extract("2-3"), Some(("L2-L3".into(), "b\nc".into())));
        assert_eq!(extract("L1-L2"), Some(("L1-L2".into(), "a\nb".into())));
        assert_eq!(extract("3"), Some(("L3-L3".into(), "c".into())));
        for bad in ["0-1", "3-2", "2-4", "x", "", "1-", "-1", "99999999999999999999"] {
            assert_eq!(extract(bad), None, "{bad}");
        }
    }
}
