//! The system call of `powerpc64`, through libc: inline assembly is not stable there on Rust 1.85.

use crate::arch::libc_errno;
pub(crate) use crate::arch::table::powerpc64::ABI;

/// Enters the kernel. A result in `-4095..=-1` is a negated error number. `errno` does not
/// change.
///
/// # Safety
///
/// The system call must be sound with these arguments.
pub(crate) unsafe fn syscall(number: u32, args: [usize; 5]) -> isize {
    let [first, second, third, fourth, fifth] = args;
    let (result, error) = libc_errno::preserved(|| {
        // SAFETY: the caller promises that the call is sound.
        unsafe { libc::syscall(number.into(), first, second, third, fourth, fifth) }
    });
    if result == -1 { -(error as isize) } else { result as isize }
}
