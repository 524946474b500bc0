//! Compressed input and output of a tool.

use baton_core::{Fault, Sha256Hash};
use baton_store::{BlobFolder, RawOutput, RawReader, StoreError};

/// Redacted and compressed input and output of a tool, ready to be stored.
#[derive(Debug)]
pub struct PackedOutput {
    pub(crate) raw: RawOutput,
    /// Size of the tool output.
    pub(crate) raw_bytes: u64,
    /// Size of the content before compression.
    pub(super) unpacked_bytes: u64,
    pub(crate) files: Vec<String>,
}

impl PackedOutput {
    /// Returns the hash of the uncompressed content.
    pub(crate) fn hash(&self, blobs: Option<&BlobFolder>) -> Result<Sha256Hash, Fault> {
        let raw = RawReader::open(self.raw.clone(), blobs)?;
        Sha256Hash::of_all(raw).map_err(|error| Fault::from(StoreError::corrupt("pending_queue", error)))
    }
}

/// Returns the blob name of a raw output.
pub(super) fn blob_name(name: &str) -> String {
    format!("raw-{name}")
}
