//! The counter of the architecture, as a Linux program reads it.

#![allow(unsafe_code, reason = "reads of the counter are assembly")]

// The architecture is chosen here and nowhere else.
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64"))]
mod aarch64;
#[cfg(all(target_arch = "aarch64", target_pointer_width = "64"))]
use aarch64 as imp;

#[cfg(target_arch = "arm")]
mod arm;
#[cfg(target_arch = "arm")]
use arm as imp;

#[cfg(target_arch = "loongarch64")]
mod loongarch64;
#[cfg(target_arch = "loongarch64")]
use loongarch64 as imp;

#[cfg(target_arch = "riscv64")]
mod riscv64;
#[cfg(target_arch = "riscv64")]
use riscv64 as imp;

#[cfg(target_arch = "s390x")]
mod s390x;
#[cfg(target_arch = "s390x")]
use s390x as imp;

// The time-stamp counter. On `x86_64`, the condition on the pointer width excludes x32 programs,
// whose pointers have 32 bits: vdso-time has no table for x32, and calls libc there.
#[cfg(any(
    target_arch = "x86",
    all(target_arch = "x86_64", target_pointer_width = "64")
))]
mod x86;
#[cfg(any(
    target_arch = "x86",
    all(target_arch = "x86_64", target_pointer_width = "64")
))]
use x86 as imp;

#[cfg(not(any(
    all(target_arch = "aarch64", target_pointer_width = "64"),
    target_arch = "arm",
    target_arch = "loongarch64",
    target_arch = "riscv64",
    target_arch = "s390x",
    target_arch = "x86",
    all(target_arch = "x86_64", target_pointer_width = "64"),
)))]
use super::none as imp;

pub(crate) use imp::CpuCounter;
