//! Symbol versions: `DT_VERSYM` gives each symbol the index of a definition in `DT_VERDEF`.

use super::error::ParseError;
use super::layout::{Bytes, Format, VD_AUX, VD_FLAGS, VD_NDX, VD_NEXT, VDA_NAME, VERDEF_SIZE, at};

/// The largest number of definitions. The kernel's images have at most 3.
const MOST: u64 = 16;

/// No definition has this index, which has more than 16 bits.
pub(super) const NO_INDEX: u32 = 1 << 16;

/// The two tables of versions, empty if the image has none.
#[derive(Clone, Copy, Default)]
pub(super) struct Versions<'a> {
    pub(super) versym: &'a [u8],
    pub(super) verdef: &'a [u8],
    /// `DT_VERDEFNUM`, or 0 if it is missing.
    pub(super) verdefnum: u64,
}

impl Versions<'_> {
    /// Returns where the name of a symbol's version begins in the string table.
    #[inline(always)]
    pub(super) fn name_of<F: Format>(self, image: Bytes<'_, F>, index: usize) -> Option<usize> {
        let versym = image.with(self.versym).after(index, 2)?.half(at(0));
        find(image.with(self.verdef), self.verdefnum, versym.into()).ok()?
    }
}

/// Finds the definition with this index, and returns where its name begins in the string table.
///
/// The definition that names the image does not count. No definition has the index [`NO_INDEX`], so
/// a search for it checks all of them. It is an error if a definition lies outside of the table or
/// not after the one before, or if there are more than [`MOST`].
#[inline(always)]
pub(super) fn find<F: Format>(
    verdef: Bytes<'_, F>,
    verdefnum: u64,
    versym: u32,
) -> Result<Option<usize>, ParseError> {
    const VER_FLG_BASE: u16 = 1; // names the image
    const HIDDEN: u32 = 0x8000; // hides the symbol from look-ups without a version
    let mut rest = verdef;
    for read in 0..MOST {
        let verdef = rest
            .head(rest.of(VERDEF_SIZE))
            .ok_or(ParseError::Versions)?;
        let (flags, index) = (verdef.half(VD_FLAGS), verdef.half(VD_NDX));
        let (aux, next) = (verdef.word(VD_AUX), verdef.word(VD_NEXT));
        let name = rest
            .tail(aux)
            .and_then(|aux| aux.head(4))
            .ok_or(ParseError::Versions)?
            .word(VDA_NAME);
        if (u32::from(index) ^ versym) & !HIDDEN == 0 && flags & VER_FLG_BASE == 0 {
            return Ok(Some(name));
        }
        // If the count is missing, only `vd_next` ends the table.
        if next == 0 || read == verdefnum.wrapping_sub(1) {
            return Ok(None);
        }
        if next < rest.of(VERDEF_SIZE) {
            return Err(ParseError::Versions);
        }
        rest = rest.tail(next).ok_or(ParseError::Versions)?;
    }
    Err(ParseError::Versions)
}
