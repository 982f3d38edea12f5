//! Symbol versions: `DT_VERSYM` gives each symbol the index of a definition in `DT_VERDEF`.

use super::layout::Bytes;

/// How many definitions an image may have; the kernel's have at most 3.
const MOST: usize = 16;
/// Bytes of a `Verdef`, in both classes.
const VERDEF_SIZE: usize = 20;
/// The definition that names the image itself.
const VER_FLG_BASE: u16 = 1;
/// The bit of a `Versym` that hides the symbol from an unversioned look-up.
const HIDDEN: u16 = 0x8000;

/// The two tables, seen to be sound.
#[derive(Clone, Copy, Debug)]
pub(super) struct Versions<'a> {
    bytes: Bytes<'a>,
    versym: usize,
    verdef: usize,
    count: usize,
}

/// One version: its index, and where its name begins in the string table.
pub(super) struct Definition {
    pub(super) index: u16,
    pub(super) name: usize,
}

impl<'a> Versions<'a> {
    /// Takes the tables at `versym`, for `symbols` symbols, and `verdef`, of at most `count` definitions
    /// whose names begin before `strings`. `None` if anything in them is out of place.
    pub(super) fn new(
        bytes: Bytes<'a>,
        versym: usize,
        symbols: usize,
        verdef: usize,
        count: Option<u64>,
        strings: usize,
    ) -> Option<Self> {
        if !bytes.holds(versym, symbols, 2) {
            return None;
        }
        let mut at = Some(verdef);
        let mut sound = 0;
        while let Some(here) = at.filter(|_| count.is_none_or(|count| sound < count)) {
            let (_, definition, next) = definition(bytes, here)?;
            if sound == MOST as u64 || definition.name >= strings {
                return None;
            }
            sound = sound.checked_add(1)?;
            at = next;
        }
        Some(Self { bytes, versym, verdef, count: usize::try_from(sound).ok()? })
    }

    /// The versions that are defined; the definition that names the image is not one.
    pub(super) fn definitions(self) -> impl Iterator<Item = Definition> + use<'a> {
        let mut at = Some(self.verdef);
        (0..self.count)
            .map_while(move |_| {
                let (flags, found, next) = definition(self.bytes, at?)?;
                at = next;
                Some((flags, found))
            })
            .filter(|(flags, _)| flags & VER_FLG_BASE == 0)
            .map(|(_, found)| found)
    }

    /// The index of the version of symbol `symbol`.
    pub(super) fn index_of(self, symbol: usize) -> Option<u16> {
        let versym = self.bytes.half(self.versym.checked_add(symbol.checked_mul(2)?)?)?;
        Some(versym & !HIDDEN)
    }
}

/// The `Verdef` at `at`: its flags, index and name, and where the next one is, which must lie behind it.
fn definition(bytes: Bytes<'_>, at: usize) -> Option<(u16, Definition, Option<usize>)> {
    let flags = bytes.half(at.checked_add(2)?)?;
    let index = bytes.half(at.checked_add(4)?)? & !HIDDEN;
    let vd_aux = bytes.word(at.checked_add(12)?)? as usize;
    let vd_next = bytes.word(at.checked_add(16)?)? as usize;
    let name = bytes.word(at.checked_add(vd_aux)?)? as usize;
    let next = match vd_next {
        0 => None,
        1..VERDEF_SIZE => return None,
        _ => Some(at.checked_add(vd_next)?),
    };
    Some((flags, Definition { index, name }, next))
}
