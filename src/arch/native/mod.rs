//! The system call of the architecture that this build is for, and its table.

use crate::errno::Errno;

/// Defines the system call of an architecture by its assembly: the instruction, then the registers
/// of the number, of the arguments and of the result, and those that the kernel changes.
#[allow(
    unused_macros,
    reason = "some architectures have a function in assembly, and some libc's"
)]
macro_rules! system_call {
    ($(#[$inline:meta])* ($number:ident, $args:ident, $result:ident) { $($assembly:tt)+ }) => {
        /// Enters the kernel. A result in `-4095..=-1` is a negated error number.
        ///
        /// # Safety
        ///
        /// The system call must be sound with these arguments.
        $(#[$inline])*
        pub(crate) unsafe fn syscall(number: u32, $args: [usize; 5]) -> isize {
            let $number = number as usize;
            let $result;
            // SAFETY: the caller promises that the call is sound. Every register that the kernel
            // changes is an output, or the function is not inlined and its callers do not rely on
            // the register.
            unsafe { core::arch::asm!($($assembly)+ options(nostack)) };
            $result
        }
    };
}

// The architecture is chosen here and nowhere else. build.rs sets the cfg for one that has no file
// here.
#[cfg(not(vdso_time_libc_fallback))]
#[cfg_attr(target_arch = "aarch64", path = "aarch64.rs")]
#[cfg_attr(target_arch = "arm", path = "arm.rs")]
#[cfg_attr(target_arch = "loongarch64", path = "loongarch64.rs")]
#[cfg_attr(target_arch = "powerpc64", path = "powerpc64.rs")]
#[cfg_attr(target_arch = "riscv64", path = "riscv64.rs")]
#[cfg_attr(target_arch = "s390x", path = "s390x.rs")]
#[cfg_attr(target_arch = "x86", path = "x86.rs")]
#[cfg_attr(target_arch = "x86_64", path = "x86_64.rs")]
mod architecture;
#[cfg(any(vdso_time_libc_fallback, target_arch = "powerpc64"))]
mod by_libc;

#[cfg(not(vdso_time_libc_fallback))]
pub(crate) use architecture::{ABI, syscall};
#[cfg(vdso_time_libc_fallback)]
pub(crate) use by_libc::{DISCOVERY, syscall};

/// The numbers of the system calls that find and probe the image.
#[cfg(not(vdso_time_libc_fallback))]
pub(crate) const DISCOVERY: &crate::arch::Discovery = &ABI.discovery;

/// The size of the kernel's `sigset_t`.
pub(crate) const SIGSET_SIZE: usize = if cfg!(any(
    target_arch = "mips",
    target_arch = "mips32r6",
    target_arch = "mips64",
    target_arch = "mips64r6"
)) {
    16
} else {
    8
};

#[cfg(target_arch = "x86")]
pub(crate) use architecture::set_kernel_entry;
/// Does nothing, which is sound for any address: only the vDSO of `x86` has such a function.
#[cfg(not(target_arch = "x86"))]
pub(crate) unsafe fn set_kernel_entry(_address: usize) {}

/// Makes a system call.
///
/// # Errors
///
/// The kernel's: a result in `-4095..=-1`.
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[allow(clippy::inline_always, reason = "its arguments are registers then")]
#[inline(always)]
pub unsafe fn checked(number: u32, args: [usize; 5]) -> Result<usize, Errno> {
    // SAFETY: the caller promises that the call is sound.
    let result = unsafe { syscall(number, args) };
    if (-4095..=-1).contains(&result) {
        return Err(Errno::from_raw_os_error(-result as i32).unwrap_or(Errno::EINVAL));
    }
    Ok(result as usize)
}
