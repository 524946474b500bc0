//! The vault: turns contexts into frames and back, sealed or plain, in rows or in blobs.
//!
//! Owns the order of things: compress, seal, put away; and on the way back check, open, decompress, check again. Does not
//! own which checkpoint leans on which (`series`), where keys come from, or what may be dropped (`room`).

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use baton_core::checkpoint::{Checkpoint, WorkflowId};
use baton_core::{CheckpointId, Sha256Hash, Venture};
use baton_store::{
    BlobFolder, Frame, FrameBody, FrameError, KeyRing, Packed, Packing, SealError, StoreError, StoredFrame,
    Tx, random_nonce,
};

use super::usage::Usage;

/// Larger frames are blobs, where there is a folder for them.
pub(super) const MAX_ROW_BYTES: usize = 256 * 1024;
/// A difference is worth it below this part of the context; a larger one says that it is another context, which a series
/// of its own serves better.
const WORTHWHILE: usize = 8;

/// Where and how contexts are kept. Clones share it.
#[derive(Clone)]
pub struct Vault {
    packing: Packing,
    blobs: Option<BlobFolder>,
    keys: Arc<dyn Keys>,
    obtained: Arc<Mutex<Option<Obtained>>>,
    usage: Usage,
}

/// What was found out about keys, and when.
struct Obtained {
    sealing: Sealing,
    at: Instant,
}

/// How long keys are used before they are asked for again: so long a process may go on sealing with a key that another
/// one has replaced.
pub const KEYS_USED_FOR: Duration = Duration::from_secs(5);

/// Where keys come from.
pub trait Keys: Send + Sync {
    /// Finds the keys, or makes the first one where nothing is sealed yet. May take long: a keychain may ask a person.
    fn obtain(&self, is_anything_sealed: bool) -> Sealing;
}

/// What to do about sealing.
#[derive(Debug, Clone)]
pub enum Sealing {
    /// Write in plain; these keys open what was sealed before.
    Plain(Option<KeyRing>),
    /// Write in plain because no key is available, although encryption is preferred.
    Fallback {
        /// Why no key is available.
        reason: String,
        /// What to do about it.
        hint: String,
    },
    /// Seal with the first of these keys.
    Sealed(KeyRing),
    /// Write nothing.
    Refused {
        /// Why not.
        reason: String,
        /// What to do about it.
        hint: String,
    },
}

impl Sealing {
    /// Says that contexts are stored unencrypted although encryption is preferred, and why.
    fn fallback_warning(&self) -> Option<String> {
        match self {
            Self::Fallback { reason, hint } => Some(format!(
                "the context is stored unencrypted although encryption is preferred: {reason}; {hint}"
            )),
            Self::Plain(_) | Self::Sealed(_) | Self::Refused { .. } => None,
        }
    }
}

/// A frame that is ready for its row.
pub(super) struct Stowed {
    pub(super) frame: Frame,
    /// Set when the frame is unencrypted although encryption is preferred.
    pub(super) warning: Option<String>,
}

/// Nothing is sealed.
#[derive(Debug)]
pub struct NoKeys;

impl Keys for NoKeys {
    fn obtain(&self, _: bool) -> Sealing {
        Sealing::Plain(None)
    }
}

impl fmt::Debug for Vault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Vault").field("packing", &self.packing).finish_non_exhaustive()
    }
}

/// Why a context could not be kept.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unkept {
    /// It would have to be sealed, and cannot be.
    #[error("{reason}")]
    Refused { reason: String, hint: String },
    /// The place for it failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a frame could not be read.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unreadable {
    /// What is stored is damaged.
    #[error("{0}")]
    Damaged(String),
    /// The blob that it is in is missing.
    #[error("blob {name} is missing")]
    Missing { name: String },
    /// It is sealed, and the key for it is not at hand.
    #[error("it is sealed with key {key_id}, which is not at hand")]
    Sealed { key_id: String },
    /// It may well be sound, but cannot be got at now.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<FrameError> for Unreadable {
    fn from(error: FrameError) -> Self {
        Self::Damaged(error.to_string())
    }
}

/// What a frame belongs to: a sealed one opens only in its own place.
#[derive(Debug, Clone, Copy)]
pub(super) struct Owner<'a> {
    pub(super) venture: &'a Venture,
    pub(super) workflow: &'a WorkflowId,
    pub(super) checkpoint: CheckpointId,
}

impl<'a> Owner<'a> {
    pub(super) const fn of(checkpoint: &'a Checkpoint) -> Self {
        Self { venture: &checkpoint.venture, workflow: &checkpoint.workflow_id, checkpoint: checkpoint.id }
    }

