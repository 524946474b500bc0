//! Conversion between contexts and stored frames: compressed, optionally encrypted, in rows or in blobs.
//!
//! Writing compresses, encrypts and stores; reading verifies the hash, decrypts, decompresses and verifies the context
//! hash. Delta chains are in `checkpoint/series.rs`, deletion is in `checkpoint/retention.rs`, and key sources implement [`Keys`].

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::checkpoint::{Checkpoint, WorkflowId};
use baton_core::{CheckpointId, Sha256Hash, Venture};
use baton_store::{
    BlobFolder, Frame, FrameBody, FrameError, KeyRing, MAX_ROW_BYTES, Packed, Packing, SealError, StoreError,
    StoredFrame, Tx, random_nonce,
};

use crate::checkpoint_usage::Usage;

/// A delta must be smaller than the context by this factor. Otherwise the context starts a new series.
const MIN_DELTA_RATIO: usize = 8;

/// Storage of contexts. Clones share the key cache and the usage.
#[derive(Clone)]
pub struct ContextStorage {
    packing: Packing,
    blobs: Option<BlobFolder>,
    keys: Arc<dyn Keys>,
    key_cache: Arc<Mutex<Option<CachedSealing>>>,
    usage: Usage,
}

/// Last result of [`Keys::obtain`] and its time.
struct CachedSealing {
    sealing: Sealing,
    at: Instant,
}

/// Time for which keys are cached. A process may encrypt with a replaced key for this long.
pub const KEY_CACHE_TTL: Duration = Duration::from_secs(5);

/// Source of encryption keys.
pub trait Keys: Send + Sync {
    /// Returns the keys, or creates the first one if nothing is encrypted yet. May block while a keychain asks the
    /// user.
    fn obtain(&self, is_anything_sealed: bool) -> Sealing;
}

/// Encryption mode and keys.
#[derive(Debug, Clone)]
pub enum Sealing {
    /// Write unencrypted; the keys decrypt existing frames.
    Plain(Option<KeyRing>),
    /// Write unencrypted because no key is available, although encryption is preferred.
    Fallback {
        /// Reason why no key is available.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// Encrypt with the first of these keys.
    Sealed(KeyRing),
    /// Reject writes.
    Refused {
        /// Reason for the rejection.
        reason: String,
        /// What to do about it.
        hint: String,
    },
}

impl Sealing {
    /// Returns the warning that contexts are stored unencrypted although encryption is preferred.
    fn fallback_warning(&self) -> Option<String> {
        match self {
            Self::Fallback { reason, hint } => Some(format!(
                "the context is stored unencrypted although encryption is preferred: {reason}; {hint}"
            )),
            Self::Plain(_) | Self::Sealed(_) | Self::Refused { .. } => None,
        }
    }
}

/// A frame ready to be inserted.
pub(crate) struct NewFrame {
    pub(crate) frame: Frame,
    /// Set if the frame is unencrypted although encryption is preferred.
    pub(crate) warning: Option<String>,
}

/// Key source without keys: nothing is encrypted.
#[derive(Debug)]
pub struct NoKeys;

impl Keys for NoKeys {
    fn obtain(&self, _: bool) -> Sealing {
        Sealing::Plain(None)
    }
}

impl fmt::Debug for ContextStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ContextStorage").field("packing", &self.packing).finish_non_exhaustive()
    }
}

/// Reason why a frame could not be created.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CreateFrameError {
    /// Encryption is required but not possible.
    #[error("{reason}")]
    Refused { reason: String, hint: String },
    /// The store or the blob folder failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Reason why the context of a checkpoint could not be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ReadContextError {
    /// The stored bytes of a checkpoint are damaged.
    #[error("{problem}")]
    Damaged { at: CheckpointId, problem: String },
    /// The blob of a checkpoint is missing.
    #[error("blob {name} is missing")]
    Missing { at: CheckpointId, name: String },
    /// The frame is encrypted and its key is not available.
    #[error("it is encrypted with key {key_id}, which is not available")]
    Sealed { key_id: String },
    /// A checkpoint that the context is stored as a difference from does not exist.
    #[error("a checkpoint that it is stored as a difference from is missing")]
    Incomplete,
    /// The store failed; the frame may be intact.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Checkpoint of a frame. It is authenticated with the ciphertext, so a frame cannot be moved to another checkpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner<'a> {
    pub(crate) venture: &'a Venture,
    pub(crate) workflow: &'a WorkflowId,
    pub(crate) checkpoint: CheckpointId,
}

impl<'a> Owner<'a> {
    pub(crate) const fn of(checkpoint: &'a Checkpoint) -> Self {
        Self { venture: &checkpoint.venture, workflow: &checkpoint.workflow_id, checkpoint: checkpoint.id }
    }

    fn associated(self) -> Vec<u8> {
        format!("baton checkpoint\n{}\n{}\n{}", self.venture, self.workflow, self.checkpoint).into_bytes()
    }

    fn damaged(self, problem: impl fmt::Display) -> ReadContextError {
        ReadContextError::Damaged { at: self.checkpoint, problem: problem.to_string() }
    }
}

