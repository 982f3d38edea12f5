//! The two hash tables. The parser takes only the number of symbols from them: to find a dozen
//! symbols, a pass over all symbols is faster than hashing.
//!
//! Kernels differ: arm has only `DT_HASH`, arm64 since 6.11 usually only `DT_GNU_HASH`, x86 both.

use super::layout::{ADDR_SIZE, Bytes, Format, at};

/// Returns the number of symbols, the second word of `DT_HASH`. `None` if the table ends outside of
/// the image.
#[inline(always)]
pub(super) fn count_sysv<F: Format>(hash: Bytes<'_, F>, machine: u16) -> Option<u32> {
    // Alpha and 64-bit S/390 have words of 8 bytes (their psABIs).
    const EM_S390: u16 = 22;
    const EM_ALPHA: u16 = 0x9026;
    if hash.is_64_bit() && matches!(machine, EM_S390 | EM_ALPHA) {
        return count_wide(hash);
    }
    count(hash, 4, hash.word(at(0)), hash.head(8)?.word(at(4)))
}

#[cold]
#[inline(never)]
fn count_wide<F: Format>(hash: Bytes<'_, F>) -> Option<u32> {
    count(hash, 8, hash.offset(at(0)), hash.head(16)?.offset(at(8)))
}

fn count<F: Format>(hash: Bytes<'_, F>, size: usize, nbucket: usize, nchain: usize) -> Option<u32> {
    hash.first(nbucket.checked_add(nchain)?.checked_add(2)?, size)?;
    u32::try_from(nchain).ok()
}

/// Returns the number of symbols that `DT_GNU_HASH` implies. `None` if it reads outside of the
/// image.
///
/// The table has the last symbols, sorted by bucket. So the chain with the highest start ends at
/// the last symbol.
#[inline(never)]
pub(super) fn count_gnu<F: Format>(hash: Bytes<'_, F>) -> Option<u32> {
    let header = hash.head(16)?;
    let (nbuckets, symoffset, bloom_size) =
        (header.word(at(0)), header.word(at(4)), header.word(at(8)));
    let buckets = hash.tail(16)?.after(bloom_size, hash.of(ADDR_SIZE))?;
    let starts = buckets.first(nbuckets, 4)?.table(4);
    let last = starts.map(|bucket| bucket.word(at(0))).max().unwrap_or(0);
    if last < symoffset {
        return Some(symoffset as u32); // every bucket is empty
    }
    let chain = buckets
        .after(nbuckets, 4)?
        .after(last.wrapping_sub(symoffset), 4)?;
    let more = chain.table(4).position(|hash| hash.word(at(0)) & 1 != 0)?;
    u32::try_from(last.checked_add(more)?.checked_add(1)?).ok()
}
