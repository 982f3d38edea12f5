//! The counter of the architecture that this build is for, as the module `native`.
//!
//! Each file has the same items:
//!
//! - `CLOCK_SOURCES`: the names of the kernel's clock sources that read this counter. Empty if this
//!   crate can read no counter.
//! - `PRCTL` and `ADJTIMEX`: the numbers of two system calls.
//! - `IS_READABLE`: whether every program may read the counter.
//! - `ticks` reads the counter. The CPU may read it before earlier instructions have completed.
//! - `ticks_ordered` reads it after all earlier instructions have completed. On aarch64, only after
//!   the loads on which an earlier branch depends: `complete_loads` waits for the others.
//! - `order`: where `IS_ORDERED_FIRST`, the next `ticks` is an ordered read that does not wait for
//!   the loads between the two.
//! - `detect` looks for optional instructions of the CPU.
//! - `is_invariant`: whether the rate is constant in all power states.
//! - `stated_frequency`: the counter's rate in Hz, if the hardware states it.

#![allow(unsafe_code, reason = "reads of the counter are assembly")]

#[cfg(not(any(miri, vdso_time_other_os, not(any(target_os = "linux", target_os = "android")))))]
#[cfg_attr(all(target_arch = "aarch64", target_pointer_width = "64"), path = "aarch64.rs")]
#[cfg_attr(target_arch = "arm", path = "arm.rs")]
#[cfg_attr(target_arch = "loongarch64", path = "loongarch64.rs")]
#[cfg_attr(target_arch = "powerpc64", path = "powerpc64.rs")]
#[cfg_attr(target_arch = "riscv64", path = "riscv64.rs")]
#[cfg_attr(target_arch = "s390x", path = "s390x.rs")]
#[cfg_attr(target_arch = "x86", path = "x86.rs")]
#[cfg_attr(all(target_arch = "x86_64", target_pointer_width = "64"), path = "x86.rs")]
pub(crate) mod native;

#[cfg(any(miri, vdso_time_other_os, not(any(target_os = "linux", target_os = "android"))))]
pub(crate) mod native;
