//! The instructions around a call: the fence after an isolated one, the space before a loop.

#![allow(unsafe_code, reason = "a fence and a space are instructions")]

use std::arch::asm;

/// Waits until what came before is done, loads included, before what follows begins.
#[inline]
pub(super) fn wait() {
    // SAFETY: the instruction touches neither memory nor registers.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    unsafe {
        asm!("lfence", options(nostack, preserves_flags));
    };
    // SAFETY: the same. An `isb` alone waits for no load: the barrier before it does.
    #[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
    unsafe {
        asm!("dsb sy", "isb", options(nostack, preserves_flags));
    };
    // Elsewhere the strongest fence without assembly; what it waits for is the architecture's affair.
    #[cfg(not(any(
        target_arch = "x86",
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "arm"
    )))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Fills a quarter of a cache line so many times: what follows lies that much later.
#[inline]
pub(super) fn skip<const TIMES: usize>() {
    const NOP: usize = if cfg!(any(target_arch = "x86", target_arch = "x86_64")) { 1 } else { 4 };
    // SAFETY: it does nothing.
    unsafe {
        asm!(".rept {nops}", "nop", ".endr", nops = const TIMES * 16 / NOP, options(nomem, nostack, preserves_flags));
    }
}
