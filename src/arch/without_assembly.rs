//! What a build without inline assembly has.

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
