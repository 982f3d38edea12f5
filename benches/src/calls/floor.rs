//! The least that a clock on the counter does.

#![allow(unsafe_code, reason = "inline assembly")]

#[cfg(target_arch = "x86_64")]
use std::arch::asm;
use std::sync::atomic::{AtomicU64, Ordering};

use vdso_time::Instant;

#[repr(align(64))]
struct Line([AtomicU64; 4]);

static LINE: Line = Line([const { AtomicU64::new(1) }; 4]);

fn word(at: usize) -> u64 {
    LINE.0[at].load(Ordering::Relaxed)
}

/// Returns the time of a read of the counter.
#[inline]
pub(super) fn line(ticks: impl FnOnce() -> u64) -> u64 {
    let tick = ticks();
    let past = tick.wrapping_sub(word(0));
    let low = low_half(tick).wrapping_sub(word(0) as u32);
    let nanos = word(1).wrapping_add(u64::from(low).wrapping_mul(word(2)) >> 32);
    if past < u64::MAX - word(3) {
        nanos
    } else {
        other()
    }
}

/// Returns the low half of a tick, which is ready earlier than the whole tick: see the function of
/// this name in crates/vdso-time-counter/src/machine/arch/native/x86.rs.
fn low_half(tick: u64) -> u32 {
    #[cfg_attr(not(target_arch = "x86_64"), expect(unused_mut))]
    let mut low = tick as u32;
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the assembly is a comment, so it changes nothing.
    unsafe {
        asm!("/* {0:e} */", inout(reg) low, options(pure, nomem, nostack, preserves_flags));
    }
    low
}

#[cold]
#[inline(never)]
fn other() -> u64 {
    word(1)
}

/// Compares the counter with a word, reads the vDSO if the word is out of date, and keeps the
/// answer in the same cache line.
#[inline(never)]
pub(super) fn rested() -> u64 {
    if line(super::ticks) == 0 {
        return other();
    }
    let nanos = Instant::now().as_nanos() as u64;
    LINE.0[3]
        .fetch_max(nanos >> 32, Ordering::Relaxed)
        .max(nanos)
}
