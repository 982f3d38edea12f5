//! No counter that this crate can read.

/// No call has this number.
const NONE: u32 = u32::MAX;

pub(crate) static CLOCK_SOURCES: &[&str] = &[];
pub(crate) const PRCTL: u32 = NONE;
pub(crate) const ADJTIMEX: u32 = NONE;
pub(crate) const IS_READABLE: bool = false;
pub(crate) const IS_ORDERED_FIRST: bool = false;

pub(crate) fn ticks() -> u64 {
    0
}

pub(crate) fn ticks_ordered() -> u64 {
    0
}

pub(crate) fn complete_loads() {}

pub(crate) fn order() {}

pub(crate) fn detect(_auxval: fn(usize) -> usize) {}

pub(crate) fn is_invariant() -> bool {
    false
}

pub(crate) fn stated_frequency() -> Option<u64> {
    None
}
