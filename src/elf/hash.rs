//! The two hash tables. They only count the symbols here: for a dozen of them, one pass beats hashing.

use super::ParseError;
use super::dynamic::{Load, Tables};
use super::layout::Bytes;

/// Which hash tables an image has. Kernels differ: arm has `DT_HASH` only, arm64 since 6.11 usually
/// `DT_GNU_HASH` only, x86 both.
///
/// ```
/// # use vdso_time::vdso::Vdso;
/// # if let Ok(vdso) = Vdso::locate() {
/// let tables = vdso.image()?.hash_tables();
/// println!("DT_HASH {}, DT_GNU_HASH {}", tables.sysv, tables.gnu);
/// # }
/// # Ok::<(), vdso_time::elf::ParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HashTables {
    /// `DT_HASH` is there.
    pub sysv: bool,
    /// `DT_GNU_HASH` is there.
    pub gnu: bool,
}

impl HashTables {
    pub(super) fn of(tables: &Tables) -> Self {
        Self { sysv: tables.hash.is_some(), gnu: tables.gnu_hash.is_some() }
    }
}

/// How many symbols there are: `DT_HASH` says it, `DT_GNU_HASH` implies it, and without them the symbols go on to
/// the next table. Never more than fit.
pub(super) fn count(
    bytes: Bytes<'_>,
    load: Load,
    tables: &Tables,
    symtab: usize,
) -> Result<usize, ParseError> {
    let mut end = bytes.raw.len();
    let count = if let Some(address) = tables.hash {
        let count = load.offset_of(address).and_then(|at| count_sysv(bytes, at));
        count.ok_or(ParseError::SysvHash)?
    } else if let Some(address) = tables.gnu_hash {
        let count = load.offset_of(address).and_then(|at| count_gnu(bytes, at));
        count.ok_or(ParseError::GnuHash)?
    } else {
        let others = [tables.strtab, tables.versym, tables.verdef];
        let others = others.into_iter().flatten().filter_map(|address| load.offset_of(address));
        end = others.filter(|&other| other > symtab).min().unwrap_or(end);
        usize::MAX
    };
    let room = end.saturating_sub(symtab).checked_div(bytes.layout.sym_size).unwrap_or(0);
    Ok(count.min(room))
}

/// Counts by `DT_HASH` at `at`: its second word is the number of symbols. `None` if the table is not in the image.
fn count_sysv(bytes: Bytes<'_>, at: usize) -> Option<usize> {
    let size = sysv_word(bytes);
    let word = |index: usize| {
        let at = at.checked_add(index.checked_mul(size)?)?;
        usize::try_from(if size == 8 { bytes.xword(at)? } else { bytes.word(at)?.into() }).ok()
    };
    let (nbucket, nchain) = (word(0)?, word(1)?);
    let words = nbucket.checked_add(nchain)?.checked_add(2)?;
    bytes.holds(at, words, size).then_some(nchain)
}

/// The words of `DT_HASH` have 4 bytes, but on Alpha and 64-bit S/390 they have 8 (their psABIs).
fn sysv_word(bytes: Bytes<'_>) -> usize {
    const EM_S390: u16 = 22;
    const EM_ALPHA: u16 = 0x9026;
    let wide = bytes.layout.addr_size == 8 && matches!(bytes.machine(), Some(EM_S390 | EM_ALPHA));
    if wide { 8 } else { 4 }
}

/// Counts by `DT_GNU_HASH` at `at`: the symbols in it are the table's last ones, sorted by bucket, so the chain
/// that starts highest ends at the last symbol. `None` if a part of the table that this takes is not in the image.
fn count_gnu(bytes: Bytes<'_>, at: usize) -> Option<usize> {
    let word = |at: usize, index: usize| Some(bytes.word(at.checked_add(index.checked_mul(4)?)?)? as usize);
    let (nbuckets, symoffset, bloom_size) = (word(at, 0)?, word(at, 1)?, word(at, 2)?);
    let bloom = at.checked_add(16)?;
    let buckets = bloom.checked_add(bloom_size.checked_mul(bytes.layout.addr_size)?)?;
    let chains = buckets.checked_add(nbuckets.checked_mul(4)?)?;
    if !bytes.holds(buckets, nbuckets, 4) {
        return None;
    }
    let mut last = 0;
    for bucket in 0..nbuckets {
        last = last.max(word(buckets, bucket)?);
    }
    if last < symoffset {
        return Some(symoffset); // every bucket is empty
    }
    while word(chains, last.checked_sub(symoffset)?)? & 1 == 0 {
        last = last.checked_add(1)?;
    }
    last.checked_add(1)
}
