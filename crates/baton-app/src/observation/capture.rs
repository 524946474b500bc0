//! `post-tool-use`: adds a tool use to the queue.

use baton_core::{ErrorCode, Fault, Session, one_line};
use baton_observation::files_of;
use baton_store::{FileOf, NewQueueItem, Tx, pack_raw, place_raw};
use serde::Serialize;
use serde_json::Value;

use super::hook_params::Hook;
use super::raw::blob_name;
use crate::call::PackedOutput;
use crate::context::Context;

/// Maximum length of a tool name and of a tool use id in characters.
const MAX_NAME_CHARS: usize = 200;

/// Serializes and compresses the input and output of a tool. The time depends on the size of the output, so this runs
/// before the transaction.
pub(super) fn pack(context: &Context<'_>, params: &Hook) -> Result<PackedOutput, Fault> {
    let nothing = Value::Null;
    let input = params.tool_input.as_ref().unwrap_or(&nothing);
    let response = params.tool_response.as_ref().unwrap_or(&nothing);
    let error = params.error.as_deref().unwrap_or_default();
    let folder = params.root.as_deref().or(params.cwd.as_deref());
    let mut text = b"{\"tool_input\":".to_vec();
    append(&mut text, input)?;
    text.extend_from_slice(b",\"cwd\":");
    append(&mut text, &folder)?;
    if !error.is_empty() {
        text.extend_from_slice(b",\"error\":");
        append(&mut text, &error)?;
    }
    text.extend_from_slice(b",\"tool_response\":");
    let before = text.len();
    append(&mut text, response)?;
    let response_bytes = match response {
        Value::Null => 0,
        Value::String(text) => text.len(),
        _ => text.len() - before,
    };
    text.push(b'}');
    let packed = pack_raw(&text)?;
    let blobs = context.settings.checkpoints.storage.blobs();
    let name = blob_name(&format!("{:032x}", context.random_bits()?));
    let raw = place_raw(packed, blobs, &name)?;
    Ok(PackedOutput {
        raw,
        raw_bytes: (response_bytes + error.len()) as u64,
        unpacked_bytes: text.len() as u64,
        files: files_of(input, folder),
    })
}

fn append(text: &mut Vec<u8>, value: &impl Serialize) -> Result<(), Fault> {
    serde_json::to_writer(text, value)
        .map_err(|error| Fault::new(ErrorCode::Internal, "cannot serialize the tool output").caused_by(error))
}

/// Adds a tool use to the queue, unless its id was reported before.
pub(super) fn enqueue(
    context: &Context<'_>,
    tx: &mut dyn Tx,
    session: &Session,
    params: &Hook,
    packed: &PackedOutput,
) -> Result<(), Fault> {
    let item = NewQueueItem {
        session_id: session.id,
        venture: session.tuple.venture.clone(),
        repo: session.tuple.repo.clone(),
        tool_name: clean_name(params.tool_name.as_deref().unwrap_or_default()),
        tool_use_id: params.tool_use_id.as_deref().map(clean_name).filter(|id| !id.is_empty()),
        files_touched: packed.files.clone(),
        raw: packed.raw.clone(),
        raw_bytes: packed.raw_bytes,
        run_at: context.now,
        created_at: params.at(context, session),
    };
    for (path, hash) in params.file_hashes.iter().flatten().filter(|(path, _)| packed.files.contains(path)) {
        let file = FileOf { venture: &item.venture, repo: &item.repo, path };
        tx.record_file_version(file, *hash, item.created_at)?;
    }
    if tx.enqueue(&item)?.is_none() {
        tracing::debug!(session = %session.id, "a tool use was reported again");
    }
    Ok(())
}

/// Removes control characters and escape sequences from a name and truncates it.
pub(super) fn clean_name(name: &str) -> String {
    one_line(name, MAX_NAME_CHARS)
}