    fn associated(self) -> Vec<u8> {
        format!("baton checkpoint\n{}\n{}\n{}", self.venture, self.workflow, self.checkpoint).into_bytes()
    }
}

impl Vault {
    /// Keeps frames in rows.
    pub fn new(packing: Packing) -> Self {
        Self {
            packing,
            blobs: None,
            keys: Arc::new(NoKeys),
            obtained: Arc::default(),
            usage: Usage::default(),
        }
    }

    /// Keeps large frames in a folder.
    #[must_use]
    pub fn with_blobs(mut self, blobs: Option<BlobFolder>) -> Self {
        self.blobs = blobs;
        self
    }

    /// Seals with these keys.
    #[must_use]
    pub fn with_keys(mut self, keys: impl Keys + 'static) -> Self {
        self.keys = Arc::new(keys);
        self
    }

    /// About how much is kept.
    pub(super) const fn usage(&self) -> &Usage {
        &self.usage
    }

    /// The folder of large frames.
    pub(crate) const fn blobs(&self) -> Option<&BlobFolder> {
        self.blobs.as_ref()
    }

    /// What to do about sealing, as it was found out a moment ago or is now. A refusal is not remembered, since a person
    /// may mend it.
    fn sealing(
        &self,
        is_anything_sealed: impl FnOnce() -> Result<bool, StoreError>,
    ) -> Result<Sealing, StoreError> {
        if let Some(sealing) = self.remembered() {
            return Ok(sealing);
        }
        let is_anything_sealed = is_anything_sealed()?;
        Ok(self.ask(is_anything_sealed))
    }

    fn remembered(&self) -> Option<Sealing> {
        let obtained = self.obtained.lock().unwrap_or_else(PoisonError::into_inner);
        obtained
            .as_ref()
            .filter(|obtained| obtained.at.elapsed() < KEYS_USED_FOR)
            .map(|found| found.sealing.clone())
    }

