//! MiniDebugInfo, the section `.gnu_debugdata`: a file of symbols, compressed by xz.

use std::rc::Rc;

/// Larger ones are ignored. A symbol table takes less.
const MOST_BYTES: u64 = 64 << 20;

pub(super) fn decompressed(xz: &[u8]) -> Option<Rc<[u8]>> {
    let size = size(xz).filter(|size| *size <= MOST_BYTES)?;
    let mut bytes = Vec::with_capacity(size as usize);
    lzma_rs::xz_decompress(&mut &*xz, &mut bytes).ok()?;
    Some(bytes.into())
}

/// The decompressed size, by the headers that the decoder follows. It has no limit of its own, and
/// a kilobyte can become megabytes.
fn size(xz: &[u8]) -> Option<u64> {
    let byte = |at: usize| xz.get(at).map(|byte| u64::from(*byte));
    let word = |at: usize| Some((byte(at)? << 8 | byte(at + 1)?) + 1);
    // The size of a check, by the flags of the stream.
    let check = match byte(7)? {
        0 => 0,
        1 => 4,
        4 => 8,
        _ => 32,
    };
    let (mut at, mut total) = (12, 0);
    // A block begins with the size of its header, the index with 0.
    while byte(at)? != 0 {
        at += 4 * (byte(at)? as usize + 1);
        loop {
            match byte(at)? {
                0 => break,
                1 | 2 => {
                    total += word(at + 1)?;
                    at += 3 + word(at + 1)? as usize;
                }
                control @ 0x80.. => {
                    total += ((control & 0x1f) << 16) + word(at + 1)?;
                    at += 5 + usize::from(control >= 0xc0) + word(at + 3)? as usize;
                }
                _ => return None,
            }
        }
        at = (at + 1).next_multiple_of(4) + check;
    }
    Some(total)
}
