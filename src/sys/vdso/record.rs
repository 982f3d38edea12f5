//! What the first call found, for `routes()`.

use core::sync::atomic::{AtomicUsize, Ordering};

use crate::choice::{ChosenSymbol, FallbackReason, LocateError, Outcome};
use crate::elf::ParseError;

/// The outcome of one function, as two words. A thread that sees the first word (`Acquire`) also
/// sees all that was stored before it (`Release`): the second word, and every slot.
///
/// It changes as its slot does: a fallback replaces no other outcome. A symbol replaces a fallback,
/// and its words are the same in every thread that finds it. So the words of two threads agree.
pub(super) struct Record {
    /// 0 until a first call has filled the slots. For a symbol: [`SYMBOL`], plus twice its row,
    /// plus 1 if the image has versions. For a fallback: 1, plus the index of its reason in
    /// [`REASONS`].
    outcome: AtomicUsize,
    address: AtomicUsize,
}

const SYMBOL: usize = 1 << 8;

/// The records, in the order of [`Abi::functions`].
pub(super) static RECORDS: [Record; 5] = [const { Record::new() }; 5];

const REASONS: [FallbackReason; 7 + ParseError::ALL.len()] = {
    use LocateError::{Absent, Malformed, Unchecked, Unmapped};
    let mut reasons = [FallbackReason::NoSymbol; 7 + ParseError::ALL.len()];
    reasons[1] = FallbackReason::ForeignImage;
    reasons[2] = FallbackReason::BlankedNames;
    reasons[3] = FallbackReason::NonzeroLoadAddress;
    reasons[4] = FallbackReason::NoVdso(Absent);
    reasons[5] = FallbackReason::NoVdso(Unmapped);
    reasons[6] = FallbackReason::NoVdso(Unchecked);
    let mut error = 0;
    while error < ParseError::ALL.len() {
        reasons[7 + error] = FallbackReason::NoVdso(Malformed(ParseError::ALL[error]));
        error += 1;
    }
    reasons
};

impl Record {
    const fn new() -> Self {
        Self { outcome: AtomicUsize::new(0), address: AtomicUsize::new(0) }
    }

    #[inline(never)]
    pub(super) fn store(&self, outcome: &Outcome) {
        match outcome {
            Ok(symbol) => {
                self.address.store(symbol.address, Ordering::Relaxed);
                let outcome = SYMBOL + 2 * symbol.row + usize::from(symbol.is_versioned);
                self.outcome.store(outcome, Ordering::Release);
            }
            Err(reason) => {
                let outcome = 1 + REASONS.iter().take_while(|other| *other != reason).count();
                let _ = self.outcome.compare_exchange(0, outcome, Ordering::Release, Ordering::Relaxed);
            }
        }
    }

    /// Returns the outcome, or `None` before the first call. The size of a symbol is not recorded.
    pub(super) fn load(&self) -> Option<Outcome> {
        let outcome = self.outcome.load(Ordering::Acquire);
        if let Some(symbol) = outcome.checked_sub(SYMBOL) {
            let address = self.address.load(Ordering::Relaxed);
            return Some(Ok(ChosenSymbol {
                row: symbol / 2,
                is_versioned: symbol % 2 == 1,
                address,
                size: 0,
            }));
        }
        Some(Err(*REASONS.get(outcome.checked_sub(1)?)?))
    }
}