    /// Asks for keys now. Not under the lock: a keychain may take its time, and others have keys already.
    fn ask(&self, is_anything_sealed: bool) -> Sealing {
        let sealing = self.keys.obtain(is_anything_sealed);
        if !matches!(sealing, Sealing::Refused { .. }) {
            let found = Obtained { sealing: sealing.clone(), at: Instant::now() };
            *self.obtained.lock().unwrap_or_else(PoisonError::into_inner) = Some(found);
        }
        sealing
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

    /// Seals the packed context of a checkpoint, if it is to be, and puts it away.
    pub(super) fn stow(&self, tx: &mut dyn Tx, owner: Owner<'_>, packed: Packed) -> Result<Stowed, Unkept> {
        let sealing = self.sealing(|| Ok(!tx.keys_in_use()?.is_empty()))?;
        let frame = self.put_away(owner, seal(&sealing, owner, packed)?)?;
        Ok(Stowed { frame, warning: sealing.fallback_warning() })
    }

    /// Says that a checkpoint that could be read is stored unencrypted although encryption is preferred: without a key
    /// nothing else can be read.
    pub(super) fn fallback_warning(&self, tx: &mut dyn Tx) -> Result<Option<String>, StoreError> {
        Ok(self.sealing(|| Ok(!tx.keys_in_use()?.is_empty()))?.fallback_warning())
    }

    /// Seals a packed context without asking the database whether there are others.
    pub(super) fn seal_alone(&self, owner: Owner<'_>, packed: Packed) -> Result<Stowed, Unkept> {
        // That something may be sealed already is the careful answer: no first key is made then. It is only a guess, so
        // what comes of it is not remembered.
        let sealing = self.remembered().unwrap_or_else(|| self.keys.obtain(true));
        Ok(Stowed { frame: seal(&sealing, owner, packed)?, warning: sealing.fallback_warning() })
    }

    /// Puts a frame into a blob if it is too large for a row.
    fn put_away(&self, owner: Owner<'_>, mut frame: Frame) -> Result<Frame, Unkept> {
        if let (Some(blobs), FrameBody::Row(bytes)) = (&self.blobs, &frame.body)
            && bytes.len() > MAX_ROW_BYTES
        {
            // Named by its content too: a frame that takes the place of another must not be written over it.
            let hash = frame.hash.to_string();
            let name = format!("{}-{}.frame", owner.checkpoint, hash.get(..8).unwrap_or_default());
            blobs.put(&name, bytes)?;
            frame.body = FrameBody::Blob(name);
        }
        Ok(frame)
    }

    /// Gives the context of a frame, with what it leans on at hand.
    pub(super) fn unpack(
        &self,
        owner: Owner<'_>,
        stored: &StoredFrame,
        base: Option<&[u8]>,
    ) -> Result<Vec<u8>, Unreadable> {
        let bytes = self.opened(owner, &stored.frame)?;
        let size = usize::try_from(stored.context_bytes).unwrap_or(usize::MAX);
        let packed = Packed { encoding: stored.frame.encoding, bytes };
        Ok(packed.unpack(base, size, stored.context_hash)?)
    }

    /// Seals a frame with the current key in place of its own, or none.
    pub(super) fn reseal(
        &self,
        tx: &mut dyn Tx,
        owner: Owner<'_>,
        frame: &Frame,
    ) -> Result<Frame, Unreadable> {
        let packed = Packed { encoding: frame.encoding, bytes: self.opened(owner, frame)? };
        let stowed = self.stow(tx, owner, packed).map_err(|unkept| match unkept {
            Unkept::Store(error) => error.into(),
            Unkept::Refused { .. } => Unreadable::Sealed { key_id: frame.key_id.clone().unwrap_or_default() },
        })?;
        Ok(stowed.frame)
    }

    /// The key that new frames are sealed with; none when they are not.
    pub(super) fn current_key(&self, tx: &mut dyn Tx) -> Result<Option<String>, StoreError> {
        Ok(match self.sealing(|| Ok(!tx.keys_in_use()?.is_empty()))? {
            Sealing::Sealed(ring) => Some(ring.current_id().to_string()),
            Sealing::Plain(_) | Sealing::Fallback { .. } | Sealing::Refused { .. } => None,
        })
    }

    /// The packed bytes of a frame, checked and opened.
    fn opened(&self, owner: Owner<'_>, frame: &Frame) -> Result<Vec<u8>, Unreadable> {
        let bytes = self.fetch(frame)?;
        if Sha256Hash::of(&bytes) != frame.hash {
            return Err(Unreadable::Damaged("the stored bytes do not have the recorded hash".into()));
        }
        let Some(key_id) = &frame.key_id else { return Ok(bytes) };
        match open(&self.sealing(|| Ok(true))?, owner, &bytes, key_id) {
            // Another process may have made the key since keys were asked for.
            Err(Unreadable::Sealed { .. }) => open(&self.ask(true), owner, &bytes, key_id),
            opened => opened,
        }
    }

    fn fetch(&self, frame: &Frame) -> Result<Vec<u8>, Unreadable> {
        match &frame.body {
            FrameBody::Row(bytes) => Ok(bytes.clone()),
            FrameBody::Blob(name) => {
                let blobs = self.blobs.as_ref().ok_or_else(|| {
                    Unreadable::Damaged(format!("blob {name} is named, but there is no folder of blobs"))
                })?;
                blobs.get(name)?.ok_or_else(|| Unreadable::Missing { name: name.clone() })
            }
        }
    }
}

fn open(sealing: &Sealing, owner: Owner<'_>, sealed: &[u8], key_id: &str) -> Result<Vec<u8>, Unreadable> {
    let ring = match sealing {
        Sealing::Sealed(ring) | Sealing::Plain(Some(ring)) => ring,
        Sealing::Plain(None) | Sealing::Fallback { .. } | Sealing::Refused { .. } => {
            return Err(Unreadable::Sealed { key_id: key_id.to_owned() });
        }
    };
    ring.open(sealed, &owner.associated()).map_err(|error| match error {
        SealError::UnknownKey { key_id } => Unreadable::Sealed { key_id: key_id.to_string() },
        SealError::NotSealed | SealError::Damaged => Unreadable::Damaged(error.to_string()),
    })
}

fn seal(sealing: &Sealing, owner: Owner<'_>, packed: Packed) -> Result<Frame, Unkept> {
    let (key_id, bytes) = match sealing {
        Sealing::Plain(_) | Sealing::Fallback { .. } => (None, packed.bytes),
        Sealing::Sealed(ring) => {
            let nonce = random_nonce().map_err(|error| {
                Unkept::Store(StoreError::Unavailable {
                    message: "a context could not be sealed".into(),
                    source: Some(error.into()),
                })
            })?;
            (Some(ring.current_id().to_string()), ring.seal(&packed.bytes, &owner.associated(), nonce))
        }
        Sealing::Refused { reason, hint } => {
            return Err(Unkept::Refused { reason: reason.clone(), hint: hint.clone() });
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
