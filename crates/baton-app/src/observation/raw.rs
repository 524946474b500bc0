//! Raw tool output on its way back from where it is kept.

use std::io::BufReader;

use baton_core::observation::{ReadError, ToolUse, read_excerpt};
use baton_store::{BlobFolder, QueueItem, RawOutput, RawReader, StoreError, unpack_raw, unpacked_size};
use serde_json::{Value, json};

/// Output that is longer is not read whole to be understood.
const MAX_UNDERSTOOD_BYTES: usize = 4 * 1024 * 1024;

/// How much of an output is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    /// All of it.
    Whole,
    /// Of a large one what it takes to understand it.
    Excerpt,
}

/// Reads what a tool did.
pub(super) fn tool_use(
    item: &QueueItem,
    raw: RawOutput,
    blobs: Option<&BlobFolder>,
    extent: Extent,
) -> Result<ToolUse, StoreError> {
    let damaged = |problem: String| StoreError::corrupt("pending_queue", problem);
    let mut kept: Value = match raw {
        RawOutput::Row(bytes) if is_small(&bytes) || extent == Extent::Whole => {
            serde_json::from_slice(&unpack_raw(&bytes)?).map_err(|problem| damaged(problem.to_string()))?
        }
        raw => {
            let reader = RawReader::open(raw, blobs)?;
            match extent {
                Extent::Whole => serde_json::from_reader(BufReader::new(reader))
                    .map_err(|problem| damaged(problem.to_string()))?,
                Extent::Excerpt => {
                    read_excerpt(reader).map_err(|problem: ReadError| damaged(problem.to_string()))?
                }
            }
        }
    };
    if !kept.is_object() {
        return Err(damaged("raw output that is no object".to_owned()));
    }
    let response = kept["tool_response"].take();
    Ok(ToolUse {
        tool_name: item.tool_name.clone(),
        tool_input: kept["tool_input"].take(),
        tool_response: match failure(kept["error"].take()) {
            Some(error) => marked(error, response),
            None => response,
        },
        cwd: kept["cwd"].as_str().map(str::to_owned),
    })
}

fn is_small(packed: &[u8]) -> bool {
    unpacked_size(packed).is_some_and(|size| size <= MAX_UNDERSTOOD_BYTES)
}

/// What a tool said that failed, if it did.
fn failure(error: Value) -> Option<String> {
    match error {
        Value::Null | Value::Bool(false) => None,
        Value::String(error) => Some(error).filter(|error| !error.is_empty()),
        Value::Array(items) if items.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        other => Some(other.to_string()),
    }
}

/// Marks what a tool said that failed: a message alone might be a result.
fn marked(error: String, response: Value) -> Value {
    let mut marked = json!({ "is_error": true, "content": error });
    if !response.is_null() {
        marked["tool_response"] = response;
    }
    marked
}
