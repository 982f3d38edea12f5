//! Which symbol of an image answers each function, or why none does.

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::vdso::LocateError;
use crate::arch::{Abi, Candidate, Function, Quirk, TIME32_FIRST};
use crate::elf::{Format, ParseError, ParsedImage};

/// Why the vDSO does not answer a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FallbackReason {
    /// The first call found no readable vDSO.
    NoVdso(LocateError),
    /// The image is for another architecture.
    ForeignImage,
    /// The image has no symbol that can answer.
    NoSymbol,
    /// A function of the image has a blank name.
    ///
    /// The kernel found no usable timer at boot and blanked the names of the functions that read it
    /// (arch/arm/kernel/vdso.c, `vdso_nullpatch_one`). Kernels before 5.8 left out
    /// `__vdso_clock_gettime64`, which then returns garbage, so no such image is trusted.
    BlankedNames,
    /// The image has another `p_vaddr` than 0.
    ///
    /// A loader relocated it, as QEMU does with its own image, whose getcpu is wrong.
    RelocatedImage,
}

impl fmt::Display for FallbackReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoVdso(error) => return error.fmt(f),
            Self::ForeignImage => "the vDSO is for another architecture",
            Self::NoSymbol => "the vDSO has no such function",
            Self::BlankedNames => "the kernel blanked the names of the vDSO's functions",
            Self::RelocatedImage => "this function of a relocated vDSO is not trusted",
        })
    }
}

impl From<LocateError> for FallbackReason {
    fn from(error: LocateError) -> Self {
        match error {
            LocateError::Malformed(ParseError::Class | ParseError::ByteOrder) => Self::ForeignImage,
            error => Self::NoVdso(error),
        }
    }
}

/// How one function is answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// The symbol of this row of the function's table, at this address.
    Symbol { row: usize, is_versioned: bool, address: usize },
    /// The system call.
    Fallback(FallbackReason),
}

/// Decides how an image answers each of [`Abi::functions`], in one pass over its symbols. The best
/// candidate that the image has answers. `address` converts the value of a symbol.
#[inline(never)]
pub(super) fn outcomes<F: Format>(
    abi: &Abi,
    image: &ParsedImage<'_, F>,
    is_blanked: bool,
    address: impl Fn(u64) -> usize,
) -> [Outcome; 5] {
    let is_relocated = image.load_address() != 0;
    let flaw = |candidate: &Candidate| match candidate.unless {
        Some(Quirk::BlankedNames) if is_blanked => Some(FallbackReason::BlankedNames),
        Some(Quirk::Relocated) if is_relocated => Some(FallbackReason::RelocatedImage),
        _ => None,
    };
    let functions = abi.functions().map(|(_, function)| function);
    let mut found: [Option<(usize, usize)>; 5] = [None; 5];
    for raw in image.raw_entries() {
        for (function, found) in functions.iter().zip(&mut found) {
            for (row, candidate) in function.candidates.iter().enumerate() {
                let is_better = found.is_none_or(|(best, _)| rank(function, row) < rank(function, best));
                if is_better && raw.is_named(candidate.name) && flaw(candidate).is_none() {
                    if let Some(entry) = raw.entry(Some(abi.version)) {
                        *found = Some((row, address(entry.value)));
                    }
                }
            }
        }
    }
    let mut outcomes = [Outcome::Fallback(FallbackReason::NoSymbol); 5];
    for ((outcome, function), found) in outcomes.iter_mut().zip(functions).zip(found) {
        if let Some((row, address)) = found {
            *outcome = Outcome::Symbol { row, is_versioned: image.has_versions(), address };
        } else if let Some(flaw) = function.candidates.iter().find_map(flaw) {
            *outcome = Outcome::Fallback(flaw);
        }
    }
    outcomes
}