/// What happens to the recorded hash of a context that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ContentHash {
    Compared,
    Ignored,
}

impl ContextStorage {
    /// Creates a storage for frames in rows, unencrypted.
    pub fn new(packing: Packing) -> Self {
        Self {
            packing,
            blobs: None,
            keys: Arc::new(NoKeys),
            key_cache: Arc::default(),
            usage: Usage::default(),
        }
    }

    /// Stores large frames in a blob folder.
    #[must_use]
    pub fn with_blobs(mut self, blobs: Option<BlobFolder>) -> Self {
        self.blobs = blobs;
        self
    }

    /// Sets the key source.
    #[must_use]
    pub fn with_keys(mut self, keys: impl Keys + 'static) -> Self {
        self.keys = Arc::new(keys);
        self
    }

    /// Returns the cached size of all checkpoints.
    pub(crate) const fn usage(&self) -> &Usage {
        &self.usage
    }

    pub(crate) const fn blobs(&self) -> Option<&BlobFolder> {
        self.blobs.as_ref()
    }

    /// Returns the cached encryption mode, or obtains it. `Sealing::Refused` is not cached, because the user may fix
    /// its cause.
    fn sealing(
        &self,
        is_anything_sealed: impl FnOnce() -> Result<bool, StoreError>,
    ) -> Result<Sealing, StoreError> {
        if let Some(sealing) = self.cached() {
            return Ok(sealing);
        }
        let is_anything_sealed = is_anything_sealed()?;
        Ok(self.obtain_keys(is_anything_sealed))
    }

    fn cached(&self) -> Option<Sealing> {
        let cache = self.key_cache.lock().unwrap_or_else(PoisonError::into_inner);
        cache
            .as_ref()
            .filter(|cached| cached.at.elapsed() < KEY_CACHE_TTL)
            .map(|cached| cached.sealing.clone())
    }

    /// Obtains the keys. The cache is not locked meanwhile, because a keychain may block.
    fn obtain_keys(&self, is_anything_sealed: bool) -> Sealing {
        let sealing = self.keys.obtain(is_anything_sealed);
        if !matches!(sealing, Sealing::Refused { .. }) {
            let cached = CachedSealing { sealing: sealing.clone(), at: Instant::now() };
            *self.key_cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(cached);
        }
        sealing
    }

    /// Returns true if a context of this size may be stored as a delta.
    pub(crate) const fn takes_difference(&self, bytes: usize) -> bool {
        self.packing.takes_delta(bytes)
    }

    /// Compresses a context as a delta from another; `None` if the delta would be too large.
    pub(crate) fn pack_difference(&self, context: &[u8], base: &[u8]) -> Result<Option<Packed>, FrameError> {
        let delta = self.packing.delta(context, base)?;
        Ok(delta.filter(|delta| delta.bytes.len() < context.len() / MIN_DELTA_RATIO))
    }

    /// Compresses a full context.
    pub(crate) fn pack_whole(&self, context: &[u8]) -> Result<Packed, FrameError> {
        self.packing.whole(context)
    }

    /// Creates the frame of a packed context: encrypts it if configured, and writes a large one to a blob.
    pub(crate) fn create_frame(
        &self,
        tx: &mut dyn Tx,
        owner: Owner<'_>,
        packed: Packed,
    ) -> Result<NewFrame, CreateFrameError> {
        let sealing = self.sealing(|| Ok(!tx.keys_in_use()?.is_empty()))?;
        let frame = self.move_to_blob(owner, seal(&sealing, owner, packed)?)?;
        Ok(NewFrame { frame, warning: sealing.fallback_warning() })
    }

    /// Returns the warning for a readable checkpoint that is stored unencrypted although encryption is preferred.
    /// Without a key only unencrypted checkpoints are readable.
    pub(crate) fn fallback_warning(&self, tx: &mut dyn Tx) -> Result<Option<String>, StoreError> {
        Ok(self.sealing(|| Ok(!tx.keys_in_use()?.is_empty()))?.fallback_warning())
    }

    /// Creates a frame without access to the database, for the outbox.
    pub(crate) fn create_frame_offline(
        &self,
        owner: Owner<'_>,
        packed: Packed,
    ) -> Result<NewFrame, CreateFrameError> {
        // Assume that something is encrypted already, so that no first key is created. The assumption may be wrong, so
        // the result is not cached.
        let sealing = self.cached().unwrap_or_else(|| self.keys.obtain(true));
        Ok(NewFrame { frame: seal(&sealing, owner, packed)?, warning: sealing.fallback_warning() })
    }

    /// Writes a frame that is too large for a row to a blob.
    fn move_to_blob(&self, owner: Owner<'_>, mut frame: Frame) -> Result<Frame, CreateFrameError> {
        if let (Some(blobs), FrameBody::Row(bytes)) = (&self.blobs, &frame.body)
            && bytes.len() > MAX_ROW_BYTES
        {
            // The name contains the hash, so that a replaced frame does not overwrite its predecessor.
            let hash = frame.hash.to_string();
            let name = format!("{}-{}.frame", owner.checkpoint, hash.get(..8).unwrap_or_default());
            blobs.put(&name, bytes)?;
            frame.body = FrameBody::Blob(name);
        }
        Ok(frame)
    }

