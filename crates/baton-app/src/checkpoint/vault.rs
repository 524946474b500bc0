//! The vault: turns contexts into frames and back, in rows or in blobs.
//!
//! Owns the order of things: compress, put away; and on the way back check, decompress, check again. Does not own which
//! checkpoint leans on which (`series`) or what may be dropped (`room`).

use baton_core::Sha256Hash;
use baton_core::checkpoint::Checkpoint;
use baton_store::{BlobFolder, Frame, FrameBody, FrameError, Packed, Packing, StoreError, StoredFrame};

/// Larger frames are blobs, where there is a folder for them.
const MAX_ROW_BYTES: usize = 256 * 1024;
/// A difference is worth it below this part of the context; a larger one says that it is another context, which a series
/// of its own serves better.
const WORTHWHILE: usize = 8;

/// Where and how contexts are kept. Clones share it.
#[derive(Debug, Clone)]
pub struct Vault {
    packing: Packing,
    blobs: Option<BlobFolder>,
}

/// Why a frame could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// What is stored is damaged.
    #[error("{0}")]
    Damaged(String),
    /// It may well be sound, but cannot be got at now.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<FrameError> for Unreadable {
    fn from(error: FrameError) -> Self {
        Self::Damaged(error.to_string())
    }
}

impl Vault {
    /// Keeps frames in rows, and large ones in a folder when there is one.
    pub const fn new(packing: Packing, blobs: Option<BlobFolder>) -> Self {
        Self { packing, blobs }
    }

    /// The folder of large frames.
    pub(crate) const fn blobs(&self) -> Option<&BlobFolder> {
        self.blobs.as_ref()
    }

    /// Tells whether a context of so many bytes may be stored as a difference.
    pub(super) const fn takes_difference(&self, bytes: usize) -> bool {
        self.packing.takes_delta(bytes)
    }

    /// Makes the frame of a context as the difference to another; none when the two have too little in common.
    pub(super) fn pack_difference(&self, context: &[u8], base: &[u8]) -> Result<Option<Packed>, FrameError> {
        let delta = self.packing.delta(context, base)?;
        Ok(delta.filter(|delta| delta.bytes.len() < context.len() / WORTHWHILE))
    }

    /// Makes the frame of a context by itself.
    pub(super) fn pack_whole(&self, context: &[u8]) -> Result<Packed, FrameError> {
        self.packing.whole(context)
    }

    /// Puts the packed context of a checkpoint away.
    pub(super) fn stow(&self, checkpoint: &Checkpoint, packed: Packed) -> Result<Frame, StoreError> {
        let Packed { encoding, bytes } = packed;
        let hash = Sha256Hash::of(&bytes);
        let size_bytes = bytes.len() as u64;
        let body = match &self.blobs {
            Some(blobs) if bytes.len() > MAX_ROW_BYTES => {
                let name = format!("{}.frame", checkpoint.id);
                blobs.put(&name, &bytes)?;
                FrameBody::Blob(name)
            }
            _ => FrameBody::Row(bytes),
        };
        Ok(Frame { encoding, key_id: None, hash, size_bytes, body })
    }

    /// Gives the context of a frame, with what it leans on at hand.
    pub(super) fn unpack(&self, stored: &StoredFrame, base: Option<&[u8]>) -> Result<Vec<u8>, Unreadable> {
        let bytes = self.fetch(&stored.frame)?;
        if Sha256Hash::of(&bytes) != stored.frame.hash {
            return Err(Unreadable::Damaged("the stored bytes do not have the recorded hash".into()));
        }
        let size = usize::try_from(stored.context_bytes).unwrap_or(usize::MAX);
        let packed = Packed { encoding: stored.frame.encoding, bytes };
        Ok(packed.unpack(base, size, stored.context_hash)?)
    }

    fn fetch(&self, frame: &Frame) -> Result<Vec<u8>, Unreadable> {
        match &frame.body {
            FrameBody::Row(bytes) => Ok(bytes.clone()),
            FrameBody::Blob(name) => {
                let blobs = self.blobs.as_ref().ok_or_else(|| {
                    Unreadable::Damaged(format!("blob {name} is named, but there is no folder of blobs"))
                })?;
                blobs.get(name)?.ok_or_else(|| Unreadable::Damaged(format!("blob {name} is missing")))
            }
        }
    }
}
