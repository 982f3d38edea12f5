//! The counter of the architecture that this build is for: [`CpuCounter`].

#![allow(unsafe_code, reason = "reads of the counter are assembly")]

mod counter;

#[cfg_attr(
    all(target_arch = "aarch64", target_pointer_width = "64"),
    path = "aarch64.rs"
)]
#[cfg_attr(target_arch = "arm", path = "arm.rs")]
#[cfg_attr(target_arch = "loongarch64", path = "loongarch64.rs")]
#[cfg_attr(target_arch = "riscv64", path = "riscv64.rs")]
#[cfg_attr(target_arch = "s390x", path = "s390x.rs")]
#[cfg_attr(target_arch = "x86", path = "x86.rs")]
#[cfg_attr(
    all(target_arch = "x86_64", target_pointer_width = "64"),
    path = "x86.rs"
)]
#[cfg(not(any(
    miri,
    vdso_time_other_os,
    not(any(target_os = "linux", target_os = "android"))
)))]
mod native;

#[cfg(any(
    miri,
    vdso_time_other_os,
    not(any(target_os = "linux", target_os = "android"))
))]
mod native;

pub(crate) use counter::Counter;
pub(crate) use native::CpuCounter;