    /// Returns the context of a frame. `base` is the context that a delta refers to.
    pub(crate) fn unpack(
        &self,
        owner: Owner<'_>,
        stored: &StoredFrame,
        base: Option<&[u8]>,
        content_hash: ContentHash,
    ) -> Result<Vec<u8>, ReadContextError> {
        let bytes = self.packed_bytes(owner, &stored.frame)?;
        let size = usize::try_from(stored.context_bytes).unwrap_or(usize::MAX);
        let packed = Packed { encoding: stored.frame.encoding, bytes };
        let hash = (content_hash == ContentHash::Compared).then_some(stored.context_hash);
        packed.unpack(base, size, hash).map_err(|error| owner.damaged(error))
    }

    /// Encrypts a frame with the current key instead of its previous key or none.
    pub(crate) fn reseal(
        &self,
        tx: &mut dyn Tx,
        owner: Owner<'_>,
        frame: &Frame,
    ) -> Result<Frame, ReadContextError> {
        let packed = Packed { encoding: frame.encoding, bytes: self.packed_bytes(owner, frame)? };
        let new = self.create_frame(tx, owner, packed).map_err(|error| match error {
            CreateFrameError::Store(error) => error.into(),
            CreateFrameError::Refused { .. } => {
                ReadContextError::Sealed { key_id: frame.key_id.clone().unwrap_or_default() }
            }
        })?;
        Ok(new.frame)
    }

    /// Returns the id of the key for new frames; `None` if they are not encrypted.
    pub(crate) fn current_key(&self, tx: &mut dyn Tx) -> Result<Option<String>, StoreError> {
        Ok(match self.sealing(|| Ok(!tx.keys_in_use()?.is_empty()))? {
            Sealing::Sealed(ring) => Some(ring.current_id().to_string()),
            Sealing::Plain(_) | Sealing::Fallback { .. } | Sealing::Refused { .. } => None,
        })
    }

    /// Returns the packed bytes of a frame, verified and decrypted.
    fn packed_bytes(&self, owner: Owner<'_>, frame: &Frame) -> Result<Vec<u8>, ReadContextError> {
        let bytes = self.fetch(owner, frame)?;
        if Sha256Hash::of(&bytes) != frame.hash {
            return Err(owner.damaged("the stored bytes do not have the recorded hash"));
        }
        let Some(key_id) = &frame.key_id else { return Ok(bytes) };
        match open(&self.sealing(|| Ok(true))?, owner, &bytes, key_id) {
            // Another process may have created the key since the keys were obtained.
            Err(ReadContextError::Sealed { .. }) => open(&self.obtain_keys(true), owner, &bytes, key_id),
            opened => opened,
        }
    }

    fn fetch(&self, owner: Owner<'_>, frame: &Frame) -> Result<Vec<u8>, ReadContextError> {
        match &frame.body {
            FrameBody::Row(bytes) => Ok(bytes.clone()),
            FrameBody::Blob(name) => {
                let blobs = self.blobs.as_ref().ok_or_else(|| {
                    owner.damaged(format!("the frame is in blob {name}, but there is no blob folder"))
                })?;
                let missing = || ReadContextError::Missing { at: owner.checkpoint, name: name.clone() };
                blobs.get(name)?.ok_or_else(missing)
            }
        }
    }
}

fn open(
    sealing: &Sealing,
    owner: Owner<'_>,
    sealed: &[u8],
    key_id: &str,
) -> Result<Vec<u8>, ReadContextError> {
    let ring = match sealing {
        Sealing::Sealed(ring) | Sealing::Plain(Some(ring)) => ring,
        Sealing::Plain(None) | Sealing::Fallback { .. } | Sealing::Refused { .. } => {
            return Err(ReadContextError::Sealed { key_id: key_id.to_owned() });
        }
    };
    ring.open(sealed, &owner.associated()).map_err(|error| match error {
        SealError::UnknownKey { key_id } => ReadContextError::Sealed { key_id: key_id.to_string() },
        SealError::NotSealed | SealError::Damaged => owner.damaged(error),
    })
}

fn seal(sealing: &Sealing, owner: Owner<'_>, packed: Packed) -> Result<Frame, CreateFrameError> {
    let (key_id, bytes) = match sealing {
        Sealing::Plain(_) | Sealing::Fallback { .. } => (None, packed.bytes),
        Sealing::Sealed(ring) => {
            let nonce = random_nonce().map_err(|error| {
                CreateFrameError::Store(StoreError::Unavailable {
                    message: "cannot encrypt a context".into(),
                    source: Some(error.into()),
                })
            })?;
            (Some(ring.current_id().to_string()), ring.seal(&packed.bytes, &owner.associated(), nonce))
        }
        Sealing::Refused { reason, hint } => {
            return Err(CreateFrameError::Refused { reason: reason.clone(), hint: hint.clone() });
        }
    };
    Ok(Frame {
        encoding: packed.encoding,
        key_id,
        hash: Sha256Hash::of(&bytes),
        size_bytes: bytes.len() as u64,
        body: FrameBody::Row(bytes),
    })
}