/// Returns the position of a row in the order of preference.
///
/// The 64-bit symbols of a 32-bit vDSO make the 64-bit system call for the clocks that they cannot
/// read, and Android may kill for that call. So the 32-bit symbols come first there, as in bionic.
fn rank(function: &Function, row: usize) -> usize {
    let is_time32 =
        |row: usize| function.candidates.get(row).is_some_and(|candidate| candidate.shape.is_time32());
    if TIME32_FIRST && !is_time32(row) { row + function.candidates.len() } else { row }
}

/// The outcome of one function in this process, as two words for `routes()`. A thread that sees the code
/// also sees what was stored before it.
///
/// If two threads find different outcomes (a sandbox around one of them), the words may come from
/// both. The slots do not depend on them.
pub(super) struct Record {
    /// 0 before the first call. A symbol has its row plus 1, and [`VERSIONED`] if the image has
    /// versions. A fallback has [`FALLBACK`] plus the code of its reason.
    code: AtomicUsize,
    address: AtomicUsize,
}

const VERSIONED: usize = 1 << 8;
const FALLBACK: usize = 1 << 9;

/// The records, in the order of [`Abi::functions`].
pub(super) static RECORDS: [Record; 5] = [const { Record::new() }; 5];

impl Record {
    const fn new() -> Self {
        Self { code: AtomicUsize::new(0), address: AtomicUsize::new(0) }
    }

    pub(super) fn store(&self, outcome: Outcome) {
        let (code, address) = match outcome {
            Outcome::Symbol { row, is_versioned: true, address } => (row + 1 + VERSIONED, address),
            Outcome::Symbol { row, is_versioned: false, address } => (row + 1, address),
            Outcome::Fallback(reason) => (FALLBACK + reason.code(), 0),
        };
        self.address.store(address, Ordering::Relaxed);
        self.code.store(code, Ordering::Release);
    }

    /// Returns the outcome, or `None` before the first call.
    pub(super) fn load(&self) -> Option<Outcome> {
        let code = self.code.load(Ordering::Acquire);
        if code & FALLBACK != 0 {
            return FallbackReason::all().nth(code & (FALLBACK - 1)).map(Outcome::Fallback);
        }
        let row = (code & (VERSIONED - 1)).checked_sub(1)?;
        let address = self.address.load(Ordering::Relaxed);
        Some(Outcome::Symbol { row, is_versioned: code & VERSIONED != 0, address })
    }
}

impl FallbackReason {
    /// Returns the position of the reason in [`all`](Self::all). A search would be larger code.
    fn code(self) -> usize {
        match self {
            Self::ForeignImage => 0,
            Self::NoSymbol => 1,
            Self::BlankedNames => 2,
            Self::RelocatedImage => 3,
            Self::NoVdso(LocateError::Absent) => 4,
            Self::NoVdso(LocateError::Unmapped) => 5,
            Self::NoVdso(LocateError::Unchecked) => 6,
            Self::NoVdso(LocateError::Malformed(error)) => 7 + error as usize,
        }
    }

    /// Returns every reason.
    fn all() -> impl Iterator<Item = Self> {
        let malformed = ParseError::ALL.iter().copied().map(LocateError::Malformed);
        let no_vdso = [LocateError::Absent, LocateError::Unmapped, LocateError::Unchecked];
        [Self::ForeignImage, Self::NoSymbol, Self::BlankedNames, Self::RelocatedImage]
            .into_iter()
            .chain(no_vdso.into_iter().chain(malformed).map(Self::NoVdso))
    }
}

#[cfg(test)]
mod tests {
    use super::{FallbackReason, Outcome, Record};

    #[test]
    fn a_record_returns_the_outcome_that_was_stored() {
        let record = Record::new();
        assert_eq!(record.load(), None);
        let symbols = [(0, true, 0x1000), (2, false, usize::MAX)];
        let symbols = symbols
            .map(|(row, is_versioned, address)| Outcome::Symbol { row, is_versioned, address })
            .into_iter();
        for outcome in FallbackReason::all().map(Outcome::Fallback).chain(symbols) {
            record.store(outcome);
            assert_eq!(record.load(), Some(outcome));
        }
    }
}
