//! The two hash tables. They only count the symbols here: for a dozen of them, one pass beats hashing.

use super::ParseError;
use super::dynamic::{Load, Tables};
use super::layout::{Bytes, Format};

/// Which hash tables an image has. Kernels differ: arm has `DT_HASH` only, arm64 since 6.11 usually
/// `DT_GNU_HASH` only, x86 both.
///
/// ```
/// # use vdso_time::vdso::Vdso;
/// # if let Ok(vdso) = Vdso::locate() {
/// let tables = vdso.image().hash_tables();
/// println!("DT_HASH {}, DT_GNU_HASH {}", tables.sysv, tables.gnu);
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HashTables {
    /// `DT_HASH` is there.
    pub sysv: bool,
    /// `DT_GNU_HASH` is there.
    pub gnu: bool,
}

/// How many symbols the table at `symtab` has: `DT_HASH` says it, `DT_GNU_HASH` implies it, and without them the symbols
/// go on to the string table, which every linker script has behind them, or to the image's end. Never more than fit.
pub(super) fn count<F: Format>(
    bytes: Bytes<'_, F>,
    load: Load,
    tables: &Tables,
    symtab: usize,
) -> Result<usize, ParseError> {
    let offset = load.offset_of(if tables.hash != 0 { tables.hash } else { tables.gnu_hash });
    let table = offset.and_then(|offset| bytes.tail(offset));
    let mut end = bytes.raw.len();
    let count = if tables.hash != 0 {
        table.and_then(|hash| count_sysv(hash, bytes.machine())).ok_or(ParseError::SysvHash)?
    } else if tables.gnu_hash != 0 {
        table.and_then(count_gnu).ok_or(ParseError::GnuHash)?
    } else {
        end = load.offset_of(tables.strtab).filter(|&next| next > symtab).unwrap_or(end);
        usize::MAX
    };
    let room = end.saturating_sub(symtab).checked_div(bytes.layout().sym_size).unwrap_or(0);
    Ok(count.min(room))
}

/// Counts by `DT_HASH`: its second word is the number of symbols. `None` if the table goes beyond the image.
fn count_sysv<F: Format>(hash: Bytes<'_, F>, machine: u16) -> Option<usize> {
    let wide = hash.format.has_wide_hash(machine);
    hash.head(8)?;
    let (nbucket, nchain, size) =
        if wide { (hash.offset(0), hash.offset(8), 8) } else { (hash.word(0), hash.word(4), 4) };
    let words = nbucket.checked_add(nchain)?.checked_add(2)?;
    hash.first(words, size)?;
    Some(nchain)
}

/// Counts by `DT_GNU_HASH`: the symbols in it are the table's last ones, sorted by bucket, so the chain that starts
/// highest ends at the last symbol. `None` if a part of the table that this takes is not in the image.
#[inline(never)] // off the way of an image with DT_HASH
fn count_gnu<F: Format>(hash: Bytes<'_, F>) -> Option<usize> {
    let start = hash.head(16)?;
    let (nbuckets, symoffset, bloom_size) = (start.word(0), start.word(4), start.word(8));
    let behind_bloom = hash.tail(16)?.behind(bloom_size, hash.layout().addr_size)?;
    let buckets = behind_bloom.first(nbuckets, 4)?;
    let last = buckets.table(4).map(|bucket| bucket.word(0)).max().unwrap_or(0);
    if last < symoffset {
        return Some(symoffset); // every bucket is empty
    }
    let chains = behind_bloom.behind(nbuckets, 4)?;
    let chain = chains.behind(last.wrapping_sub(symoffset), 4)?;
    let more = chain.table(4).position(|hash| hash.word(0) & 1 != 0)?;
    last.checked_add(more)?.checked_add(1)
}
