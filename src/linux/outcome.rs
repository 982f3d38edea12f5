//! Which symbol of an image answers each function, or why none does.

use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

use super::vdso::{self, LocateError};
use crate::arch::{Abi, Candidate, Function, Quirk, TIME32_FIRST};
use crate::elf::{Format, ParseError, ParsedImage};

/// Why a function is not answered by the vDSO.
///
/// ```
/// use vdso_time::{FallbackReason, Route, routes};
///
/// if let Route::Syscall { reason: FallbackReason::NoVdso(error), .. } = routes().time {
///     println!("{error}");
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FallbackReason {
    /// There was no vDSO at the first call, or none that can be read.
    NoVdso(LocateError),
    /// The image is for another architecture.
    ForeignImage,
    /// The image has none of the symbols that could answer.
    NoSymbol,
    /// A function of the image has a blank name. The kernel found no usable timer at boot, and took the
    /// names of the functions that read it (arch/arm/kernel/vdso.c, `vdso_nullpatch_one`). Kernels before
    /// 5.8 forgot `__vdso_clock_gettime64`, which then returns garbage, so no such image is trusted.
    BlankedNames,
    /// `p_vaddr` of the image is not 0: a loader relocated it, as QEMU's does with its own image, whose
    /// getcpu is wrong.
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

/// How one function is answered, as two words, which the first call of any function stores for `routes()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Outcome {
    /// 1 for the first row of the function's table, then one more for each row, plus [`VERSIONED`] if the
    /// image has versions. Or [`FALLBACK`] plus the number of a reason.
    code: usize,
    /// The address of the symbol.
    address: usize,
}

const VERSIONED: usize = 1 << 8;
const FALLBACK: usize = 1 << 9;

impl Outcome {
    fn symbol(row: usize, versioned: bool, address: usize) -> Self {
        Self { code: row + 1 + if versioned { VERSIONED } else { 0 }, address }
    }

    pub(super) fn fallback(reason: FallbackReason) -> Self {
        Self { code: FALLBACK + reason.code(), address: 0 }
    }

    /// The row of the symbol in the function's table, and its address.
    pub(super) fn row(self) -> Option<(usize, usize)> {
        let is_symbol = self.code & FALLBACK == 0;
        is_symbol.then(|| ((self.code & (VERSIONED - 1)).wrapping_sub(1), self.address))
    }

    /// Whether the image has versions.
    pub(super) fn is_versioned(self) -> bool {
        self.code & VERSIONED != 0
    }

    /// Why the system call answers.
    pub(super) fn reason(self) -> Option<FallbackReason> {
        FallbackReason::all().find(|reason| FALLBACK + reason.code() == self.code)
    }

    /// The same outcome with the symbol's value in the image for its address.
    pub(super) fn with_value<F: Format>(self, image: &ParsedImage<'_, F>) -> Self {
        let offset = (self.address as u64).wrapping_sub(image.base().addr() as u64);
        Self { address: offset.wrapping_add(image.origin()) as usize, ..self }
    }
}

/// Decides how an image answers each of [`Abi::functions`], in one pass over its symbols. The first of the
/// candidates that the image has wins.
#[inline(never)]
pub(super) fn outcomes<F: Format>(abi: &Abi, image: &ParsedImage<'_, F>, is_blanked: bool) -> [Outcome; 5] {
    if (image.machine(), image.class()) != (abi.machine, abi.class) {
        return [Outcome::fallback(FallbackReason::ForeignImage); 5];
    }
    let is_relocated = image.load_address() != 0;
    let flaw = |candidate: &Candidate| match candidate.unless {
        Some(Quirk::BlankedNames) if is_blanked => Some(FallbackReason::BlankedNames),
        Some(Quirk::Relocated) if is_relocated => Some(FallbackReason::RelocatedImage),
        _ => None,
    };
    let functions: [&Function; 5] =
        [&abi.time, &abi.gettimeofday, &abi.clock_gettime, &abi.clock_getres, &abi.getcpu];
    let mut rows = [(usize::MAX, 0); 5];
    for raw in image.raw_entries() {
        for (function, (row, address)) in functions.iter().zip(&mut rows) {
            for (index, candidate) in function.candidates.iter().enumerate() {
                let is_better = *row == usize::MAX || rank(function, index) < rank(function, *row);
                if is_better && raw.is_named(candidate.name) && flaw(candidate).is_none() {
                    if let Some(entry) = raw.entry(Some(abi.version)) {
                        (*row, *address) = (index, vdso::address(image, entry.value));
                    }
                }
            }
        }
    }
    let mut outcomes = [Outcome { code: 0, address: 0 }; 5];
    for ((outcome, function), (row, address)) in outcomes.iter_mut().zip(functions).zip(rows) {
        *outcome = if row == usize::MAX {
            let flaw = function.candidates.iter().find_map(flaw);
            Outcome::fallback(flaw.unwrap_or(FallbackReason::NoSymbol))
        } else {
            Outcome::symbol(row, image.has_versions(), address)
        };
    }
    outcomes
}

/// The place of a row in the order in which symbols are preferred.
///
/// The 64-bit symbols of a 32-bit vDSO make the 64-bit system call for the clocks that they cannot read,
/// for which Android may kill. So there the 32-bit symbols come first, as bionic has it.
fn rank(function: &Function, row: usize) -> usize {
    let is_time32 =
        |row: usize| function.candidates.get(row).is_some_and(|candidate| candidate.shape.is_time32());
    if TIME32_FIRST && !is_time32(row) { row + function.candidates.len() } else { row }
}

/// The outcome of one function in this process.
///
/// If two threads find different outcomes (a sandbox around one of them), the two words may be a mixture.
/// The slots do not depend on them.
pub(super) struct Record {
    /// 0 before the first call.
    code: AtomicUsize,
    address: AtomicUsize,
}

/// The records, in the order of [`Abi::functions`].
pub(super) static RECORDS: [Record; 5] = [const { Record::new() }; 5];

impl Record {
    const fn new() -> Self {
        Self { code: AtomicUsize::new(0), address: AtomicUsize::new(0) }
    }

    pub(super) fn store(&self, outcome: Outcome) {
        self.address.store(outcome.address, Ordering::Relaxed);
        self.code.store(outcome.code, Ordering::Relaxed);
    }

    /// The outcome, if there was a first call.
    pub(super) fn load(&self) -> Option<Outcome> {
        let outcome = Outcome {
            code: self.code.load(Ordering::Relaxed),
            address: self.address.load(Ordering::Relaxed),
        };
        (outcome.code != 0).then_some(outcome)
    }
}

impl FallbackReason {
    /// A number for each reason.
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

    /// Every reason.
    fn all() -> impl Iterator<Item = Self> {
        let malformed = ParseError::ALL.into_iter().map(LocateError::Malformed);
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
    fn every_outcome_is_loaded_as_it_was_stored() {
        let record = Record::new();
        assert_eq!(record.load(), None);
        for (index, reason) in FallbackReason::all().enumerate() {
            assert_eq!(reason.code(), index);
            record.store(Outcome::fallback(reason));
            let loaded = record.load().unwrap();
            assert_eq!((loaded.reason(), loaded.row()), (Some(reason), None));
        }
        for (row, versioned, address) in [(0, true, 0x1000), (2, false, usize::MAX)] {
            record.store(Outcome::symbol(row, versioned, address));
            let loaded = record.load().unwrap();
            let found = (loaded.row(), loaded.is_versioned(), loaded.reason());
            assert_eq!(found, (Some((row, address)), versioned, None));
        }
    }
}
