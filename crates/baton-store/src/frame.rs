//! Frames: the stored form of a saved context, either whole or as a delta from another context.
//!
//! Owns compression and the check that a decompressed context equals the original. Does not own where frames are
//! stored, which base a delta refers to, or encryption.

use baton_core::Sha256Hash;
use serde::Deserialize;
use strum::{EnumString, IntoStaticStr};
use zstd::zstd_safe::{CCtx, CParameter, DCtx, DParameter, get_error_name};

/// Maximum size of a context in bytes, and so the maximum memory that decompression uses for it.
pub const MAX_FRAME_BYTES: usize = 16 * 1024 * 1024;
/// Contexts larger than this are compressed at a lower, faster level.
const LARGE_BYTES: usize = 1024 * 1024;
/// Deltas of contexts larger than this use the lowest level with long-distance matching. Long-distance matching finds
/// unchanged text at every level, so a higher level costs time and saves almost nothing.
const LARGE_DELTA_BYTES: usize = 4 * 1024 * 1024;
/// Base-2 logarithms of the smallest and the largest compression window of a delta. A match can only refer to bytes
/// inside the window, so the window must hold the context and its base; the largest one holds two contexts of
/// `MAX_FRAME_BYTES`.
const WINDOW_LOGS: std::ops::RangeInclusive<u32> = 23..=25;
const _: () = assert!(2 * MAX_FRAME_BYTES <= 1 << *WINDOW_LOGS.end());

/// How a frame encodes its context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, EnumString, IntoStaticStr)]
#[strum(serialize_all = "lowercase")]
pub enum Encoding {
    /// The unmodified bytes.
    Plain,
    /// Compressed with zstd.
    Zstd,
    /// Compressed with zstd as a delta from a base context.
    Delta,
}

impl Encoding {
    /// Returns the stored name.
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    /// Reads a stored name.
    pub fn from_wire(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// Compression effort.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Effort {
    /// No compression.
    Off,
    /// Fast compression.
    Basic,
    /// Balanced compression.
    Standard,
    /// Best compression.
    Aggressive,
}

/// Settings for encoding contexts as frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packing {
    /// Compression effort.
    pub effort: Effort,
    /// Contexts shorter than this are not compressed.
    pub min_bytes: usize,
}

/// An encoded context, ready to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// How the bytes are encoded.
    pub encoding: Encoding,
    /// The encoded bytes.
    pub bytes: Vec<u8>,
}

/// Why a context cannot be encoded or decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FrameError {
    /// The context is larger than [`MAX_FRAME_BYTES`].
    #[error("{bytes} bytes are more than a frame may hold ({MAX_FRAME_BYTES})")]
    TooLarge {
        /// Size of the context.
        bytes: usize,
    },
    /// The frame cannot be decoded.
    #[error("the frame is damaged: {problem}")]
    Damaged {
        /// What is wrong with the frame.
        problem: String,
    },
}

fn damaged(problem: impl ToString) -> FrameError {
    FrameError::Damaged { problem: problem.to_string() }
}

impl Packing {
    /// Encodes a context as a whole frame.
    pub fn whole(self, context: &[u8]) -> Result<Packed, FrameError> {
        require_fitting(context)?;
        if context.len() < self.min_bytes {
            return Ok(Packed { encoding: Encoding::Plain, bytes: context.to_vec() });
        }
        let is_large = context.len() > LARGE_BYTES;
        let level = match self.effort {
            Effort::Off => return Ok(Packed { encoding: Encoding::Plain, bytes: context.to_vec() }),
            Effort::Basic => 1,
            Effort::Standard if is_large => 3,
            Effort::Standard => 12,
            Effort::Aggressive if is_large => 9,
            Effort::Aggressive => 19,
        };
        Ok(Packed { encoding: Encoding::Zstd, bytes: compress(context, None, level)? })
    }

    /// Returns true if a context of this size may be stored as a delta.
    pub const fn takes_delta(self, bytes: usize) -> bool {
        !matches!(self.effort, Effort::Off) && self.min_bytes <= bytes
    }

