//! `loongarch64`: the stable counter (LoongArch Reference Manual, volume 1, 2.2.10.4).
//!
//! `dbar 0` waits for earlier memory accesses, and `ibar 0` for `dbar 0`.

use core::arch::asm;

pub(crate) static CLOCK_SOURCES: &[&str] = &["Constant"];
pub(crate) const PRCTL: u32 = 167;
pub(crate) const ADJTIMEX: u32 = 171;

pub(crate) const IS_READABLE: bool = true;
pub(crate) const IS_ORDERED_FIRST: bool = false;

#[inline]
pub(crate) fn ticks() -> u64 {
    let ticks;
    // SAFETY: the instruction only writes its output.
    unsafe { asm!("rdtime.d {}, $zero", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

#[inline]
pub(crate) fn ticks_ordered() -> u64 {
    let ticks;
    // SAFETY: the instructions only write the output. Without `nomem`, the compiler does not move
    // memory accesses across the read.
    unsafe {
        asm!("dbar 0", "ibar 0", "rdtime.d {}, $zero", out(reg) ticks, options(nostack, preserves_flags));
    };
    ticks
}

/// Does nothing: `ticks_ordered` waits for earlier loads.
pub(crate) fn complete_loads() {}

pub(crate) fn order() {}

pub(crate) fn detect(_auxval: fn(usize) -> usize) {}

pub(crate) fn is_invariant() -> bool {
    true
}

pub(crate) fn stated_frequency() -> Option<u64> {
    None
}
