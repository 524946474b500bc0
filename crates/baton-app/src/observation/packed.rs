//! Compressed input and output of a tool.

use std::sync::Arc;

use baton_core::{Fault, Sha256Hash};
use baton_store::{BlobFolder, RawOutput, RawReader, StoreError};

/// Compressed tool input and output, ready to be stored.
#[derive(Debug, Clone)]
pub(crate) struct PackedOutput {
    pub(crate) raw: RawOutput,
    pub(crate) raw_bytes: u64,
    pub(crate) files: Vec<String>,
}

/// Redacted and compressed tool input and output of a large report. Clones share it.
#[derive(Debug, Clone)]
pub struct LargeOutput {
    pub(crate) packed: Arc<PackedOutput>,
    /// Size of the content before compression.
    pub(super) unpacked_bytes: u64,
}

impl LargeOutput {
    /// Returns the hash of the uncompressed content.
    pub(crate) fn hash(&self, blobs: Option<&BlobFolder>) -> Result<Sha256Hash, Fault> {
        let raw = RawReader::open(self.packed.raw.clone(), blobs)?;
        Sha256Hash::of_all(raw).map_err(|error| Fault::from(StoreError::corrupt("pending_queue", error)))
    }
}

/// Returns the blob name of a raw output.
pub(super) fn blob_name(name: &str) -> String {
    format!("raw-{name}")
}
