//! Reads stored raw tool output.

use std::io::BufReader;

use baton_observation::{ReadError, ToolUse, read_excerpt};
use baton_store::{BlobFolder, QueueItem, RawOutput, RawReader, StoreError, unpack_raw, unpacked_size};
use serde_json::{Value, json};

/// Maximum uncompressed size of output that a compressor receives whole. For larger output, it receives an
/// excerpt.
const EXCERPT_THRESHOLD_BYTES: usize = 4 * 1024 * 1024;

/// How much of an output to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Extent {
    Whole,
    /// The excerpt of a large output that a compressor needs.
    Excerpt,
}

/// Reads the tool use of a queue item.
pub(super) fn tool_use(
    item: &QueueItem,
    raw: RawOutput,
    blobs: Option<&BlobFolder>,
    extent: Extent,
) -> Result<ToolUse, StoreError> {
    let damaged = |problem: String| StoreError::corrupt("pending_queue", problem);
    let mut stored: Value = match raw {
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
    if !stored.is_object() {
        return Err(damaged("raw output is not an object".to_owned()));
    }
    let response = stored["tool_response"].take();
    Ok(ToolUse {
        tool_name: item.tool_name.clone(),
        tool_input: stored["tool_input"].take(),
        tool_response: match failure(stored["error"].take()) {
            Some(error) => error_response(error, response),
            None => response,
        },
        cwd: stored["cwd"].as_str().map(str::to_owned),
        turn: None,
    })
}

fn is_small(packed: &[u8]) -> bool {
    unpacked_size(packed).is_some_and(|size| size <= EXCERPT_THRESHOLD_BYTES)
}

/// Returns the error message of a failed tool.
fn failure(error: Value) -> Option<String> {
    match error {
        Value::Null | Value::Bool(false) => None,
        Value::String(error) => Some(error).filter(|error| !error.is_empty()),
        Value::Array(items) if items.is_empty() => None,
        Value::Object(members) if members.is_empty() => None,
        other => Some(other.to_string()),
    }
}

/// Marks an error message, because it could not be distinguished from a result otherwise.
pub(super) fn error_response(error: String, response: Value) -> Value {
    let mut marked = json!({ "is_error": true, "content": error });
    if !response.is_null() {
        marked["tool_response"] = response;
    }
    marked
}

/// Returns the blob name of a raw output.
pub(super) fn blob_name(name: &str) -> String {
    format!("raw-{name}")
}
