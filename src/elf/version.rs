//! Symbol versions: `DT_VERSYM` has, for each symbol, the index of a definition in `DT_VERDEF`.

use super::error::ParseError;
use super::layout::{Bytes, VD_AUX, VD_FLAGS, VD_NDX, VD_NEXT, VDA_NAME, VERDEF_SIZE, at};

/// The maximum number of definitions that an image may have, so that the work of the parser is
/// bounded. The kernel's images have at most 3.
const MOST: u64 = 16;

/// An index that no definition has, because it does not fit in 16 bits. `Versions::new` searches
/// for this index, so that the search reads and checks every definition.
const NO_INDEX: u32 = 1 << 16;

/// The two tables of versions.
#[derive(Clone, Copy)]
pub(super) struct Versions<'a> {
    // The tables are slices, because each `Bytes` would repeat the class.
    versym: &'a [u8],
    verdef: &'a [u8],
    /// `DT_VERDEFNUM`, or 0 if it is missing.
    verdefnum: u64,
}

impl<'a> Versions<'a> {
    /// Checks the definitions in `DT_VERDEF`.
    #[inline]
    pub(super) fn new(
        versym: Bytes<'a>,
        verdef: Bytes<'a>,
        verdefnum: u64,
    ) -> Result<Self, ParseError> {
        let versions = Self {
            versym: versym.raw,
            verdef: verdef.raw,
            verdefnum,
        };
        versions.find(verdef, NO_INDEX)?; // goes through all of them
        Ok(versions)
    }

    /// Returns where the name of a symbol's version begins in the string table. `symbol` is the
    /// symbol's index in the symbol table. `image` can be any part of the image, because this
    /// function needs it only for the image's class.
    #[inline]
    pub(super) fn name_of(self, image: Bytes<'a>, symbol: usize) -> Option<usize> {
        let index = image.with(self.versym).tail_of(symbol, 2)?.half(at(0));
        self.find(image.with(self.verdef), index.into()).ok()?
    }

    /// Finds the definition with this index, and returns where its name begins in the string table.
    ///
    /// The definition that names the image itself is skipped. It is an error if a definition lies
    /// outside of the table, if it does not come after the previous one, or if there are more than
    /// [`MOST`].
    #[inline]
    fn find(self, verdef: Bytes<'_>, wanted: u32) -> Result<Option<usize>, ParseError> {
        const VER_FLG_BASE: u16 = 1; // names the image
        const HIDDEN: u32 = 0x8000; // hides the symbol from look-ups without a version
        let size = verdef.of(VERDEF_SIZE);
        let mut rest = verdef;
        for read in 1..=MOST {
            let verdef = rest.head(size).ok_or(ParseError::Versions)?;
            let verdaux = rest.tail(verdef.word(VD_AUX)).ok_or(ParseError::Versions)?;
            let name = verdaux.head(4).ok_or(ParseError::Versions)?.word(VDA_NAME);
            let index = u32::from(verdef.half(VD_NDX));
            let names_the_image = verdef.half(VD_FLAGS) & VER_FLG_BASE != 0;
            if (index ^ wanted) & !HIDDEN == 0 && !names_the_image {
                return Ok(Some(name));
            }
            let next = verdef.word(VD_NEXT);
            // If the count is missing, only `vd_next` ends the table.
            if next == 0 || read == self.verdefnum {
                return Ok(None);
            }
            if next < size {
                return Err(ParseError::Versions);
            }
            rest = rest.tail(next).ok_or(ParseError::Versions)?;
        }
        Err(ParseError::Versions)
    }
}
