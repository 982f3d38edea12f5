//! Symbol versions: `DT_VERSYM` gives each symbol the index of a definition in `DT_VERDEF`.

use super::layout::{Bytes, Format, VD_AUX, VD_FLAGS, VD_NDX, VD_NEXT, VDA_NAME, VERDEF_SIZE, at};

/// The largest number of definitions. The kernel's images have at most 3.
const MOST: u64 = 16;

/// The two tables of versions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Versions<'a, F> {
    pub(super) versym: Bytes<'a, F>,
    pub(super) verdef: Bytes<'a, F>,
    /// `DT_VERDEFNUM`, or 0 if it is missing.
    pub(super) verdefnum: u64,
}

/// A definition lies outside or not after the one before, or there are too many.
pub(super) struct Malformed;

impl<F: Format> Versions<'_, F> {
    /// Returns where the name of a symbol's version begins in the string table.
    pub(super) fn name_of(&self, index: usize) -> Option<usize> {
        let versym = self.versym.after(index, 2)?.half(at(0));
        self.find(versym).ok()?
    }

    /// Returns where the name of the definition with this index begins, except of the definition
    /// that names the image.
    pub(super) fn find(&self, versym: u16) -> Result<Option<usize>, Malformed> {
        const VER_FLG_BASE: u16 = 1; // names the image
        const HIDDEN: u16 = 0x8000; // hides the symbol from look-ups without a version
        let mut rest = self.verdef;
        let mut found = None;
        for read in 0..MOST {
            let verdef = rest.head(rest.of(VERDEF_SIZE)).ok_or(Malformed)?;
            let (flags, index) = (verdef.half(VD_FLAGS), verdef.half(VD_NDX));
            let (aux, next) = (verdef.word(VD_AUX), verdef.word(VD_NEXT));
            let name = rest.tail(aux).and_then(|aux| aux.head(4)).ok_or(Malformed)?.word(VDA_NAME);
            if (index ^ versym) & !HIDDEN == 0 && flags & VER_FLG_BASE == 0 && found.is_none() {
                found = Some(name);
            }
            // If the count is missing, only `vd_next` ends the table.
            if next == 0 || read == self.verdefnum.wrapping_sub(1) {
                return Ok(found);
            }
            if next < rest.of(VERDEF_SIZE) {
                return Err(Malformed);
            }
            rest = rest.tail(next).ok_or(Malformed)?;
        }
        Err(Malformed)
    }
}
