//! `post-tool-use`: what a tool did goes into the queue.

use baton_core::observation::{files_of, one_line};
use baton_core::{ErrorCode, Fault, Session};
use baton_store::{NewQueueItem, RawOutput, Tx, pack_raw};
use serde::Serialize;
use serde_json::{Value, json};

use super::hook::{HookParams, Packed};
use crate::operation::{Context, store_fault};

/// Larger packed output is a blob, where there is a folder for them.
const MAX_ROW_BYTES: usize = 256 * 1024;
/// The longest name of a tool and of its use.
const MAX_NAME_CHARS: usize = 200;

/// Packs what a tool did. It takes as long as the output is large, so it is done before the transaction, and the output is
/// written out once.
pub(super) fn pack(context: &Context<'_>, params: &HookParams) -> Result<Packed, Fault> {
    let nothing = Value::Null;
    let failure = failure(params);
    let input = params.tool_input.as_ref().unwrap_or(&nothing);
    let response = failure.as_ref().or(params.tool_response.as_ref()).unwrap_or(&nothing);
    let folder = params.root.as_deref().or(params.cwd.as_deref());
    let mut text = b"{\"tool_input\":".to_vec();
    append(&mut text, input)?;
    text.extend_from_slice(b",\"cwd\":");
    append(&mut text, &folder)?;
    text.extend_from_slice(b",\"tool_response\":");
    let before = text.len();
    append(&mut text, response)?;
    let raw_bytes = match response {
        Value::Null => 0,
        Value::String(said) => said.len(),
        _ => text.len() - before,
    };
    text.push(b'}');
    let packed = pack_raw(&text).map_err(store_fault)?;
    let raw = match context.settings.checkpoints.vault.blobs() {
        Some(blobs) if packed.len() > MAX_ROW_BYTES => {
            let name = format!("raw-{:032x}", context.random_bits()?);
            blobs.put(&name, &packed).map_err(store_fault)?;
            RawOutput::Blob(name)
        }
        _ => RawOutput::Row(packed),
    };
    Ok(Packed { raw, raw_bytes: raw_bytes as u64, files: files_of(input, folder) })
}

/// What a tool said that failed, marked as such: a message alone might be a result.
fn failure(params: &HookParams) -> Option<Value> {
    let error = params.error.as_ref().filter(|error| !error.is_empty())?;
    let mut marked = json!({ "is_error": true, "content": error });
    if let Some(response) = params.tool_response.as_ref().filter(|response| !response.is_null()) {
        marked["tool_response"] = response.clone();
    }
    Some(marked)
}

fn append(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Fault> {
    serde_json::to_writer(text, value).map_err(|error| {
        Fault::new(ErrorCode::Internal, "the tool's output could not be written").caused_by(error)
    })
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
        created_at: params.at(context),
    };
    if tx.enqueue(&item).map_err(store_fault)?.is_none() {
        tracing::debug!(session = %session.id, "a tool use was reported again");
    }
    Ok(())
}

/// A name as it can be stored and shown: without what a terminal obeys, and not longer than a line.
fn clean(name: &str) -> String {
    one_line(name, MAX_NAME_CHARS)
}
