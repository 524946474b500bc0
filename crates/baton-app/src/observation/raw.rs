//! Raw tool output on its way back from where it is kept.

use baton_core::observation::ToolUse;
use baton_store::{BlobFolder, QueueItem, RawOutput, StoreError, unpack_raw};
use serde_json::Value;

/// Reads what a tool did.
pub(super) fn tool_use(
    item: &QueueItem,
    raw: RawOutput,
    blobs: Option<&BlobFolder>,
) -> Result<ToolUse, StoreError> {
    let packed = match raw {
        RawOutput::Row(bytes) => bytes,
        RawOutput::Blob(name) => {
            let found = blobs.map_or(Ok(None), |blobs| blobs.get(&name))?;
            found
                .ok_or_else(|| StoreError::corrupt("pending_queue", format!("the blob {name} is missing")))?
        }
    };
    let text = unpack_raw(&packed)?;
    let mut kept: Value =
        serde_json::from_slice(&text).map_err(|problem| StoreError::corrupt("pending_queue", problem))?;
    Ok(ToolUse {
        tool_name: item.tool_name.clone(),
        tool_input: kept["tool_input"].take(),
        tool_response: kept["tool_response"].take(),
        cwd: kept["cwd"].as_str().map(str::to_owned),
    })
}
