//! The two hash tables. The parser takes only the number of symbols from them. It does not look
//! symbols up with them, because an image has about a dozen symbols, and a pass over all of them is
//! faster than hashing.
//!
//! Kernels differ: arm has only `DT_HASH`, arm64 since Linux 6.11 usually has only `DT_GNU_HASH`,
//! and x86 has both.

use super::layout::{ADDR_SIZE, Bytes, ELFCLASS64, at};

/// Returns the number of symbols, which is the second word of `DT_HASH`, or `None` if the table
/// ends outside of the image.
#[inline]
pub(super) fn count_sysv(hash: Bytes<'_>, machine: u16) -> Option<usize> {
    // On Alpha and 64-bit S/390, the words of this table have 8 bytes (see their psABIs).
    const EM_S390: u16 = 22;
    const EM_ALPHA: u16 = 0x9026;
    let is_wide = hash.class() == ELFCLASS64 && matches!(machine, EM_S390 | EM_ALPHA);
    let size = if is_wide { 8 } else { 4 };
    let header = hash.head_of(2, size)?;
    let nbucket = if is_wide {
        header.offset(at(0))
    } else {
        header.word(at(0))
    };
    let nchain = if is_wide {
        header.offset(at(8))
    } else {
        header.word(at(4))
    };
    let words = nbucket.checked_add(nchain)?.checked_add(2)?;
    hash.head_of(words, size)?;
    Some(nchain)
}

/// Returns the number of symbols that `DT_GNU_HASH` implies, or `None` if the table ends outside of
/// the image.
///
/// The table contains all symbols from the index `symoffset` on, sorted by bucket, and the symbols
/// of a bucket are a chain. So the last symbol is the end of the chain whose first symbol has the
/// highest index.
pub(super) fn count_gnu(hash: Bytes<'_>) -> Option<usize> {
    let header = hash.head(16)?;
    let nbuckets = header.word(at(0));
    let symoffset = header.word(at(4));
    let bloom_size = header.word(at(8));
    let buckets = hash.tail(16)?.tail_of(bloom_size, hash.of(ADDR_SIZE))?;
    let starts = buckets.head_of(nbuckets, 4)?.structures(4);
    let last = starts.map(|bucket| bucket.word(at(0))).max().unwrap_or(0);
    if last < symoffset {
        return Some(symoffset); // every bucket is empty
    }
    let chains = buckets.tail_of(nbuckets, 4)?;
    let chain = chains.tail_of(last.wrapping_sub(symoffset), 4)?;
    // The lowest bit of a hash marks the end of its chain.
    let more = chain
        .structures(4)
        .position(|hash| hash.word(at(0)) & 1 != 0)?;
    last.checked_add(more)?.checked_add(1)
}
