//! What a build without inline assembly has.

/// No counter.
#[cfg(feature = "counter")]
pub(crate) mod counter {
    pub(crate) const IS_READABLE: bool = false;
    pub(crate) const IS_PER_CPU: bool = false;

    pub(crate) fn ticks() -> u64 {
        0
    }

    pub(crate) fn ticks_ordered() -> u64 {
        0
    }

    pub(crate) fn is_invariant() -> bool {
        false
    }

    pub(crate) fn stated_frequency() -> Option<u64> {
        None
    }
}

/// No rseq area: libc's or the vDSO's getcpu answers.
pub(crate) mod rseq {
    pub(crate) const NEEDED_HWCAP: Option<usize> = None;

    pub(crate) fn symbols() -> (*const isize, *const u32) {
        (core::ptr::null(), core::ptr::null())
    }

    pub(crate) unsafe fn read(_: isize) -> u32 {
        u32::MAX
    }
}
