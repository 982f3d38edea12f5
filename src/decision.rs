//! Which symbol of an image answers each function, or why none does.

use crate::arch::{Abi, Candidate, Quirk, TIME32_FIRST};
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

/// Finds the best candidate that an image has for each of [`Abi::functions`]. The bias is the
/// difference between an address and the value of a symbol.
#[inline(never)]
pub(crate) fn decide<F: Format>(abi: &Abi, image: &ParsedImage<'_, F>, bias: u64) -> [Outcome; 5] {
    let all = || abi.functions().into_iter().flat_map(|(_, function)| function.candidates);
    let has_quirk = all().any(|candidate| candidate.unless == Some(Quirk::BlankedNames));
    let is_blanked = has_quirk && image.has_blanked_names();
    let has_load_address = image.load_address() != 0;
    let flaw = |candidate: &Candidate| match candidate.unless {
        Some(Quirk::BlankedNames) if is_blanked => Some(FallbackReason::BlankedNames),
        Some(Quirk::NonzeroLoadAddress) if has_load_address => Some(FallbackReason::NonzeroLoadAddress),
        _ => None,
    };
    abi.functions().map(|(_, function)| {
        // On 32-bit Android the 32-bit symbols come first, as in bionic: the 64-bit ones make the
        // 64-bit system call for a clock that they cannot read, and Android may kill for it.
        let passes: &[bool] = const { if TIME32_FIRST { &[true, false] } else { &[false] } };
        for &is_time32 in passes {
            for (row, candidate) in function.candidates.iter().enumerate() {
                let is_of_pass = !TIME32_FIRST || candidate.shape.is_time32() == is_time32;
                if !is_of_pass || flaw(candidate).is_some() {
                    continue;
                }
                if let Some(entry) = image.find(candidate.name, Some(abi.version)) {
                    let address = entry.value.wrapping_add(bias) as usize;
                    return Ok(ChosenSymbol {
                        row,
                        is_versioned: image.has_versions(),
                        address,
                        size: entry.size,
                    });
                }
            }
        }
        Err(function.candidates.iter().find_map(flaw).unwrap_or(FallbackReason::NoSymbol))
    })
}
