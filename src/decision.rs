//! Which symbol of an image answers each function, or why none does.

use crate::arch::{Abi, Quirk, TIME32_FIRST};
use crate::elf::{Format, ParsedImage};
use crate::reason::FallbackReason;

/// The symbol that answers a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChosenSymbol {
    /// The symbol's row in the candidates of the function.
    pub(crate) row: usize,
    /// Whether the image has versions. If so, the symbol has the table's.
    pub(crate) is_versioned: bool,
    /// Where the code is. On arm, bit 0 is set for Thumb code.
    pub(crate) address: usize,
    /// The size of the code, or 0 if it is not known.
    pub(crate) size: u64,
}

/// The symbol that answers a function, or why none does.
pub(crate) type Outcome = Result<ChosenSymbol, FallbackReason>;

/// Returns whether this image is one that programs of this table call.
///
/// A function pointer of big-endian powerpc64 is the address of a descriptor (ELFv1). The vDSO has
/// no descriptors, so such programs call libc, which knows how to call it.
pub(crate) fn is_called<F: Format>(abi: &Abi, image: &ParsedImage<'_, F>) -> bool {
    const EM_PPC64: u16 = 21;
    let has_descriptors = abi.machine == EM_PPC64 && image.is_big_endian();
    (image.machine(), image.class()) == (abi.machine, abi.class) && !has_descriptors
}

/// Finds the best candidate that an image has for each of [`Abi::functions`]. The bias is the
/// difference between an address and the value of a symbol.
#[inline(never)]
pub(crate) fn decide<F: Format>(abi: &Abi, image: &ParsedImage<'_, F>, bias: u64) -> [Outcome; 5] {
    let all = || abi.functions().into_iter().flat_map(|(_, function)| function.candidates);
    let has_quirk = all().any(|candidate| candidate.unless == Some(Quirk::BlankedNames));
    let is_blanked = has_quirk && image.has_blanked_names();
    let has_load_address = image.load_address() != 0;
    abi.functions().map(|(_, function)| {
        // On 32-bit Android the 32-bit symbols come first, as in bionic: the 64-bit ones make the
        // 64-bit system call for a clock that they cannot read, and Android may kill for it.
        let passes: &[bool] = const { if TIME32_FIRST { &[true, false] } else { &[false] } };
        let mut reason = FallbackReason::NoSymbol;
        for &is_time32 in passes {
            for (row, candidate) in function.candidates.iter().enumerate() {
                let is_of_pass = !TIME32_FIRST || candidate.shape.is_time32() == is_time32;
                if !is_of_pass {
                    continue;
                }
                // The blank name may be that of this symbol.
                if candidate.unless == Some(Quirk::BlankedNames) && is_blanked {
                    reason = FallbackReason::BlankedNames;
                    continue;
                }
                let Some(entry) = image.find(candidate.name, Some(abi.version)) else { continue };
                if candidate.unless == Some(Quirk::NonzeroLoadAddress) && has_load_address {
                    reason = FallbackReason::NonzeroLoadAddress;
                    continue;
                }
                let address = entry.value.wrapping_add(bias) as usize;
                return Ok(ChosenSymbol {
                    row,
                    is_versioned: image.has_versions(),
                    address,
                    size: entry.size,
                });
            }
        }
        Err(reason)
    })
}
