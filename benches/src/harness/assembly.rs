//! The instructions around a measured call.

#![allow(unsafe_code, reason = "inline assembly")]

#[cfg(not(target_arch = "powerpc64"))] // its inline assembly is not stable in Rust 1.85
use std::arch::asm;

/// Waits until all earlier instructions, loads included, are done.
#[inline]
pub(super) fn fence() {
    // SAFETY: the instruction touches neither memory nor registers.
    #[cfg(any(target_arch = "x86", target_arch = "x86_64"))]
    unsafe {
        asm!("lfence", options(nostack, preserves_flags));
    };
    // SAFETY: the instructions touch neither memory nor registers. `isb` alone waits for no load.
    #[cfg(any(target_arch = "aarch64", target_arch = "arm"))]
    unsafe {
        asm!("dsb sy", "isb", options(nostack, preserves_flags));
    };
    #[cfg(not(any(
        target_arch = "x86",
        target_arch = "x86_64",
        target_arch = "aarch64",
        target_arch = "arm"
    )))]
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
}

/// Moves the code that follows by `TIMES` quarters of a cache line.
#[inline]
pub(super) fn skip<const TIMES: usize>() {
    #[cfg(not(target_arch = "powerpc64"))]
    const NOP: usize = if cfg!(any(target_arch = "x86", target_arch = "x86_64")) {
        1
    } else {
        4
    };
    // SAFETY: `nop` does nothing.
    #[cfg(not(target_arch = "powerpc64"))]
    unsafe {
        asm!(".rept {nops}", "nop", ".endr", nops = const TIMES * 16 / NOP, options(nomem, nostack, preserves_flags));
    }
}

/// Puts one of three kinds of instructions between a fence and the call: none, one that does
/// nothing, or a store.
#[inline]
pub(super) fn between<const KIND: usize>() {
    match KIND {
        1 => {
            // SAFETY: `nop` does nothing.
            #[cfg(not(target_arch = "powerpc64"))]
            unsafe {
                asm!("nop", options(nomem, nostack, preserves_flags));
            };
        }
        2 => {
            std::hint::black_box(KIND);
        }
        _ => {}
    }
}
