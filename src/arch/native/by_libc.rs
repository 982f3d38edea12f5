//! Makes system calls through libc.
//!
//! A program for powerpc64 makes its system calls through libc even if it calls the vDSO, because
//! inline assembly for powerpc64 is not stable in Rust 1.85. On every other architecture, only
//! programs that do not call the vDSO make their system calls through libc ([`ARCH`](crate::ARCH)
//! is `None` in them).

use crate::arch::libc_errno;

/// The numbers of the system calls that find and probe the image. A program that calls the vDSO
/// takes these numbers from `ABI`, the table of its architecture. A program that does not call the
/// vDSO has no `ABI`, so it takes the numbers from libc.
#[cfg(vdso_time_libc_fallback)]
pub(crate) const DISCOVERY: &crate::arch::Discovery = &crate::arch::Discovery {
    prctl: libc::SYS_prctl as u32,
    openat: libc::SYS_openat as u32,
    read: libc::SYS_read as u32,
    close: libc::SYS_close as u32,
    rt_sigprocmask: libc::SYS_rt_sigprocmask as u32,
};

/// `O_CLOEXEC | O_NONBLOCK`. The values are libc's, because some of the architectures without a
/// table, such as mips and sparc, have values of their own for these flags.
#[cfg(vdso_time_libc_fallback)]
pub(crate) const OPEN_FLAGS: usize = (libc::O_CLOEXEC | libc::O_NONBLOCK) as usize;

/// Enters the kernel. A result in `-4095..=-1` is a negated error number. `errno` does not
/// change.
///
/// # Safety
///
/// The system call must be sound with these arguments.
#[allow(clippy::cast_lossless, reason = "a `long` has 32 bits on some targets")]
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    if cfg!(miri) {
        return -(libc::ENOSYS as isize);
    }
    let [first, second, third, fourth, fifth] = args;
    let (result, error) = libc_errno::preserved(|| {
        // SAFETY: the caller promises that the call is sound.
        unsafe { libc::syscall(number as libc::c_long, first, second, third, fourth, fifth) }
    });
    if result == -1 {
        -(error as isize)
    } else {
        result as isize
    }
}
