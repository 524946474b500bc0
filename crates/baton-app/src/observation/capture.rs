//! `post-tool-use`: what a tool did goes into the queue.

use baton_core::observation::files_of;
use baton_core::{ErrorCode, Fault, Session};
use baton_store::{NewQueueItem, RawOutput, Tx, pack_raw};
use serde::Serialize;
use serde_json::Value;

use super::hook::{HookParams, Packed};
use crate::operation::{Context, store_fault};

/// Larger packed output is a blob, where there is a folder for them.
const MAX_ROW_BYTES: usize = 256 * 1024;
/// The longest name of a tool and of its use.
const MAX_NAME_CHARS: usize = 200;

/// What is kept of a tool use, as it is packed.
#[derive(Serialize)]
struct RawToolUse<'a> {
    tool_input: &'a Value,
    tool_response: &'a Value,
    #[serde(skip_serializing_if = "Option::is_none")]
    cwd: Option<&'a str>,
}

/// Packs what a tool did. It takes as long as the output is large, so it is done before the transaction.
pub(super) fn pack(context: &Context<'_>, params: &HookParams) -> Result<Packed, Fault> {
    let nothing = Value::Null;
    let error = params.error.clone().map(Value::from);
    let kept = RawToolUse {
        tool_input: params.tool_input.as_ref().unwrap_or(&nothing),
        tool_response: params.tool_response.as_ref().or(error.as_ref()).unwrap_or(&nothing),
        cwd: params.root.as_deref().or(params.cwd.as_deref()),
    };
    let unwritten = |error: serde_json::Error| {
        Fault::new(ErrorCode::Internal, "the tool's output could not be written").caused_by(error)
    };
    let text = serde_json::to_vec(&kept).map_err(unwritten)?;
    let packed = pack_raw(&text).map_err(store_fault)?;
    let raw = match context.settings.checkpoints.vault.blobs() {
        Some(blobs) if packed.len() > MAX_ROW_BYTES => {
            let name = format!("raw-{:032x}", context.random_bits()?);
            blobs.put(&name, &packed).map_err(store_fault)?;
            RawOutput::Blob(name)
        }
        _ => RawOutput::Row(packed),
    };
    Ok(Packed {
        raw,
        raw_bytes: said(kept.tool_response)? as u64,
        files: files_of(kept.tool_input, kept.cwd),
    })
}

/// How many bytes a tool said.
fn said(response: &Value) -> Result<usize, Fault> {
    match response {
        Value::Null => Ok(0),
        Value::String(text) => Ok(text.len()),
        other => {
            let mut counter = Counter(0);
            serde_json::to_writer(&mut counter, other).map_err(|error| {
                Fault::new(ErrorCode::Internal, "the tool's output could not be measured").caused_by(error)
            })?;
            Ok(counter.0)
        }
    }
}

/// Counts what is written to it.
struct Counter(usize);

impl std::io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Puts what a tool did into the queue. A use that is reported twice is taken once.
pub(super) fn enqueue(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    params: &HookParams,
) -> Result<(), Fault> {
    let Some(packed) = &params.packed else {
        return Err(Fault::new(ErrorCode::Internal, "the tool's output was not made ready"));
    };
    let item = NewQueueItem {
        session_id: session.id,
        venture: session.tuple.venture.clone(),
        repo: session.tuple.repo.clone(),
        tool_name: clean(params.tool_name.as_deref().unwrap_or_default()),
        tool_use_id: params.tool_use_id.as_deref().map(clean).filter(|id| !id.is_empty()),
        files_touched: packed.files.clone(),
        raw: packed.raw.clone(),
        raw_bytes: packed.raw_bytes,
        run_at: context.now,
        created_at: context.now,
    };
    if tx.enqueue(&item).map_err(store_fault)?.is_none() {
        tracing::debug!(session = %session.id, "a tool use was reported again");
    }
    Ok(())
}

/// A name as it can be stored and shown: without control characters, and not longer than a line.
fn clean(name: &str) -> String {
    name.chars().filter(|character| !character.is_control()).take(MAX_NAME_CHARS).collect()
}