    /// Encodes a context as a delta from a base. `None` if deltas are disabled or the context is too short.
    pub fn delta(self, context: &[u8], base: &[u8]) -> Result<Option<Packed>, FrameError> {
        require_fitting(context)?;
        require_fitting(base)?;
        let level = match self.effort {
            Effort::Off => return Ok(None),
            Effort::Basic => 1,
            Effort::Aggressive if context.len() <= LARGE_DELTA_BYTES => 9,
            Effort::Standard | Effort::Aggressive => 3,
        };
        if !self.takes_delta(context.len()) {
            return Ok(None);
        }
        Ok(Some(Packed { encoding: Encoding::Delta, bytes: compress(context, Some(base), level)? }))
    }
}

impl Packed {
    /// Decodes the context and checks that it has this size and, if given, this hash.
    pub fn unpack(
        &self,
        base: Option<&[u8]>,
        size: usize,
        hash: Option<Sha256Hash>,
    ) -> Result<Vec<u8>, FrameError> {
        if size > MAX_FRAME_BYTES {
            return Err(FrameError::TooLarge { bytes: size });
        }
        let context = match (self.encoding, base) {
            (Encoding::Plain, _) => self.bytes.clone(),
            (Encoding::Zstd, _) => decompress(&self.bytes, None, size)?,
            (Encoding::Delta, Some(base)) => decompress(&self.bytes, Some(base), size)?,
            (Encoding::Delta, None) => return Err(damaged("its base is missing")),
        };
        if context.len() != size {
            return Err(damaged(format!("it has {} bytes instead of {size}", context.len())));
        }
        if hash.is_some_and(|hash| Sha256Hash::of(&context) != hash) {
            return Err(damaged("its content does not have the recorded hash"));
        }
        Ok(context)
    }
}

const fn require_fitting(context: &[u8]) -> Result<(), FrameError> {
    if context.len() > MAX_FRAME_BYTES {
        return Err(FrameError::TooLarge { bytes: context.len() });
    }
    Ok(())
}

/// Returns the base-2 logarithm of the window that holds this many bytes.
fn window_log(bytes: usize) -> u32 {
    bytes.next_power_of_two().ilog2().clamp(*WINDOW_LOGS.start(), *WINDOW_LOGS.end())
}

fn compress(context: &[u8], base: Option<&[u8]>, level: i32) -> Result<Vec<u8>, FrameError> {
    let failed = |code: usize| damaged(get_error_name(code));
    let mut compressor =
        CCtx::try_create().ok_or_else(|| damaged("there is not enough memory to compress it"))?;
    compressor.set_parameter(CParameter::CompressionLevel(level)).map_err(failed)?;
    // The hashes of context and frame are stored beside each frame, so a zstd checksum would be redundant.
    compressor.set_parameter(CParameter::ChecksumFlag(false)).map_err(failed)?;
    if let Some(base) = base {
        let both = context.len() + base.len();
        if both > 256 * 1024 {
            compressor.set_parameter(CParameter::WindowLog(window_log(both))).map_err(failed)?;
            compressor.set_parameter(CParameter::EnableLongDistanceMatching(true)).map_err(failed)?;
        }
        compressor.ref_prefix(base).map_err(failed)?;
    }
    let mut frame = Vec::with_capacity(zstd::zstd_safe::compress_bound(context.len()));
    compressor.compress2(&mut frame, context).map_err(failed)?;
    Ok(frame)
}

/// Decompresses into a buffer of the recorded size. A frame that expands to more bytes is an error.
fn decompress(frame: &[u8], base: Option<&[u8]>, size: usize) -> Result<Vec<u8>, FrameError> {
    let failed = |code: usize| damaged(get_error_name(code));
    let mut decompressor =
        DCtx::try_create().ok_or_else(|| damaged("there is not enough memory to decompress it"))?;
    decompressor.set_parameter(DParameter::WindowLogMax(*WINDOW_LOGS.end())).map_err(failed)?;
    if let Some(base) = base {
        decompressor.ref_prefix(base).map_err(failed)?;
    }
    let mut context = Vec::with_capacity(size);
    decompressor.decompress(&mut context, frame).map_err(failed)?;
    Ok(context)
}

#[cfg(test)]
#[path = "frame_tests.rs"]
mod tests;
