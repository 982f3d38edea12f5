//! The outcomes that the first call recorded.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::elf::ParseError;
use crate::route::{FallbackReason, LocateError, Outcome};

/// The outcome of one function in this process, as two words for `routes()`. A thread that sees the
/// code also sees what was stored before it.
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

    /// Returns whether a symbol answers.
    pub(super) fn is_symbol(&self) -> bool {
        !matches!(self.code.load(Ordering::Relaxed), 0 | FALLBACK..)
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
