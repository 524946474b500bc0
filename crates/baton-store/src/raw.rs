//! Packing of raw tool output: compressed quickly, because an agent waits, and bounded on the way back.

use crate::error::StoreError;

/// The longest raw output that is kept, in bytes, before it is packed.
pub const MAX_RAW_BYTES: usize = 64 * 1024 * 1024;
/// Quick rather than good: what is packed here is unpacked once.
const LEVEL: i32 = 1;
/// Shorter output is left as it is.
const MIN_PACKED_BYTES: usize = 512;
const PLAIN: u8 = 0;
const ZSTD: u8 = 1;

/// Packs raw output: a byte that says how, then the rest.
pub fn pack_raw(raw: &[u8]) -> Result<Vec<u8>, StoreError> {
    if raw.len() >= MIN_PACKED_BYTES {
        let room = zstd::zstd_safe::compress_bound(raw.len());
        let mut packed = Vec::with_capacity(room + 1);
        packed.push(ZSTD);
        let bytes = zstd::bulk::compress(raw, LEVEL)
            .map_err(|problem| StoreError::corrupt("pending_queue", problem))?;
        packed.extend_from_slice(&bytes);
        return Ok(packed);
    }
    let mut plain = Vec::with_capacity(raw.len() + 1);
    plain.push(PLAIN);
    plain.extend_from_slice(raw);
    Ok(plain)
}

/// Unpacks raw output, which never takes up more than [`MAX_RAW_BYTES`].
pub fn unpack_raw(packed: &[u8]) -> Result<Vec<u8>, StoreError> {
    match packed.split_first() {
        Some((&PLAIN, raw)) => Ok(raw.to_vec()),
        Some((&ZSTD, bytes)) => {
            let size = zstd::zstd_safe::get_frame_content_size(bytes).ok().flatten();
            let size = size.and_then(|size| usize::try_from(size).ok()).filter(|size| *size <= MAX_RAW_BYTES);
            let size =
                size.ok_or_else(|| StoreError::corrupt("pending_queue", "raw output of no known size"))?;
            zstd::bulk::decompress(bytes, size)
                .map_err(|problem| StoreError::corrupt("pending_queue", problem))
        }
        _ => Err(StoreError::corrupt("pending_queue", "raw output that is packed in no known way")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_output_comes_back() {
        for raw in
            [Vec::new(), b"short".to_vec(), b"abc".repeat(100_000), (0..=255).cycle().take(9_999).collect()]
        {
            assert_eq!(unpack_raw(&pack_raw(&raw).unwrap()).unwrap(), raw);
        }
        assert!(pack_raw(&b"abc".repeat(100_000)).unwrap().len() < 1_000);
    }

    #[test]
    fn damage_is_told() {
        let packed = pack_raw(&b"abc".repeat(1_000)).unwrap();
        for bytes in [&[][..], &[7, 1], &packed[..packed.len() - 1], &packed[..3]] {
            assert!(matches!(unpack_raw(bytes), Err(StoreError::Corrupt { .. })), "{bytes:?}");
        }
    }
}
