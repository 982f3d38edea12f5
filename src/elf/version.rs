//! Symbol versions: `DT_VERSYM` gives each symbol the index of a definition in `DT_VERDEF`.

use super::layout::{Bytes, Format};

/// How many definitions an image may have; the kernel's have at most 3.
const MOST: u64 = 16;
/// Bytes of a `Verdef`, in both classes.
const VERDEF_SIZE: usize = 20;
/// The definition that names the image itself.
const VER_FLG_BASE: u16 = 1;
/// The bit of a `Versym` that hides the symbol from an unversioned look-up.
const HIDDEN: u16 = 0x8000;

/// `DT_VERDEF`, with room for its definitions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Definitions<'a, F> {
    pub(super) table: Bytes<'a, F>,
    /// `DT_VERDEFNUM`; 0 if it is not known.
    pub(super) count: u64,
}

/// What is wrong with a table of definitions: one lies outside, or not behind the one before, or there are too many.
pub(super) struct Malformed;

impl<F: Format> Definitions<'_, F> {
    /// Where the name begins, in the string table, of the version with an index as `DT_VERSYM` gives it. The definition
    /// that names the image is none.
    pub(super) fn find(self, versym: u16) -> Result<Option<usize>, Malformed> {
        let mut here = self.table;
        let mut found = None;
        for read in 0..MOST {
            let verdef = here.head(VERDEF_SIZE).ok_or(Malformed)?;
            let (flags, index) = (verdef.half(2), verdef.half(4));
            let (vd_aux, vd_next) = (verdef.word(12), verdef.word(16));
            let name = here.tail(vd_aux).and_then(|aux| aux.head(4)).ok_or(Malformed)?.word(0);
            if (index ^ versym) & !HIDDEN == 0 && flags & VER_FLG_BASE == 0 && found.is_none() {
                found = Some(name);
            }
            // Of an unknown count there is no last one.
            if vd_next == 0 || read == self.count.wrapping_sub(1) {
                return Ok(found);
            }
            if vd_next < VERDEF_SIZE {
                return Err(Malformed);
            }
            here = here.tail(vd_next).ok_or(Malformed)?;
        }
        Err(Malformed)
    }
}
