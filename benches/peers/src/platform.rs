//! What is not written in plain Rust: the bare counter, glibc's getcpu.

#![allow(unsafe_code, reason = "instructions, and a function of libc")]

use std::arch::asm;
use std::ffi::{c_int, c_uint};
use std::mem::MaybeUninit;

use vdso_time_benches::harness::Contender;
use vdso_time_benches::rows::keep::Keep;

/// A read of the counter, as a constant, so that a loop is compiled for it.
#[derive(Clone, Copy)]
pub enum Read {
    /// As early as the CPU likes.
    Bare,
    /// After all that is before.
    Fenced,
    /// The instruction that waits by itself; x86.
    Waiting,
}

/// The floors of the counter clocks.
pub const COUNTERS: &[(&str, Read)] =
    if cfg!(target_arch = "x86_64") { &[("rdtsc", Read::Bare)] } else { &[("cntvct", Read::Bare)] };

/// Those of the ordered ones.
pub const ORDERED: &[(&str, Read)] = if cfg!(target_arch = "x86_64") {
    &[("lfence; rdtsc", Read::Fenced), ("rdtscp", Read::Waiting)]
} else {
    &[("isb; cntvct", Read::Fenced)]
};

pub fn contender(name: &'static str, read: Read) -> Contender {
    match read {
        Read::Bare => Contender::new(name, || bare().keep()),
        Read::Fenced => Contender::new(name, || fenced().keep()),
        Read::Waiting => Contender::new(name, || waiting().keep()),
    }
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn bare() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: it reads the counter, into edx and eax.
    unsafe { asm!("rdtsc", out("eax") low, out("edx") high, options(nomem, nostack, preserves_flags)) };
    high << 32 | low
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn fenced() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as in `bare`.
    unsafe { asm!("lfence", "rdtsc", out("eax") low, out("edx") high, options(nostack, preserves_flags)) };
    high << 32 | low
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn waiting() -> u64 {
    let (low, high): (u64, u64);
    // SAFETY: as in `bare`; ecx is the CPU's number.
    unsafe {
        asm!("rdtscp", out("eax") low, out("edx") high, out("ecx") _, options(nostack, preserves_flags));
    };
    high << 32 | low
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn bare() -> u64 {
    let ticks: u64;
    // SAFETY: it reads the counter.
    unsafe { asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

#[cfg(target_arch = "aarch64")]
#[inline]
fn fenced() -> u64 {
    let ticks: u64;
    // SAFETY: as in `bare`.
    unsafe { asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags)) };
    ticks
}

#[cfg(target_arch = "aarch64")]
fn waiting() -> u64 {
    fenced()
}

unsafe extern "C" {
    /// glibc 2.29 has it, the libc crate has not.
    fn getcpu(cpu: *mut c_uint, node: *mut c_uint) -> c_int;
}

/// The CPU and the node, by libc.
#[inline]
pub fn libc_getcpu() {
    let (mut cpu, mut node) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: libc writes to both places.
    if unsafe { getcpu(cpu.as_mut_ptr(), node.as_mut_ptr()) } == 0 {
        // SAFETY: it said that it did.
        unsafe { cpu.assume_init() }.keep();
        // SAFETY: the same.
        unsafe { node.assume_init() }.keep();
    }
}

/// Stops for the tracer.
pub fn breakpoint() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the tracer goes on behind it.
    unsafe {
        asm!("int3");
    }
}
