//! The code that makes a system call on the architecture of this build, and the architecture's
//! table.
//!
//! On x86 and arm, the code that makes a system call is the function `vdso_time_enter` in assembly.
//! A program may link several copies of this crate. The symbol of the function is weak, so that the
//! linker accepts several definitions and uses one of them. If LTO joins several copies, `.ifndef`
//! makes sure that the assembly defines the symbol only once. Either way all copies share one
//! definition. So a version of this crate that changes the arguments of the function must also
//! change its name.
//!
//! The symbol is hidden as well, which means that only code in the same shared object can refer to
//! it. The Rust function that calls `vdso_time_enter` is never inlined, because its own caller may
//! be in another shared object, in which the symbol would be undefined.

use crate::errno::Errno;

/// Defines the `syscall` function of an architecture from its assembly: the instruction, then the
/// registers for the number, the arguments and the result, and the other registers that the kernel
/// changes.
#[allow(
    unused_macros,
    reason = "some architectures use global assembly or libc instead"
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

// The architecture is chosen here and nowhere else. build.rs sets `vdso_time_libc_fallback` for an
// architecture that has no file here, and for a program that cannot call the vDSO.
#[cfg(all(target_arch = "aarch64", not(vdso_time_libc_fallback)))]
mod aarch64;
#[cfg(all(target_arch = "aarch64", not(vdso_time_libc_fallback)))]
use self::aarch64 as imp;

#[cfg(all(target_arch = "arm", not(vdso_time_libc_fallback)))]
mod arm;
#[cfg(all(target_arch = "arm", not(vdso_time_libc_fallback)))]
use self::arm as imp;

#[cfg(all(target_arch = "loongarch64", not(vdso_time_libc_fallback)))]
mod loongarch64;
#[cfg(all(target_arch = "loongarch64", not(vdso_time_libc_fallback)))]
use self::loongarch64 as imp;

#[cfg(all(target_arch = "powerpc64", not(vdso_time_libc_fallback)))]
mod powerpc64;
#[cfg(all(target_arch = "powerpc64", not(vdso_time_libc_fallback)))]
use self::powerpc64 as imp;

#[cfg(all(target_arch = "riscv64", not(vdso_time_libc_fallback)))]
mod riscv64;
#[cfg(all(target_arch = "riscv64", not(vdso_time_libc_fallback)))]
use self::riscv64 as imp;

#[cfg(all(target_arch = "s390x", not(vdso_time_libc_fallback)))]
mod s390x;
#[cfg(all(target_arch = "s390x", not(vdso_time_libc_fallback)))]
use self::s390x as imp;

#[cfg(all(target_arch = "x86", not(vdso_time_libc_fallback)))]
mod x86;
#[cfg(all(target_arch = "x86", not(vdso_time_libc_fallback)))]
use self::x86 as imp;

#[cfg(all(target_arch = "x86_64", not(vdso_time_libc_fallback)))]
mod x86_64;
#[cfg(all(target_arch = "x86_64", not(vdso_time_libc_fallback)))]
use self::x86_64 as imp;

#[cfg(any(vdso_time_libc_fallback, target_arch = "powerpc64"))]
mod by_libc;

#[cfg(vdso_time_libc_fallback)]
pub(crate) use by_libc::{DISCOVERY, OPEN_FLAGS, syscall};
#[cfg(not(vdso_time_libc_fallback))]
pub(crate) use imp::{ABI, syscall};

/// The numbers of the system calls that find the vDSO and check whether its pages can be read.
#[cfg(not(vdso_time_libc_fallback))]
pub(crate) const DISCOVERY: &crate::arch::Discovery = &ABI.discovery;

/// `O_CLOEXEC | O_NONBLOCK`, which are the same numbers on every architecture with a table.
#[cfg(not(vdso_time_libc_fallback))]
pub(crate) const OPEN_FLAGS: usize = 0o2_000_000 | 0o4000;

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

#[cfg(all(target_arch = "x86", not(vdso_time_libc_fallback)))]
pub(crate) use imp::set_kernel_entry;
/// Does nothing, because only the vDSO of `x86` has a function that enters the kernel. The address
/// is not used, so any address is sound.
#[cfg(not(all(target_arch = "x86", not(vdso_time_libc_fallback))))]
pub(crate) unsafe fn set_kernel_entry(_address: usize) {}

/// Makes a system call.
///
/// # Errors
///
/// The kernel's error, if the result is in `-4095..=-1`.
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[allow(
    clippy::inline_always,
    reason = "so that its arguments stay in registers"
)]
#[inline(always)]
pub unsafe fn checked(number: u32, args: [usize; 5]) -> Result<usize, Errno> {
    // SAFETY: the caller promises that the call is sound.
    let result = unsafe { syscall(number, args) };
    if (-4095..=-1).contains(&result) {
        return Err(Errno::from_raw_os_error(-result as i32).unwrap_or(Errno::EINVAL));
    }
    Ok(result as usize)
}
