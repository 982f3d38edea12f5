//! What keeps a measured routine from beginning before its measurement has.

#![allow(unsafe_code, reason = "a fence is an instruction")]

use std::arch::asm;

/// Lets nothing behind begin before what is before is done.
#[inline]
pub(crate) fn begin() {
    // SAFETY: the instruction touches neither memory nor registers.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    unsafe {
        asm!("lfence", options(nostack, preserves_flags));
    };
    // SAFETY: the same.
    #[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
    unsafe {
        asm!("isb", options(nostack, preserves_flags));
    };
}
