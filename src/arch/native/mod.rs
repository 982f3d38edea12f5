//! The system call of the architecture that this build is for, and its table.

// The one choice of the architecture. build.rs has chosen the architectures that are in the list.
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "arm", path = "arm.rs")]
#[cfg_attr(target_arch = "loongarch64", path = "loongarch64.rs")]
#[cfg_attr(target_arch = "powerpc64", path = "powerpc64.rs")]
#[cfg_attr(target_arch = "riscv64", path = "riscv64.rs")]
#[cfg_attr(target_arch = "s390x", path = "s390x.rs")]
#[cfg_attr(target_arch = "x86", path = "x86.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod architecture;

pub(crate) use architecture::{ABI, syscall};

#[cfg(target_arch = "x86")]
pub(crate) use architecture::set_kernel_entry;
/// Does nothing: only the vDSO of `x86` has a function that enters the kernel.
///
/// # Safety
///
/// None is needed here. The function of `x86` calls the address.
#[cfg(not(target_arch = "x86"))]
pub(crate) unsafe fn set_kernel_entry(_address: usize) {}
